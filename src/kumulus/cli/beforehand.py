"""What is looked at before pulumi changes a stack, and said while nothing is changed yet.

By the time these are called the command runs where the packages are, and the directory of the backend is there.
"""

import asyncio
import re
import shlex
import sys
from pathlib import Path

from kumulus.cli import backend, needs, project, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.cli.needs import Needs
from kumulus.host import installation
from kumulus.model.words import listed
from kumulus.toolchain import environment, pins, releases, supply

# Pulumi's own pattern; its error message shows other letters wrongly.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
# With more node groups, the outputs fill the screen: six lines for each.
_GROUPS_SHOWN = 20
ALL_THE_SAME = "--with-tenants"
"""The option of `down` by which teams may have something left in the cluster."""
_PATIENCE = 5.0
_NAMED = 3


def check_stack(stack: str) -> None:
    """Before any command on a stack: its name, its file, its program's language, and the files of its state."""
    current = project.current()
    check_name(stack, f"Rename {current.shown(current.stack_file(stack))}")
    check_language()
    stack_file.read(stack)
    check_state()


def check_name(stack: str, remedy: str = "Name another with -s") -> None:
    """Before a stack's file is written, or read: its name."""
    if not _NAME.fullmatch(stack):
        takes = "Pulumi takes letters a to z, digits, -, _ and ., 100 at most"
        raise UserError(f"{stack!r} cannot be a stack's name: {takes}\n  {remedy}")


def check_state() -> None:
    """Before the state is read: check that pulumi was not killed while it wrote a file that it needs."""
    current = project.current()
    directory = current.backend_directory()
    if directory is not None and (cut := backend.half_written(directory)):
        names = " ".join(shlex.quote(current.shown(each)) for each in cut)
        raise UserError(
            f"pulumi was killed while it wrote {current.shown(cut[0])}, and reads no stack until that is removed\n"
            f"  It only describes the state; nothing is lost without it: rm {names}"
        )


def checked_needs(stack: str) -> Needs:
    """What a stack needs, for what fetches it; its file, its kubeconfigs and its program's language are checked."""
    from kumulus.model.errors import Problem, SpecError
    from kumulus.runtimes.existing import source
    from kumulus.stackfile.secrets import HIDDEN, without_secrets

    found, file = needs.of_stack(stack), stack_file.read(stack)
    problems = []
    has_secrets = without_secrets(file.config) != file.config
    for loaded in file.described.clusters.values() if file.described else ():
        spec = loaded.spec
        # Where no kubeconfig is known, it may be one of the secrets that are left out.
        may_be_secret = spec.existing.kubeconfig == HIDDEN or (not spec.existing.kubeconfig and has_secrets)
        if spec.runtime_descriptor.outlives_stack and not may_be_secret:
            wrong = source.problems(spec.runtime_options(file.base))
            problems += [Problem(f"existing.{key}", message) for key, message in wrong.items()]
    if problems:
        raise UserError(str(SpecError(problems, file.shown)))
    known = pins.load()
    # A pulumi that is downloaded brings the hosts of all languages.
    if releases.mode() == "build" or not supply.missing(known, [known.tool("pulumi")]):
        check_language()
    return found


def check_language() -> None:
    """Before pulumi runs a program in another language than Python: its host, which pulumi would only call missing."""
    runtime = project.current().runtime
    if host := environment.missing_host(runtime):
        raise UserError(
            f"this project's runtime is {runtime}, and its host {host} is neither on PATH nor next to pulumi\n"
            f"  To get it: {installation.command()} tools --with languages"
        )


def check_unlocked(stack: str) -> None:
    """Before an update or a destroy: check that nobody else is working on the stack."""
    current = project.current()
    directory = current.backend_directory()
    if directory is not None and (who := backend.at_work(directory, current.name, stack)):
        raise UserError(
            f"{stack} is being worked on by {who}\n  Wait for its end, or press Ctrl-C where it runs; "
            "`pulumi cancel` would let two work on it at once"
        )


