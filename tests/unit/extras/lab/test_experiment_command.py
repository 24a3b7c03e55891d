"""`kumulus experiment` without a cluster: what is told of what cannot be, and what is shown of runs there are."""

import argparse
import asyncio
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kumulus.cli.main import main
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges
from kumulus.extras.lab.commands.experiment import add_arguments
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.file.model import Beginning
from kumulus.extras.lab.report.files import RunDirectory
from kumulus.extras.lab.run.preparing import begin_from
from kumulus.host import installation
from kumulus.kube import Client, Connection
from kumulus.model.names import default_cluster_name
from kumulus.runtimes.existing import KUBECONFIG_FILE
from tests.support.reports import report
from tests.unit.extras.watch.test_topology import CLUSTER, group, root, write

__all__ = ["root"]
ROOT = Path(__file__).resolve().parents[4]
FILE = "name: t\nworkloads: [{name: a}]\n"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "t.yaml"
    path.write_text(FILE)
    return str(path)


def run(*arguments: str) -> int:
    return main(["experiment", *arguments])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nowhere.yaml"], "there is no file"),
        (["run", "FILE"], "the file names no stack; write -s STACK, or --kubeconfig FILE"),
        (["run", "FILE", "-s", "quickstrat"], "there is no stacks/Pulumi.quickstrat.yaml (did you mean quickstart?)"),
        (
            ["run", "FILE", "-s", "gpu-lab"],
            "gpu-lab has no local cluster that is up\n  To start it: COMMAND up gpu-lab",
        ),
        (["run", "FILE", "--repetitions", "0"], "repetitions: is 0, less than 1"),
        (["run", "FILE", "--kubeconfig", "nowhere"], "kubeconfig nowhere does not exist"),
        (["compare", "latest"], "there is no run latest"),
        (["history"], "there are no runs in"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(
    arguments: list[str],
    words: str,
    file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KUMULUS_HOME", str(tmp_path / "home"))
    assert run(*(file if each == "FILE" else each for each in arguments)) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    # As it is typed here: with ./ where no environment of it is active.
    assert words.replace("COMMAND", installation.command()) in said


def test_an_unreachable_cluster_is_told_with_its_address(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kumulus.extras.lab.running.PATIENCE", 0.2)
    kubeconfig = tmp_path / "kubeconfig.yaml"
    kubeconfig.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    )
    assert run("run", file, "--kubeconfig", str(kubeconfig), "--results", str(tmp_path / "results")) == 1
    assert "error: the Kubernetes API server at http://127.0.0.1:1 is not reachable: connection refused" in (
        capsys.readouterr().err
    )


def test_files_are_checked_without_a_cluster(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("name: t\nworkload: []\n")
    assert run("check", file, str(wrong)) == 1
    captured = capsys.readouterr()
    assert "t.yaml: t: 1 workload, 1 job; no mistakes" in captured.out
    assert "workload: is not a known key; write workloads" in captured.err


def test_a_stack_that_has_no_file_is_a_mistake_as_it_is_for_a_run(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUMULUS_HOME", str(tmp_path / "home"))
    Path(file).write_text(f"{FILE}stack: quickstrat\n")
    words = "there is no stacks/Pulumi.quickstrat.yaml (did you mean quickstart?)"
    assert run("run", file) == 1
    assert words in capsys.readouterr().err
    assert run("check", file) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err.startswith(f"error: {file}: {words}")) == ("", True)
    # A cluster that is up is measured without its stack's file, too.
    kubeconfig = tmp_path / "home" / "clusters" / default_cluster_name("quickstrat") / "kubeconfig.yaml"
    kubeconfig.parent.mkdir(parents=True)
    kubeconfig.touch()
    assert run("check", file) == 0


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_experiment_that_comes_along_is_right_and_says_where_it_is_from(path: Path) -> None:
    experiment = load(path).experiment
    assert experiment.name == path.stem
    assert experiment.expect
    assert (path.parent / (experiment.stackFile or f"../stacks/Pulumi.{experiment.stack}.yaml")).exists()
    if path.stem != "quickstart":
        about = experiment.about
        assert all((about.source, about.expected, about.emulation))


def test_a_run_is_removed_and_others_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = report(), report("20261121-160000-def456")
    for each in (first, second):
        RunDirectory(tmp_path, "fill", each.metadata.run_id).prepare({})
    RunDirectory(tmp_path, "fill", first.metadata.run_id).write(first)
    RunDirectory(tmp_path, "fill", second.metadata.run_id).write(second, running=True)
    where = ("--results", str(tmp_path))
    # This process is at work on it.
    assert run("remove", "20261121-16", *where) == 1
    assert "is under way; end it first" in capsys.readouterr().err
    assert run("remove", "20261121-15", *where) == 0
    assert [each.name for each in (tmp_path / "fill").iterdir()] == [second.metadata.run_id]
    capsys.readouterr()
    assert run("list", *where) == 0
    assert first.metadata.run_id not in capsys.readouterr().out
    assert run("remove", str(tmp_path / "manifest.json"), *where) == 1
    elsewhere = tmp_path / "elsewhere"
    assert run("remove", str(tmp_path / "fill" / second.metadata.run_id), "--results", str(elsewhere)) == 1
    assert (tmp_path / "fill" / second.metadata.run_id).is_dir()


def test_runs_are_listed_compared_and_put_on_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for each in (report(), report("20261121-160000-def456", scheduler="volcano", seed=2)):
        RunDirectory(tmp_path, "fill", each.metadata.run_id).prepare({})
        RunDirectory(tmp_path, "fill", each.metadata.run_id).write(each)
    where = ("--results", str(tmp_path))
    assert run("list", *where) == 0
    assert "20261121-160000-def456  fill        volcano    success" in capsys.readouterr().out
    assert run("compare", "20261121-15", "latest", *where) == 0
    said = capsys.readouterr().out
    assert "timeToSchedule.p99  1.25 s" in said
    assert "unfair: seeds differ: 1 in 20261121-150000-abc123, 2 in 20261121-160000-def456" in said
    comparison = tmp_path / "comparison.html"
    assert run("compare", "20261121-15", "latest", "--page", str(comparison), *where) == 0
    assert "<th>timeToSchedule.p99</th>" in comparison.read_text()
    capsys.readouterr()
    assert run("compare", "latest", "20261121-15+20261121-150000", *where) == 0
    assert "(2 runs)" in capsys.readouterr().out.splitlines()[0]
    assert run("history", *where) == 0
    assert (tmp_path / "history.html").exists()


def test_runs_that_have_labels_are_listed_with_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for each in (report(), report("20261121-160000-def456", label="main")):
        RunDirectory(tmp_path, "fill", each.metadata.run_id).prepare({})
        RunDirectory(tmp_path, "fill", each.metadata.run_id).write(each)
    assert run("list", "--results", str(tmp_path)) == 0
    head, one, other = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["RUN", "LABEL", "EXPERIMENT"]
    assert one.split()[:3] == ["20261121-150000-abc123", "-", "fill"]
    assert other.split()[:3] == ["20261121-160000-def456", "main", "fill"]


@pytest.mark.parametrize("label", ["", "latest", "a/b"])
def test_a_label_is_none_of_the_other_names_of_a_run(label: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("run", file, "--label", label)
    assert f"{label!r} is no name of a run; write one such as main" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["scheduler-gate", "nodepools-gate"])
def test_the_examples_for_ci_call_the_command_as_it_is(name: str) -> None:
    workflow = yaml.safe_load((ROOT / "examples" / "ci" / f"{name}.yml").read_text())
    [job] = workflow["jobs"].values()
    steps = job["steps"]
    lines = [line for step in steps for line in str(step.get("run", "")).splitlines()]
    called = [shlex.split(line)[2:] for line in lines if "kumulus experiment" in line]
    # What the action gives on.
    called += [["run", "FILE", *shlex.split(step["with"]["args"])] for step in steps if "args" in step.get("with", {})]
    compared = ["compare"] if name == "scheduler-gate" else []
    assert [each[0] for each in called] == [*compared, "history", "run", "run"]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for arguments in called:
        parser.parse_args(arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scheduler", "volcanoo"], 'scheduler.name: is "volcanoo"'),
        (["--scheduler-binary", "x"], "scheduler.binary: has no effect on the cluster's own scheduler"),
        (["--scheduler-config", "x"], "write name: kube-scheduler (--scheduler kube-scheduler)"),
    ],
)
def test_a_scheduler_on_the_command_line_is_checked_as_in_a_file(
    arguments: list[str], words: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", file, "-s", "quickstart", *arguments) == 1
    assert words in capsys.readouterr().err


async def begin(directory: Path, name: str = "full", kubeconfig: str = "kubeconfig.yaml", **more: bool) -> str:
    journal = Journal(JournaledChanges("one", "training", "5d4f", ""))
    wanted = Beginning(snapshot=name, **more)
    # Nobody listens there: what is told here is told without asking.
    async with Client(Connection("https://127.0.0.1:1", "test", {}), patience=0.1) as client:
        at = (directory / "snapshots", directory / "cluster" / kubeconfig)
        return await begin_from(client, journal, wanted, *at, asyncio.Event())


async def test_what_is_not_there_is_said_with_what_is(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="there is no snapshot full; make it: kumulus snapshot save full"):
        await begin(tmp_path)
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "other.snapshot").write_bytes(b"nothing")
    with pytest.raises(LabError, match="there is no snapshot full; there are other"):
        await begin(tmp_path)
    with pytest.raises(LabError, match="is no snapshot"):
        await begin(tmp_path, "other")


async def test_a_cluster_that_outlives_its_stack_needs_leave_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "full.snapshot").write_bytes(b"nothing")
    with pytest.raises(LabError, match="write allowDeletion: true below from"):
        await begin(tmp_path, kubeconfig=KUBECONFIG_FILE)
    with pytest.raises(LabError, match="is no snapshot"):
        await begin(tmp_path, kubeconfig=KUBECONFIG_FILE, allowDeletion=True)


ON_RACKS = """
name: racks
workloads:
- {name: a, workers: 2, gpuProduct: NVIDIA-H100-80GB-HBM, affinity: {required: rack}}
- {name: b, nodeSelector: {kubernetes.io/hostname: h100-z2-3}}
timeline:
- {fault: {name: lost, kind: unreachable, target: {rack: h100-z1-r9}}}
- {resize: {pool: h100-z3, replicas: 5}}
"""


def test_a_file_is_checked_for_what_a_run_on_the_stack_would_refuse(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, CLUSTER)
    write(
        root,
        {"nodeGroups": [{key: each[key] for key in each if key != "topology"} for each in CLUSTER["nodeGroups"]]},
        "flat",
    )
    (file := root / "racks.yaml").write_text(ON_RACKS)

    def told(*options: str) -> list[str]:
        assert run("check", str(file), *options) == 1
        first, *rest = capsys.readouterr().err.splitlines()
        assert first == f"error: {file}: on the stack {options[1] if options else 'dev'}"
        return rest

    rest = told("-s", "dev")
    assert rest[0] == "  1 problem in the timeline's fault lost"
    assert rest[1].startswith('    target.rack: "h100-z1-r9" ')
    assert rest[2:] == [
        "  the timeline's pool h100-z3 is not in the cluster; did you mean h100-z2 or h100-z1",
        "  no node matches workload a: product NVIDIA-H100-80GB-HBM is not there; there is NVIDIA-H100-80GB-HBM3; did "
        "you mean NVIDIA-H100-80GB-HBM3?",
        "    Write labels that a node has; gpuProduct is a value of productLabel",
    ]
    level = (
        "  workload a: affinity: rack is no level of this cluster's topology; there are host, zone, region, or write a "
        "label's key"
    )
    assert told("-s", "flat")[2:] == [rest[2], level, *rest[3:]]
    assert run("check", str(file)) == 0
    file.write_text(f"stack: dev{ON_RACKS}")
    assert told() == rest
    file.write_text(ON_RACKS.partition("timeline")[0].replace("HBM,", "HBM3,"))
    assert run("check", str(file), "-s", "dev") == 0


def test_a_stack_that_a_file_names_and_that_is_wrong_itself_is_not_passed_over(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, {"nodeGroups": [{"name": "h100", "replicas": 2}]})
    (file := root / "named.yaml").write_text(f"stack: dev{ON_RACKS}")
    assert run("check", str(file)) == 1
    assert "nodeGroups[0]" in capsys.readouterr().err


MISTAKES = """
name: many
stack: flat
workloads:
- name: a
  gang: true
  gpuProduct: NVIDIA-H100
  nodeSelector: {zone: use1}
  affinity: {required: block, preferred: rack}
  topology: {required: rack}
- {name: b, gang: true, disruption: all}
- {name: c, resourceClaims: milli}
- {name: d, resourceClaims: milli}
- {name: e, nodeSelector: {zone: use2}}
scheduler: {name: coscheduling}
"""


def test_all_that_a_run_on_the_stack_would_refuse_is_said_at_once(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, {"nodeGroups": [group("h100", {"z1": 2}, instanceType="a3-highgpu-8g")]}, "flat")
    (file := root / "many.yaml").write_text(MISTAKES)
    assert run("check", str(file)) == 1
    claims = "cannot be combined with scheduler: coscheduling, which allocates no claims here"
    assert [line.partition(";")[0].strip() for line in capsys.readouterr().err.splitlines()] == [
        f"error: {file}: on the stack flat",
        "workload a: scheduler coscheduling takes no topology",
        "workload a: affinity: block is no level of this cluster's topology",
        "workload a: affinity: rack is no level of this cluster's topology",
        "workload b: scheduler coscheduling takes no disruption",
        f"workload c: resourceClaims: milli {claims}",
        "Write scheduler: default or native or kube-scheduler",
        f"workload d: resourceClaims: milli {claims}",
        "Write scheduler: default or native or kube-scheduler",
        "no node matches workload a: product NVIDIA-H100 is not there",
        "no node matches workload a: zone=use1 is not there, as no node has the label zone",
        "no node matches workload e: zone=use2 is not there, as no node has the label zone",
        "Write labels that a node has",
    ]


def test_more_than_the_stack_has_is_noted_and_is_no_mistake(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, CLUSTER)
    work = "workloads: [{name: a, jobs: 85, workers: 12, requests: {nvidia.com/gpu: '8', cpu: '1'}}]\n"
    (file := root / "many.yaml").write_text(f"name: many\nstack: dev\n{work}")
    assert run("check", str(file)) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: many: 1 workload, 85 jobs; no mistakes",
        "  note: the workload asks for 8,160 nvidia.com/gpu at once, the stack has 200: pods will wait",
    ]
    file.write_text(file.read_text().replace("85", "2"))
    assert run("check", str(file)) == 0
    assert capsys.readouterr().out == f"{file}: many: 1 workload, 2 jobs; no mistakes\n"


