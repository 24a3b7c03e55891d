"""What each scheduler is started with, and what is told when that cannot be."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus import toolchain
from kumulus.extras.schedulers import SchedulerError, definitions, registry, running
from kumulus.extras.schedulers.launch import binary
from kumulus.extras.schedulers.launch.plan import LaunchPlan, LaunchRequest, Switches
from kumulus.extras.schedulers.process import start
from tests.support.project import ROOT

DEFINITION: dict[str, Any] = {
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "workloads.kueue.x-k8s.io"},
    "spec": {"names": {"plural": "workloads"}},
}
SERVICE = {"name": "webhook-service", "namespace": "system", "path": "/mutate"}


def webhook(name: str, group: str, resource: str) -> dict[str, Any]:
    rules = [{"apiGroups": [group], "resources": [resource]}]
    return {"name": name, "rules": rules, "clientConfig": {"service": dict(SERVICE)}}


WEBHOOKS = {
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "mutating-webhook-configuration"},
    "webhooks": [
        webhook("mjob.kb.io", "batch", "jobs"),
        webhook("mpod.kb.io", "", "pods"),
        webhook("mworkload.kb.io", "kueue.x-k8s.io", "workloads"),
        webhook("mrayjob.kb.io", "ray.io", "rayjobs"),
    ],
}


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every scheduler were built, with few files kept."""
    monkeypatch.setattr(definitions, "find", lambda tool, tool_set, version=None: tmp_path / tool)
    monkeypatch.setattr(definitions, "text", lambda name, file: "actions: kept")
    monkeypatch.setattr(definitions, "manifests", lambda name: [DEFINITION, WEBHOOKS] if name == "kueue" else [])


VOLCANO = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
- plugins:
  - name: binpack
