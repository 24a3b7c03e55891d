"""Experiment files: what is taken, and what is said of every mistake."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.file.amount import bound
from kumulus.extras.lab.file.load import load, with_prices
from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.model.errors import SpecError
from tests.support.said import problems_of

WORK: dict[str, Any] = {"name": "work"}


def told(**fields: Any) -> dict[str, str]:
    return problems_of(ExperimentSpec.checked, {"name": "test", "workloads": [WORK], **fields})


def test_the_least_experiment_has_a_name_and_a_workload() -> None:
    experiment = ExperimentSpec.checked({"name": "test", "workloads": [WORK]})
    assert (experiment.repetitions, experiment.until, experiment.settle, experiment.timeout) == (1, "scheduled", 5, 600)
    assert experiment.workloads[0].kind == "Job"


# What is written beside a name and a workload, where it is told of, and words of what is said.
MISTAKES = """
workloads: [] → workloads: is empty; write what is created
whyPolicy: FGD → whyPolicy: write why: true as well
whyPolicy: FGD, why: true, policy: FGD → whyPolicy: cannot be combined with a policy that decides
workloads: [{name: work}, {name: work}] → workloads[1].name: "work" is already workloads[0].name; write another name
from: 3 → from: is 3, not a mapping; write from: {snapshot: full}
from: {snapshoot: full} → from.snapshoot: is not a known key; write snapshot
form: {snapshot: full} → form: is not a known key; write from
from: {snapshot: ' '} → from.snapshot: is empty
from: {} → from.snapshot: is missing; write snapshot: full
workloads: [{name: work, kind: Jobs}] → workloads[0].kind: is "Jobs"; write Job
workloads: [{name: work, worker: 3}] → workloads[0].worker: is not a known key; write workers
workloads: [{name: work, workers: 0}] → workloads[0].workers: is 0, less than 1
workloads: [{name: work, requests: {cpu: 1x}}] → workloads[0].requests.cpu: "1x"
workloads: [{name: work, affinity: {required: zones}}] → workloads[0].affinity.required: write zone
workloads: [{name: work, kind: Pod, duration: 5m}]
  → workloads[0].duration: is not for a Pod, whose pods have no end; write kind: Job
workloads: [{name: work, duration: 5m, arrival: {trace: {file: t.csv, stay: true}}}]
  → workloads[0].duration: has no effect with arrival.trace.stay, by which no job ends; leave one of them out
workloads: [{name: work, manifest: a.yaml, workers: 2}] → workloads[0].workers: has no effect with manifest
workloads: [{name: work, replace: {A: b}}] → workloads[0].replace: has no effect without manifest
workloads: [{name: work, arrival: {rate: 1, poisson: 2}}] → workloads[0].arrival.poisson: cannot be combined with rate
workloads: [{name: work, arrival: {rate: 0}}] → workloads[0].arrival.rate: is not above 0
timeline: [{at: 30}] → timeline[0].at: is 30, which has no unit; write 30s
timeline: [{at: 3s}] → timeline[0]: says nothing of what happens; write one of fault, clear
timeline: [{scheduler: restart, delete: work}] → timeline[0]: says scheduler and delete at once; write each as an item
timeline: [{scheduler: stop}] → timeline[0].scheduler: stops the scheduler for good
workloads: [{name: work, replay: {file: day.jsonl}}], timeline: [{delete: work}]
  → timeline[0].delete: "work" is a recording, which says what is deleted, and when; leave it out
timeline: [{at: 60s, scheduler: stop}, {at: 5s, scheduler: start}] → timeline[0].scheduler: stops the scheduler for good
timeline: [{at: 10m, scheduler: restart}] → timeline[0].at: is not before the run's timeout, 10m
timeout: 1m, timeline: [{after: created, at: 90s, scheduler: restart}]
  → timeline[0].at: is not before the run's timeout, 1m
