"""`kumulus new`, the current stack, completion: what the command does in a user's own project."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kumulus.cli import completion, project, stack_file
from kumulus.cli.errors import UserError
from kumulus.cli.main import main
from kumulus.cli.registry import arguments, offered, subcommands
from kumulus.extras.policy import command as policy
from kumulus.host import installation, processes, pulumi_project
from kumulus.host.version import REPOSITORY, VERSION
from kumulus.runtimes.place import Place, owner


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to be in, with nothing chosen."""
    for name in ("PULUMI_STACK", "PULUMI_BACKEND_URL", "KUMULUS_HOME", "PWD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    # Clusters that are up on this machine have names of stacks, too.
    monkeypatch.setattr(processes, "with_directories", lambda _: {})
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def fleet(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project with a stack dev, which the test is in."""
    assert main(["new", "fleet"]) == 0
    monkeypatch.chdir(folder / "fleet")
    return folder / "fleet"


def select(root: Path, name: str) -> None:
    """As `pulumi stack select` does."""
    digest = hashlib.sha1(str(root / "Pulumi.yaml").encode(), usedforsecurity=False).hexdigest()
    file = Path(os.environ["PULUMI_HOME"]) / "workspaces" / f"{root.name}-{digest}-workspace.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"stack": name}))


# --- new -------------------------------------------------------------------------------------------------------------


def test_a_new_project_is_a_pulumi_project_with_thirty_nodes(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["new", "my-fleet"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["made my-fleet: the stack dev, 30 nodes", "  cd my-fleet"]
    made = folder / "my-fleet"
    names = {".gitignore", "Pulumi.dev.yaml", "Pulumi.yaml", "__main__.py", "requirements.txt", "stack.schema.json"}
    assert {path.name for path in made.iterdir()} == names
    assert yaml.safe_load((made / "Pulumi.yaml").read_text())["name"] == "my-fleet"
    assert not any(str(folder) in path.read_text() for path in made.iterdir()), "another machine has other paths"
    assert len((made / "__main__.py").read_text().splitlines()) <= 5
    # The tests' own is installed from a directory, which others do not have.
    *remarks, address, required = (made / "requirements.txt").read_text().splitlines()
    assert f"no package index has kumulus {VERSION}: " in remarks[0]
    assert (address, required) == (f"# kumulus @ git+{REPOSITORY}", f"kumulus~={VERSION}")
    text = (made / "Pulumi.dev.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=stack.schema.json\n")
    jsonschema.validate(yaml.safe_load(text), json.loads((made / "stack.schema.json").read_text()))
    monkeypatch.chdir(made)
    loaded = stack_file.load_one(project.chosen(None), "")
    assert (loaded.cluster_name, sum(pool.replicas for pool in loaded.pools)) == ("dev", 30)


def test_a_new_project_names_the_commit_that_pip_had_kumulus_from_or_the_version_of_an_index(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = folder / "site" / "kumulus-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: kumulus\nVersion: 0.1.0\n")
    origin = {"url": "https://git.example.com/kumulus", "vcs_info": {"vcs": "git", "commit_id": "0123abc"}}
    (about / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(str(about.parent))
    assert main(["new", "fleet"]) == 0
    required = (folder / "fleet" / "requirements.txt").read_text()
    assert required == "kumulus @ git+https://git.example.com/kumulus@0123abc\n"
    # So do commands that need an extra, to somebody who has no checkout.
    monkeypatch.setattr(installation, "checkout", lambda: None)
    address = "git+https://git.example.com/kumulus@0123abc"
    assert installation.way_to_add("watch") == f"pip install 'kumulus[watch] @ {address}'"
    # The pip of Python 3.11 refuses `git+file:///`.
    (about / "direct_url.json").write_text(json.dumps({**origin, "url": "file:///home/kim/kumulus"}))
    address = "git+file://localhost/home/kim/kumulus@0123abc"
    assert installation.way_to_add("watch") == f"pip install 'kumulus[watch] @ {address}'"
    (about / "direct_url.json").unlink()
    assert installation.way_to_add("watch") == "pip install 'kumulus[watch]'"
    assert main(["new", "other"]) == 0
    assert (folder / "other" / "requirements.txt").read_text() == f"kumulus~={VERSION}\n"


def test_a_new_project_may_have_a_program_of_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["new", "fleet", "--program"]) == 0
    assert capsys.readouterr().out.startswith("made fleet: the stack dev, 30 nodes\n")
    made = folder / "fleet"
    assert {path.name for path in made.iterdir()} == {
        *(".gitignore", "Pulumi.dev.yaml", "Pulumi.yaml", "__main__.py", "requirements.txt")
    }
    assert set(yaml.safe_load((made / "Pulumi.dev.yaml").read_text())) == {"encryptionsalt"}
    assert "from kumulus import KwokCluster, KwokNodeGroup\n" in (made / "__main__.py").read_text()
    monkeypatch.chdir(made)
    assert main(["plan", "-s", "dev"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: what dev has is declared by your own program, and not in Pulumi.dev.yaml\n")
    for command in ("topology", "price"):
        assert main([command, "-s", "dev"]) == 1
        said = capsys.readouterr().err
        assert said.startswith("error: dev has no local cluster that is up\n")
        assert said.endswith("\n  Its nodes are declared by your own program, and known while it is up\n")


def test_its_program_is_the_checkouts_own(fleet: Path) -> None:
    checkout = installation.checkout()
    assert checkout is not None
    ours, theirs = ((path / "__main__.py").read_text().partition('"""\n')[2] for path in (checkout, fleet))
    assert ours == theirs


def test_only_an_empty_directory_becomes_a_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a" / ".git").mkdir(parents=True)
    assert main(["new", "a"]) == 0
    (folder / "b").mkdir()
    (folder / "b" / "mine").write_text("mine")
    assert main(["new", "b"]) == 1
    assert "error: b is not empty: it has mine; name another directory" in capsys.readouterr().err
    assert [path.name for path in (folder / "b").iterdir()] == ["mine"]
    (folder / "c").touch()
    assert main(["new", "c"]) == 1
    assert capsys.readouterr().err == "error: c: File exists\n"


@pytest.mark.parametrize("name", ["", "..", "-x/.hidden", "a b", "ü", "a" * 101, "${HOME}"])
def test_a_name_that_pulumi_would_refuse_is_refused(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "--", name]) == 1
    assert "is no name for a project\n  Write up to 100 letters" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["2026", "true", "null", "1.10", "0x1f", "1e3", "no"])
