"""Importing traces: small rows made by hand in every format, and what is told of rows that are no tasks."""

import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli.main import main
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.offline.experiment import machines_of
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.traces.formats import FORMATS
from kumulus.extras.lab.traces.importing import WrittenExperiment, import_trace
from kumulus.extras.lab.traces.reading import TraceNotes
from kumulus.extras.lab.traces.task import TraceTask
from kumulus.extras.lab.traces.writing import WantedExperiment, groups, stack_text
from kumulus.model.named_nodes import NamedNode
from kumulus.stackfile.load import load as load_file

H100 = "NVIDIA-H100-80GB-HBM3"

OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,96000,393216,8,G2\n"
OPENB_PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
a,12000,16384,1,460,,LS,Running,10,110,20
b,6000,12288,2,1000,V100M16|V100M32,BE,Pending,30,90,
c,4000,8192,0,0,,BE,Succeeded,5,15,5
"""
PHILLY: list[dict[str, Any]] = [
    {
        "status": "Pass", "vc": "ee9e8c", "jobid": "application_1", "user": "u1",
        "submitted_time": "2017-10-09 07:00:00",
        "attempts": [
            {"start_time": "2017-10-09 07:02:12", "end_time": "2017-10-09 07:03:12",
             "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}]},
            {"start_time": "2017-10-09 07:10:00", "end_time": "2017-10-09 07:10:30", "detail": []},
        ],
    },
    {"vc": "x", "jobid": "application_2", "submitted_time": "2017-10-09 07:00:01", "attempts": []},
    {
        "vc": "x", "jobid": "application_3", "submitted_time": "2017-10-09 07:00:02",
        "attempts": [{"start_time": None, "end_time": None, "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}],
    },
]  # fmt: skip
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,16,32,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
"""
ACME = """\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,duration
dlc1,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,,18
"""
FOUR = "arrival,gpus\n0,1\n1,1\n4000000,1\n3024001,1\n"
PAI = "j1,worker,2.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC\nj2,ps,1.0,Failed,5.0,,400.0,10.0,,\n"
SWF = """\
; Version: 2.2
    1      0     10   3600   64     -1     -1     64   7200  2048  1   3   1  -1   2  -1 -1 -1
    2     60     -1     -1   -1     -1     -1     -1     -1    -1  0   3   1  -1  -1  -1 -1 -1
"""


def read(
    kind: str, contents: Sequence[str], folder: Path, columns: dict[str, str] | None = None
) -> tuple[list[EmptyNode], list[TraceTask], TraceNotes, list[str]]:
    files = []
    for number, content in enumerate(contents):
        files.append(folder / f"file-{number}")
        files[-1].write_text(content)
    bad: list[str] = []
    notes = TraceNotes(lambda file, line, why: bad.append(f"{file}:{line}: {why}"))
    found = FORMATS[kind].read(files, notes, columns or {})
    return found.machines, list(found.tasks), notes, bad


def imported(
    folder: Path,
    text: str,
    wanted: WantedExperiment,
    machines: Sequence[EmptyNode] = (EmptyNode("a", 64000, 1, 8, "P100"),),
    columns: dict[str, str] | None = None,
) -> tuple[WrittenExperiment, ExperimentSpec]:
    """What is imported of a CSV text, and the experiment as it is read again."""
    jobs, stack, experiment = (folder / name for name in ("jobs.csv", "s.yaml", "e.yaml"))
    jobs.write_text(text)
    made = import_trace(
        FORMATS["csv"], [jobs], stack, experiment, machines=machines, columns=columns or {}, wanted=wanted
    )
    return made, load(experiment).experiment


def test_openb_has_nodes_and_shares_of_gpus(tmp_path: Path) -> None:
    machines, tasks, notes, bad = read("openb", [OPENB_PODS, OPENB_NODES], tmp_path)
    assert machines == [EmptyNode("n-0", 64000, 262144, 2, "P100"), EmptyNode("n-1", 96000, 393216, 8, "G2")]
    assert tasks == [
        TraceTask("a", 10, 90, 1, 12000, 16384, 1, 460, (), qos="LS"),
        TraceTask("b", 30, None, 1, 6000, 12288, 2, 1000, ("V100M16", "V100M32"), qos="BE"),
        TraceTask("c", 5, 10, 1, 4000, 8192, 0, 0, (), qos="BE"),
    ]
    assert (bad, notes.rows, sum(notes.left_out.values())) == ([], 5, 1)


