"""The `kumulus` command as a user calls it, in a checkout of its own, on a machine that has nothing yet."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kumulus.cli.main import main
from kumulus.cli.registry import offered
from kumulus.host.version import VERSION
from kumulus.toolchain import pins, plugins, releases, supply
from tests.unit.toolchain.sample import ROOT

# What commands answer, each with the same option, by name: its exit code, output and errors, from one process.
# The interpreter and its library may be the tester's own: they are read before another user is become.
_EACH = """
import contextlib, io, json, os, sys
sources, option, user, *names = sys.argv[1:]
sys.path.insert(0, sources)
from kumulus.cli.main import main
if user:
    os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
answers = {}
for name in names:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = main([name, option] if option else [name])
        except SystemExit as end:
            code = end.code
        except Exception as error:
            code = repr(error)
    answers[name] = [code, out.getvalue(), err.getvalue()]
print(json.dumps(answers))
"""
_NOBODY = "65534"
PULUMI_YAML = """\
name: sample
runtime: python
stackConfigDir: stacks
backend:
  # where the state is
  url: file://./.pulumi-state
"""


@dataclass(frozen=True)
class Checkout:
    root: Path
    home: Path

    @property
    def variables(self) -> dict[str, str]:
        """Where the user's own files are; Pulumi goes by the user's name, not by HOME."""
        return {"HOME": str(self.home), "PULUMI_HOME": str(self.home / ".pulumi"), "KUMULUS_TOOLS": "build"}

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ./kumulus with a bare PATH, an empty cache and an empty home."""
        return subprocess.run(
            [sys.executable, self.root / "kumulus", *arguments],
            env={**self.variables, "PATH": "/nonexistent", "LC_ALL": "C.UTF-8", **environment},
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def shell(self, script: str, **environment: str) -> str:
        """Run a script in bash, where `$kumulus` is the command; returns what it prints."""
        env = {**self.variables, "PATH": "/usr/bin:/bin", "kumulus": f"{sys.executable} {self.root}/kumulus"}
        command = ["bash", "-euc", script]
        return subprocess.run(
            command, cwd=self.root, env={**env, **environment}, capture_output=True, text=True, check=True
        ).stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command needs of this checkout's sources, as compiled as they are here."""
    there = tmp_path_factory.mktemp("sources") / "src"
    for folder in ("cli", "extras", "gym", "host", "mcp", "model", "runtimes", "testing", "toolchain"):
        shutil.copytree(ROOT / "src" / "kumulus" / folder, there / "kumulus" / folder)
    shutil.copy(ROOT / "src" / "kumulus" / "__init__.py", there / "kumulus")
    return there


@pytest.fixture
def checkout(tmp_path: Path, sources: Path) -> Iterator[Checkout]:
    root, home = tmp_path / "checkout", tmp_path / "home"
    home.mkdir()
    _furnish(root)
    # Moved there and back, as a thousand copies, or links, take longer than most commands.
    sources.rename(root / "src")
    yield Checkout(root, home)
    (root / "src").rename(sources)


def _furnish(root: Path) -> None:
    """What the command needs of this checkout but the sources, in another place."""
    (root / "stacks").mkdir(parents=True)
    for file in ("kumulus", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / file, root / file)
    (root / "Pulumi.yaml").write_text(PULUMI_YAML)
    for stack in ("quickstart", "gcp-small", "gcp-large"):
        (root / "stacks" / f"Pulumi.{stack}.yaml").write_text("config: {}\n")


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in offered())