def test_a_name_that_yaml_would_read_otherwise_is_the_projects(name: str, folder: Path) -> None:
    assert main(["new", name]) == 0
    text = (folder / name / "Pulumi.yaml").read_text()
    assert yaml.safe_load(text)["name"] == name
    # With the library and, in a fresh clone, without it.
    assert pulumi_project.read(folder / name / "Pulumi.yaml").name == name
    assert pulumi_project._without_a_library(text)["name"] == name


@pytest.mark.parametrize("command", ["new", "policy"])
def test_a_home_that_nobody_has_is_told_in_a_line(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "~nosuchuser/x"]) == 1
    assert capsys.readouterr().err == "error: ~nosuchuser/x: there is no home directory of ~nosuchuser\n"
    assert list(folder.iterdir()) == []
    # A backend's URL with such a path is Pulumi's to report.
    (folder / "Pulumi.yaml").write_text("name: x\nbackend: {url: 'file://~nosuchuser/state'}\n")
    assert main(["down", "dev"]) == 1
    assert capsys.readouterr().err.startswith("error: there is no Pulumi.dev.yaml")


def test_a_policy_pack_is_a_copy_and_keeps_what_is_the_users(folder: Path) -> None:
    pack = folder / "pack"
    policy.write(pack)
    assert {"PulumiPolicy.yaml", "__main__.py", "limits.json", "requirements.txt"} <= {p.name for p in pack.iterdir()}
    code = (
        "import sys; sys.path[:] = [sys.argv[1], *sys.path]; "
        "import kumulus.extras.policy.limits as it; print(it.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code, str(pack)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(pack / "kumulus" / "extras" / "policy" / "limits.py")
    # The limits of this repository's stacks are not those of a user's that are called like them.
    assert json.loads((pack / "limits.json").read_text())["node-limit"] == {"most": 200, "stacks": {}}
    (pack / "limits.json").write_text("{}")
    policy.write(pack)
    assert (pack / "limits.json").read_text() == "{}"
    (folder / "mine").mkdir()
    (folder / "mine" / "file").touch()
    with pytest.raises(UserError, match="mine is not empty, and no policy pack; name another directory"):
        policy.write(folder / "mine")


# --- which project, which stack --------------------------------------------------------------------------------------


def test_outside_of_any_project_the_way_to_one_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("up", "preview", "down", "topology"):
        assert main([command]) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"error: there is no Pulumi.yaml in {folder} or above it\n  To make a project: ")
        assert said.endswith("kumulus new my-fleet\n")


