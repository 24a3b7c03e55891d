"""From recorded requests to steps: every form of a log, whose asking counts, and what is bad."""

import gzip
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.capture.day import exports, reading
from kumulus.extras.capture.day.importing import import_day, lines
from kumulus.extras.capture.day.intent import Day, counts
from kumulus.extras.capture.day.nodes import NotUnderstood, patched
from kumulus.extras.capture.day.requests import RequestCounts, Unusable
from kumulus.extras.capture.dumps import FileRefused
from kumulus.extras.lab.file.load import load
from tests.support.misshapen import misshapen

GROUPS = {"deployments": "apps", "replicasets": "apps", "statefulsets": "apps", "jobs": "batch", "pods": ""}
KINDS = {"deployments": "Deployment", "replicasets": "ReplicaSet", "jobs": "Job", "pods": "Pod"}
SPEC = {"containers": [{"name": "main", "image": "secret.example/app:1", "resources": {"requests": {"cpu": "2"}}}]}


def event(verb: str, resource: str, name: str, second: float = 0.0, **more: Any) -> dict[str, Any]:
    """An event as an API server logs it; ``body``, ``sent``, ``sub``, ``user``, ``program``, ``code``, ``uri``."""
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "auditID": "x",
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": more.get("uri", "/x"),
        "user": {"username": more.get("user", "jane")},
        "userAgent": more.get("program", "kubectl/v1.35"),
        "objectRef": {
            "resource": resource,
            "namespace": more.get("namespace", "shop"),
            "name": name,
            "apiGroup": GROUPS.get(resource, ""),
            "apiVersion": "v1",
            "subresource": more.get("sub", ""),
        },
        "responseStatus": {"code": more.get("code", 201 if verb == "create" else 200)},
        "requestReceivedTimestamp": f"2026-11-22T09:00:{second:09.6f}Z",
        **({"requestObject": more["sent"]} if "sent" in more else {}),
        **({"responseObject": more["body"]} if "body" in more else {}),
    }