"""


def planned(
    name: str,
    directory: Path,
    config: str | None = None,
    binary: Path | None = None,
    *,
    decisions: bool = False,
    places: list[dict[str, Any]] | None = None,
) -> LaunchPlan:
    file = None
    if config is not None:
        file = directory / "config.yaml"
        file.write_text(config)
    ports = itertools.count(20001)
    switches = Switches(decisions, places=places)
    make = registry.get(name).plan
    assert make is not None
    return make(LaunchRequest(name, Path("/k"), directory, file, binary, lambda: next(ports), switches))


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", [name for name in registry.NAMES if not registry.get(name).is_own])
def test_everything_listens_on_127_0_0_1_and_nobody_elects_a_leader(name: str, tmp_path: Path) -> None:
    plan = planned(name, tmp_path)
    said = " ".join(itertools.chain(*(program.arguments for program in plan.programs), plan.files.values()))
    assert "127.0.0.1" in said
    assert "0.0.0.0" not in said
    assert "leader-elect=true" not in said
    assert all(program.ready.split("://")[1].startswith("127.0.0.1:2000") for program in plan.programs)
    if name != "yunikorn":
        assert "leader-elect=false" in said or "leaderElect: false" in said
    assert (plan.settings["clientQPS"], plan.settings["clientBurst"]) == (5000, 10000)
    # KAI's programs do not say theirs, and these are not of the cache.
    assert bool(plan.version) == (name != "kai")


@pytest.mark.usefixtures("built")
def test_a_users_kube_scheduler_keeps_its_configuration_but_for_its_connection(tmp_path: Path) -> None:
    text = """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        parallelism: 4
        clientConnection: {kubeconfig: /etc/theirs, qps: 50}
        leaderElection: {leaderElect: true}
        profiles: [{schedulerName: mine}, {schedulerName: other}]
    """
    plan = planned("kube-scheduler", tmp_path, text, binary=tmp_path / "own")
    written = yaml.safe_load(plan.files["scheduler.yaml"])
    assert written["clientConnection"] == {"kubeconfig": "/k", "qps": 50, "burst": 10000}
    assert written["leaderElection"] == {"leaderElect": False}
    assert written["parallelism"] == 4
    assert plan.scheduler_names == ("mine", "other")
    assert plan.settings == {"clientQPS": 50, "clientBurst": 10000}
    assert (plan.version, plan.programs[0].binary) == ("", tmp_path / "own")


@pytest.mark.usefixtures("built")
def test_a_kube_scheduler_that_is_to_say_why_asks_who_notes_it_before_all_others(tmp_path: Path) -> None:
    text = """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        parallelism: 4
        extenders: [{urlPrefix: "http://mine"}]
        profiles: [{schedulerName: mine}, {schedulerName: other}]
    """
    for config, others in ((None, []), (text, ["http://mine"])):
        plan = planned("kube-scheduler", tmp_path, config, decisions=True)
        noting = json.loads(plan.files["asked.json"])
        (first, *rest) = yaml.safe_load(plan.files["scheduler.yaml"])["extenders"]
        assert first["urlPrefix"] == f"http://127.0.0.1:{noting['port']}/{noting['secret']}"
        assert first["ignorable"] == (not others), "those that may be left out are asked last"
        assert [each["urlPrefix"] for each in rest] == others
        assert tuple(noting["profiles"]) == plan.scheduler_names
        assert noting["parallelism"] == (4 if others else 16)
        assert noting["metrics"] == plan.programs[0].ready.replace("readyz", "metrics")
        assert plan.programs[0].ready_too == [f"{first['urlPrefix']}/ready"]
        assert noting["secret"] not in " ".join([*plan.programs[0].arguments, *plan.programs[0].through])
    assert "extenders" not in yaml.safe_load(planned("kube-scheduler", tmp_path).files["scheduler.yaml"])


def test_volcano_keeps_gangs_in_places_by_a_plugin_that_is_on_when_one_has_to_be(
    built: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "text", lambda name, file: VOLCANO)
    assert planned("volcano", tmp_path).files == {"volcano-scheduler.conf": VOLCANO}
    node = {"kind": "HyperNode", "metadata": {"name": "r0"}}
    plan = planned("volcano", tmp_path, places=[node])
    document = yaml.safe_load(plan.files["volcano-scheduler.conf"])
    assert document["actions"] == "enqueue, allocate, backfill"
    assert document["tiers"][1]["plugins"] == [{"name": "binpack"}, {"name": "network-topology-aware"}]
    assert plan.objects[-1] == node
    with pytest.raises(SchedulerError, match=r"config.yaml lacks the plugin network-topology-aware.*\n  Add it"):
        planned("volcano", tmp_path, VOLCANO, places=[])
    own = f"{VOLCANO}  - name: network-topology-aware\n"
    assert planned("volcano", tmp_path, own, places=[]).files == {"volcano-scheduler.conf": own}


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("file", sorted((ROOT / "experiments" / "schedulers").iterdir()), ids=lambda file: file.stem)
def test_every_configuration_that_comes_along_is_taken_by_its_scheduler(file: Path, tmp_path: Path) -> None:
    text = file.read_text()
    name = "volcano" if file.stem.startswith("volcano") else "kube-scheduler"
    [made] = planned(name, tmp_path, text).files.values()
    written = yaml.safe_load(text)
    assert written.items() <= yaml.safe_load(made).items()


@pytest.mark.usefixtures("built")
def test_kai_is_three_programs_from_flags_with_two_levels_of_queues(tmp_path: Path) -> None:
    plan = planned("kai", tmp_path)
    assert [program.name for program in plan.programs] == ["kai-scheduler", "kai-binder", "kai-podgrouper"]
    assert all(program.environment["KUBECONFIG"] == "/k" for program in plan.programs)
    assert all("kubeconfig" not in argument for program in plan.programs for argument in program.arguments)
    scheduler, binder, podgrouper = plan.programs
    metrics = [each.ready.removeprefix("http://").removesuffix("/metrics") for each in plan.programs]
    assert f"--listen-address={metrics[0]}" in scheduler.arguments
    assert '--plugins={"gpusharing":{"enabled":false}}' in binder.arguments
    for each, where in zip((binder, podgrouper), metrics[1:], strict=True):
        assert {f"--metrics-bind-address={where}", "--health-probe-bind-address=0"} <= set(each.arguments)
    # The binder answers no probe: that it works is in its metrics alone.
    assert all(each.ready_says for each in plan.programs)
    made = [(each["kind"], each["metadata"]["name"]) for each in plan.objects]
    assert made == [
        ("Namespace", "kai-resource-reservation"),
        ("Namespace", "kai-scale-adjust"),
        ("ServiceAccount", "kai-resource-reservation"),
        ("Queue", "kumulus-root"),
    ]
    assert plan.files == {}


@pytest.mark.usefixtures("built")
def test_kais_own_configuration_is_given_to_its_scheduler_and_has_actions_or_tiers(tmp_path: Path) -> None:
    text = 'actions: "allocate, reclaim"'
    plan = planned("kai", tmp_path, text)
    assert plan.files == {"kai-scheduler.conf": text}
    assert f"--scheduler-conf={tmp_path / 'kai-scheduler.conf'}" in plan.programs[0].arguments
    for wrong in ("a: b", "actions: [allocate]", "tiers: {}"):
        with pytest.raises(SchedulerError, match=r"has no actions and tiers\n  Write it as KAI has it"):
            planned("kai", tmp_path, wrong)


@pytest.mark.usefixtures("built")
def test_kueue_has_the_webhooks_of_its_own_kinds_and_of_its_integrations(tmp_path: Path) -> None:
    objects = {each["kind"]: each for each in planned("kueue", tmp_path).objects}
    asked = objects["MutatingWebhookConfiguration"]
    assert asked["metadata"]["name"] == "kueue-mutating-webhook-configuration"
    assert [each["name"] for each in asked["webhooks"]] == ["mjob.kb.io", "mworkload.kb.io"]
    service = asked["webhooks"][0]["clientConfig"]["service"]
    assert service == {
        "name": "kueue-webhook-service",
        "namespace": "kueue-system",
        "port": 20001,
        "path": "/mutate",
    }
    assert objects["Service"]["spec"]["type"] == "ExternalName"
    conversion = objects["CustomResourceDefinition"]["spec"]["conversion"]
    assert conversion["webhook"]["clientConfig"]["service"] == {**service, "path": "/convert"}
    # What the module brought stays as it was.
    assert "conversion" not in DEFINITION["spec"]
    assert WEBHOOKS["webhooks"][0]["clientConfig"]["service"] == SERVICE  # type: ignore[index]


@pytest.mark.usefixtures("built")
def test_kueue_with_pods_leaves_the_system_alone(tmp_path: Path) -> None:
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, integrations: {frameworks: [pod]}}"
    objects = {each["kind"]: each for each in planned("kueue", tmp_path, text).objects}
    pods, _ = objects["MutatingWebhookConfiguration"]["webhooks"]
    assert pods["name"] == "mpod.kb.io"
    (selector,) = pods["namespaceSelector"]["matchExpressions"]
    assert selector["values"] == ["kube-system", "kueue-system"]


@pytest.mark.usefixtures("built")
def test_yunikorn_takes_queues_or_a_config_map(tmp_path: Path) -> None:
    queues = "partitions: [{name: default, queues: [{name: root}]}]"
    assert planned("yunikorn", tmp_path, queues).objects[1]["data"]["queues.yaml"] == queues
    plan = planned(
        "yunikorn", tmp_path, 'kind: ConfigMap\ndata: {"service.schedulingInterval": 100ms, kubernetes.qps: 7}'
    )
    data = plan.objects[1]["data"]
    assert data["service.schedulingInterval"] == "100ms"
    assert "partitions" in data["queues.yaml"]
    assert plan.settings["clientQPS"] == 7


KUBE = "{kind: KubeSchedulerConfiguration, apiVersion: kubescheduler.config.k8s.io/v1"
KUEUE = "{kind: Configuration, apiVersion: config.kueue.x-k8s.io/v1beta2"
DEFAULT = "is for default-scheduler, whose pods the cluster's own scheduler places\n  Write another name"


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("kube-scheduler", "a: [", "is not YAML: "),
        ("kube-scheduler", "a: 2026-02-30", "cannot be read: "),
        ("kube-scheduler", "- a", "is no mapping"),
        (
            "kube-scheduler",
            "a: 1",
            "is of no kind\n  Write a KubeSchedulerConfiguration of kubescheduler.config.k8s.io",
        ),
        ("kueue", "{kind: Job, apiVersion: batch/v1}", "is Job of batch/v1\n  Write a Configuration of config.kueue"),
        ("volcano", "a: 1", "has no actions and tiers"),
        ("yunikorn", "a: 1", "has no partitions"),
        ("kube-scheduler", f"{KUBE}, profiles: [{{schedulerName: default-scheduler}}]}}", f"profiles[0] {DEFAULT}"),
        ("kube-scheduler", f"{KUBE}, profiles: [{{schedulerName: mine}}, {{a: 1}}]}}", f"profiles[1] {DEFAULT}"),
        ("kube-scheduler", f"{KUBE}, profiles: [mine]}}", "profiles is no list of mappings"),
        ("kube-scheduler", f"{KUBE}, clientConnection: 3}}", "clientConnection is 3\n  Write a mapping"),
        ("kueue", f"{KUEUE}, integrations: {{frameworks: pod}}}}", "integrations.frameworks is no list"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_with_its_file(
    name: str, config: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(SchedulerError) as raised:
        planned(name, tmp_path, config)
    assert str(tmp_path / "config.yaml") in str(raised.value)
    assert words in str(raised.value)


@pytest.mark.parametrize("name", [name for name in registry.NAMES if registry.get(name).tool_set])
def test_a_scheduler_that_is_not_built_is_told_with_the_remedy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SchedulerError) as raised:
        planned(name, tmp_path)
    assert " is missing\n" in str(raised.value)
    assert str(raised.value).endswith(f"kumulus tools --with {registry.get(name).tool_set}")


KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


@pytest.mark.usefixtures("built")
def test_a_cluster_that_cannot_be_reached_is_told_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_PATIENCE_S", 0.1)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    with pytest.raises(SchedulerError) as raised:
        asyncio.run(start("kube-scheduler", kubeconfig, tmp_path / "s"))
    assert "the Kubernetes API server at http://127.0.0.1:1 is not reachable: connection refused" in str(raised.value)
    assert list((tmp_path / "s").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "slurm"}, "there is no scheduler 'slurm'"),
        ({"binary": Path("/none/such")}, "the scheduler's binary /none/such does not exist"),
        ({"directory": Path("/dev/null/s")}, "/dev/null/s: Not a directory"),
        ({}, "kubeconfig /none/k does not exist"),
    ],
)
@pytest.mark.usefixtures("built")
def test_what_cannot_be_started_is_told(arguments: dict[str, Any], words: str, tmp_path: Path) -> None:
    wanted = {"name": "yunikorn", "kubeconfig": Path("/none/k"), "directory": tmp_path / "s", **arguments}
    with pytest.raises(SchedulerError) as raised:
        asyncio.run(start(**wanted))
    assert words in str(raised.value)


@pytest.mark.usefixtures("built")
def test_a_configuration_that_does_not_exist_is_told(tmp_path: Path) -> None:
    make = registry.get("yunikorn").plan
    assert make is not None
    with pytest.raises(SchedulerError, match="the scheduler's configuration /none/such does not exist"):
        make(LaunchRequest("yunikorn", Path("/k"), tmp_path, Path("/none/such"), None, lambda: 1))


OFFERED = ["1.37.2", "1.36.3", "1.35.4"]


@pytest.mark.parametrize(
    ("cluster", "version"),
    [
        ("", "1.37.2"),
        ("v1.37.2", "1.37.2"),
        ("v1.36.3", "1.36.3"),
        ("v1.36.9-gke.100", "1.36.3"),
        ("v1.35.4+k3s1", "1.35.4"),
        ("v1.38.0", "1.37.2"),
        ("v1.30.1", "1.35.4"),
    ],
)
def test_a_kube_scheduler_beside_the_clusters_own_is_of_no_later_minor_version(
    cluster: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "kubernetes_versions", lambda: OFFERED)
    monkeypatch.setattr(definitions, "find", lambda tool, tool_set, version=None: tmp_path / f"{tool}-{version}")
    request = LaunchRequest("kube-scheduler", Path("/k"), tmp_path, None, None, lambda: 1, kubernetes=cluster)
    assert binary.chosen(request) == (tmp_path / f"kube-scheduler-{version}", version)
