"""What a capture keeps of a cluster, how it writes that, and that nothing else gets past it."""

import copy
import gzip
import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.capture import dumps, putting, reading, workload
from kumulus.extras.capture.grammar import renamed
from kumulus.extras.capture.groups import stack
from kumulus.extras.capture.kinds import KINDS, cluster_role
from kumulus.extras.capture.reading import captured, captured_pod
from kumulus.extras.capture.spool import AnotherSource, Spool
from kumulus.extras.capture.words import Words
from kumulus.model.nodes import features_of
from kumulus.stackfile.expand import pools
from kumulus.stackfile.load import load
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.yamltext import read_all_yaml, read_stack_file
from tests.support.misshapen import misshapen
from tests.unit.extras.capture.files import put_back, written


def node(name: str, **labels: str) -> dict[str, Any]:
    own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux", **labels}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": own, "annotations": {"kumulus.io/applied": "{}"}},
        "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "4", "memory": "16384Mi", "pods": "110"},
            "allocatable": {"cpu": "3900m", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"architecture": "arm64", "operatingSystem": "linux"},
        },
    }


def pod(name: str, on: str = "", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "secret", "resources": {"requests": {"cpu": "1"}}}
    bound = {"nodeName": on} if on else {}
    return {
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "labels": {"app": "web"}},
        "spec": {"containers": [container], **bound, **spec},
        "status": {"phase": "Running"},
    }


def cluster(directory: Path) -> ClusterSpec:
    return ClusterSpec.checked(yaml.safe_load((directory / "stack.yaml").read_text())["config"]["kumulus:cluster"])


def test_labels_that_go_would_read_as_numbers_are_quoted(tmp_path: Path) -> None:
    labels = {"example.com/rack": "08", "example.com/commit": "1234e56"}
    labelled = pod("p", "n0")
    labelled["metadata"]["labels"] = labels
    written(tmp_path / "out", None, node("n0", **labels), labelled)
    stack: Any = read_stack_file(tmp_path / "out" / "stack.yaml")
    template = ClusterSpec.checked(stack["config"]["kumulus:cluster"]).nodeGroups[0].nodeTemplate
    assert labels.items() <= template.metadata.labels.items()
    shape: Any = read_all_yaml((tmp_path / "out" / "workload.yaml").read_text())[0]
    assert shape["labels"] == labels


def test_nodes_that_are_alike_are_one_group_with_their_names(tmp_path: Path) -> None:
    nodes = [node(f"n{index}", **{"example.com/rack": f"r{index}", "team": "search"}) for index in range(3)]
    written(tmp_path / "out", None, *nodes)
    spec = cluster(tmp_path / "out")
    (pool,) = pools(spec, "dev")
    assert pool.node_names() == ["n0", "n1", "n2"]
    assert [each.labels for each in pool.nodes] == [{"example.com/rack": f"r{index}"} for index in range(3)]
    assert (pool.labels["team"], pool.taints) == ("search", ())
    assert (pool.capacity["memory"], pool.allocatable["cpu"]) == ("16Gi", "3900m")
    assert pool.node_info.architecture == "arm64"
    assert {key for key in pool.labels if not key.startswith("kumulus.io/")} == {"team", "kubernetes.io/os"}


def test_of_an_emulated_cluster_the_places_are_kept_and_whose_nodes_they_are_is_not(tmp_path: Path) -> None:
    labels = {"topology.kumulus.io/rack": "web-r0", "kumulus.io/pool": "web", "x.kumulus.io/y": "z"}
    nodes = [node(f"n{index}", **labels) for index in range(3)]
    written(tmp_path / "out", None, *nodes)
    (pool,) = pools(cluster(tmp_path / "out"), "dev")
    assert [each.labels for each in pool.nodes] == [{"topology.kumulus.io/rack": "web-r0"}] * 3
    assert pool.labels["kumulus.io/pool"] == pool.name
    assert "x.kumulus.io/y" not in pool.labels


def test_nodes_that_differ_are_groups_of_their_own(tmp_path: Path) -> None:
    large = node("large")
    large["status"]["capacity"]["cpu"] = "8"
    tainted = node("tainted")
    tainted["spec"]["taints"].append({"key": "acme.example/reserved", "value": "x", "effect": "NoSchedule"})
    written(tmp_path / "out", None, node("small"), large, tainted)
    found = {pool.nodes[0].name: pool for pool in pools(cluster(tmp_path / "out"), "dev")}
    assert found["large"].capacity["cpu"] == "8"
    assert [taint.key for taint in found["tainted"].taints] == ["acme.example/reserved"]


