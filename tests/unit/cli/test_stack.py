"""Running pulumi: on which stack, and that Ctrl-C reaches it too, which ends what it is doing in order."""

import argparse
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kumulus.cli import stack, up
from kumulus.cli.errors import UserError
from kumulus.cli.registry import offered, parser_of
from kumulus.extras.advise.commands import verify as advise_verify
from kumulus.extras.capture.commands import clone
from tests.support.processes import await_that

# It ends a while after an interrupt, as an update does that has a step to finish.
_PULUMI = """\
#!/bin/sh
[ "$1" = version ] && { echo v3.246.0; exit; }
trap 'sleep 0.3; echo "$*" >ended; exit 1' INT TERM HUP
# Not before the command waits for it.
sleep 0.5; touch begun
i=0; while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done
"""
_CALLS = {
    "shown": "stack.run(['destroy', '-s', 'dev'])",
    "quietly": "stack.run_quietly(['destroy', '-s', 'dev'])",
    "for an answer": "stack.forget('dev')",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a stack, a backend of files, and a pulumi on PATH."""
    made = tmp_path / "project"
    (made / "state").mkdir(parents=True)
    (made / "Pulumi.yaml").write_text("name: fleet\nruntime: python\nbackend: {url: 'file://./state'}\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("pulumi", "pulumi-language-python", "pulumi-language-python-exec"):
        (programs / name).write_text(_PULUMI)
        (programs / name).chmod(0o755)
    for variable in ("PULUMI_BACKEND_URL", "KUMULUS_HOME", "KUMULUS_TOOLS", "PULUMI_STACK", "PWD"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(made)
    return made


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_an_interrupted_command_waits_for_pulumi_to_end(project: Path, call: str) -> None:
    code = f"import sys; sys.path[:] = {sys.path}; from kumulus.cli import stack; {call}"
    command = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        await_that((project / "begun").exists, 20, "pulumi runs")
        # As a terminal does it: both get it.
        os.killpg(command.pid, signal.SIGINT)
        said = command.communicate(timeout=20)[1]
    finally:
        command.kill()
    assert said.endswith("KeyboardInterrupt\n")
    assert "dev" in (project / "ended").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_kill_and_a_closed_terminal_are_passed_on_to_pulumi(project: Path, number: signal.Signals) -> None:
    code = f"import sys; sys.path[:] = {sys.path}; from kumulus.cli import stack; sys.exit({_CALLS['shown']})"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as command:
        try:
            await_that((project / "begun").exists, 20, "pulumi runs")
            command.send_signal(number)
            assert command.wait(20) == 1
        finally:
            command.kill()
    assert "dev" in (project / "ended").read_text()


def test_what_comes_next_is_commands_that_there_are(project: Path) -> None:
    title, env, *others = up._next("dev")
    assert title == "\ndev is up. Next:"
    assert env.split("#")[0].strip().endswith('env dev)"')
    assert len(others) == 2
    (project / "experiments").mkdir()
    for experiment, of in (("a", "dev2"), ("b", "dev"), ("c", "dev")):
        (project / "experiments" / f"{experiment}.yaml").write_text(f"name: {experiment}\nstack: {of}\n")
    others = up._next("dev")[2:]
    for line in others:
        _, name, *words = shlex.split(line, comments=True)
        assert parser_of(name, offered()[name].command)[1].parse_args(words).stack == "dev"
    assert len(others) == 3
    assert "experiment run experiments/b.yaml -s dev" in others[-1]
    (project / "experiments" / "c.yaml").rename(project / "experiments" / "dev.yaml")
    assert "experiment run experiments/dev.yaml -s dev" in up._next("dev")[-1]


def test_what_comes_next_names_a_cluster_where_a_stack_has_several_and_none_is_meant_otherwise(project: Path) -> None:
    for clusters, said in (
        ("kumulus:clusters: [{name: a}, {name: b}]", "dev --cluster a"),
        ("kumulus:clusters: [{name: a}, {name: b}], kumulus:hub: b", "dev"),
    ):
        (project / "Pulumi.dev.yaml").write_text(f"config: {{{clusters}}}\n")
        env, *others = (line.split("#")[0].strip() for line in up._next("dev")[1:])
        assert env.endswith(f'env {said})"')
        assert all(f" -s {said}" in f"{line} " for line in others)


def test_without_the_extra_watch_a_look_is_the_topology_or_for_a_program_of_ones_own_kubectls(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "offered", dict)
    for program, look in (
        ("from kumulus import program\n", "topology -s dev"),
        ("import kumulus\n", "kubectl get nodes"),
    ):
        (project / "__main__.py").write_text(program)
        assert up._next("dev")[2].split("#")[0].strip().endswith(look)


def test_a_stack_that_is_up_says_what_its_jobs_do_unless_all_of_them_have_lifecycles(project: Path) -> None:
    file = project / "Pulumi.dev.yaml"
    file.write_text("config: {kumulus:cluster: {}}\n")
    (said,) = up._assumptions("dev")
    assert "complete at once, by assumption" in said
    for selector, some in (
        ("labels: {app: a}", 1),
        ("ownerKinds: [JobSet]", 1),
        ("ownerKinds: [JobSet, Job]", 0),
        ("", 0),
    ):
        life = f"{{name: a, run: 1m, selector: {{{selector}}}}}"
        file.write_text(f"config: {{kumulus:cluster: {{podLifecycles: [{life}]}}}}\n")
        assert len(up._assumptions("dev")) == some, selector


def test_a_fleet_that_was_not_created_leaves_no_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _verified(project, monkeypatch, lambda _: None) == []


def test_a_fleet_that_cannot_be_destroyed_keeps_its_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pulumi", "pulumi-language-python", "pulumi-language-python-exec"):
        (project.parent / "bin" / name).write_text('#!/bin/sh\n[ "$1" = version ] && echo v3.246.0 || exit 255\n')

    def known(name: str) -> None:
        file = project / "state" / ".pulumi" / "stacks" / "fleet" / f"{name}.json"
        file.parent.mkdir(parents=True)
        file.touch()

    assert len(_verified(project, monkeypatch, known)) == 1


def test_where_pulumi_cannot_be_had_its_absence_is_not_told_twice(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://shared")
    (project.parent / "bin" / "pulumi").unlink()
    assert _verified(project, monkeypatch, lambda _: None) == []


def _verified(project: Path, monkeypatch: pytest.MonkeyPatch, before: Callable[[str], None]) -> list[Path]:
    """Have a fleet not come up; returns the files that are left."""

    def bring_up(name: str) -> None:
        before(name)
        raise UserError("it did not come up")

    monkeypatch.setattr(clone, "bring_up", bring_up)
    monkeypatch.setattr(advise_verify, "groups", lambda *_: [])
    with pytest.raises(UserError, match="it did not come up"):
        advise_verify.verify(None, None)  # type: ignore[arg-type]
    return list(project.glob("Pulumi.advise-*.yaml"))


@pytest.mark.parametrize("command", ["up", "preview", "down"])
@pytest.mark.parametrize(
    ("words", "name", "further"),
    [
        ([], "now", []),
        (["dev"], "dev", []),
        (["dev", "--refresh"], "dev", ["--refresh"]),
        (["dev", "-s", "dev", "--diff"], "dev", ["--diff"]),
        (["-s", "dev", "--policy-pack", "team"], "dev", ["--policy-pack", "team"]),
        (["--policy-pack", "team", "-s", "dev"], "dev", ["--policy-pack", "team"]),
        (["--message", "dev"], "now", ["--message", "dev"]),
        (["dev", "--message", "a b"], "dev", ["--message", "a b"]),
        # As the Makefile calls it.
        (["", "--refresh"], "now", ["--refresh"]),
        (["", "-s", "dev"], "dev", []),
    ],
)
def test_only_the_first_word_is_a_stack(
    project: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: list[str], name: str, further: list[str]
) -> None:
    monkeypatch.setenv("PULUMI_STACK", "now")
    assert stack.chosen(_parsed(command, words)) == (name, further)


def test_a_misspelt_option_of_pulumis_is_named_before_anything_is_made(project: Path) -> None:
    helps = "#!/bin/sh\n[ $1 = version ] && echo v3.246.0 || echo '  -r, --refresh   -s, --stack string'\n"
    (project.parent / "bin" / "pulumi").write_text(helps)
    with pytest.raises(UserError, match=r"pulumi up has no option --refesh; did you mean --refresh\?"):
        stack.check_options("up", ["--refesh=true"])
    stack.check_options("up", ["--refresh", "--hidden-one", "-v=9"])


def test_a_backend_that_does_not_answer_is_an_error_and_not_a_stack_that_is_down(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pulumi_says(words: str, code: int) -> None:
        script = f'#!/bin/sh\n[ $1 = version ] && echo v3.246.0 && exit\necho "{words}" >&2; exit {code}\n'
        (project.parent / "bin" / "pulumi").write_text(script)

    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://shared")
    pulumi_says("error: no stack named 'dev' found", 6)
    assert not stack.exists("dev")
    pulumi_says("NAME  VALUE", 0)
    assert stack.exists("dev")
    pulumi_says("error: operation error S3: GetObject: connection refused", 1)
    with pytest.raises(UserError, match=r"pulumi cannot look for the stack dev:\n  error: .* connection refused$"):
        stack.exists("dev")


def test_two_stacks_are_refused_and_an_option_of_downs_own_is_no_word(project: Path) -> None:
    with pytest.raises(UserError, match="dev or other\\? Name one stack"):
        stack.chosen(_parsed("up", ["dev", "-s", "other"]))
    assert stack.chosen(_parsed("down", ["--with-tenants", "dev"])) == ("dev", [])


def _parsed(command: str, words: list[str]) -> argparse.Namespace:
    parsed, passed_on = parser_of(command, offered()[command].command)[1].parse_known_args(words)
    parsed.passed_on = passed_on
    return parsed


@pytest.mark.parametrize("command", ["up", "preview", "down"])
def test_how_to_name_a_stack_is_in_the_usage(command: str) -> None:
    said = " ".join(parser_of(command, offered()[command].command)[1].format_help().split())
    assert said.startswith(f"usage: kumulus {command} [STACK] [-h] [-s STACK] ")
    assert f"`kumulus {command} --refresh -s dev`" in said