timeline: [{delete: wrok}] → timeline[0].delete: "wrok" is no workload; write work
timeline: [{scale: {workload: wrok, replicas: 2}}] → timeline[0].scale.workload: "wrok" is no workload; write work
timeline: [{scale: {workload: work, replicas: 2}}] → timeline[0].scale.workload: is not made of Deployments
timeline: [{scale: {workload: work, replicas: -1}}] → timeline[0].scale.replicas: is -1
timeline: [{clear: rack}] → timeline[0].clear: is no fault of this timeline; leave it out
timeline: [{fault: {name: x, kind: xid}}] → timeline[0].fault.kind: is not in the catalog
expect: [{measure: allocation.gpus}] → expect[0].measure: write allocation.gpu
expect: [{measure: makespan}] → expect[0]: has no threshold; write atMost:, atLeast:, equals: or within:
expect: [{measure: makespan, atMost: 5}] → expect[0].atMost: is 5; write a duration such as 2s
expect: [{measure: allocation.gpu, atLeast: 99}] → expect[0].atLeast: a percentage such as 99%
expect: [{measure: allocation.gpu, atLeast: nan%}] → expect[0].atLeast: is "nan%"
expect: [{measure: memory.client, atMost: 3s}] → expect[0].atMost: a quantity such as 300Mi
expect: [{workload: other, nodes: [a]}] → expect[0].workload: is no workload; write one of work
expect: [{nodes: [a]}] → expect[0]: is about nodes, with nothing else; write workload:, nodes: and no other
expect: [{nodes: {fault: rack}, cordoned: true, within: 10s}]
  → expect[0].nodes.fault: "rack" is no fault of this timeline; leave it out
expect: [{nodes: {fault: rack}, cordoned: true}]
  → expect[0]: is about nodes, with cordoned; write nodes:, cordoned:, within: and no other