def test_features_that_nodes_declare_are_kept_where_their_version_has_others(tmp_path: Path) -> None:
    def declaring(name: str, *features: str) -> dict[str, Any]:
        made = node(name)
        made["status"]["declaredFeatures"] = [*features]
        made["status"]["nodeInfo"]["kubeletVersion"] = "v1.37.2-gke.1"
        return made

    usual = features_of("v1.37.2")
    more = ["DRANodeAllocatableResources", *usual]
    nodes = [declaring("a", *usual), declaring("b", *reversed(more), "AcmeOwn"), declaring("c"), node("d")]
    written(tmp_path / "out", None, *nodes)
    found = {pool.nodes[0].name: pool for pool in pools(cluster(tmp_path / "out"), "dev")}
    assert {name: pool.declared_features for name, pool in found.items()} == {
        "a": None,
        "b": tuple(sorted(more)),
        "c": (),
    }
    # One of an older version declares none, as "c" does, but in a clone has what its version there has.
    assert found["a"].node_names() == ["a", "d"]


def test_an_anonymised_node_has_only_resources_that_a_stack_file_may_name(tmp_path: Path) -> None:
    own = node("n0")
    for amounts in (own["status"]["capacity"], own["status"]["allocatable"]):
        amounts |= {"hugepages-64Ki": "0", "hugepages-1Ti": "0", "attachable-volumes-aws-ebs": "25"}
        amounts |= {"attachable-volumes-csi-ebs.csi.aws.com": "26", "attachable-volumes-csi-disk.acme.com": "27"}
    words = Words()
    files = written(tmp_path / "out", words, own)
    (pool,) = load(yaml.safe_load(files["stack.yaml"])["config"], "dev", tmp_path).pools
    assert {key for key in pool.capacity if "-" in key and key != "ephemeral-storage"} == {
        "hugepages-64Ki",
        "hugepages-1Ti",
        "attachable-volumes-aws-ebs",
        "attachable-volumes-csi-ebs.csi.aws.com",
        # The word by which a CSINode's driver is called, too.
        f"attachable-volumes-csi-{words.key_of('disk.acme.com')}",
    }


def test_nodes_that_are_not_well_or_cordoned_stay_so(tmp_path: Path) -> None:
    ill, silent, cordoned = node("ill"), node("silent"), node("cordoned")
    ill["status"]["conditions"] = [
        {"type": "Ready", "status": "False"},
        {"type": "DiskPressure", "status": "True"},
    ]
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    cordoned["spec"]["unschedulable"] = True
    written(tmp_path / "out", None, ill, silent, cordoned)
    spec = cluster(tmp_path / "out")
    assert {fault.name: fault.target.names for fault in spec.faults} == {
        "disk-pressure": ("ill",),
        "not-ready": ("ill",),
        "silent": ("silent",),
    }
    (pool,) = pools(spec, "dev")
    assert [each.name for each in pool.nodes if each.unschedulable] == ["cordoned"]


def test_the_files_do_not_depend_on_the_order_in_which_things_came(tmp_path: Path) -> None:
    things = [node(f"n{index}", zone=f"z{index % 2}") for index in range(6)]
    things += [pod(f"p{index}", f"n{index % 6}", schedulerName=f"s{index % 3}") for index in range(20)]
    first = written(tmp_path / "one", None, *things)
    random.Random(1).shuffle(things)
    assert written(tmp_path / "two", None, *things) == first


def test_pods_come_back_from_the_file_as_they_were_read() -> None:
    target = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [target]}}}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
    raws = [
        pod("agent-x", "n7", affinity=affinity, tolerations=[{"operator": "Exists"}]),
        pod("waiting", affinity=affinity),
        pod("web-1", "n1", volumes=[claim, {"name": "secret", "secret": {"secretName": "s"}}], priority=5),
        pod("web-2", "n2", hostNetwork=True),
    ]
    raws[2]["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = "web-1"
    raws[2]["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "web", "controller": True}]
    raws[3]["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    kept = [found for raw in raws if (found := captured_pod(raw)) is not None]
    back = [each for shape in workload.shapes(kept) for each in workload.pods(shape)]
    assert sorted(back, key=lambda each: str(each["name"])) == sorted(kept, key=lambda each: str(each["name"]))
    assert workload.manifest(kept[2])["metadata"]["annotations"] == {"kumulus.io/owner": "StatefulSet/web"}


def test_pods_that_differ_by_name_and_node_alone_are_one_shape() -> None:
    target = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [""]}]}
    raws = []
    for index in range(5):
        term = copy.deepcopy(target)
        term["matchFields"][0]["values"] = [f"n{index}"]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-d-{index}"}}
        raws.append(pod(f"d-{index}", f"n{index}", affinity={"nodeAffinity": required}, volumes=[claim]))
    (shape,) = workload.shapes([found for raw in raws if (found := captured_pod(raw)) is not None])
    assert [each["name"] for each in shape["pods"]] == [f"d-{index}" for index in range(5)]


