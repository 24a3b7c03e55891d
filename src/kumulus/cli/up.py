"""Fetch what is missing, then bring a stack up without asking. `kumulus preview` shows the changes first."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kumulus.cli import beforehand, project, stack, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.cli.registry import offered
from kumulus.host import installation
from kumulus.model.lifecycles import PodSelection
from kumulus.model.words import aligned

if TYPE_CHECKING:
    from kumulus.stackfile.lifecycles import PodLifecycle

add_arguments = stack.add_arguments

_JOBS = PodSelection(owner_kinds=("Job",))


def run(args: argparse.Namespace) -> int:
    """Bring it up."""
    name, further = stack.chosen(args)
    project.require_stack(name)
    stack.make_ready(beforehand.checked_needs, name)
    stack.check_options("up", further)
    stack.create(name)
    beforehand.check_unlocked(name)
    # No preview is shown, so the plugin must not replace a cluster unless the stack allows it.
    os.environ["KUMULUS_UNSHOWN"] = "1"
    quieting = beforehand.quieting_options(name, further)
    code = stack.run(["up", "-s", name, "--yes", "--skip-preview", *quieting, *further])
    if code == 0:
        print("\n".join([*_next(name), *_assumptions(name)]))
    return code


def _next(name: str) -> list[str]:
    """What to do with a stack that is up: three commands, and an experiment if the project has one for it."""
    command = installation.command()
    experiment = _experiment(name) if _has_command("experiment") else ""
    options = _options(name)
    # env takes the stack as its first word.
    env_arguments = options.removeprefix("-s ")
    look = f"{command} ui {options}"
    if not _has_command("ui"):
        # The topology is drawn from the stack file, which says nothing of what a user's own program declares.
        look = f"{command} topology {options}" if project.current().describes_clusters else "kubectl get nodes"
    rows = [
        (f'eval "$({command} env {env_arguments})"', "pulumi, kubectl and kumulus for this stack"),
        (look, "look at it"),
        (f"{command} fault inject broken {options} --kind unreachable --count 1 --for 5m", "a node fails"),
        *([(f"{command} experiment run {experiment} {options}", "measure its scheduler")] if experiment else []),
    ]
    table = aligned([(line, f"# {what}") for line, what in rows])
    return [f"\n{name} is up. Next:", *(f"  {line}" for line in table.splitlines())]


def _options(name: str) -> str:
    """The options that name a stack, and its first cluster where it has several without a hub."""
    try:
        which.chosen(name)
    except UserError:
        return which.every(name)[0].options
    return f"-s {name}"


def _has_command(command: str) -> bool:
    """Whether there is a command, with the packages that it needs."""
    found = offered().get(command)
    return found is not None and not (found.extra and found.extra.missing)


def _experiment(name: str) -> str:
    """An experiment of the project that names a stack, the one of the same name first; empty if there is none."""
    here = project.current()
    for file in sorted((here.root / "experiments").glob("*.yaml"), key=lambda file: (file.stem != name, file)):
        if re.search(rf"^stack: *{re.escape(name)}\s*$", file.read_text("utf-8", errors="replace"), re.MULTILINE):
            return here.shown(file)
    return ""


def _assumptions(name: str) -> list[str]:
    """What is assumed of Jobs without a lifecycle; nothing if the lifecycles of each cluster select every Job."""
    found = stack_file.described(name)
    if found is None or all(_covers_jobs(each.spec.podLifecycles) for each in found.clusters.values()):
        return []
    return [
        "Jobs whose command does not say how long they run complete at once, by assumption; "
        "podLifecycles can change that (docs/pods.md)."
    ]


def _covers_jobs(lifecycles: Sequence[PodLifecycle]) -> bool:
    """Whether one of them selects the pods of every Job."""
    return any(each.selector.selection().covers(_JOBS) for each in lifecycles)