def test_a_file_is_checked_for_the_scheduler_of_the_command_line(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, CLUSTER)
    (file := root / "gang.yaml").write_text(
        "name: gang\nstack: dev\nworkloads: [{name: a, gang: true, topology: {required: rack}}]\n"
    )
    assert run("check", str(file)) == 1
    assert "scheduler default takes no topology" in capsys.readouterr().err
    assert run("check", str(file), "--scheduler", "native") == 0
    assert run("check", str(file), "--scheduler", "nativ") == 1
    assert 'scheduler.name: is "nativ"; write native' in capsys.readouterr().err
    file.write_text("name: s\nmatrix: {seed: [1]}\n")
    assert run("check", str(file), "--scheduler", "native") == 1
    assert "--scheduler is for experiments, and this is a sweep; leave it out" in capsys.readouterr().err


def test_where_an_autoscaler_makes_nodes_only_the_levels_are_checked(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    racks, others = CLUSTER["nodeGroups"]
    scaled = [racks, {**others, "maxReplicas": 50}]
    write(root, {"nodeGroups": scaled, "autoscaler": {"name": "cluster-autoscaler", "binary": sys.executable}})
    (file := root / "racks.yaml").write_text(ON_RACKS)
    assert run("check", str(file), "-s", "dev") == 0, capsys.readouterr().err


def test_a_run_is_begun_without_what_few_runs_need() -> None:
    """Half of the time that the command would take to start: an HTTP server, and the models of a whole stack file."""
    heavy = "('aiohttp', 'kumulus.stackfile.model')"
    code = f"import sys, kumulus.extras.lab.running; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_of_the_actions_only_the_one_that_is_asked_for_is_imported(tmp_path: Path) -> None:
    heavy = "('numpy', 'asyncio', 'kumulus.extras.lab.run', 'kumulus.extras.lab.file.model')"
    words = ["experiment", "list", "--results", str(tmp_path)]
    code = (
        f"import sys; from kumulus.cli.main import main; main({words}); print([x for x in {heavy} if x in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.stdout.splitlines()[-1:] == ["[]"]