def test_openb_tells_of_each_bad_row_by_its_line(tmp_path: Path) -> None:
    rows = ["d,1,1,1,1001,,LS,Running,0,1,0", "e,x,1,0,0,,LS,Running,0,1,0", "f,1", "g,1,1,2,500,,LS,Running,0,1,0"]
    _, tasks, notes, bad = read("openb", [OPENB_NODES, OPENB_PODS + "\n".join(rows) + "\n"], tmp_path)
    assert len(tasks) == 3
    assert notes.bad == 4
    assert [line.split(":")[1] for line in bad] == ["5", "6", "7", "8"]
    assert "gpu_milli is 1001, not from 1 to 1000" in bad[0]
    assert "cpu_milli is 'x', not a number" in bad[1].replace('"', "'")
    assert "has 2 cells, not 11" in bad[2]


@pytest.mark.parametrize("indent", [None, 1], ids=["in a line", "indented"])
def test_philly_jobs_are_gangs_of_servers(indent: int | None, tmp_path: Path) -> None:
    machines = "machineId, number of GPUs, single GPU mem\nm1,2,12GB\nm2,8,24GB\n"
    found, tasks, notes, bad = read(
        "philly", [json.dumps(PHILLY, indent=indent), machines.replace(", ", ",")], tmp_path
    )
    assert [(machine.name, machine.gpus, machine.model) for machine in found] == [("m1", 2, "12GB"), ("m2", 8, "24GB")]
    first, third = tasks
    assert (first.workers, first.gpus, first.gpu_milli, first.duration, first.user) == (2, 2, 1000, 90.0, "ee9e8c")
    assert third.arrival - first.arrival == 2
    assert third.duration is None
    assert notes.bad == 1
    assert "was never given a server" in bad[0]
    assert len(notes.left_out) == 2


def test_the_gpus_of_a_philly_job_are_those_of_the_first_try_that_got_any(tmp_path: Path) -> None:
    job = {**PHILLY[0], "attempts": [{**PHILLY[0]["attempts"][0], "detail": []}, *PHILLY[0]["attempts"]]}
    strange = [{**PHILLY[0], "attempts": 2}, {**PHILLY[0], "attempts": [{"detail": [{"gpus": 3}, 4]}]}]
    _, tasks, _, bad = read("philly", [json.dumps([job, *strange])], tmp_path)
    assert [(task.workers, task.gpus, task.gpu_milli) for task in tasks] == [(2, 2, 1000), (1, 0, 0)]
    assert ["was never given a server" in each for each in bad] == [True]


def test_philly_is_read_across_the_pieces_of_a_large_file(tmp_path: Path) -> None:
    many = [PHILLY[0] | {"jobid": f"application_{number}"} for number in range(2000)]
    _, tasks, _, bad = read("philly", [json.dumps(many)], tmp_path)
    assert (len(tasks), bad) == (2000, [])
    assert len({task.name for task in tasks}) == 2000