def note_other_names(stack: str) -> None:
    """Before Pulumi knows of a stack: print a note for each stack that has a cluster but no file any more.

    The same stack may already be up under that name.
    """
    current = project.current()
    directory = current.backend_directory()
    if directory is None:
        return
    for other, cluster in backend.with_cluster(directory, current.name, but=current.stacks()).items():
        here = current.shown(current.stack_file(stack))
        gone = current.shown(current.stack_file(other))
        print(
            f"note: {other} has a cluster in {current.shown(cluster)}, and no {gone} any more; {stack} gets another\n"
            f"  Where {here} is the same file, renamed: name it {gone} again, or take {other} down",
            file=sys.stderr,
        )


def check_tenants(stack: str, all_the_same: bool) -> None:
    """Before a destroy: check that teams have nothing left in the cluster, unless it goes all the same."""
    for each in which.every(stack):
        if not all_the_same and each.kubeconfig.exists() and _has_tenants(stack, each.cluster):
            require_no_tenants(each.label, each.kubeconfig)


def check_runs(stack: str) -> None:
    """Before a destroy: check that no run is under way on the stack's clusters, and that they are on this machine.

    Pulumi would forget a cluster's contents, or destroy another cluster of the stack, before its plugin checks that.
    """
    current = project.current()
    directory = current.backend_directory()
    if directory is None:
        return
    from kumulus.host import machine
    from kumulus.nodes import runs
    from kumulus.runtimes import registry
    from kumulus.runtimes.whereabouts import Here, away

    here = Here.of(machine.this(), current.root)
    for outputs in backend.clusters(directory, current.name, stack):
        if who := runs.under_way(str(outputs.get("identity") or "")):
            raise UserError(who)
        if not registry.outlives_stack(outputs.get("runtime")) and (found := away(outputs, here)):
            raise UserError(found.refusal)


def quieting_options(stack: str, options: list[str]) -> list[str]:
    """Options for pulumi, besides the user's, that keep the outputs of a fleet with many groups off the screen."""
    described = stack_file.described(stack)
    groups = sum(len(each.spec.nodeGroups) for each in described.clusters.values()) if described else 0
    if groups <= _GROUPS_SHOWN or any("outputs" in each for each in options):
        return []
    print(f"{stack} has {groups} node groups: to see its outputs, pulumi stack output -s {stack}", flush=True)
    return ["--suppress-outputs"]


def without_salt_only(file: Path, there_before: bool) -> None:
    """Remove a stack file that pulumi created only to hold its salt, if there was none before the command."""
    if there_before or not file.exists():
        return
    lines = [line for line in file.read_text().splitlines() if line.strip()]
    if all(line.startswith(("encryptionsalt:", "secretsprovider:", "encryptedkey:")) for line in lines):
        file.unlink()


def _has_tenants(stack: str, cluster: str) -> bool:
    try:
        described = stack_file.described(stack)
    except UserError:
        described = None
    # What no file says, or one with mistakes, may have tenants: a program of the user's own may declare some.
    return described is None or bool(described.clusters[cluster].spec.tenants)


def require_no_tenants(stack: str, kubeconfig: Path) -> None:
    """Refuse while other stacks have objects in a tenant's namespace, unless the cluster does not answer."""
    from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig
    from kumulus.nodes.namespaces import guests

    async def look() -> dict[str, list[str]]:
        async with Client(load_kubeconfig(kubeconfig), patience=_PATIENCE) as client:
            return await guests(client)

    try:
        found = asyncio.run(look())
    except (ApiError, KubeconfigError, Unreachable):
        return
    if found:
        raise UserError(tenants_refusal(stack, found))


def tenants_refusal(stack: str, found: dict[str, list[str]]) -> str:
    """The message of the refusal; `found`: what other stacks have, by namespace."""
    return "\n".join(
        [
            f"{stack} is shared, and other stacks have something in it: their own destroy needs this cluster",
            *(f"  {namespace}: {listed(made, _NAMED)}" for namespace, made in found.items()),
            "  First, in each team's project: pulumi destroy",
            f"  To take {stack} down all the same: add {ALL_THE_SAME}; the teams then write",
            "  PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy",
        ]
    )