def test_clusters_and_stacks_are_those_of_the_project_that_one_is_in(
    fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fleet / "deep").mkdir()
    monkeypatch.chdir(fleet / "deep")
    assert project.kubeconfig("dev") == fleet / ".kumulus" / "clusters" / "dev" / "kubeconfig.yaml"
    monkeypatch.setenv("KUMULUS_HOME", "elsewhere")
    assert project.clusters_directory() == fleet / "elsewhere" / "clusters"
    assert project.current().stacks() == ["dev"]


@pytest.mark.parametrize("ending", ["yml", "json"])
def test_a_stacks_file_ends_as_the_projects_does(ending: str, folder: Path) -> None:
    # Pulumi 3.246 writes `pulumi config set` in such a project to Pulumi.dev.yml, or .json, and reads no other.
    (folder / f"Pulumi.{ending}").write_text('{"name": "fleet", "runtime": "python"}')
    (folder / f"Pulumi.dev.{ending}").write_text('{"config": {"kumulus:cluster": {"nodeGroups": []}}}')
    (folder / "Pulumi.other.yaml").touch()
    assert project.current().stacks() == ["dev"]
    assert main(["topology"]) == 0


def test_the_current_stack_is_the_one_that_pulumi_has_too(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.chosen(None) == "dev"
    (fleet / "Pulumi.test.yaml").touch()
    with pytest.raises(UserError, match="which stack\\? There are dev, test\n  To choose one: pulumi stack select dev"):
        project.chosen(None)
    (fleet / "Pulumi.quickstart.yaml").touch()
    assert project.chosen(None) == "quickstart"
    select(fleet, "test")
    assert project.chosen(None) == "test"
    monkeypatch.setenv("PULUMI_STACK", "organization/fleet/dev")
    assert project.chosen(None) == "dev"
    assert project.chosen("quickstart") == "quickstart"


def test_a_stack_of_another_project_that_the_shell_still_has_is_said_to_be_from_there(
    fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_STACK", "organization/other/quickstart")
    with pytest.raises(UserError, match="stacks are: dev\n  PULUMI_STACK is quickstart in this shell: name another"):
        project.require_stack("quickstart")
    with pytest.raises(UserError, match=r"stacks are: dev$"):
        project.require_stack("other")


def test_a_cluster_of_another_project_is_said_how_to_take_down(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = fleet.parent / "results" / "4b5d"
    place = Place.of(str(elsewhere / ".kumulus"), "sweep-4b5d")
    place.directory.mkdir(parents=True)
    place.write_note({"owner": owner("sweep-4b5d", "urn", str(elsewhere))})
    # As the process table has it of a cluster that is up.
    monkeypatch.setattr(processes, "with_directories", lambda _: {place.directory: [1]})
    monkeypatch.setattr(installation, "command", lambda: "../kumulus")
    with pytest.raises(UserError) as error:
        project.require_stack("sweep-4b5d")
    assert str(error.value).splitlines()[1:] == [
        "  A cluster sweep-4b5d of another project is up; to take it down: "
        f"cd {elsewhere} && {Path('../kumulus').absolute()} down sweep-4b5d"
    ]
    with pytest.raises(UserError, match=r"stacks are: dev$"):
        project.require_stack("sweep-5555")


def test_a_stack_that_a_project_with_a_program_of_ones_own_has_no_more_is_said_how_to_make(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["new", "team", "--program"])
    monkeypatch.chdir(folder / "team")
    monkeypatch.setenv("PULUMI_STACK", "dev")
    Path("Pulumi.dev.yaml").unlink()
    with pytest.raises(UserError, match=r"stacks are: none\n  To make it: pulumi stack init dev$"):
        project.require_stack("dev")


def test_a_broken_file_is_told_before_pulumi_knows_the_stack(fleet: Path) -> None:
    file = Path("Pulumi.dev.yaml")
    file.write_text("config:\n  kumulus:cluster: {nodeGroups: [{name: A}]}\n")
    with pytest.raises(UserError, match=r"nodeGroups\[0\]\.name"):
        stack_file.check("dev")
    # The configuration of another program is its own matter.
    Path("__main__.py").write_text("import kumulus\n")
    file.write_text("config:\n  fleet:nodes: 3\n")
    stack_file.check("dev")


def test_every_committed_stack_file_is_one_that_pulumi_leaves_as_it_is() -> None:
    """It writes a salt where there is none, at the end, and formats the rest again."""
    checkout = installation.checkout()
    assert checkout is not None
    files = [*(checkout / "stacks").glob("Pulumi.*.yaml"), checkout / "src/kumulus/cli/new_project/Pulumi.dev.yaml"]
    assert len(files) > 10
    salts = {line for file in files for line in file.read_text().splitlines() if line.startswith("encryptionsalt:")}
    assert all(file.read_text().count("encryptionsalt:") == 1 for file in files)
    assert len(salts) == 1
    assert salts.pop().startswith("encryptionsalt: v1:")


# --- completion ------------------------------------------------------------------------------------------------------


def completions(line: str) -> set[str]:
    """What the shell is offered after a line."""
    checkout = installation.checkout()
    assert checkout is not None
    variables = {completion.ASKED: "zsh", "_KUMULUS_LINE": line}
    command = [sys.executable, str(checkout / "kumulus")]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def test_commands_options_and_stacks_are_completed(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(offered()) <= completions("kumulus ")
    assert completions("kumulus pre") == {"preview"}
    assert completions("kumulus watch --o") == {"--once"}
    assert completions("kumulus up ") >= {"dev"}
    assert completions("kumulus fault list -s ") == {"dev"}
    # Outside of any project, a checkout's own command works on the checkout.
    monkeypatch.chdir(fleet.parent)
    assert "gcp-large" in completions("kumulus watch -s g")


def test_commands_of_a_checkout_are_not_offered_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(installation, "checkout", lambda: None)
    assert {"venv", "clean"}.isdisjoint(subcommands(completion.parser("kumulus ")))
    assert main(["xyz"]) == 2
    assert capsys.readouterr().err.endswith(", watch, ui\n")


def test_of_the_commands_only_the_one_on_the_line_is_imported() -> None:
    commands = subcommands(completion.parser("kumulus topology "))
    options = {name: {each.dest for each in arguments(parser)} for name, parser in commands.items()}
    assert "svg" in options["topology"]
    assert options["watch"] == {"help"}


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("fault inject x --kind xid-7", ["xid-74", "xid-79"]),
        ("fault inject x --kind=xid-79", ["--kind=xid-79"]),
        ("fault inject --json", []),
        ("fault none ", []),
        ("experiment list -s ", ["dev"]),
        ("topology --svg x.svg --js", ["--json"]),
        ("completion f", ["fish"]),
        ("watch 'unended", []),
    ],
)
def test_completion_goes_by_what_the_line_has_so_far(fleet: Path, line: str, completed: list[str]) -> None:
    assert completion.completions(f"kumulus {line}") == completed


# What a shell offers after a line, by its own means.
ASKING = {
    "bash": 'COMP_LINE="$0"; COMP_POINT=${#COMP_LINE}; _kumulus_complete kumulus; printf "%s\\n" "${COMPREPLY[@]}"',
    "zsh": """compadd() { shift; print -l -- "$@"; }
words=("${(@s: :)0}"); CURRENT=$#words; PREFIX=$words[-1]; _kumulus_complete""",
    "fish": 'complete -C "$argv[1]"',
}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_completes_in_it(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = installation.checkout()
    assert checkout is not None
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "kumulus" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    (tmp_path / "kumulus").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{checkout}/kumulus" "$@"\n')
    (tmp_path / "kumulus").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = "compdef() { :; }\n" if shell == "zsh" else ""
    command = [shell, "-c", f"{before}{script}\n{ASKING[shell]}", "kumulus completion fi"]
    asked = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (asked.stdout.splitlines(), asked.stderr) == (["fish"], "")


def test_a_stack_file_is_read_once_for_all_who_ask_and_anew_once_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kumulus.stackfile import clusters, yamltext

    (tmp_path / "Pulumi.yaml").write_text("name: sample\nruntime: python\n")
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text("config: {'kumulus:cluster': {name: one}}\n")
    monkeypatch.chdir(tmp_path)
    read: list[str] = []

    def noted(real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            read.append(name)
            return real(*arguments, **more)

        return call

    for module, name in ((yamltext, "read_stack_file"), (clusters, "load")):
        monkeypatch.setattr(module, name, noted(getattr(module, name), name))
    stack_file.check("dev")
    assert stack_file.load("dev") is stack_file.described("dev")
    assert stack_file.load_one("dev", "").cluster_name == "one"
    assert read == ["read_stack_file", "load"]
    file.write_text("config: {'kumulus:cluster': {name: another}}\n")
    assert stack_file.load_one("dev", "").cluster_name == "another"