def test_a_log_that_ends_amid_a_job_is_told(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is no JSON array of jobs"):
        read("philly", [json.dumps(PHILLY)[:-20]], tmp_path)


def test_adaptdls_philly_spreads_gpus_over_machines(tmp_path: Path) -> None:
    text = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
    text += "2017-10-09 07:01:57,10.0,16,160.0,11cb48\n2017-10-09 07:01:58,10.0,9,90.0,11cb48\nnever,1.0,1,1.0,x\n"
    _, tasks, notes, bad = read("philly-csv", [text], tmp_path)
    assert [(task.workers, task.gpus) for task in tasks] == [(1, 1), (2, 8), (2, 5)]
    assert tasks[1].arrival - tasks[0].arrival == 2
    assert sum(notes.left_out.values()) == 1
    assert "line" not in bad[0]
    assert bad[0].startswith("file-0:5: timestamp is ")


def test_helios_and_acme_divide_a_job_among_its_nodes(tmp_path: Path) -> None:
    _, (helios,), _, bad = read("helios", [HELIOS], tmp_path)
    assert (helios.workers, helios.gpus, helios.cpu, helios.duration, helios.user) == (2, 8, 16000, 36848, "vcJkd")
    _, (acme,), _, also_bad = read("acme", [ACME], tmp_path)
    assert (acme.workers, acme.gpus, acme.cpu, acme.memory, acme.user) == (8, 8, 120000, 953674, "uf794")
    assert bad == also_bad == []


@pytest.mark.parametrize("heading", [False, True])
def test_pai_plans_are_per_cents(heading: bool, tmp_path: Path) -> None:
    titles = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    machines, tasks, notes, bad = read("pai", [titles * heading + PAI, "m-0,V100,96,512,8\n"], tmp_path)
    assert machines == [EmptyNode("m-0", 96000, 524288, 8, "V100")]
    assert tasks[0] == TraceTask("j1/worker", 1739162, 38, 2, 6000, 30000, 1, 500, ("MISC",), user="j1")
    assert (tasks[1].gpus, tasks[1].duration, tasks[1].models) == (0, None, ())
    assert (bad, sum(notes.left_out.values())) == ([], 1)


def test_swf_jobs_have_a_worker_for_each_processor(tmp_path: Path) -> None:
    _, (task,), notes, bad = read("swf", [SWF], tmp_path)
    assert task == TraceTask("job-1", 0, 3600, 64, 1000, 2, user="queue-2")
    assert bad == ["file-0:3: asks for no processors and got none"]
    assert notes.rows == 2


def test_any_csv_is_read_by_the_columns_that_are_told(tmp_path: Path) -> None:
    text = "when,n,cpu,mem,who\n2024-01-01T00:00:00Z,0.5,500m,1Gi,ann\n2024-01-01T00:01:00Z,2,4,2Gi,bob\n0,1.5,1,1,x\n"
    columns = {"arrival": "when", "gpus": "n", "memory": "mem", "user": "who"}
    _, tasks, _, bad = read("csv", [text], tmp_path, columns)
    assert [(task.gpus, task.gpu_milli, task.cpu, task.memory, task.user) for task in tasks] == [
        (1, 500, 500, 1024, "ann"),
        (2, 1000, 4000, 2048, "bob"),
    ]
    assert tasks[1].arrival - tasks[0].arrival == 60
    assert bad == ["file-0:4: n is 1.5; only a part of a single GPU can be asked for"]
    with pytest.raises(LabError, match="has no column wen: did you mean when"):
        read("csv", [text], tmp_path, {"arrival": "wen"})


def test_files_may_be_packed(tmp_path: Path) -> None:
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(b"arrival,gpus\n1,1\n"))
    found = FORMATS["csv"].read([packed], TraceNotes(lambda *_: None), {})
    assert [task.arrival for task in found.tasks] == [1.0]


def test_kinds_of_machines_get_groups_of_different_names() -> None:
    machines = [
        EmptyNode("a", 64000, 1, 2, "P100"),
        EmptyNode("b", 8000, 1, 2, "P100"),
        EmptyNode("c", 8000, 2, 2, "P100"),
    ]
    names = [name for name, _, _ in groups([*machines, *machines, EmptyNode("d", 1000, 1)])]
    assert names == ["p100-2g", "p100-2g-8c", "p100-2g-8c-2m", "cpu"]
    names = [name for name, _, _ in groups([EmptyNode("a", 64000 + part, 1, 1, "T4" * 40) for part in range(5)])]
    assert len(set(names)) == 5
    assert max(map(len, names)) < 50