def thing(kind: str, name: str, owner: tuple[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """An object with a pod template, or a pod."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}
    metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    body = dict(SPEC) if kind == "Pod" else {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"kind": kind, "metadata": metadata, "spec": {**body, **spec}}


def web(replicas: int = 2, second: float = 0.0, **more: Any) -> dict[str, Any]:
    return event("create", "deployments", "web", second, body=thing("Deployment", "web", replicas=replicas), **more)


def made_by_web(name: str = "web-1-a", second: float = 1.0) -> list[dict[str, Any]]:
    """What the controllers make of the Deployment."""
    control = {"user": "system:kube-controller-manager", "program": "kube-controller-manager/v1.35"}
    replica_set = thing("ReplicaSet", "web-1", ("Deployment", "web"))
    pod = thing("Pod", name, ("ReplicaSet", "web-1"))
    return [
        event("create", "replicasets", "web-1", second, body=replica_set, **control),
        event("create", "pods", name, second, body=pod, **control),
    ]


def logged(tmp_path: Path, events: Iterable[Any]) -> Path:
    file = tmp_path / "audit.log"
    file.write_text("".join(json.dumps(each) + "\n" for each in events))
    return file


def day_of(tmp_path: Path, events: Iterable[Any]) -> Day:
    day, counted = Day(), RequestCounts()
    for request in sorted(reading.read(logged(tmp_path, events), counted), key=lambda each: each.at):
        day.take(request)
    assert counted.bad == []
    return day


def doings(day: Day) -> list[tuple[str, str]]:
    return [(step.do, step.job) for step in day.steps]


def test_pods_of_a_deployment_that_was_there_before_are(tmp_path: Path) -> None:
    day = day_of(tmp_path, made_by_web())
    assert doings(day) == [("create", "ReplicaSet/shop/web-1")], "the ReplicaSet is new, its pods are its own"
    day = day_of(tmp_path, made_by_web()[1:])
    assert doings(day) == [("create", "Pod/shop/web-1-a")]


def test_what_a_controller_makes_before_it_sees_its_owners_end_is_not_asked_for(tmp_path: Path) -> None:
    deleted = event("delete", "replicasets", "web-1", 2.0)
    late = made_by_web("web-1-b", second=3.0)[1]
    day = day_of(tmp_path, [web(), *made_by_web(), deleted, late])
    assert doings(day) == [("create", "Deployment/shop/web")]
    found = [(pod.job, pod.cpu) for pod in day.pods.every]
    assert found == [("Deployment/shop/web", 2000)], "the garbage collector removes the second"
    again = thing("ReplicaSet", "web-1", ("Deployment", "web"))
    day = day_of(
        tmp_path, [web(), *made_by_web(), deleted, event("create", "replicasets", "web-1", 2.5, body=again), late]
    )
    assert len(day.pods.every) == 2, "an owner that was created again has pods again"


def test_an_image_is_not_kept_and_a_new_one_is_a_rollout(tmp_path: Path) -> None:
    later = thing("Deployment", "web", replicas=2)
    later["spec"]["template"] = {
        **later["spec"]["template"],
        "spec": {**SPEC, "containers": [{**SPEC["containers"][0], "image": "secret.example/app:2"}]},
    }
    day = day_of(tmp_path, [web(), event("patch", "deployments", "web", 3, sent={}, body=later)])
    assert doings(day) == [("create", "Deployment/shop/web"), ("change", "Deployment/shop/web")]
    assert list(day.steps[1].what["spec"]) == ["template"]
    assert "secret.example" not in json.dumps([step.what for step in day.steps])


@pytest.mark.parametrize(
    "change",
    [
        event("patch", "deployments", "web", 2, sub="scale", sent={"spec": {"replicas": 5}}),
        event("update", "deployments", "web", 2, sub="scale", sent={"spec": {"replicas": 5}}),
        event("patch", "deployments", "web", 2, sent={"spec": {"replicas": 5}}),
        event("patch", "deployments", "web", 2, sent=[{"op": "replace", "path": "/spec/replicas", "value": 5}]),
        event("patch", "deployments", "web", 2, body=thing("Deployment", "web", replicas=5)),
    ],
)  # fmt: skip
def test_a_scaling_is_one_however_it_is_asked_for(change: dict[str, Any], tmp_path: Path) -> None:
    day = day_of(tmp_path, [web(), change])
    assert [(step.do, step.what) for step in day.steps[1:]] == [("change", {"spec": {"replicas": 5}})]


def test_a_gang_is_one_again_and_the_groups_that_a_job_makes_are_the_jobs(tmp_path: Path) -> None:
    scheduling = {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}}
    gang = thing("Job", "train", parallelism=3, scheduling=scheduling)

    policy: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 3}}}

    def asked(kind: str, name: str, spec: dict[str, Any], owner: tuple[str, str] | None = None) -> dict[str, Any]:
        made = {**thing(kind, name, owner), "spec": spec, "apiVersion": "scheduling.k8s.io/v1beta1"}
        found = event("create", f"{kind.lower()}s", name, 1.0, body=made)
        found["objectRef"] |= {"apiGroup": "scheduling.k8s.io", "apiVersion": "v1beta1"}
        return found

    def group(name: str, workload: str, owner: tuple[str, str] | None = None) -> dict[str, Any]:
        return asked(
            "PodGroup", name, {**policy, "workloadRef": {"workloadName": workload, "templateName": "t"}}, owner
        )

    templates = {"podGroupTemplates": [{"name": "t", **policy}]}
    log = [
        event("create", "jobs", "train", body=gang),
        asked("Workload", "train", templates, ("Job", "train")),
        group("train-1", "train", ("Job", "train")),
        asked("Workload", "w", {"controllerRef": {"kind": "Training", "name": "w"}, **templates}),
        group("g", "w"),
    ]
    made = {step.job: step.what["object"] for step in day_of(tmp_path, log).steps}
    assert made.keys() == {"Job/shop/train", "Workload/shop/w", "PodGroup/shop/g"}
    assert made["Job/shop/train"]["spec"]["scheduling"] == scheduling
    assert made["Workload/shop/w"]["spec"] == templates
    assert made["PodGroup/shop/g"] == {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "shop"},
        "spec": {**policy, "workloadRef": {"workloadName": "w", "templateName": "t"}},
    }


CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}, {"name": "nic", "resourceClaimName": "nic"}]
ASKED = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}


def claim(resource: str, name: str, owner: str = "", **more: Any) -> dict[str, Any]:
    """The creation of a claim, or of a template of claims; as v1beta1 has it, if it is of that version."""
    kind = {"resourceclaims": "ResourceClaim", "resourceclaimtemplates": "ResourceClaimTemplate"}[resource]
    body = thing(kind, name, ("Pod", owner) if owner else None)
    body["spec"] = ASKED if kind == "ResourceClaim" else {"spec": ASKED}
    body["status"] = {"allocation": {"devices": {"results": []}}}
    asked = event("create", resource, name, **{"second": 0.5, "body": body, **more})
    asked["objectRef"] |= {"apiGroup": "resource.k8s.io"}
    return asked


def test_claims_are_asked_for_again_with_the_pods_and_groups_that_name_them(tmp_path: Path) -> None:
    container = {**SPEC["containers"][0], "resources": {"requests": {"cpu": "2"}, "claims": [{"name": "gpu"}]}}
    template = {"metadata": {}, "spec": {"containers": [container], "resourceClaims": CLAIMS}}
    job = event("create", "jobs", "train", body=thing("Job", "train", template=template))
    group = event("create", "podgroups", "g", body=thing("PodGroup", "g", resourceClaims=CLAIMS[:1]))
    group["objectRef"] |= {"apiGroup": "scheduling.k8s.io", "apiVersion": "v1beta1"}
    log = [job, group, claim("resourceclaimtemplates", "one-gpu"), claim("resourceclaims", "nic")]
    # That of the template is made again.
    made = [*log, claim("resourceclaims", "train-x", owner="train-y")]
    found = import_day([logged(tmp_path, made)], tmp_path / "day.yaml", "mine")
    objects = {step.job: step.what["object"] for step in found.day.steps}
    assert objects.keys() == {
        "Job/shop/train",
        "PodGroup/shop/g",
        "ResourceClaimTemplate/shop/one-gpu",
        "ResourceClaim/shop/nic",
    }
    spec = objects["Job/shop/train"]["spec"]["template"]["spec"]
    assert spec["resourceClaims"] == CLAIMS
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "gpu"}]
    assert objects["PodGroup/shop/g"]["spec"]["resourceClaims"] == CLAIMS[:1]
    assert objects["ResourceClaim/shop/nic"]["spec"] == ASKED
    assert objects["ResourceClaimTemplate/shop/one-gpu"]["spec"] == {"spec": ASKED}
    assert all("status" not in each for each in objects.values())
    assert found.day.left_out == {}
    assert len(load(tmp_path / "day.yaml").recordings["recorded"].steps) == 4


def test_claims_and_groups_that_were_there_before_the_log_are_left_out_of_what_names_them(tmp_path: Path) -> None:
    container = {**SPEC["containers"][0], "resources": {"claims": [{"name": "gpu"}, {"name": "nic"}]}}
    body = thing("Pod", "a", containers=[container], resourceClaims=CLAIMS, schedulingGroup={"podGroupName": "old"})
    names: dict[str, Any] = {
        "parentCompositePodGroupName": "all",
        "workloadRef": {"workloadName": "w", "templateName": "t"},
    }
    group = event("create", "podgroups", "g", 1.0, body=thing("PodGroup", "g", **names))
    group["objectRef"] |= {"apiGroup": "scheduling.k8s.io", "apiVersion": "v1beta1"}
    log = [event("create", "pods", "a", body=body), claim("resourceclaims", "nic"), group]
    found = import_day([logged(tmp_path, log)], tmp_path / "day.yaml", "mine")
    assert not names.keys() & found.day.steps[2].what["object"]["spec"].keys()
    spec = found.day.steps[0].what["object"]["spec"]
    assert spec["resourceClaims"] == CLAIMS[1:]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "nic"}]
    assert "schedulingGroup" not in spec
    assert found.day.left_out == {
        f"{what} that were there before the log: what names them is replayed without": 1
        for what in ("groups", "groups of groups", "groups' workloads", "resource claims")
    }


def test_what_failed_was_tried_only_or_changes_nothing_counts_for_nothing(tmp_path: Path) -> None:
    same = event("update", "deployments", "web", 2, body=thing("Deployment", "web", replicas=2))
    failed = event("delete", "deployments", "web", 3, code=403)
    tried = event("delete", "deployments", "web", 3, uri="/x?dryRun=All")
    assert doings(day_of(tmp_path, [web(), same, failed, tried])) == [("create", "Deployment/shop/web")]


def bound(pod: str, node: str, second: float) -> dict[str, Any]:
    scheduler = {"user": "system:kube-scheduler", "program": "kube-scheduler/v1.35"}
    return event("create", "pods", pod, second, sub="binding", sent={"target": {"name": node}}, **scheduler)


def test_a_preemption_is_the_scheduler_s_and_is_not_replayed(tmp_path: Path) -> None:
    pod = event("create", "pods", "alone", 0, body=thing("Pod", "alone"))
    gone = event("delete", "pods", "alone", 5, user="system:kube-scheduler")
    day = day_of(tmp_path, [pod, bound("alone", "n1", 2), gone])
    assert doings(day) == [("create", "Pod/shop/alone")]
    (then,) = day.pods.every
    assert (then.preempted, then.node, (then.bound or 0) - then.created) == (True, "n1", 2)


def test_who_deletes_a_pod_of_a_deployment_wants_another_one(tmp_path: Path) -> None:
    gone = event("delete", "pods", "web-1-a", 5)
    ended = event("delete", "pods", "web-1-a", 6, user="system:node:n1")
    day = day_of(tmp_path, [web(), *made_by_web(), bound("web-1-a", "n1", 2), gone, ended])
    assert doings(day)[1:] == [("evict", "Deployment/shop/web")]
    scaled = event("delete", "pods", "web-1-a", 5, program="kube-controller-manager/v1.35")
    day = day_of(tmp_path, [web(), *made_by_web(), bound("web-1-a", "n1", 2), scaled])
    assert doings(day)[1:] == []


def test_evictions_from_a_cordoned_node_are_its_drain(tmp_path: Path) -> None:
    def node(closed: Any, second: float) -> dict[str, Any]:
        return event("patch", "nodes", "n1", second, namespace="", sent={"spec": {"unschedulable": closed}})

    evictions = [event("create", "pods", name, 4, sub="eviction", sent={}) for name in ("web-1-a", "web-1-b")]
    bindings = [bound(name, "n1", 2) for name in ("web-1-a", "web-1-b")]
    pods = [*made_by_web("web-1-a"), made_by_web("web-1-b")[1]]
    day = day_of(tmp_path, [web(), *pods, *bindings, node(True, 3), *evictions, node(None, 8)])
    assert doings(day)[1:] == [("cordon", "n1"), ("drain", "n1"), ("uncordon", "n1")]
    day = day_of(tmp_path, [web(), *pods, *bindings, *evictions])
    assert doings(day)[1:] == [("evict", "Deployment/shop/web")] * 2, "nobody drains it"


def test_a_collection_s_and_a_namespace_s_end_is_that_of_what_is_in_it(tmp_path: Path) -> None:
    jobs = [event("create", "jobs", name, 0, body=thing("Job", name)) for name in ("a", "b")]
    jobs[0]["responseObject"]["metadata"]["labels"] = {"team": "x"}
    some = event("deletecollection", "jobs", "", 3, uri="/x?labelSelector=team%3Dx")
    day = day_of(tmp_path, [*jobs, some])
    assert doings(day)[2:] == [("delete", "Job/shop/a")]
    end = event("delete", "namespaces", "shop", 3, namespace="shop")
    assert doings(day_of(tmp_path, [*jobs, end]))[2:] == [("delete", "Job/shop/a"), ("delete", "Job/shop/b")]


def test_a_job_s_queue_and_its_own_time_are_known(tmp_path: Path) -> None:
    job = thing("Job", "a")
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    job["spec"]["suspend"] = True
    pod = event("create", "pods", "a-1", 1, body=thing("Pod", "a-1", ("Job", "a")))
    status = [
        event("patch", "pods", "a-1", second, sub="status", sent={"status": {"phase": phase}})
        for second, phase in ((3, "Running"), (33, "Succeeded"))
    ]
    recording = tmp_path / "day.recording.jsonl"
    log = logged(tmp_path, [event("create", "jobs", "a", 0, body=job), pod, bound("a-1", "n1", 2), *status])
    import_day([log], tmp_path / "day.yaml", "dev", 10)
    named = tmp_path / f"{'d' * 39}-1.yaml"
    import_day([log], named, "dev", 10)
    assert load(named).experiment.name.startswith("d" * 34)
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    assert (lines[1]["queue"], lines[1]["ran"], lines[1]["over"]) == ("research", 30, 33)
    assert "suspend" not in lines[1]["object"]["spec"], "whether it may begin its queue says"
    assert lines[2]["was"] == {"at": 1.0, "bound": 2.0, "cpu": 2000, "ended": 33.0, "node": "n1", "queue": "research"}
    assert recording.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        ("48h", "", "--from 48h is not before the recording's end, 50 s after its beginning"),
        ("48h", "49h", "--from 48h is not before the recording's end"),
        ("2026-11-25T09:00:00Z", "", "is not before the recording's end"),
        ("20s", "10s", "--until 10s is not after --from 20s"),
    ],
)
def test_a_part_that_the_recording_does_not_have_is_refused(tmp_path: Path, since: str, until: str, said: str) -> None:
    log, experiment = logged(tmp_path, (web(), web(3, 50) | {"verb": "update"})), tmp_path / "day.yaml"
    with pytest.raises(FileRefused, match=said):
        import_day([log], experiment, "", since=since, until=until)
    assert not experiment.exists()
    import_day([log], experiment, "", since="20s", until="1h")
    assert load(experiment).experiment.timeout == 630
    import_day([log], experiment, "", speed=1e-6)
    assert load(experiment).experiment.timeout == 366 * 86_400


@pytest.mark.parametrize("seed", range(5))
def test_an_entry_with_fields_of_other_types_is_counted_or_refused(seed: int) -> None:
    job = thing("Job", "a")
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    status = {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "reason": "PreemptionByScheduler"}]}
    scale = [{"op": "replace", "path": "/spec/replicas", "value": 4}]
    events = [
        web(),
        *made_by_web(),
        event("create", "jobs", "a", body=job),
        event("patch", "deployments", "web", 3, sent={"spec": {"replicas": 5}}),
        event("patch", "deployments", "web", 3, sub="scale", sent=scale),
        bound("web-1-a", "n1", 2),
        event("create", "pods", "web-1-a", 4, sub="eviction", sent={}),
        event("patch", "nodes", "n1", 4, namespace="", sent={"spec": {"unschedulable": True}}),
        event("patch", "pods", "web-1-a", 5, sub="status", sent={"status": status}),
        event("deletecollection", "pods", "", 6, uri="/x?labelSelector=app%3Dweb"),
    ]
    draw = random.Random(seed)
    odd = "requests with fields of a form that no object has"
    counted = 0
    for _ in range(200):
        day = Day()
        for each in [*events[:-1], *misshapen(events, draw)]:
            try:
                for request in exports.requests(each):
                    day.take(request)
            except Unusable:
                counted += 1
        counted += day.left_out[odd]
        assert list(lines(day, "log"))
    assert counted


def test_a_pod_that_went_with_its_node_did_not_end_by_itself(tmp_path: Path) -> None:
    gone = event("delete", "pods", "web-1-a", 6, user="system:serviceaccount:kube-system:taint-eviction-controller")
    day = day_of(tmp_path, [web(), *made_by_web(), bound("web-1-a", "n1", 2), gone])
    [pod] = day.pods.every
    assert pod.ended is not None
    assert ["ran" in json.loads(line) for line in lines(day, "log")] == [False, False, False]


def test_a_log_whose_compressed_data_is_damaged_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "audit.log.gz"
    whole = gzip.compress("".join(json.dumps(web(number)) + "\n" for number in range(2000)).encode())
    for damaged in (whole[:-20], b"no gzip", whole[:10] + b"\xff" + whole[11:]):
        log.write_bytes(damaged)
        with pytest.raises(FileRefused, match=r"audit\.log\.gz cannot be unpacked"):
            list(reading.read(log, RequestCounts()))


@pytest.mark.parametrize("key", ["scheduling.volcano.sh/queue-name", "volcano.sh/queue-name"])
def test_the_queue_of_volcano_that_pods_name_is_kept(tmp_path: Path, key: str) -> None:
    web = thing("Deployment", "web")
    web["spec"]["template"]["metadata"]["annotations"] = {key: "research", "note": "secret"}
    [step] = day_of(tmp_path, [event("create", "deployments", "web", body=web)]).steps
    assert step.what["queue"] == "research"
    assert step.what["object"]["spec"]["template"]["metadata"]["annotations"].keys() == {
        key,
        "kumulus.io/recorded-template",
    }


def as_eks(each: dict[str, Any]) -> Any:
    return {"events": [{"timestamp": 1, "message": json.dumps(each)}]}


def as_subscription(each: dict[str, Any]) -> Any:
    return {"messageType": "DATA_MESSAGE", "logEvents": [{"id": "1", "message": json.dumps(each)}]}


def as_aks(each: dict[str, Any]) -> Any:
    return {"records": [{"category": "kube-audit", "properties": {"log": json.dumps(each) + "\n"}}]}


def as_batch(each: dict[str, Any]) -> Any:
    return {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": [each]}


def as_gke(each: dict[str, Any]) -> Any:
    about = each["objectRef"]
    return {
        "timestamp": each["requestReceivedTimestamp"],
        "protoPayload": {
            "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
            "methodName": f"io.k8s.apps.v1.{about['resource']}.{each['verb']}",
            "resourceName": f"apps/v1/namespaces/{about['namespace']}/{about['resource']}/{about['name']}",
            "authenticationInfo": {"principalEmail": "jane@example.com"},
            "request": {},
            "response": each["responseObject"],
        },
    }


@pytest.mark.parametrize("form", [as_eks, as_subscription, as_aks, as_batch, as_gke, lambda each: [each]])
def test_every_export_has_the_same_day(form: Any, tmp_path: Path) -> None:
    assert doings(day_of(tmp_path, [form(web())])) == [("create", "Deployment/shop/web")]


def test_a_packed_file_and_a_printed_document_are_read_too(tmp_path: Path) -> None:
    packed, printed, stamped = tmp_path / "a.log.gz", tmp_path / "a.json", tmp_path / "s3"
    packed.write_bytes(gzip.compress(json.dumps(web()).encode()))
    printed.write_text(json.dumps(as_batch(web()), indent=2))
    stamped.write_text(f"2026-11-22T09:00:00.000Z {json.dumps(web())}\n")
    for file in (packed, printed, stamped):
        assert [each.name for each in reading.read(file, RequestCounts())] == ["web"], file


def test_bad_lines_are_counted_by_line_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_LINE", 4096)
    bad: list[bytes] = [
        b"{ not json",
        b'{"kind": "Pod"}',
        b"[" * 3000,
        b'"' + b"x" * 10_000 + b'"',
        json.dumps({**web(), "requestReceivedTimestamp": "yesterday"}).encode(),
        b"\xff\xfe\x00",
        b"17",
    ]
    file = tmp_path / "audit.log"
    file.write_bytes(b"\n".join([*bad, json.dumps(web()).encode()]) + b"\n")
    counted = RequestCounts()
    assert [each.name for each in reading.read(file, counted)] == ["web"]
    assert counted.bad_count == len(bad)
    assert [each.split(":")[0].rpartition(" ")[2] for each in counted.bad] == [str(n) for n in range(1, len(bad) + 1)]


def test_a_log_without_objects_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    file = logged(tmp_path, [event("create", "deployments", "web")])
    with pytest.raises(FileRefused, match="level has to be Request"):
        import_day([file], tmp_path / "day.yaml", "")


def test_of_a_log_only_what_counts_is_looked_at(tmp_path: Path) -> None:
    others = [event("update", "leases", "x"), event("create", "events", "x"), event("patch", "jobs", "x", sub="status")]
    file = logged(tmp_path, [web(), bound("a", "n1", 1), *others])
    found = [each.resource for each in filter(counts, reading.read(file, RequestCounts()))]
    assert found == ["deployments", "pods"]


def test_kwok_s_recording_is_a_day(tmp_path: Path) -> None:
    def patch(method: str, late: float, resource: str, name: str, template: Any = None) -> dict[str, Any]:
        group = GROUPS[resource]
        return {
            "apiVersion": "action.kwok.x-k8s.io/v1alpha1",
            "kind": "ResourcePatch",
            "resource": {"group": group, "version": "v1", "resource": resource},
            "target": {"name": name, "namespace": "shop"},
            "durationNanosecond": int(late * 1e9),
            "method": method,
            **({"template": template} if template else {}),
        }

    file = tmp_path / "day.yaml"
    there = {"apiVersion": "apps/v1", **thing("Deployment", "web", replicas=2)}
    documents = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
        there,
        patch("create", 2, "pods", "alone", thing("Pod", "alone")),
        patch("patch", 3, "pods", "alone", {"spec": {"nodeName": "n1"}}),
        patch("patch", 4, "deployments", "web", {"spec": {"replicas": 9}}),
        patch("delete", 5, "pods", "alone"),
    ]
    file.write_text("\n---\n".join(json.dumps(each) for each in documents))
    day, counted = Day(), RequestCounts()
    requests = list(reading.read(file, counted))
    for each in requests:
        day.take(each)
    assert doings(day) == [
        ("create", "Deployment/shop/web"),
        ("create", "Pod/shop/alone"),
        ("change", "Deployment/shop/web"),
        ("delete", "Pod/shop/alone"),
    ]
    assert [round(step.at - requests[0].at, 3) for step in day.steps] == [0, 2, 4, 5]
    assert day.pods.every[0].node == "n1"
    file.write_text("a: &x [1]\nb: *x\n")
    with pytest.raises(FileRefused, match="alias"):
        list(reading.read(file, RequestCounts()))


def test_a_patch_is_laid_over_by_name_and_by_path() -> None:
    before = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}], "replicas": 1, "x": 1}}
    merged = patched(before, {"spec": {"containers": [{"name": "a", "image": "2"}], "x": None}})
    assert merged["spec"] == {"containers": [{"name": "a", "image": "2"}, {"name": "b"}], "replicas": 1}
    listed = patched(before, [{"op": "add", "path": "/spec/containers/-", "value": {"name": "c"}}])
    assert [each["name"] for each in listed["spec"]["containers"]] == ["a", "b", "c"]
    assert patched(before, [{"op": "remove", "path": "/spec/x"}])["spec"].keys() == {"containers", "replicas"}
    assert before["spec"]["x"] == 1
    for wrong in ({"op": "move", "path": "/spec/x"}, {"op": "remove", "path": "/spec/y"}, {"op": "add"}, 3):
        with pytest.raises(NotUnderstood):
            patched(before, [wrong])
