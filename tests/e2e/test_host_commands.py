"""Commands on the user's machine, run by the stand-in for Pulumi's plugin `command`.

The tests share one stack and go through its life in their order.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import stand_in_command
from tests.support.project import POOL, Project, node_group

pytestmark = pytest.mark.e2e

COMMAND = "command:local:Command"
GROUP = node_group("a", 2)
# What a command of this name sees of the cluster when it runs.
LOOK = 'echo "$KUMULUS_CLUSTER {} $(kubectl get nodes -o name | wc -l) $WORD" >> log'


def command(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "create": LOOK.format(name), "delete": f"echo {name} deleted >> log", **fields}


@dataclass
class Stack:
    """A stack with commands that write into one file of its project, `log`."""

    project: Project
    commands: list[dict[str, Any]]

    @property
    def log(self) -> Path:
        return self.project.directory / "log"

    def write(self) -> None:
        self.log.unlink(missing_ok=True)
        self.project.write_stack({"nodeGroups": [GROUP], "hostCommands": self.commands}, stack="commands")

    def ran(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture(scope="module")
def stack(module_project: Project) -> Stack:
    stand_in_command.install(module_project.pulumi_home)
    return Stack(
        module_project,
        [
            command("at-the-end", when="last", environment={"WORD": "w"}),
            command("before-nodes", when="beforeNodes"),
            command("first"),
        ],
    )


def test_commands_run_when_they_are_to(stack: Stack) -> None:
    stack.write()
    preview = stack.project.foresee()
    assert {step.name for step in preview.steps if step.type == COMMAND} == {"first", "before-nodes", "at-the-end"}
    assert stack.ran() == []
    stack.project.up()
    assert sorted(stack.ran()[:2]) == ["commands before-nodes 0 ", "commands first 0 "]
    assert stack.ran()[2:] == ["commands at-the-end 2 w"]
    stack.project.preview("--expect-no-changes")


def test_a_changed_command_runs_again_and_another_trigger_undoes_it_first(stack: Stack) -> None:
    stack.commands[0]["environment"] = {"WORD": "other"}
    stack.commands[2]["triggers"] = ["v2"]
    stack.write()
    ops = {step.name: step.op for step in stack.project.foresee().steps if step.type == COMMAND}
    assert ops["at-the-end"] == "update"
    assert "replace" in ops["first"]
    stack.project.up()
    ran = stack.ran()
    assert "commands at-the-end 2 other" in ran
    assert [line for line in ran if "first" in line] == ["first deleted", "commands first 2 "]


def test_a_command_that_fails_is_told_and_the_next_update_goes_on(stack: Stack) -> None:
    broken = command("broken", create="echo because of this >&2; exit 3")
    stack.commands.append(broken)
    GROUP["placement"][0]["replicas"] = 3
    stack.write()
    result = stack.project.pulumi("up", "--yes", "--skip-preview")
    assert result.code != 0
    assert "because of this" in result.text
    assert "exit status 3" in result.text
    assert "Traceback" not in result.text
    broken["create"] = LOOK.format("broken")
    stack.write()
    stack.project.up()
    # Whether before or beside the nodes that the failure kept from coming.
    assert [line.split()[1] for line in stack.ran()] == ["broken"]
    assert len(stack.project.node_uids()) == 3
    stack.project.preview("--expect-no-changes")


def test_destroy_undoes_what_commands_did(stack: Stack) -> None:
    stack.log.unlink(missing_ok=True)
    stack.project.destroy()
    assert sorted(stack.ran()) == [f"{name} deleted" for name in ("at-the-end", "before-nodes", "broken", "first")]
    assert not [step for step in stack.project.foresee().steps if step.type == POOL and step.op != "create"]
