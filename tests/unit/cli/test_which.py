"""Which cluster of a stack a command means."""

import argparse
from pathlib import Path

import pytest
import yaml

from kumulus.cli import completion, which
from kumulus.cli.errors import UserError
from kumulus.cli.main import main
from kumulus.cli.registry import arguments, subcommands
from kumulus.extras.advise.commands import advise
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.run.bench import RunOptions
from kumulus.extras.snapshots import file
from kumulus.extras.snapshots.commands import snapshot
from kumulus.kube import Client, Unreachable
from kumulus.runtimes import place

KUBECONFIG = """\
current-context: x
contexts: [{name: x, context: {cluster: x}}]
clusters: [{name: x, cluster: {server: "http://127.0.0.1:1"}}]
"""
MANY = {"kumulus:clusters": [{"name": "hub"}, {"name": "worker", "count": 2}]}


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: sample\nruntime: python\nstackConfigDir: stacks\n")
    for name, config in (
        ("many", MANY),
        ("hubbed", {**MANY, "kumulus:hub": "hub"}),
        ("one", {"kumulus:cluster": {}}),
    ):
        file = tmp_path / "stacks" / f"Pulumi.{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump({"config": config}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    monkeypatch.setenv("KUMULUS_HOME", str(tmp_path / "home"))
    return tmp_path


def test_the_named_one_is_meant(stacks: Path) -> None:
    found = which.chosen("many", "worker-1")
    assert (found.label, found.options) == ("many/worker-1", "-s many --cluster worker-1")
    assert found.kubeconfig == stacks / "home" / "clusters" / "many-worker-1" / "kubeconfig.yaml"
    with pytest.raises(UserError, match="many has no local cluster worker-1 that is up"):
        found.require_up()
    assert found.snapshots == stacks / "home" / "snapshots" / "many-worker-1"
    found.kubeconfig.parent.mkdir(parents=True)
    found.kubeconfig.touch()
    assert found.require_up() == found.kubeconfig


def test_an_experiment_on_one_of_several_has_its_snapshots_and_names_its_stack(
    stacks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[RunOptions] = []

    class Run:
        """In place of a run: nothing answers."""

        def __init__(self, client: Client, loaded: LoadedExperiment, options: RunOptions) -> None:
            asked.append(options)

        async def run(self) -> Report:
            raise Unreachable("http://127.0.0.1:1", "connection refused")

    monkeypatch.setattr("kumulus.extras.lab.running.Run", Run)
    found = which.chosen("many", "worker-1")
    found.kubeconfig.parent.mkdir(parents=True)
    found.kubeconfig.write_text(KUBECONFIG)
    (stacks / "e.yaml").write_text("name: e\nworkloads: [{name: w}]\n")
    assert main(["experiment", "run", "e.yaml", "-s", "many", "--cluster", "worker-1"]) == 1
    assert "\n  To start one that is down: " in capsys.readouterr().err
    assert [(each.stack, each.snapshots) for each in asked] == [(found.label, found.snapshots)]


@pytest.mark.parametrize("words", [["save", "full"], ["restore", "full"]])
def test_a_snapshot_of_a_cluster_that_does_not_answer_is_told_with_its_remedy(
    stacks: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(snapshot, "_PATIENCE", 0.1)
    found = which.chosen("many", "worker-1")
    found.kubeconfig.parent.mkdir(parents=True)
    found.kubeconfig.write_text(KUBECONFIG)
    file.write(
        found.snapshots / "full.snapshot", file.SnapshotSummary("x", "uid", "2026-11-22T12:00:00Z"), [(b"/a", b"1")]
    )
    assert main(["snapshot", *words, "-s", "many", "--cluster", "worker-1"]) == 1
    told = capsys.readouterr().err
    assert "is not reachable: connection refused\n  To start one that is down: " in told
    assert told.endswith("up many\n")


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        (["--pods-of", "many", "--cluster", "worker-1"], "many-worker-1"),
        (["--pods-of", "hubbed"], "hubbed-hub"),
        (["--pods-of", "named"], "mine"),
        (["--pods-of", "Team_A"], "team-a"),
    ],
)
def test_the_pods_to_advise_for_are_looked_for_where_the_cluster_is(
    stacks: Path, words: list[str], folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(advise, "_PATIENCE", 0.2)
    (stacks / "stacks" / "Pulumi.named.yaml").write_text("config: {kumulus:cluster: {name: mine}}\n")
    (stacks / "stacks" / "Pulumi.Team_A.yaml").write_text("config: {kumulus:cluster: {}}\n")
    assert main(["advise", *words]) == 1
    assert "that is up\n  To start it: " in capsys.readouterr().err
    file = stacks / "home" / "clusters" / folder / "kubeconfig.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(KUBECONFIG)
    assert main(["advise", *words]) == 1
    assert "http://127.0.0.1:1 is not reachable" in capsys.readouterr().err


def test_without_a_name_it_is_the_hub_or_an_error_with_the_choices(stacks: Path) -> None:
    assert which.chosen("hubbed").label == "hubbed/hub"
    with pytest.raises(UserError, match=r"which cluster of many\? There are hub, worker-0, worker-1\n.* --cluster hub"):
        which.chosen("many")
    with pytest.raises(UserError, match=r"no cluster wroker-0 \(did you mean worker-0\?\); there are hub, worker-0"):
        which.chosen("hubbed", "wroker-0")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("plan --nodes 5 --cluster hub", "--cluster is for the clusters of a stack"),
        ("env --cluster hub", "--cluster hub is one of which stack?"),
        ("advise web.yaml --cluster hub", "--cluster is for --pods-of; leave it out\n"),
    ],
)
def test_a_cluster_of_no_stack_is_refused(
    stacks: Path, words: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.startswith(f"error: {what}")) == ("", True)


