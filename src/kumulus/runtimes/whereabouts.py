"""Where the cluster that a state records is: here, on another machine, or where the project was before.

A state can be read from everywhere: its backend may be shared, and a project can be moved, copied and restored. What it
says about processes and files is true in one place only. See docs/decisions/machine.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kumulus.host import pulumi_project
from kumulus.host.machine import HostMachine
from kumulus.runtimes import place
from kumulus.runtimes.place import Place

# Goes on with what the next `up` does.
_MOVE = "or `pulumi config set kumulus:moveHere true`: the next `pulumi up`"
LOST = "without the pods, Jobs and whatever else was put into it in addition to what the stack declares"
"""What is lost when a cluster is made again, in words."""


@dataclass(frozen=True)
class Here:
    """Where the plugin works."""

    machine: HostMachine
    program: Path
    state: Path | None
    """The directory with the stacks' state, if it is inside the project and moves with it."""

    @classmethod
    def of(cls, machine: HostMachine, program: Path) -> Here:
        """Where the project is on a machine."""
        project = pulumi_project.find(program)
        backend = project.backend_directory() if project else None
        inside = backend is not None and backend.is_relative_to(program.resolve())
        return cls(machine, program, backend if inside else None)


@dataclass(frozen=True)
class Away:
    """A cluster that is elsewhere, and must not be touched from here."""

    directory: Path
    """Where its files are, as recorded."""
    refusal: str
    """The message: where it belongs, and what the user can do."""
    moving: str = ""
    """The message when the user has it moved here; empty if that cannot be."""
    files: Path | None = None
    """The directory of its files here, if they were moved with the project; a move then ends the old cluster."""
    taken_up: bool = False
    """Whether a move starts it here with all that is in it, instead of making it again."""


def away(outputs: Mapping[str, Any], here: Here) -> Away | None:
    """A recorded cluster that is elsewhere; None when it is here, or nothing tells where it is."""
    recorded, machine = outputs.get("directory"), outputs.get("machine")
    if not isinstance(recorded, str) or not recorded:
        return None
    if isinstance(machine, Mapping) and machine.get("id") and machine["id"] != here.machine.id:
        return _on_another_machine(outputs, Path(recorded), _machine_name(machine, here.machine))
    return _at_another_path(outputs, Path(recorded), here)


def _on_another_machine(outputs: Mapping[str, Any], directory: Path, where: str) -> Away:
    cluster = f"cluster {outputs.get('name')}"
    work = f"{cluster} is on {where}; nothing was changed. Work on it there (`pulumi destroy` there takes it down)"
    if has_files(directory, outputs):
        begun = f"starts it here with all that is in it, from {directory}; nobody must be running it there then"
        moving = f"{cluster} was on {where} and is started here, with all that is in it"
        return Away(directory, f"{work}, {_MOVE} {begun}", moving, taken_up=True)
    made_again = f"{cluster} is made again here, {LOST}"
    moving = f"{made_again}; the one on {where} is left as it is, at {directory}, and is no stack's any more"
    return Away(directory, f"{work}, {_MOVE} makes a new one here, {LOST}, and leaves that one as it is", moving)


def _at_another_path(outputs: Mapping[str, Any], directory: Path, here: Here) -> Away | None:
    """A cluster of this machine whose project was copied or moved here; None if it was neither."""
    cluster = f"cluster {outputs.get('name')}"
    _, recorded_program = place.stack_and_program(str(outputs.get("owner")))
    program = Path(recorded_program)
    # Projects that share a state outside of them share the stack, wherever they are.
    if not recorded_program or here.state is None or os.path.realpath(program) == os.path.realpath(here.program):
        return None
    stayed = has_files(directory, outputs)
    if stayed and _has_state(program, here):
        # No setting moves it: the engine deletes what is in a replaced cluster one by one, and the original answers.
        return Away(
            directory,
            f"this project is a copy of the one at {program}, which has {cluster}; nothing was changed. Work on it "
            "there, or remove .pulumi-state and .kumulus here, which were copied too: `pulumi up` then makes a "
            "cluster of the copy's own",
        )
    if stayed or not directory.is_relative_to(program):
        return None
    files = here.program / directory.relative_to(program)
    if not has_files(files, outputs):
        return None
    why = f"this project was at {program}, and {cluster} with it, whose programs have that path; nothing was changed"
    refusal = f"{why}. Move it back, {_MOVE} makes a new one here, {LOST}, and ends the old one"
    return Away(directory, refusal, f"{cluster} is made again here, {LOST}; that of {program} is ended", files)


def _machine_name(machine: Mapping[str, Any], here: HostMachine) -> str:
    """A machine's name; where it is the same as this one's, with something that tells the two apart."""
    name = str(machine.get("name") or "unknown")
    if name != here.name:
        return f"the machine {name}"
    return f"another machine named {name} ({str(machine['id'])[:8]}, and this one is {here.id[:8]})"


def has_files(directory: Path, outputs: Mapping[str, Any]) -> bool:
    """Whether the files of a recorded cluster are in a directory."""
    return place.same_owner(Place(directory).note().get("owner", ""), str(outputs.get("owner") or "nobody"))


def _has_state(program: Path, here: Here) -> bool:
    """Whether a project is still where this one was, with a state of its own."""
    assert here.state is not None
    kept = program / here.state.relative_to(here.program.resolve()) / ".pulumi" / "stacks"
    return any(file.suffix in (".json", ".gz", ".zst") for file in kept.glob("*/*"))
