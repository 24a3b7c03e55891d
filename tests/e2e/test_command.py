"""`kumulus up`, `preview` and `down` on a real stack: what they say beside what pulumi does."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support import processes
from tests.support.project import ROOT, Project, node_group

pytestmark = pytest.mark.e2e

CLUSTER = {"nodeGroups": [node_group(f"g{number}", 1, "a") for number in range(21)]}


def start(project: Project, arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, ROOT / "kumulus", *arguments],
        cwd=project.directory,
        env={**project.environment, "PWD": str(project.directory)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(project: Project, *arguments: str) -> tuple[int, str, str]:
    process = start(project, arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def test_what_is_looked_at_before_a_stack_is_touched_and_said_when_it_goes(project: Project) -> None:
    project.install_plugins()
    project.write_stack(CLUSTER, stack="dev")
    state = project.directory.parent / "state"
    file = project.stack_file()
    good = file.read_text()

    file.write_text(good + "\tfaults: []\n")
    code, _, said = run(project, "preview", "dev")
    assert code == 1
    assert "error: 1 problem in stacks/Pulumi.dev.yaml\n" in said
    assert f"line {len(good.splitlines()) + 1}, " in said
    assert not list(state.rglob("dev*")), "pulumi knows of no stack"

    file.write_text(good)
    first = start(project, ["up", "dev"])
    lock = lock_of(first, state)
    out, err = first.communicate(timeout=300)
    assert first.returncode == 0, out + err
    assert "pulumi stack output -s dev" in out
    assert "Outputs:" not in out
    assert "dev is up. Next:" in out

    # As if it went on: who comes second must not depend on how fast they are.
    lock[0].parent.mkdir(parents=True, exist_ok=True)
    lock[0].write_text(json.dumps({**lock[1], "pid": os.getpid()}))
    code, _, said = run(project, "down", "dev")
    lock[0].unlink()
    assert code == 1
    assert f"error: dev is being worked on by pid {os.getpid()} (" in said
    assert len(project.node_uids()) == len(CLUSTER["nodeGroups"])

    file.rename(project.stack_file("prod"))
    code, _, said = run(project, "preview", "prod")
    assert code == 0, said
    assert "note: dev has a cluster in " in said
    code, out, said = run(project, "down", "dev")
    assert code == 0, out + said
    *_, advice, last = out.splitlines()
    assert last == "That is done: the stack dev is removed as well."
    # Pulumi's advice needs no following here, which the page says under the same words.
    row = f'| `down` prints Pulumi\'s "{advice.replace(" dev`.", "`")}" | nothing: '
    assert row in (ROOT / "docs" / "start.md").read_text()
    assert not file.exists(), "which pulumi made for its salt"
    assert project.processes() == {}


def lock_of(process: subprocess.Popen[str], state: Path) -> tuple[Path, dict[str, Any]]:
    """The lock of an update that is under way, and what it says."""
    found: list[tuple[Path, dict[str, Any]]] = []

    def pids() -> set[int]:
        with suppress(psutil.Error):
            return {each.pid for each in psutil.Process(process.pid).children() if each.cmdline()[1:2] == ["up"]}
        return set()

    def look() -> bool:
        for file in (state / ".pulumi" / "locks").rglob("*.json"):
            # It may be half written, or gone again.
            with suppress(OSError, ValueError):
                content = json.loads(file.read_text())
                # Not that of `pulumi stack init`, which the command runs before it.
                if content["pid"] in pids():
                    found.append((file, content))
        return bool(found) or process.poll() is not None

    processes.await_that(look, 120, "the update has its lock")
    return found[0]