@pytest.mark.parametrize("words", [None, Words(bytes(32))])
def test_kubernetes_own_groups_are_kept_and_the_clone_serves_them(tmp_path: Path, words: Words | None) -> None:
    def group(kind: str, version: str, least: dict[str, int], **spec: Any) -> dict[str, Any]:
        policy = {"schedulingPolicy": {"gang": least}, "disruptionMode": {"all": {}}, "priority": 0, **spec}
        metadata = {"name": f"{kind.lower()}-a", "namespace": "shop"}
        return {"apiVersion": f"scheduling.k8s.io/{version}", "kind": kind, "metadata": metadata, "spec": policy}

    of_volcano = {**group("PodGroup", "v1beta1", {}), "apiVersion": "scheduling.volcano.sh/v1beta1"}
    of_volcano |= {"metadata": {"name": "v", "namespace": "shop"}, "spec": {"minMember": 3}}
    slices = {"name": "s", "schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": {"all": {}}}
    whole = {"name": "t", "schedulingPolicy": {"gang": {"minGroupCount": 2}}, "podGroupTemplates": [slices]}
    made_for = {"apiGroup": "acme.example", "kind": "Training", "name": "secret"}
    templates = {"controllerRef": made_for, "podGroupTemplates": None, "compositePodGroupTemplates": [whole]}
    workloads = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "spec": templates}
    written(
        tmp_path / "out",
        words,
        node("n0"),
        {**workloads, "metadata": {"name": "w", "namespace": "shop"}},
        group(
            "CompositePodGroup",
            "v1alpha3",
            {"minGroupCount": 2},
            workloadRef={"workloadName": "w", "templateName": "t"},
        ),
        group(
            "PodGroup", "v1beta1", {"minCount": 4}, schedulingConstraints={"topology": [{"key": "acme.example/rack"}]}
        ),
        of_volcano,
        pod("p", "n0", schedulingGroup={"podGroupName": "podgroup-a"}),
    )
    assert cluster(tmp_path / "out").kwok.workloads == "native"
    found = put_back(tmp_path / "out")
    (composite,) = (each for each in found if each["kind"] == "CompositePodGroup")
    assert composite["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}
    assert [each["kind"] for each in found[:2]] == ["Workload", "CompositePodGroup"], "in the order of their creation"
    kept, reference = found[0], composite["spec"]["workloadRef"]
    (template,) = kept["spec"].pop("compositePodGroupTemplates")
    assert kept["spec"] == {}
    assert reference == {"workloadName": kept["metadata"]["name"], "templateName": template["name"]}
    assert template == {**whole, "name": template["name"], "podGroupTemplates": template["podGroupTemplates"]}
    assert template["podGroupTemplates"] == [{**slices, "name": template["podGroupTemplates"][0]["name"]}]
    assert putting.path_of("Workload", kept).endswith(f"/namespaces/{kept['metadata']['namespace']}/workloads")
    volcano, native = sorted(
        (each for each in found if each["kind"] == "PodGroup"), key=lambda each: "k8s.io" in each["apiVersion"]
    )
    assert volcano["spec"] == {"minMember": 3}
    assert native["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
    assert native["spec"]["disruptionMode"] == {"all": {}}
    (key,) = (each["key"] for each in native["spec"]["schedulingConstraints"]["topology"])
    (shape,) = (each for each in found if each["kind"] == "PodShape")
    named = shape["spec"]["schedulingGroup"]["podGroupName"]
    assert named == native["metadata"]["name"]
    assert (key == "acme.example/rack", named == "podgroup-a") == (words is None, words is None)
    paths = {path: putting.path_of(each["kind"], each) for path, each in (("native", native), ("volcano", volcano))}
    assert paths["native"].startswith("/apis/scheduling.k8s.io/v1beta1/namespaces/")
    assert paths["volcano"].startswith("/apis/scheduling.volcano.sh/v1beta1/namespaces/")


def test_pods_that_have_ended_and_what_schedulers_do_not_read_are_left_out() -> None:
    ended = pod("done")
    ended["status"]["phase"] = "Succeeded"
    assert captured_pod(ended) is None
    telling = pod("web", env="x")
    container = {"args": ["--password=x"], "env": [{"name": "A", "value": "x"}], "ports": [{"containerPort": 80}]}
    telling["spec"]["containers"][0].update(container)
    telling["metadata"]["annotations"] = {"note": "x"}
    kept = captured_pod(telling)
    assert kept is not None
    assert kept["spec"]["containers"] == [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    assert "annotations" not in kept


def test_the_role_allows_listing_what_is_read_and_nothing_else() -> None:
    role = yaml.safe_load(cluster_role())
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list"}
    allowed = {(group, each) for rule in role["rules"] for group in rule["apiGroups"] for each in rule["resources"]}
    assert allowed == {(kind.group, kind.plural) for kind in KINDS}
    assert not allowed & {("", "secrets"), ("", "configmaps")}


def test_a_spool_goes_on_after_its_last_whole_page(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "https://one")
    spool.add("Pod", [{"name": "a"}], "next")
    file = tmp_path / ".unfinished" / "Pod.jsonl"
    with file.open("ab") as opened:
        opened.write(b'{"items": [{"na')
    again = Spool(tmp_path, "https://one")
    assert (again.resumed, again.token("Pod"), list(again.items("Pod"))) == (True, "next", [{"name": "a"}])
    again.add("Pod", [{"name": "b"}], "")
    assert ([each["name"] for each in again.items("Pod")], again.token("Pod")) == (["a", "b"], None)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    with pytest.raises(AnotherSource):
        Spool(tmp_path, "https://two")


def test_dumps_are_read_whether_list_or_documents_or_json(tmp_path: Path) -> None:
    things = [node("n0"), pod("p0", "n0")]
    (tmp_path / "list.yaml").write_text(yaml.safe_dump({"kind": "List", "apiVersion": "v1", "items": things}))
    (tmp_path / "documents.yaml").write_text(yaml.safe_dump_all(things))
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "PodList", "items": [{**things[1], "kind": None}]}))
    listed, streamed, typed = (
        list(dumps.objects(tmp_path / name)) for name in ("list.yaml", "documents.yaml", "pods.json")
    )
    assert listed == streamed == things
    assert typed[0]["kind"] == "Pod"
    assert [file.name for file in dumps.files([tmp_path])] == ["documents.yaml", "list.yaml", "pods.json"]