def test_an_import_writes_files_that_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(OPENB_NODES)
    (tmp_path / "pods.csv").write_text(OPENB_PODS + "broken\n")
    stack, experiment = tmp_path / "stacks" / "Pulumi.x.yaml", tmp_path / "e.yaml"
    stack.parent.mkdir()
    files = [tmp_path / "nodes.csv", tmp_path / "pods.csv"]
    written = import_trace(FORMATS["openb"], files, stack, experiment, wanted=WantedExperiment("FGD", 1.3, stay=True))
    assert written.bad is not None
    assert list(csv.reader(written.bad.open())) == [
        ["file", "line", "why"],
        ["pods.csv", "5", "has 1 cells, not 11"],
    ]
    loaded = load(experiment)
    assert (loaded.experiment.stack, loaded.experiment.stackFile) == ("x", "stacks/Pulumi.x.yaml")
    assert [job.arrival for job in loaded.traces["tasks"]] == [0, 5, 25]
    asked = loaded.traces["tasks"][1].asked
    assert asked is not None
    assert (asked.name, asked.cpu, asked.memory, asked.gpus, asked.gpu_milli) == ("a", 12000, 16384, 1, 460)
    assert loaded.traces["tasks"][2].asked.models == {"V100M16", "V100M32"}  # type: ignore[union-attr]
    described = yaml.safe_load(stack.read_text())["config"]["kumulus:cluster"]["nodeGroups"]
    assert [group["nodeTemplate"]["capacity"]["nvidia.com/gpu"] for group in described] == ["2", "8"]


@pytest.mark.parametrize(
    ("wanted", "patience"),
    [
        (WantedExperiment(), 1.5 * 4_000_000),
        (WantedExperiment(speed=4_000), 1.5 * 1_000),
        (WantedExperiment(window=(3_000_000.0, 3_100_000.0), speed=100), 1.5 * 1_000),
        (WantedExperiment(window=(3_000_000.0, 9_000_000.0), speed=100), 1.5 * 10_000),
        (WantedExperiment(inflate=1.3, stay=True), 1),
        (WantedExperiment(speed=0.01), 366 * 86_400 - 1800),
    ],
)
def test_a_run_is_given_the_time_that_its_jobs_take_to_come(
    tmp_path: Path, wanted: WantedExperiment, patience: float
) -> None:
    assert 0 <= imported(tmp_path, FOUR, wanted)[1].timeout - (patience + 1800) < 600


@pytest.mark.parametrize("window", [(3_024_000.0, 3_628_800.0), (0.0, 12_345_678.0), (0.5, 90.25)])
def test_a_window_is_written_as_a_duration_that_is_read_again(tmp_path: Path, window: tuple[float, float]) -> None:
    [workload] = imported(tmp_path, FOUR, WantedExperiment(window=window))[1].workloads
    assert workload.arrival.trace is not None
    read = workload.arrival.trace.window
    assert read is not None
    assert (read.from_, read.to) == window