def program(file: Path, script: str) -> Path:
    """An executable of a script; returns its directory."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file.parent


def own(cluster: Path, stack: str, program: object) -> Path:
    """The directory of a cluster that says of which stack it is."""
    cluster.mkdir(parents=True, exist_ok=True)
    owner = json.dumps({"stack": stack, "program": str(program), "stackId": "5f0e"})
    (cluster / "kumulus.json").write_text(json.dumps({"owner": owner}))
    return cluster


def _answers(sources: Path, option: str, user: str, names: Iterable[str], *python: str) -> dict[str, list[Any]]:
    """What each command answers where there is nothing."""
    command: list[str | Path] = [sys.executable, *python, "-c", _EACH, sources, option, user, *names]
    env = {"HOME": "/nonexistent", "PATH": "/nonexistent", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, env=env, cwd=sources.parent, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, list[Any]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def explained(sources: Path) -> dict[str, list[Any]]:
    """What each command says of itself in a checkout, on a Python without packages."""
    _furnish(sources.parent)
    return _answers(sources, "-h", "", offered(), "-S")


@pytest.mark.parametrize("name", offered())
def test_every_command_explains_itself_on_a_bare_python(explained: dict[str, list[Any]], name: str) -> None:
    code, out, err = explained[name]
    assert (code, err) == (0, "")
    assert f"usage: kumulus {name}" in out


@pytest.mark.parametrize(
    ("name", "meant"),
    [("doctr", "doctor or docs"), ("why", "experiment why"), ("inject", "fault inject"), ("destroy", "down")],
)
def test_an_unknown_command_gives_near_matches(name: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 2
    assert capsys.readouterr().err == f"error: there is no command {name!r}: did you mean {meant}?\n"


def test_the_versions_that_matter_are_said_and_what_is_not_there_yet(checkout: Checkout, tmp_path: Path) -> None:
    result = checkout.run("--version", PATH=str(program(tmp_path / "etcd", "echo etcd Version: 3.6.9")))
    rows = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert rows[0] == ["Kumulus", VERSION, str(checkout.root)]
    assert rows[1][:2] == ["Python", platform.python_version()]
    assert rows[2][0] == "Pulumi"
    assert rows[2][2] == "not there yet"
    assert rows[5] == ["etcd", "3.6.9", str(tmp_path / "etcd")]


@pytest.mark.parametrize("words", [["price"], ["topology"], ["experiment", "list"]])
def test_a_word_that_may_be_a_stack_is_answered_with_how_to_name_it(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*words, "quickstart"])
    said = "error: unrecognized arguments: quickstart; if it is a stack, write -s quickstart\n"
    assert capsys.readouterr().err.startswith(said)
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--quick"])
    assert capsys.readouterr().err.startswith("error: unrecognized arguments: --quick\n")


def test_doctor_names_what_is_missing_and_how_to_get_it(checkout: Checkout) -> None:
    result = checkout.run("doctor")
    assert (result.returncode, result.stderr) == (1, "")
    table, summary = result.stdout.split("\n\n")
    row = next(line for line in table.splitlines() if line.startswith("kube-apiserver "))
    assert row.split() == ["kube-apiserver", "-", "missing"]
    assert summary.startswith("Missing: .venv, etcd, kwok, kwokctl, kube-apiserver")
    assert "To get it: ../checkout/kumulus venv" in summary
    assert summary.endswith("/kumulus tools\n")


def test_a_shell_that_is_set_up_before_anything_is_there_is_told_what_to_get(checkout: Checkout) -> None:
    notes = checkout.run("env").stderr.splitlines()
    assert notes[:2] == ["note: .venv is not there yet", "  To make it: ../checkout/kumulus venv"]
    assert notes[2].startswith("note: not there yet: etcd, ")


def test_doctor_for_programs_says_which_version_on_path_is_used_and_which_is_not(
    checkout: Checkout, tmp_path: Path
) -> None:
    program(tmp_path / "path" / "etcd", "echo etcd Version: 3.6.9")
    program(tmp_path / "path" / "kubectl", "echo Client Version: v1.20.1")
    result = checkout.run("doctor", "--json", PATH=str(tmp_path / "path"))
    report = json.loads(result.stdout)
    assert (result.returncode, report["ok"]) == (1, False)
    findings = {finding["name"]: finding for finding in report["findings"]}
    assert (findings["python"]["state"], findings["kwok"]["state"]) == ("ok", "missing")
    # Not needed by every stack, or by a user who has one elsewhere; Go can be fetched.
    absent = ("go", "kubectl", "plugin kubernetes", "plugin command")
    assert {findings[name]["state"] for name in absent} == {"absent"}
    found = {"state": "ok", "version": "3.6.9", "place": f"PATH: {tmp_path}/path/etcd"}
    assert found.items() <= findings["etcd"].items()
    said = f"{tmp_path}/path/kubectl is 1.20.1, needed is {pins.load().tool('kubectl').accepts}; "
    assert findings["kubectl"]["note"].startswith(said)
    assert findings["kubectl"]["note"].endswith("/kumulus tools --with kubectl")


def test_env_says_why_the_kubectl_on_path_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = program(tmp_path / "kubectl", "echo Client Version: v1.20.1")
    monkeypatch.setenv("PATH", f"{path}:/usr/bin:/bin")
    monkeypatch.setattr(supply, "missing", lambda known, wanted: [each for each in wanted if each.name == "kubectl"])
    assert main(["env"]) == 0
    assert capsys.readouterr().err.startswith(f"note: {path}/kubectl is 1.20.1, needed is ")


def test_env_twice_is_the_same_as_once(checkout: Checkout) -> None:
    once = 'eval "$($kumulus env 2>/dev/null)"; echo "$PATH"; export -p | grep -c PULUMI'
    first, *rest = checkout.shell(f"{once}; {once}; {once}").split()
    python, tools, *others = first.split(":")
    assert python.endswith("/checkout/.venv/bin")
    assert tools.startswith(f"{checkout.home}/.cache/kumulus/toolchain/")
    assert others == ["/usr/bin", "/bin"]
    assert rest == ["4", first, "4", first, "4"]


def test_env_quotes_what_the_shell_would_read_otherwise(checkout: Checkout, tmp_path: Path) -> None:
    cache = tmp_path / "it's $HOME; a cache"
    path = checkout.shell(f'{TWICE} echo "$PATH"', XDG_CACHE_HOME=str(cache)).strip()
    assert path.split(":")[1].startswith(f"{cache}/kumulus/toolchain/")
    assert path.endswith("/bin:/usr/bin:/bin")
    assert path.count(str(cache)) == 1


NO_FETCHING = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
TWICE = 'eval "$($kumulus env 2>/dev/null)"; eval "$($kumulus env 2>/dev/null)"; '


@pytest.mark.parametrize(
    ("name", "variables", "expected"),
    [
        ("PULUMI_CONFIG_PASSPHRASE", {}, ""),
        ("PULUMI_CONFIG_PASSPHRASE", {"PULUMI_CONFIG_PASSPHRASE": "mine"}, "mine"),
        ("PULUMI_CONFIG_PASSPHRASE", {"PULUMI_CONFIG_PASSPHRASE_FILE": "/x"}, "unset"),
        # What pulumi says to its engine is kept off a proxy.
        ("no_grpc_proxy", {}, "unset"),
        ("no_grpc_proxy", {"https_proxy": "http://proxy:3128"}, "127.0.0.1"),
        ("no_grpc_proxy", {"http_proxy": "http://proxy:3128", "no_grpc_proxy": "mine"}, "mine"),
        (NO_FETCHING, {NO_FETCHING: "false"}, "false"),
    ],
)
def test_env_leaves_variables_of_the_user_alone(
    checkout: Checkout, name: str, variables: dict[str, str], expected: str
) -> None:
    assert checkout.shell(f'{TWICE} echo "${{{name}-unset}}"', **variables).strip() == expected


def test_env_lets_the_engine_fetch_plugins_only_where_it_costs_nothing(checkout: Checkout) -> None:
    script = f'{TWICE} echo "${{{NO_FETCHING}-unset}}"'
    assert checkout.shell(script).strip() == "true"
    plugins = checkout.home / ".pulumi" / "plugins"
    (plugins / "resource-command-v1.2.1").mkdir(parents=True)
    assert checkout.shell(script).strip() == "true"
    provider = plugins / "resource-kubernetes-v4.25.0" / "pulumi-resource-kubernetes"
    provider.parent.mkdir()
    provider.touch(mode=0o755)
    assert checkout.shell(script).strip() == "unset"


def test_env_of_a_stack_makes_it_the_current_one_of_every_program(checkout: Checkout, tmp_path: Path) -> None:
    script = 'eval "$($kumulus env quickstart 2>/dev/null)"; echo "$PULUMI_STACK ${KUBECONFIG-unset}"'
    for folder, variables in (
        (checkout.root / ".kumulus", {}),
        (tmp_path / "other home", {"KUMULUS_HOME": f"{tmp_path}/other home"}),
    ):
        file = folder / "clusters" / "quickstart" / "kubeconfig.yaml"
        # Also while it is down: what was there before is another stack's.
        assert checkout.shell(script, KUBECONFIG="/another/stacks", **variables).strip() == f"quickstart {file}"
        file.parent.mkdir(parents=True)
        file.touch()
        assert checkout.shell(script, **variables).strip() == f"quickstart {file}"


def test_env_says_that_a_stack_is_not_up(checkout: Checkout) -> None:
    said = checkout.run("env", "quickstart").stderr.splitlines()[:2]
    remedy = "  To start it: ../checkout/kumulus up quickstart"
    assert said == ["note: quickstart has no local cluster that is up", remedy]


@pytest.mark.parametrize("command", ["env", "up", "preview", "down"])
def test_a_stack_without_a_file_is_refused_and_the_others_are_named(checkout: Checkout, command: str) -> None:
    result = checkout.run(command, "gcp-larg")
    assert result.returncode == 1
    assert result.stderr == (
        "error: there is no stacks/Pulumi.gcp-larg.yaml (did you mean gcp-large?);"
        " the stacks are: gcp-large, gcp-small, quickstart\n"
    )


def test_down_of_a_stack_that_was_never_up_is_calm_and_needs_no_tools(checkout: Checkout) -> None:
    result = checkout.run("down")
    assert (result.returncode, result.stdout, result.stderr) == (0, "quickstart is not up: nothing to destroy\n", "")


@pytest.mark.parametrize(
    ("file", "remedy"),
    [
        ("kubeconfig.yaml", "remove that directory, then ../checkout/kumulus up quickstart, which ends"),
        ("kind.yaml", "kind delete cluster --name lab, then remove that directory"),
        ("existing.yaml", "delete what has the label kumulus.io/stack-id=5f0e in that cluster, nodes first, then"),
    ],
)
def test_down_of_a_cluster_whose_state_is_gone_says_how_to_get_rid_of_it(
    checkout: Checkout, file: str, remedy: str
) -> None:
    cluster = own(checkout.root / ".kumulus" / "clusters" / "lab", "quickstart", checkout.root)
    (cluster / file).touch()
    result = checkout.run("down")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: quickstart has a cluster in {cluster}, and its state is gone\n")
    assert f"or give it up: {remedy}" in result.stderr
    own(cluster, "quickstart", "/elsewhere")
    assert checkout.run("down").stdout == "quickstart is not up: nothing to destroy\n"


def test_clean_is_refused_while_a_cluster_is_up(checkout: Checkout) -> None:
    (checkout.root / ".venv").mkdir()
    cluster = checkout.root / ".kumulus" / "clusters" / "team-a"
    cluster.mkdir(parents=True)
    result = checkout.run("clean")
    assert result.returncode == 1
    assert result.stderr == "error: clusters are up: team-a\n  First: ../checkout/kumulus down team-a\n"
    assert (checkout.root / ".venv").exists()
    cluster.rmdir()
    for name in ("many-hub", "many-worker-0"):
        own(cluster.parent / name, "many", "/x")
    said = "error: clusters are up: many-hub, many-worker-0\n  First: ../checkout/kumulus down many\n"
    assert checkout.run("clean").stderr == said
    shutil.rmtree(cluster.parent)
    assert checkout.run("clean").returncode == 0
    assert not (checkout.root / ".venv").exists()


def test_clean_leaves_tools_that_run_for_another_project(checkout: Checkout, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    program = cache / "kumulus" / "toolchain" / "key" / "bin" / "etcd"
    program.parent.mkdir(parents=True)
    shutil.copy2("/bin/sleep", program)
    chart = cache / "kumulus" / "charts" / "a.tgz"
    chart.parent.mkdir()
    chart.touch()
    # A cluster's programs are links.
    link = tmp_path / "elsewhere" / ".kumulus" / "clusters" / "dev" / "bin" / "etcd"
    link.parent.mkdir(parents=True)
    link.symlink_to(program)
    (checkout.root / ".venv").mkdir()
    with subprocess.Popen([str(link), "600"]) as process:
        try:
            refused = checkout.run("clean", "--tools", XDG_CACHE_HOME=str(cache))
        finally:
            process.kill()
    assert refused.returncode == 1
    assert refused.stderr == (
        f"error: tools are in use: {link} (process {process.pid})\n"
        "  First, in the projects of these clusters: ../checkout/kumulus down\n"
    )
    assert program.exists()
    assert (checkout.root / ".venv").exists()
    assert checkout.run("clean", "--tools", XDG_CACHE_HOME=str(cache)).returncode == 0
    assert not program.exists()
    assert not chart.exists()


def test_clean_is_refused_while_a_command_runs_in_the_venv(checkout: Checkout) -> None:
    python = checkout.root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    waits = ["-c", "import sys; print(flush=True); sys.stdin.read()"]
    # As an experiment in this checkout has it, and as one of another checkout or another program there.
    ours = [str(python), *waits, str(checkout.root / "kumulus"), "experiment", "run", "a.yaml"]
    others = ([sys.executable, *ours[1:]], [str(python), *waits, "kumulus-notes.txt"])
    begun = [subprocess.Popen(each, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for each in (ours, *others)]
    try:
        for each in begun:
            assert each.stdout is not None
            each.stdout.readline()
        refused = checkout.run("clean")
        assert refused.returncode == 1
        pid = begun[0].pid
        assert refused.stderr == (
            f"error: commands run in .venv: kumulus experiment run a.yaml (process {pid})\n"
            f"  Wait for them, or end them in order: kill {pid}\n"
        )
        assert python.exists()
        begun[0].communicate()
        assert checkout.run("clean").returncode == 0
        assert not python.exists()
    finally:
        for each in begun:
            each.communicate()


def test_the_list_of_tools_says_where_each_comes_from_how_large_it_is_and_who_needs_it(
    checkout: Checkout, tmp_path: Path
) -> None:
    path = program(tmp_path / "path" / "etcd", "echo etcd Version: 3.6.9\n" + "#" * 2_000_000)
    result = checkout.run("tools", "--list", PATH=str(path), KUMULUS_TOOLS="auto")
    assert result.returncode == 0, result.stderr
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in reversed(result.stdout.splitlines())}
    assert rows["TOOL"] == "VERSION FROM SIZE NEEDED BY"
    assert rows["etcd"] == "3.6.9 PATH 2 MB runtime: kwok"
    assert rows["pulumi"].endswith("- every stack")
    assert rows["kubectl"].endswith("- you, runtime: kwok, hostCommands")
    assert rows["pause"] == "1.0.0 not there (build) - --with kind-node"
    assert rows["kueue"].startswith("0.19.2 not there (build, about ")
    assert result.stdout.splitlines()[-1].endswith(f"kubernetesVersion: v{pins.load().other_kubernetes[-1]}")


@pytest.mark.skipif(releases.platform() != "linux-amd64", reason="the files are another platform's")
def test_the_files_of_a_mirror_are_listed(checkout: Checkout) -> None:
    listed = checkout.run("tools", "--urls").stdout.splitlines()
    file = next(url for url in listed if url.endswith("/bin/linux/amd64/kube-apiserver"))
    assert file.startswith("https://dl.k8s.io/release/v1.")
    assert len(listed) == len(set(listed)) > 10
    mirrored = checkout.run("tools", "--urls", KUMULUS_MIRROR="http://here.example/x/").stdout
    assert f"http://here.example/x/{file.removeprefix('https://')}\n" in mirrored


@pytest.mark.parametrize(("arguments", "times"), [(["ls"], 2), (["tools", "-s", "gcp-small"], 1)])
def test_a_command_that_runs_in_the_environment_makes_it(checkout: Checkout, arguments: list[str], times: int) -> None:
    # As far as that goes without packages: what was made in part is made the next time.
    for _ in range(times):
        result = checkout.run(*arguments, PIP_NO_INDEX="1")
        assert result.returncode == 1
        assert result.stderr.startswith(("making .venv with Python", "installing the core into .venv"))
        assert "error: " in result.stderr
        assert "Traceback" not in result.stderr


def test_an_unsupported_kubernetes_version_is_refused_with_those_that_are(checkout: Checkout) -> None:
    result = checkout.run("tools", "--kubernetes", "v1.2.3")
    assert result.returncode == 1
    offered = ", ".join(f"v{each.version}" for each in pins.load().kubernetes)
    assert result.stderr == f"error: Kubernetes v1.2.3 is not among the supported versions: {offered}\n"
    assert checkout.run("tools", "--kubernetes", "latest").stderr == "error: 'latest' is not a version\n"


@pytest.fixture(scope="module")
def private_python(sources: Path) -> Iterator[Path]:
    """A checkout that others may look into, whose `.venv` leads to a Python that is its user's alone."""
    # Not below pytest's own place, which is its user's alone, too.
    with tempfile.TemporaryDirectory() as folder:
        public = Path(folder)
        public.chmod(0o755)
        root, private = public / "checkout", public / "private"
        _furnish(root)
        shutil.copytree(sources, root / "src")
        private.mkdir(mode=0o700)
        (private / "python").touch()
        (root / ".venv" / "bin").mkdir(parents=True)
        (root / ".venv" / "bin" / "python").symlink_to(private / "python")
        yield root