def test_a_stack_of_one_cluster_is_as_it_was(stacks: Path) -> None:
    found = which.chosen("one")
    assert (found.label, found.folder) == ("one", "one")
    assert found.snapshots == stacks / "home" / "snapshots" / "one"
    with pytest.raises(UserError, match="one has one cluster, and --cluster is for stacks with several"):
        which.chosen("one", "hub")
    # Also one whose file is gone.
    assert which.chosen("gone").folder == "gone"


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("{kumulus:cluster: {nodeGroups: [], name: mine}}", "mine"),
        ("\n    kumulus:cluster:\n      nodeGroups: [{name: a, placement: []}]\n      name: mine", "mine"),
        ('{"kumulus:cluster": "{\\"name\\": \\"mine\\"}"}', "mine"),
        ('{kumulus:cluster: \'{"name":"mine"}\'}', "mine"),
        ("{kumulus:cluster: {nodeGroups: [{name: a}]}}", "team-a"),
        ("{kumulus:cluster: {name: [1]}}", "team-a"),
        ("{kumulus:clusters: [{name: hub}]}", "team-a-hub"),
    ],
)
def test_a_cluster_is_where_its_own_name_says(stacks: Path, written: str, folder: str) -> None:
    (stacks / "stacks" / "Pulumi.Team_A.yaml").write_text(f"config: {written}\n")
    (found,) = which.every("Team_A")
    assert found.folder == folder


@pytest.fixture
def own(stacks: Path) -> Path:
    """A project whose program is the user's own, with clusters of other stacks and projects in the same directory."""
    (stacks / "__main__.py").write_text("import kumulus\n")
    (stacks / "stacks" / "Pulumi.dev.yaml").write_text("encryptionsalt: v1\n")
    (stacks / "inside").mkdir()
    (stacks / "inside" / "Pulumi.yaml").write_text("name: other\nruntime: python\n")
    made(stacks, "test", "test")
    made(stacks, "inside", "dev", stacks / "inside")
    made(stacks, "gone", "dev").mark_removed()
    (stacks / "home" / "clusters" / "no-note").mkdir()
    return stacks


def made(root: Path, name: str, stack: str, program: Path | None = None) -> place.Place:
    """A cluster that a program has made."""
    found = place.Place.of(str(root / "home"), name)
    found.directory.mkdir(parents=True)
    found.kubeconfig.write_text(KUBECONFIG)
    found.write_note({"owner": place.owner(stack, f"urn:pulumi:{stack}::x", str(program or root), "0a")})
    return found


def test_the_one_cluster_of_a_program_of_ones_own_is_found_whatever_its_name(own: Path) -> None:
    assert which.chosen("dev").folder == "dev"
    made(own, "team", "dev")
    found = which.chosen("dev")
    assert (found.label, found.options, found.folder) == ("dev", "-s dev", "team")
    assert which.chosen("organization/sample/dev", "team").require_up() == found.require_up()
    with pytest.raises(UserError, match="dev has one cluster, team, and --cluster is for stacks with several"):
        which.chosen("dev", "inside")
    assert which.chosen("test").folder == "test"
    # The program's directory may be below the project's.
    made(own, "below", "deep", own / "program")
    assert which.chosen("deep").folder == "below"


@pytest.mark.parametrize(
    ("program", "config"),
    [("from kumulus import program\n", "{}"), ("import kumulus\n", '{"kumulus:cluster": {}}')],
)
def test_where_a_stack_file_declares_the_cluster_notes_are_not_asked(own: Path, program: str, config: str) -> None:
    made(own, "team", "dev")
    (own / "__main__.py").write_text(program)
    (own / "stacks" / "Pulumi.dev.yaml").write_text(f"config: {config}\n")
    assert which.chosen("dev").folder == "dev"


def test_of_several_clusters_of_a_program_of_ones_own_one_is_named_or_is_called_like_the_stack(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(own, "team", "dev")
    west = made(own, "west", "dev")
    choices = "There are team, west\n  To choose one: --cluster team"
    with pytest.raises(UserError, match=rf"which cluster of dev\? {choices}"):
        which.chosen("dev")
    with pytest.raises(UserError, match=r"dev has no cluster wset \(did you mean west\?\); there are team, west"):
        which.chosen("dev", "wset")
    assert main(["env", "dev", "--cluster", "west"]) == 0
    assert f"export KUBECONFIG={west.kubeconfig}\n" in capsys.readouterr().out
    assert main(["fault", "list", "-s", "dev", "--cluster", "west"]) == 1
    assert "http://127.0.0.1:1 is not reachable" in capsys.readouterr().err
    assert completion.clusters(argparse.Namespace(stack="dev")) == ["team", "west"]
    like_it = made(own, "dev", "dev")
    assert which.chosen("dev").require_up() == like_it.kubeconfig
    assert which.chosen("dev", "west").require_up() == west.kubeconfig


def test_which_of_several_clusters_is_asked_without_a_stack_file_too(own: Path) -> None:
    made(own, "team", "dev")
    made(own, "west", "dev")
    (own / "stacks" / "Pulumi.dev.yaml").unlink()
    with pytest.raises(UserError, match=r"which cluster of dev\? There are team, west"):
        which.chosen("dev")


def test_the_shell_completes_the_names_of_the_stack_on_the_line(stacks: Path) -> None:
    assert completion.clusters(argparse.Namespace(stack="many")) == ["hub", "worker-0", "worker-1"]
    assert completion.clusters(argparse.Namespace(stack="one")) == []
    watch = completion.parser("kumulus watch ")
    (cluster,) = (each for each in arguments(subcommands(watch)["watch"]) if each.dest == "cluster")
    assert getattr(cluster, "completer", None) is completion.clusters
