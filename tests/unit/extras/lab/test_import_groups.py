"""Groups and devices of scheduler_perf's cases, and Go's templates, of which they are made.

The files here are miniatures in the form of the project's own, not copies.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.imports.templates import filled
from tests.unit.extras.lab.test_imports import imported, stack

GANGS = """
- name: Gangs
  workloadTemplate:
  - {opcode: createNodes, count: 8, nodeTemplatePath: templates/racked.yaml}
  - {opcode: createPods, countParam: $before, podTemplatePath: templates/spread.yaml, templateParams: {ports: 2}}
  - opcode: createPodGroups
    countParam: $gangs
    namespace: one
    templatePath: templates/gang.yaml
    templateParams: {least: $size, rank: $rank|}
  - opcode: createPods
    countParam: $gangs
    countMultiplierParam: $size
    namespace: one
    podTemplatePath: templates/member.yaml
    templateParams: {size: $size, rank: $rank|}
    collectMetrics: true
  workloads:
  - {name: plain, params: {gangs: 3, size: 2, before: 0}}
  - {name: important, params: {gangs: 3, size: 2, before: 5, rank: 9}}
- name: Uneven
  workloadTemplate:
  - {opcode: createPodGroups, count: 2, templatePath: templates/gang.yaml, templateParams: {least: 2}}
  - {opcode: createPods, count: 3, collectMetrics: true, podTemplatePath: templates/member.yaml,
     templateParams: {size: 2}}
  workloads: [{name: one}]
- name: Elsewhere
  workloadTemplate:
  - {opcode: createPodGroups, count: 1, namespace: one, templatePath: templates/gang.yaml, templateParams: {least: 2}}
  - {opcode: createPods, count: 2, namespace: two, collectMetrics: true, podTemplatePath: templates/member.yaml,
     templateParams: {size: 2}}
  workloads: [{name: one}]
- name: Victims
  workloadTemplate:
  - {opcode: createPodGroups, count: 1, templatePath: templates/gang.yaml, templateParams: {least: 2}}
  - {opcode: createPods, count: 2, podTemplatePath: templates/member.yaml, templateParams: {size: 2}}
  - {opcode: createPods, count: 1, podTemplatePath: templates/spread.yaml, templateParams: {ports: 1},
     collectMetrics: true}
  workloads: [{name: one}]
"""
RACKED = """
apiVersion: v1
kind: Node
metadata:
  name: n-{{.Index}}
  labels: {kubernetes.io/hostname: "n-{{.Index}}", rack: "r-{{DivideInt .Index 5}}"}
status: {capacity: {cpu: "2", memory: 4Gi, pods: "20"}}
"""
SPREAD = """
apiVersion: v1
kind: Pod
metadata: {generateName: spread-}
spec:
  containers: [{name: c, image: none, ports: [{containerPort: 80, hostPort: {{AddInt 8000 (Mod .Index .ports)}}}]}]