@pytest.fixture(scope="module")
def to_nobody(private_python: Path) -> dict[str, list[Any]]:
    """What each command that needs the packages tells another user, in that checkout."""
    names = [name for name, each in offered().items() if each.command.venv]
    return _answers(private_python / "src", "", _NOBODY, names)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("command", [name for name, each in offered().items() if each.command.venv])
def test_another_user_without_the_right_to_is_told_in_a_line(
    private_python: Path, to_nobody: dict[str, list[Any]], command: str
) -> None:
    assert to_nobody[command][2] == (
        f"error: {private_python}/.venv/bin/python: permission denied\n"
        "  Run it as the user it belongs to, or in a copy of your own\n"
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["convert"], "usage: kumulus convert"),
        (["fault"], "usage: kumulus fault"),
        # Where the usage is long, it is not shown.
        (["fault", "inject"], "`kumulus fault inject -h` lists the arguments"),
    ],
    ids=" ".join,
)
def test_a_missing_argument_is_told_in_two_lines(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    said, usage = capsys.readouterr().err.splitlines()
    assert said.startswith("error: the following arguments are required: ")
    assert usage.startswith(f"  {hint}")


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("words", [("doctor",), ("-h",), ("--version",), ("up", "-h")], ids=" ".join)
def test_a_reader_that_stops_early_is_no_error(checkout: Checkout, words: tuple[str, ...], buffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command: list[str | Path] = [sys.executable, checkout.root / "kumulus", *words]
        env = {"HOME": str(checkout.home), "PATH": "/nonexistent", "PYTHONUNBUFFERED": buffered}
        result = subprocess.run(command, env=env, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


def test_no_output_at_all_is_no_error(checkout: Checkout) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, str(checkout.root / "kumulus"), "doctor"]
    env = {"HOME": str(checkout.home), "PATH": os.environ["PATH"]}
    result = subprocess.run(command, env=env, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in result.stderr


def test_make_without_a_target_prints_help() -> None:
    env = {**os.environ, "MAKEFLAGS": ""}
    said = subprocess.run(["make", "-C", ROOT], capture_output=True, text=True, check=True, env=env).stdout
    assert "make TARGET [STACK=quickstart]" in said
    assert all(f"\n  {each} " in said for each in ("up", "preview", "down", "test", "lint", "bench", "clean"))


def test_the_plugin_for_commands_has_its_sdks_version() -> None:
    assert f"pulumi-command=={plugins.COMMAND_VERSION} \\\n" in (ROOT / "requirements.txt").read_text()


def test_a_kemu_file_is_converted_and_a_file_that_is_none_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def converted(text: str, *options: str, code: int = 0) -> tuple[str, str]:
        file.write_text(text)
        assert main(["convert", str(file), *options]) == code
        return capsys.readouterr()

    file = tmp_path / "kemu.yaml"
    out, err = converted("kind: ClusterConfig\nspec: {colour: red}\n")
    assert out.splitlines()[-3:] == ["config:", "  kumulus:cluster:", "    runtime: kwok"]
    assert "#   spec.colour: is not a key of KEMU's format" in out
    assert err == ""
    _, err = converted("kind: Cluster\n", code=1)
    assert err.startswith(f'error: 1 problem in {file}\n  kind: is "Cluster", not KEMU\'s ClusterConfig')
    of_kind = "kind: ClusterConfig\nspec: {kindConfig: '{kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4}'}\n"
    out, err = converted(of_kind)
    assert "    runtime: kind\n    kindConfig:" in out
    assert err.startswith("note: the runtime is kind, as the file has a kindConfig; --runtime kwok leaves")
    out, err = converted(of_kind, "--runtime", "kwok")
    assert "    runtime: kwok\n" in out
    assert "#   spec.kindConfig: is for the runtime kind, so it is not used with kwok" in out
    assert err == ""