def claiming(directory: Path, claims: Any, *machines: EmptyNode) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cluster of the stack file, and the workload, of a trace that is imported with resource claims."""
    wanted = WantedExperiment(stay=True, resource_claims=claims)
    imported(directory, "arrival,gpus\n0,0.5\n1,2\n", wanted, machines)
    cluster = yaml.safe_load((directory / "s.yaml").read_text())["config"]["kumulus:cluster"]
    # What is written is what stack files may say.
    checked = load_file({"cluster": cluster}, "s", directory).spec
    assert [group.resourceSlices is not None for group in checked.nodeGroups] == [bool(m.gpus) for m in machines]
    return cluster, yaml.safe_load((directory / "e.yaml").read_text())["workloads"][0]


def test_a_stack_publishes_what_the_pods_of_its_trace_claim(tmp_path: Path) -> None:
    plain, old, new = (
        EmptyNode("c", 8000, 1024),
        EmptyNode("a", 8000, 1024, 2, "P9"),
        EmptyNode("b", 8000, 1024, 2, H100),
    )
    cluster, workload = claiming(tmp_path, "milli", plain, old, new)
    assert workload["resourceClaims"] == "milli"
    assert cluster["kwok"] == {"featureGates": {"DRAConsumableCapacity": True}}
    shared = {"extendedResource": False, "allowMultipleAllocations": True}
    found = [group.get("resourceSlices") for group in cluster["nodeGroups"]]
    # What the catalog does not know is called as the trace calls it.
    assert found == [None, shared | {"attributes": {"productName": "P9"}}, shared]
    cluster, workload = claiming(tmp_path, "mig", old, new)
    assert workload["resourceClaims"] == "mig"
    assert cluster["kwok"] == {"featureGates": {"DRAPartitionableDevices": True}}
    whole = {"extendedResource": False, "attributes": {"productName": "P9"}}
    assert [group["resourceSlices"] for group in cluster["nodeGroups"]] == [
        whole,
        {"extendedResource": False, "partitionable": True},
    ]
    with pytest.raises(LabError, match="knows MIG devices of; it has P9\n  Write --resource-claims milli"):
        claiming(tmp_path, "mig", old)


def test_nodes_are_called_as_the_trace_calls_them_where_that_is_wanted(tmp_path: Path) -> None:
    machines = [EmptyNode("Openb-Node-7", 64000, 1024, 2, "P9"), EmptyNode("openb-node-3", 8000, 1024)]
    text = stack_text(
        [*machines, EmptyNode("openb-node-5", 64000, 1024, 2, "P9")], "x", WantedExperiment(keep_names=True)
    )
    pools = load_file({"cluster": yaml.safe_load(text)["config"]["kumulus:cluster"]}, "s", tmp_path).pools
    assert [pool.node_names() for pool in pools] == [["openb-node-7", "openb-node-5"], ["openb-node-3"]]
    assert [machine.name for pool in pools for machine in machines_of(pool, "m")] == [
        "openb-node-7",
        "openb-node-5",
        "openb-node-3",
    ]
    other = replace(pools[0], nodes=(pools[0].nodes[0], NamedNode("own", {"m": "P10"})))
    assert [machine.model for machine in machines_of(other, "m")] == [pools[0].group, "P10"]
    with pytest.raises(LabError, match=r'the machine "a_b": its name .*\n  Leave out --keep-names'):
        stack_text([EmptyNode("a_b", 1000, 1)], "x", WantedExperiment(keep_names=True))
    with pytest.raises(LabError, match="is there twice"):
        stack_text([EmptyNode("a", 1000, 1), EmptyNode("A", 1000, 1)], "x", WantedExperiment(keep_names=True))
    assert "openb-node-7" not in stack_text(machines, "x")


def test_the_command_says_what_came_and_what_did_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.csv").write_text("arrival,gpus\n1,1\nnever,1\n")
    outputs = ["--stack", str(tmp_path / "s.yaml"), "--experiment", str(tmp_path / "e.yaml")]
    command = ["trace", "import", "csv", str(tmp_path / "jobs.csv"), *outputs]
    assert main(command) == 1
    assert "--machines count=550" in capsys.readouterr().err
    given = ["--machines", "count=3,gpus=8", "--resource-claims", "milli", "--policy", "FGD"]
    assert main([*command, *given]) == 1
    # A policy counts GPUs alone.
    assert "--resource-claims cannot be combined with --policy FGD" in capsys.readouterr().err
    given = ["--machines", "count=3,gpus=8,cpu=32,memory=256Gi,model=A100"]
    assert main([*command, *given]) == 0
    said = capsys.readouterr().out
    assert "machines   3 with 24 GPUs (24 A100)" in said
    assert "rows       2 read, 1 of them bad" in said
    assert "bad: jobs.csv, line 3: arrival is " in said
    assert main(["trace", "import", "cvs", "x", *outputs]) == 1
    assert "did you mean csv?" in capsys.readouterr().err


def test_an_import_holds_no_more_than_a_task(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("arrival,gpus\n" + "1,1\n" * 20_000)
    notes = TraceNotes(lambda *_: None)
    tasks = FORMATS["csv"].read([jobs], notes, {}).tasks
    next(tasks)
    assert notes.rows == 1
    assert sum(1 for _ in tasks) == 19_999


OWN_COLUMNS = "arrival,duration,gpus,cpus,mem_gb,user\n0,100,4,8,200,a\n50,100,4,8,200,b\n100,100,8,8,100,b\n"


def said_of(tmp_path: Path, text: str, columns: dict[str, str], **wanted: Any) -> list[str]:
    machines = [EmptyNode(f"m{number}", 64000, 512 << 10, 8) for number in range(2)]
    return imported(tmp_path, text, WantedExperiment(**wanted), machines, columns)[0].lines


def test_a_memory_column_may_have_its_unit_named(tmp_path: Path) -> None:
    _, tasks, _, _ = read("csv", [OWN_COLUMNS], tmp_path, {"memory": "mem_gb:Gi"})
    assert [task.memory for task in tasks] == [200 << 10, 200 << 10, 100 << 10]
    _, tasks, _, _ = read("csv", ["arrival,a:Gi\n0,1Mi\n"], tmp_path, {"memory": "a:Gi"})
    assert [task.memory for task in tasks] == [1]
    with pytest.raises(LabError, match="'Gib' is no unit; write one of B, Ki"):
        read("csv", [OWN_COLUMNS], tmp_path, {"memory": "mem_gb:Gib"})


def test_all_mistakes_in_the_named_columns_are_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(LabError) as refused:
        read("csv", [OWN_COLUMNS], tmp_path, {"arrival": "arival", "memory": "mem_gib:GB", "cpu": "kernels"})
    unit, *columns = str(refused.value).replace(f"{tmp_path}/", "").splitlines()
    assert unit == "--columns memory=mem_gib:GB: 'GB' is no unit; write one of B, Ki, Mi, Gi, Ti, k, M, G, T"
    assert sorted(columns) == [
        "  file-0 has no column arival: did you mean arrival?",
        "  file-0 has no column kernels: it has arrival, duration, gpus, cpus, mem_gb, user",
        "  file-0 has no column mem_gib: did you mean mem_gb?",
    ]


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        (OWN_COLUMNS, {"cpu": "cpus"}, "not used   mem_gb; to use a column, name it with --columns KEY=HEADING"),
        ("arrival,gpus\n0,1\n1800,1\n", {}, "arrivals   over 0.50 hours"),
        ("arrival,gpus\n0,1\n86400,1\n", {}, "arrivals   over 24.00 hours"),
        ("arrival,gpus\n0,1\n864000,1\n", {}, "arrivals   over 10.0 days"),
        # Two of 4 GPUs until 100 s, 4 and 8 from then, 8 after 150 s: 1,600 GPU-seconds in 200 s.
        (
            OWN_COLUMNS,
            {},
            "GPU        16.0 GPUs asked for by all tasks together, 100.0 % of what is there\n"
            "           at one time 12.0 (75.0 %) at most, 8.0 (50.0 %) on average",
        ),
    ],
)
def test_an_import_says_what_it_did_not_read_how_long_jobs_arrive_and_what_is_asked_for_at_one_time(
    tmp_path: Path, text: str, columns: dict[str, str], said: str
) -> None:
    assert f"\n{said}\n" in "\n".join([*said_of(tmp_path, text, columns), ""])


def test_memory_that_no_pod_asks_for_is_warned_about(tmp_path: Path) -> None:
    (line,) = [each for each in said_of(tmp_path, OWN_COLUMNS, {"memory": "mem_gb"}) if "warning" in each]
    assert line.startswith("warning: no pod asks for more than 1 MiB of memory; if the column is in another unit")
    (line,) = [each for each in said_of(tmp_path, OWN_COLUMNS, {"memory": "mem_gb:Ti"}) if "warning" in each]
    assert "ask for more memory on average than any machine has" in line
    assert not [each for each in said_of(tmp_path, OWN_COLUMNS, {"memory": "mem_gb:Gi"}) if "warning" in each]


@pytest.mark.parametrize(
    ("text", "wanted", "said"),
    [
        ("arrival,duration,gpus\n9,1,1\n0,1,1\n", {}, "arrivals are not in order, so what is asked for at one time"),
        ("arrival,gpus\n0,1\n1,1\n", {}, ""),
        ("arrival,duration,gpus\n0,1,1\n1,1,1\n", {"stay": True}, ""),
    ],
    ids=["out of order", "no durations", "nothing ends"],
)
def test_the_demand_at_one_time_is_not_guessed(tmp_path: Path, text: str, wanted: dict[str, Any], said: str) -> None:
    lines = "\n".join(said_of(tmp_path, text, {}, **wanted))
    assert "at most" not in lines
    assert said in lines