def test_a_large_json_file_is_refused_and_its_objects_are_read_line_by_line(tmp_path: Path) -> None:
    """What is decoded whole can take 26 times its size of memory: 64 MiB of `[],` take 1.7 GiB."""
    pods = [pod(f"p{number}", "n0") for number in range(3)]
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"kind": "List", "items": pods}) + " " * dumps.MOST_JSON_BYTES)
    with pytest.raises(
        dumps.FileRefused, match=f"{file.stat().st_size:,} bytes; at most 67,108,864 of JSON"
    ) as refused:
        list(dumps.objects(file))
    remedy = f"jq -c '.items[]' {file} > {tmp_path}/pods.jsonl"
    assert remedy in str(refused.value)
    if shutil.which("jq"):
        subprocess.run(remedy, shell=True, check=True)
        assert list(dumps.objects(tmp_path / "pods.jsonl")) == pods


def test_a_line_without_a_kind_is_not_left_out_in_silence(tmp_path: Path) -> None:
    (tmp_path / "pods.jsonl").write_text(f"{json.dumps(pod('p0', 'n0'))}\n{json.dumps({'metadata': {'name': 'p1'}})}\n")
    with pytest.raises(dumps.FileRefused, match=r'line 2 has no kind[^\n]*\n .*\.kind = "Pod"'):
        list(dumps.objects(tmp_path / "pods.jsonl"))


def test_a_line_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pods.jsonl").write_text(json.dumps({"kind": "Pod", "junk": "x" * dumps.MOST_JSON_BYTES}))
    with pytest.raises(dumps.FileRefused, match="line 1 has more than 67,108,864 bytes"):
        list(dumps.objects(tmp_path / "pods.jsonl"))


def test_what_is_quoted_stays_a_text() -> None:
    text = 'a: "5"\nb: 5\nc: yes\nd: true\ne: ~\nf: 1e3\ng: "true"\nh: 0x10\n'
    assert list(dumps.documents(text, "t")) == [
        {"a": "5", "b": 5, "c": "yes", "d": True, "e": None, "f": "1e3", "g": "true", "h": "0x10"}
    ]


