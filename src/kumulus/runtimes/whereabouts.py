"""Where the cluster that a state records is: here, on another machine, or where the project was before.

A state can be read from everywhere: its backend may be shared, and a project can be moved, copied and restored. What it
says about processes and files is true in one place only. See docs/decisions/machine.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kumulus.host import pulumi_project
from kumulus.host.machine import Machine
from kumulus.runtimes import owner
from kumulus.runtimes.place import Place

_MOVE = "`pulumi config set kumulus:moveHere true`"
LOST = "without the pods, Jobs and whatever else was put into it beside what the stack declares"
"""What is lost when a cluster is made again, in words."""


@dataclass(frozen=True)
class Here:
    """Where the plugin works.

    Attributes:
        machine: the machine.
        program: the project's directory.
        state: the directory with the stacks' state, if it is inside the project and moves with it.
    """

    machine: Machine
    program: Path
    state: Path | None

    @classmethod
    def of(cls, machine: Machine, program: Path) -> Here:
        """Where the project is on a machine."""
        project = pulumi_project.find(program)
        backend = project.backend_directory() if project else None
        inside = backend is not None and backend.is_relative_to(program.resolve())
        return cls(machine, program, backend if inside else None)


@dataclass(frozen=True)
class Away:
    """A cluster that must not be touched from here.

    Attributes:
        kind: `machine`: it is on another one; `moved`: the project was moved away from it, or with its files; `copied`:
            it belongs to the project of which this one is a copy.
        name: the cluster's name.
        directory: where its files are, as recorded.
        where: where it can be worked on, in words.
        files: the directory of its files here, if they were moved or copied with the project, or restored.
    """

    kind: Literal["machine", "moved", "copied"]
    name: str
    directory: Path
    where: str
    files: Path | None

    @property
    def can_be_moved(self) -> bool:
        """Whether the user can have it moved here.

        A copy of its project cannot: the engine deletes the contents of a replaced cluster one by one, and the original
        cluster can be reached from here.
        """
        return self.kind != "copied"

    @property
    def can_be_taken_up(self) -> bool:
        """Whether it can be started here with all that is in it."""
        return self.kind == "machine" and self.files == self.directory

    def refusal(self) -> str:
        """Why nothing is done, and what the user can do."""
        if self.kind == "machine":
            why = f"cluster {self.name} is on {self.where}"
            there = "Work on it there (`pulumi destroy` there takes it down)"
        elif self.kind == "moved":
            why = f"this project was at {self.where}, and cluster {self.name} with it, whose programs have that path"
            there = "Move it back"
        else:
            return (
                f"this project is a copy of the one at {self.where}, whose cluster {self.name} is; nothing was "
                "changed. Work on it there, or remove .pulumi-state and .kumulus here, which were copied too: `pulumi "
                "up` then makes a cluster of the copy's own"
            )
        return f"{why}; nothing was changed. {there}, or {_MOVE}: the next `pulumi up` {self._by_moving()}"

    def _by_moving(self) -> str:
        if self.can_be_taken_up:
            return f"starts it here with all that is in it, from {self.directory}; nobody must be running it there then"
        end = "ends the old one" if self.kind == "moved" else "leaves that one as it is"
        return f"makes a new one here, {LOST}, and {end}"

    def moving(self) -> str:
        """The message when it is moved here."""
        if self.can_be_taken_up:
            return f"cluster {self.name} was on {self.where} and is started here, with all that is in it"
        left = {
            "machine": f"the one on {self.where} is left as it is, at {self.directory}, and is no stack's any more",
            "moved": f"that of {self.where} is ended",
        }
        return f"cluster {self.name} is made again here, {LOST}; {left[self.kind]}"


def away(outputs: Mapping[str, Any], here: Here) -> Away | None:
    """A recorded cluster that is elsewhere; None when it is here, or nothing tells where it is."""
    recorded = outputs.get("directory")
    if not isinstance(recorded, str) or not recorded:
        return None
    directory, name = Path(recorded), str(outputs.get("name"))
    machine = outputs.get("machine")
    if isinstance(machine, Mapping) and machine.get("id") and machine["id"] != here.machine.id:
        files = directory if has_files(directory, outputs) else None
        return Away("machine", name, directory, _called(machine, here.machine), files)
    program = program_of(outputs)
    if program is None or here.state is None or _same(program, here.program):
        return None
    files = _with_project(directory, program, here.program, outputs)
    if has_files(directory, outputs):
        return Away("copied", name, directory, str(program), files) if _has_state(program, here) else None
    return Away("moved", name, directory, str(program), files) if files else None


def program_of(outputs: Mapping[str, Any]) -> Path | None:
    """The project's directory, as it was recorded with the cluster; None where it was not."""
    try:
        found = json.loads(str(outputs.get("owner")))
    except ValueError:
        return None
    program = found.get("program") if isinstance(found, dict) else None
    return Path(program) if isinstance(program, str) and program else None


def _called(machine: Mapping[str, Any], here: Machine) -> str:
    """A machine's name; where it is the same as this one's, with something that tells the two apart."""
    name = str(machine.get("name") or "unknown")
    if name != here.name:
        return f"the machine {name}"
    return f"another machine named {name} ({str(machine['id'])[:8]}, and this one is {here.id[:8]})"


def _with_project(directory: Path, program: Path, now: Path, outputs: Mapping[str, Any]) -> Path | None:
    """Where the cluster's files are that were moved with the project, if they were."""
    if not directory.is_relative_to(program):
        return None
    found = now / directory.relative_to(program)
    return found if has_files(found, outputs) else None


def has_files(directory: Path, outputs: Mapping[str, Any]) -> bool:
    """Whether the files of a recorded cluster are in a directory."""
    return owner.same(Place(directory).note().get("owner", ""), str(outputs.get("owner") or "nobody"))


def _has_state(program: Path, here: Here) -> bool:
    """Whether a project is still where this one was, with a state of its own."""
    assert here.state is not None
    kept = program / here.state.relative_to(here.program.resolve()) / ".pulumi" / "stacks"
    return any(file.suffix in (".json", ".gz", ".zst") for file in kept.glob("*/*"))


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