"""
GANG = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata:
  name: gang-{{.Index}}
spec:
  {{- if .rank}}
  priority: {{.rank}}
  {{- end}}
  schedulingPolicy: {gang: {minCount: {{.least}}}}
"""
MEMBER = """
apiVersion: v1
kind: Pod
metadata: {generateName: "member-{{.Index}}-"}
spec:
  priority: {{if .rank}}{{AddInt 0 .rank}}{{else}}3{{end}}
  schedulingGroup:
    podGroupName: gang-{{DivideInt .Index .size}}
  containers: [{name: c, image: none}]
"""
DEVICES = """
- name: Claims
  workloadTemplate:
  - {opcode: createNodes, count: 2, nodeTemplatePath: templates/racked.yaml}
  - {opcode: createAny, count: 2, templatePath: templates/slice.yaml, templateParams: {devices: $devices|3}}
  - {opcode: createAny, templatePath: templates/class.yaml}
  - {opcode: createAny, countParam: $claims, namespace: init, templatePath: templates/claim.yaml}
  - {opcode: allocResourceClaims, namespace: init}
  - {opcode: createPods, count: 4, podTemplatePath: templates/spread.yaml, templateParams: {ports: 1},
     steadyStateParam: $steady, collectMetrics: true}
  workloads:
  - {name: new, params: {claims: 0, steady: false}}
  - {name: steady, params: {claims: 0, steady: true}}
  - {name: half, params: {claims: 2, steady: false}}
"""
SLICE = """
{{$devices := or .devices 8}}
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: "slice-{{.Index}}"}
spec:
  driver: gpu.example.com
  nodeName: n-{{.Index}}
  pool: {name: "n-{{.Index}}", generation: 1, resourceSliceCount: 1}
  devices:{{range $number := ($devices | Int)}}
  - name: gpu-{{$number}}
    attributes:
      model: {string: M}
      version: {version: 1.2.3}
      side: {int: {{Mod . 2}}}
      resource.kubernetes.io/pciBusID: {string: "0000:0{{.}}:00.0"}
    capacity: {memory: {value: 24Gi}}{{end}}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the miniatures, and the current one."""
    templates = {"racked": RACKED, "spread": SPREAD, "gang": GANG, "member": MEMBER, "slice": SLICE}
    for name, kind in (("class", "DeviceClass"), ("claim", "ResourceClaim")):
        meta = f"metadata: {{name: '{name}-{{{{.Index}}}}'}}"
        templates[name] = f"apiVersion: resource.k8s.io/v1\nkind: {kind}\n{meta}\nspec: {{}}\n"
    (tmp_path / "templates").mkdir()
    for name, text in templates.items():
        (tmp_path / "templates" / f"{name}.yaml").write_text(text)
    (tmp_path / "gangs.yaml").write_text(GANGS)
    (tmp_path / "devices.yaml").write_text(DEVICES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_gang_of_scheduler_perf_is_a_group_with_its_pods_on_nodes_with_their_racks(place: Path) -> None:
    assert imported("scheduler_perf", "gangs.yaml", "--case", "Gangs", "--workload", "plain") == 0
    loaded = load(place / "imported" / "gangs-plain.yaml")
    (gang,) = loaded.experiment.workloads
    assert (gang.jobs, gang.replace) == (3, {})
    group, *members = yaml.safe_load_all(loaded.manifests["measured-1"])
    assert (group["kind"], group["spec"]) == ("PodGroup", {"schedulingPolicy": {"gang": {"minCount": 2}}})
    assert [each["metadata"]["name"] for each in members] == ["member-0-0", "member-1-1"]
    assert {each["spec"]["schedulingGroup"]["podGroupName"] for each in members} == {group["metadata"]["name"]}
    cluster = stack(place, "gangs-plain")
    assert cluster["kwok"] == {"workloads": "native"}
    assert [
        (each["placement"][0]["replicas"], each["nodeTemplate"]["metadata"]["labels"]) for each in cluster["nodeGroups"]
    ] == [(5, {"rack": "r-0"}), (3, {"rack": "r-1"})]


def test_gangs_that_preempt_have_classes_and_the_pods_before_them_are_of_each_of_their_kinds(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported("scheduler_perf", "gangs.yaml", "--case", "Gangs", "--workload", "important") == 0
    loaded = load(place / "imported" / "gangs-important.yaml")
    (made,) = (each for each in loaded.setup if each["kind"] == "PriorityClass")
    assert made["value"] == 9
    *before, measured = loaded.experiment.workloads
    for each in yaml.safe_load_all(loaded.manifests[measured.name]):
        assert each["spec"]["priorityClassName"] == made["metadata"]["name"]
    pods = [yaml.safe_load(loaded.manifests[each.name]) for each in before]
    ports = [each["spec"]["containers"][0]["ports"][0]["hostPort"] for each in pods]
    assert [(each.jobs, port) for each, port in zip(before, ports, strict=True)] == [(3, 8000), (2, 8001)]
    assert [each.arrival.once for each in (*before, measured)] == [None, None, "scheduled"]


def test_groups_that_no_job_can_be_are_not_written(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported("scheduler_perf", "gangs.yaml") == 0
    said = capsys.readouterr().out
    assert "not written: uneven-one: createPods: groups of 1 to 2 pods" in said
    assert "not written: elsewhere-one: createPods: no group is named gang-0" in said
    before, measured = load(place / "imported" / "victims-one.yaml").experiment.workloads
    assert [(each.name, each.jobs, each.measured) for each in (before, measured)] == [
        ("before-1", 1, False),
        ("measured-2", 1, True),
    ]


def test_devices_of_slices_are_those_of_the_node_group_and_other_objects_come_before(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported("scheduler_perf", "devices.yaml") == 0
    loaded = load(place / "imported" / "claims-new.yaml")
    assert [each["metadata"]["name"] for each in loaded.setup if each["kind"] == "DeviceClass"] == ["class-0"]
    (group,) = stack(place, "claims-new")["nodeGroups"]
    assert group["resourceSlices"] == {
        "driver": "gpu.example.com",
        "count": 3,
        "attributes": {"model": "M", "version": {"version": "1.2.3"}},
        "capacity": {"memory": "24Gi"},
        "deviceClass": "",
    }
    said = capsys.readouterr().out
    assert "  not expressed: attributes that differ from device to device: side" in said
    assert "createPods: steadyStateParam of 4 pods" in said
    assert "allocResourceClaims: no field of an experiment does this" in said
    assert not list((place / "imported").glob("claims-[hs]*"))


@pytest.mark.parametrize(
    ("text", "values", "written"),
    [
        ("{{.a}} {{ .a }}", {"a": 1}, "1 1"),
        ("x {{- if .a}}y{{else}}z{{end -}} ;", {}, "xz;"),
        ("{{range $n := 3}}{{$n}}{{.}}{{end}}", {}, "001122"),
        ("{{range .a}}[{{.}}]{{end}}", {"a": ["b", "c"]}, "[b][c]"),
        ("{{$a := (or .a 4) | Int}}{{if ge $a 4}}{{MultiplyInt $a 2}}{{end}}", {"a": ""}, "8"),
        ("{{if .a}}{{range 2}}{{if .}}1{{end}}{{end}}{{else}}{{.b}}{{end}}", {"b": "c"}, "c"),
        (
            '{{JSON .a}} {{eq .b "c"}} {{SubtractInt 1 3}} {{DivideInt -7 2}}',
            {"a": {"b": None}, "b": "c"},
            '{"b": null} true -2 -3',
        ),
        ("{{Index}}", {}, None),
        ("{{.a}}", {}, None),
        ("{{if .a}}", {}, None),
        ("{{end}}", {}, None),
        ("{{Mod .a 2}}", {"a": "b"}, None),
        ("{{.a .b}}", {"a": 1, "b": 2}, None),
    ],
)
def test_a_template_is_filled_in_as_go_does_or_refused(text: str, values: dict[str, Any], written: str | None) -> None:
    if written is not None:
        assert filled(text, values, Path("a.yaml")) == written
        return
    with pytest.raises(LabError, match=r"^a\.yaml"):
        filled(text, values, Path("a.yaml"))