def pods_of(file: Path) -> Iterator[dict[str, Any]]:
    for document in putting.read(file):
        if document["kind"] == "PodShape":
            yield from putting.checked(document, file)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &x [1]\nb: *x\n", "alias"),
        ("[" * 100 + "]" * 100, "deeply"),
        ("[" + "1," * 200_001 + "]", "values"),
        ("kind: Secret\nmetadata: {name: x}\n", "no capture writes"),
        ("!!python/object/apply:os.system [echo]", "no capture writes"),
        ("kind: PodShape\napiVersion: kumulus.io/v1alpha1\nspec: 5\nnamespace: a\npods: [{name: a}]", "cannot be used"),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "workload.yaml").write_text(text)
    with pytest.raises(dumps.FileRefused, match=why):
        list(pods_of(tmp_path / "workload.yaml"))


@pytest.mark.parametrize("seed", range(10))
def test_an_object_with_fields_of_other_types_is_refused_or_captured_whole(seed: int) -> None:
    owner = [{"kind": "ReplicaSet", "name": "web-1", "controller": True}]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    volumes = [{"name": "v", "ephemeral": {}}, {"name": "w", "persistentVolumeClaim": {"claimName": "c"}}]
    owned = pod("p", "n", volumes=volumes, affinity={"nodeAffinity": required})
    owned["metadata"] |= {"ownerReferences": owner, "annotations": {"volcano.sh/queue-name": "q"}}
    draw = random.Random(seed)
    refused = list[str]()
    for _ in range(300):
        raw = misshapen(draw.choice((node("n", zone="z"), owned)), draw)
        kind = "Pod" if "containers" in str(raw) else "Node"
        try:
            kept = captured(kind, raw, "v1")
        except dumps.FileRefused as error:
            refused.append(str(error))
            continue
        if kept is None:
            continue
        form = reading.form_of(kind)
        assert renamed(form, kept, Words()) is not None
        if kind == "Node":
            assert stack([kept])["nodeGroups"]
        else:
            assert [workload.manifest(each) for shape in workload.shapes([kept]) for each in workload.pods(shape)]
    assert refused
    assert all("is none that an API server would store" in each for each in refused)


def test_a_changed_file_gets_no_more_into_a_cluster_than_a_capture_would(tmp_path: Path) -> None:
    shape = workload.shapes([captured_pod(pod("p", "n0")) or {}])[0]
    shape["spec"] |= {"serviceAccountName": "admin", "hostPID": True}
    shape["spec"]["containers"][0] |= {"image": "evil", "securityContext": {"privileged": True}}
    (tmp_path / "workload.yaml").write_text(yaml.safe_dump(shape))
    (made,) = map(workload.manifest, pods_of(tmp_path / "workload.yaml"))
    assert made["spec"].keys() == {"automountServiceAccountToken", "enableServiceLinks", "containers", "nodeName"}
    assert made["spec"]["containers"][0].keys() == {"name", "resources", "image"}


def test_links_and_paths_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside.yaml").write_text("a: 1")
    (tmp_path / "inside" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    with pytest.raises(dumps.FileRefused):
        dumps.files([tmp_path / "inside"])


@pytest.mark.parametrize("words", [None, Words()])
def test_a_selector_that_selects_everything_stays_one(tmp_path: Path, words: Words | None) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    without = {"topologyKey": "kubernetes.io/hostname"}
    other = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [without]}}
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "all"},
        "spec": {"namespaceSelector": {}},
    }
    budget = {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "b", "namespace": "shop"}}
    raws = [pod("a", affinity=affinity), pod("b", affinity=other), queue, {**budget, "spec": {"selector": {}}}]
    written(tmp_path / "out", words, *raws)
    found = put_back(tmp_path / "out")
    terms = [
        each["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
        for each in found
        if each["kind"] == "PodShape"
    ]
    assert sorted(terms, key=len) == [without, term]
    assert [each["spec"] for each in found if each["kind"] == "ClusterQueue"] == [{"namespaceSelector": {}}]
    assert [each["spec"] for each in found if each["kind"] == "PodDisruptionBudget"] == [{"selector": {}}]


def test_a_compressed_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.db.gz"
    file.write_bytes(gzip.compress(b"kind: List"))
    with pytest.raises(dumps.FileRefused, match=f"is compressed\n  To unpack it: gunzip {file}"):
        list(dumps.objects(file))
