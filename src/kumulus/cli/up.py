"""Fetch what is missing, then bring a stack up without asking. `kumulus preview` shows the changes first."""

import argparse
import os
import re

from kumulus.cli import beforehand, project, stack, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.cli.registry import offered
from kumulus.host import installation
from kumulus.model.lifecycles import PodSelection
from kumulus.model.words import aligned

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
    shown = beforehand.shown_options(name, further)
    code = stack.run(["up", "-s", name, "--yes", "--skip-preview", *shown, *further])
    if code == 0:
        print("\n".join([*_next(name), *_assumed(name)]))
    return code


def _next(name: str) -> list[str]:
    """What to do with a stack that is up: three commands, and an experiment if the project has one for it."""
    command, experiment = installation.command(), _experiment(name) if _there("experiment") else ""
    options = _options(name)
    words = options.removeprefix("-s ")
    look = f"{command} ui {options}"
    if not _there("ui"):
        # What a program of the user's own declares is in no stack file, from which the topology is drawn.
        look = f"{command} topology {options}" if project.current().describes_clusters else "kubectl get nodes"
    rows = [
        (f'eval "$({command} env {words})"', "pulumi, kubectl and kumulus for this stack"),
        (look, "look at it"),
        (f"{command} fault inject broken {options} --kind unreachable --count 1 --for 5m", "a node fails"),
        *([(f"{command} experiment run {experiment} {options}", "measure its scheduler")] if experiment else []),
    ]
    return [f"\n{name} is up. Next:", *(f"  {line}" for line in aligned([(a, f"# {b}") for a, b in rows]).splitlines())]


def _options(name: str) -> str:
    """The options that name a stack, and one of its clusters where it has several and none is meant otherwise."""
    try:
        which.chosen(name)
    except UserError:
        return which.every(name)[0].options
    return f"-s {name}"


def _there(command: str) -> bool:
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


def _assumed(name: str) -> list[str]:
    """What its Jobs do of which nobody has said anything; nothing if every Job of its clusters has a lifecycle."""
    found = stack_file.described(name)
    lives = [each.spec.podLifecycles for each in found.clusters.values()] if found else []
    if all(any(life.selector.selection().covers(_JOBS) for life in of) for of in lives):
        return []
    return ["A Job whose command says no end completes at once, by assumption; podLifecycles say more (docs/pods.md)."]
