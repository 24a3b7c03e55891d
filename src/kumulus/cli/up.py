"""Fetch what is missing, then bring a stack up without asking. `kumulus preview` shows the changes first."""

import argparse
import os

from kumulus.cli import beforehand, project, stack, stack_file
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
    stack.make_ready(beforehand.check_declared, name)
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
    """What to do with a stack that is up: three commands."""
    command = installation.command()
    watch = offered().get("ui")
    look = f"{command} ui -s {name}"
    if watch is None or (watch.extra and watch.extra.missing):
        # What a program of the user's own declares is in no stack file, from which the topology is drawn.
        look = f"{command} topology -s {name}" if project.current().describes_clusters else "kubectl get nodes"
    rows = [
        (f'eval "$({command} env {name})"', "pulumi, kubectl and kumulus for this stack"),
        (look, "look at it"),
        (f"{command} fault inject broken -s {name} --kind unreachable --count 1 --for 5m", "a node fails"),
    ]
    return [f"\n{name} is up. Next:", *(f"  {line}" for line in aligned([(a, f"# {b}") for a, b in rows]).splitlines())]


def _assumed(name: str) -> list[str]:
    """What its Jobs do of which nobody has said anything; nothing if every Job of its clusters has a lifecycle."""
    found = stack_file.described(name)
    lives = [each.spec.podLifecycles for each in found.clusters.values()] if found else []
    if all(any(life.selector.selection().covers(_JOBS) for life in of) for of in lives):
        return []
    return ["A Job whose command says no end completes at once, by assumption; podLifecycles say more (docs/pods.md)."]