expect: [{nodes: {faults: rack}}] → expect[0].nodes: write nodes: [NAME, …], or nodes: {fault
expect: [{workload: work, onFaultedNodes: 0, within: 10}]
  → expect[0].within: is 10, which has no unit; write 10s for the nodes of a fault, 10% of baseline for a measure
expect: [{workload: work, onFaultedNodes: 0, within: 10 s}] → expect[0].within: is "10 s"; write a duration such as 10s
expect: [{workload: work, onFaultedNodes: 0, within: 10s}]
  → expect[0].onFaultedNodes: the timeline has no fault; write one, as in {fault: {name: rack1
expect: [{measure: timeToEvacuate, onFaultedNodes: 0}] → expect[0]: says measure and onFaultedNodes at once
expect: [{measure: jobs.admitted, atLeast: -5}] → expect[0].atLeast: is -5; write a number such as 0
workloads: [{name: w, requests: {gpu: 8}}]
  → workloads[0].requests.gpu: is not a resource of Kubernetes and has no domain; write nvidia.com/gpu
timeline: [{run: {command: ' '}}] → timeline[0].run.command: is empty
timeline: [{run: {command: 'true', stay: true}}] → timeline[0].run.stay: is not a known key
repetitions: 0 → repetitions: is 0, less than 1
scheduler: {name: volcanoo} → scheduler.name: is "volcanoo"
productLabel: a b → productLabel: is not a qualified name
until: 'running ' → until: write running
autoscaler: {name: karpenter} → autoscaler: changes nothing; write nodePools or registrationDelay
autoscaler: {nodePools: []} → autoscaler.nodePools: is empty
autoscaler: {zones: [a]} → autoscaler.zones: is not a known key
autoscaler: {nodePools: [{name: a}, {name: a}]} → autoscaler.nodePools[1].name: a is there twice; write another name
autoscaler: {registrationDelay: 5} → autoscaler.registrationDelay: is 5, which has no unit
"""


@pytest.mark.parametrize("mistake", MISTAKES.strip().replace("\n  →", " →").splitlines())
def test_a_mistake_is_told_with_its_place_and_remedy(mistake: str) -> None:
    written, _, said = mistake.partition(" → ")
    path, _, words = said.partition(": ")
    found = told(**yaml.safe_load(f"{{{written}}}"))
    assert words in found.get(path, ""), found


def test_of_a_misspelt_key_it_is_not_said_that_it_is_missing_too() -> None:
    scales: list[dict[str, object]] = [{"workload": "work", "replica": 5}, {"workloads": "work"}]
    found = told(workloads=[{"name": "work"}, {"nam": "x"}], timeline=[{"at": "1s", "scale": each} for each in scales])
    assert {path: remedy for path, remedy in found.items() if "known" in remedy or "missing" in remedy} == {
        "timeline[0].scale.replica": "is not a known key; write replicas",
        "timeline[1].scale.replicas": "is missing; write replicas: 350",
        "timeline[1].scale.workloads": "is not a known key; write workload",
        "workloads[1].nam": "is not a known key; write name",
    }


def test_of_a_workload_whose_name_is_misspelt_only_that_is_said() -> None:
    misspelt = {"workloads[1].nmae": "is not a known key; write name"}
    of_it = {"timeline": [{"delete": "serve"}], "expect": [{"workload": "serve", "nodes": ["a"]}]}
    assert told(workloads=[WORK, {"nmae": "serve"}], **of_it) == misspelt
    near = told(workloads=[WORK, {"nmae": "serve"}], timeline=[{"delete": "wrok"}])
    assert near == {**misspelt, "timeline[0].delete": '"wrok" is no workload; write work'}


@pytest.mark.parametrize(
    ("measure", "written", "value"),
    [
        ("makespan", "1m30s", 90),
        ("makespan", 0, 0),
        ("allocation.gpu", "99.5%", 0.995),
        ("allocation.gpu", 1, 1),
        ("pods.pending", 3, 3),
        ("scheduling.rate", 200, 200),
        ("memory.client", "300Mi", 300 * 2**20),
        ("memory.client", "1G", 1e9),
        ("makespan", "90", None),
        ("allocation.gpu", 0.5, None),
        ("pods.pending", True, None),
        ("pods.pending", float("nan"), None),
        ("pods.pending", "three", None),
    ],
)
def test_a_threshold_is_read_in_its_measures_unit(measure: str, written: object, value: float | None) -> None:
    found = bound(UNITS[measure], written)
    assert found == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("start", "stop"),
    [
        ({"at": "60s"}, {}),
        ({"after": "created"}, {"at": "9s"}),
        ({"after": "created", "at": "9s"}, {"after": "created"}),
    ],
)
def test_a_scheduler_that_is_stopped_may_be_started_by_any_item_that_happens_later(
    start: dict[str, str], stop: dict[str, str]
) -> None:
    timeline = [{**start, "scheduler": "start"}, {**stop, "scheduler": "stop"}]
    assert len(ExperimentSpec.checked({"name": "t", "workloads": [WORK], "timeline": timeline}).timeline) == 2


def write(folder: Path, **files: str | bytes) -> Path:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / "e.yaml"


def test_files_that_an_experiment_names_are_read_from_beside_it(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        e_yaml="name: t\nsetup: [q.yaml]\nworkloads:\n- {name: a, manifest: j.yaml, replace: {ID: 'x-{index}'}}\n"
        "- {name: b, arrival: {trace: {file: t.csv}}}\n",
        q_yaml="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: q}\n---\n---\napiVersion: v1\nkind: Secret\n",
        j_yaml="apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: ID-}\n",
        t_csv="arrival,size,duration\n10,2,5\n4,1,60\n",
    )
    loaded = load(file)
    assert [each["kind"] for each in loaded.setup] == ["ConfigMap", "Secret"]
    assert [(job.arrival, job.size, job.duration) for job in loaded.traces["b"]] == [(0, 1, 60), (6, 2, 5)]
    assert loaded.inputs.keys() == {"experiment.yaml", "q.yaml", "j.yaml", "t.csv"}


LARGE = "{file: t.csv, window: {from: 1h, to: 3h}, limit: 3}"
SETUP, JOB = "setup: [q.yaml], workloads: [{name: a}]", "apiVersion: batch/v1\nkind: Job\n"
REPLACED = "workloads: [{name: a, manifest: j.yaml, replace: {JOBID: x}}]"


def traced(trace: str) -> str:
    return f"workloads: [{{name: a, arrival: {{trace: {trace}}}}}]"


TRACE = traced("{file: t.csv}")


@pytest.mark.parametrize(
    ("body", "files", "words"),
    [
        (SETUP, {}, "setup[0]: there is no file"),
        (SETUP, {"q_yaml": "kind: X"}, "setup[0]: q.yaml: [0].apiVersion: is nothing; write apiVersion"),
        (SETUP, {"q_yaml": ""}, "setup[0]: q.yaml: has no objects; write a Kubernetes manifest"),
        (SETUP, {"q_yaml": "a: [b"}, "setup[0]: q.yaml: line 1, column 6"),
        (SETUP, {"q_yaml": b"\x1f\x8b\xff"}, "not of a packed one"),
        (SETUP, {"q_yaml": b"a" * (5 << 20)}, "smaller"),
        (REPLACED, {"j_yaml": JOB}, "workloads[0].replace.JOBID: does not occur in the manifest"),
        (TRACE, {"t_csv": "when,size\n1,2\n"}, 'has no column "arrival"; write arrival: when or size'),
        (
            traced("{file: t.csv, columns: {size: workers}}"),
            {"t_csv": "arrival,worker\n1,2\n"},
            "write size: worker in arrival.trace.columns",
        ),
        (TRACE, {"t_csv": "arrival\nsoon\n"}, 'line 2, arrival: is "soon"; write a number from'),
        (TRACE, {"t_csv": "arrival,size\n1,0\n"}, 'line 2, size: is "0"; write a number from 1'),
        (TRACE, {"t_csv": 'arrival,size,note\n1,1,"two\nlines"\n\n1,0,\n'}, 'line 5, size: is "0"'),
        (TRACE, {"t_csv": "arrival\n"}, "has no jobs; write a line for each"),
        (TRACE, {"t_csv": ""}, 'has no column "arrival"'),
        (
            traced(LARGE),
            {"t_csv": b"arrival\n" + (b"0" * 199 + b"1\n") * 30_000 + b"\xff"},
            "workloads[0].arrival.trace.file: is not a text in UTF-8",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_in_a_named_file_is_told_with_both_places(
    tmp_path: Path, body: str, files: dict[str, str | bytes], words: str
) -> None:
    file = write(tmp_path, e_yaml=f"{{name: t, {body}}}", **files)
    with pytest.raises(SpecError) as raised:
        load(file)
    assert words in str(raised.value)


def test_files_that_are_missing_are_told_together_with_the_mistakes_of_the_experiment(tmp_path: Path) -> None:
    body = (
        "name: t\nsetup: [q.yaml, 3, there.yaml]\nscheduler: {name: default, config: c.yaml}\nworkloads:\n"
        "- {name: a, manifest: j.yaml, labels: {manifest: none.yaml}}\n"
        "- {name: b, workers: 0, arrival: {trace: {file: t.csv}}}\n- {name: c, replay: {file: d.jsonl}}\n- 7\n"
    )
    file = write(tmp_path, e_yaml=body, there_yaml="")
    with pytest.raises(SpecError) as raised:
        load(file)
    said = {each.path: each.message for each in raised.value.problems}
    assert "is 0" in said["workloads[1].workers"]
    assert {path for path, message in said.items() if message.startswith("there is no file")} == {
        "setup[0]",
        "scheduler.config",
        "workloads[0].manifest",
        "workloads[1].arrival.trace.file",
        "workloads[2].replay.file",
    }


def test_a_trace_is_played_faster_from_its_first_job_on_and_in_part(tmp_path: Path) -> None:
    body = f"{{name: t, {traced('{file: t.csv, speed: 60, limit: 2, columns: {arrival: at}}')}}}"
    rows = "at,duration\n2026-01-01T00:00:00,60\n2026-01-01T00:02:00,120\n2026-01-01T00:05:00,1\n"
    found = load(write(tmp_path, e_yaml=body, t_csv=rows)).traces["a"]
    assert [(job.arrival, job.size, job.duration) for job in found] == [(0, None, 1), (2, None, 2)]


def test_of_a_large_trace_its_window_alone_is_read_kept_and_has_to_be_right(tmp_path: Path) -> None:
    # Six megabytes in no order, of few lines that are long; what is wrong outside the window harms nobody.
    outside = [f"{30_000 + number},1,{'9' * 140}" for number in range(40_000)]
    inside = ["17200,2,60", "13600,1,", "20000,4,7", "13600,3,5"]
    rows = [*outside[:20_000], *inside, *outside[20_000:], "10000,1,1"]
    body = f"{{name: t, {traced(LARGE)}}}"
    file = write(tmp_path, e_yaml=body, t_csv="\n".join(["arrival,size,duration", *rows]))
    assert (tmp_path / "t.csv").stat().st_size > 5 << 20
    tracemalloc.start()
    with pytest.raises(SpecError, match=r'line 20003, duration: is ""'):
        load(file)
    (tmp_path / "t.csv").write_text((tmp_path / "t.csv").read_text().replace("13600,1,\n", "13600,1,9\n"))
    tracemalloc.clear_traces()
    loaded = load(file)
    assert tracemalloc.get_traced_memory()[1] < 5 << 20
    tracemalloc.stop()
    assert [(job.arrival, job.size, job.duration) for job in loaded.traces["a"]] == [
        (0, 1, 9),
        (0, 3, 5),
        (3600, 2, 60),
    ]
    played = ["arrival,size,duration", "17200,2,60", "13600,1,9", "13600,3,5"]
    assert loaded.inputs["t.csv"].splitlines() == played


def test_prices_of_the_user_s_own_are_kept_beside_another_file_of_that_name(tmp_path: Path) -> None:
    queue = "apiVersion: v1\nkind: Namespace\nmetadata: {name: q}\n"
    file = write(tmp_path, e_yaml="name: t\nsetup: [prices.yaml]\nworkloads: [{name: a}]\n", prices_yaml=queue)
    (tmp_path / "own.yaml").write_text("regions: {'*': {onDemand: {ours: 2.5}}}\n")
    loaded, _ = with_prices(load(file), tmp_path / "own.yaml")
    assert loaded.inputs["prices.yaml"] == queue
    assert loaded.inputs["prices-2.yaml"].startswith("regions:")
