"""Start the components of a control plane, and update their settings first if they have changed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kumulus.host import ports, processes
from kumulus.kube import ApiError, Unreachable
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.faults import new_pods
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import (
    addition,
    additions,
    api,
    components,
    configuration,
    kwokctl,
    moving,
    objects,
    priority,
)
from kumulus.runtimes.kwok.addition import Addition, Options
from kumulus.runtimes.kwok.layout import Layout

# How often components that exit are started again.
_STARTS = 3
# For the leases of an ended kwok-controller to be removed: if the API server may not be up, and once it answers.
_TRY_S, _RELEASE_S = 1.0, 30.0


def dead_components(layout: Layout) -> list[str]:
    """The components that do not run; ProviderError if one could not start, as its port is in use."""
    if taken := moving.taken(layout):
        component, port = next(iter(taken.items()))
        raise ProviderError(
            f"{component} of cluster {layout.name} cannot start: its port {port} is in use by "
            f"{processes.listener(port)}; end that process and run `pulumi up --refresh` again"
        )
    alive = processes.running(layout.directory)
    return [name for name in layout.components() if name not in alive]


async def start(
    layout: Layout, wanted: WantedControlPlane, report: Reporter, *, changed: bool, dead: Sequence[str]
) -> None:
    """Start the dead components; a new kwok-controller takes the nodes and pods over at once.

    If the cluster's settings were changed, the objects of its additions are applied again.
    """
    hand_over = "kwok-controller" in dead
    every, options = addition.every(), wanted.options
    resumed = {name: each for each in every if (name := each.resumes(options)) and name in dead}
    served = not set(api.SERVING) & set(dead)
    with api.explained(layout, starting=True):
        for each in every:
            each.require_space(layout, dead)
        if served:
            await _resume(layout, resumed, options, report)
        released = hand_over and await _release_leases(layout, patience=_TRY_S)
        await start_components(layout)
        if hand_over and not released:
            # It has found the leases of its predecessor, and would wait for them to expire: once more without them.
            await api.answering(layout, report)
            end(layout, ["kwok-controller"])
            await _release_leases(layout, patience=_RELEASE_S)
            await start_components(layout)
        too_early = [name for each in every if (name := each.starts_after_api_server(options)) and name in dead]
        if not served and (resumed or too_early):
            # They were started with the API server, and must not run now.
            await api.answering(layout, report)
            end(layout, [*resumed, *too_early])
            await _resume(layout, resumed, options, report)
            await start_components(layout)
        if changed:
            await api.answering(layout, report)
            async with api.client(layout) as client:
                await additions.apply(client, layout, wanted)
        if hand_over:
            report.status("handing nodes and pods over to the new kwok-controller")
            async with api.client(layout) as client:
                await new_pods.resume_pods(client, everything=bool(configuration.custom_resources(wanted.options)))
        for each in every:
            await each.answering(layout, dead, report)


def end(layout: Layout, names: Sequence[str]) -> None:
    """End these components, if they run."""
    running = processes.running(layout.directory)
    processes.end([pid for name in names for pid in running.get(name, [])])


async def _resume(layout: Layout, resumed: Mapping[str, Addition], options: Options, report: Reporter) -> None:
    """Put right what the end of each of these processes has left; the additions are by their process."""
    if not resumed:
        return
    async with api.client(layout) as client:
        for each in resumed.values():
            await each.resume(client, options, report)


async def create_components(layout: Layout, request: Path) -> None:
    """Have kwokctl make a control plane, by the file with its configuration."""
    await _start(layout, "create", "cluster", "--config", str(request), "--kubeconfig", "")


async def start_components(layout: Layout) -> None:
    """Have kwokctl start the components that do not run."""
    components.relink(layout)
    kwokctl.correct_pid_files(layout.directory, processes.running(layout.directory))
    # On an existing cluster, `create` starts the missing components and adds KWOK's definitions. It does not look which
    # runtime the cluster has: where Docker answers, it would take it for one of containers.
    create = ["create", "cluster", "--kubeconfig", "", "--runtime", "binary"]
    command = create if objects.to_define(layout.settings()) else ["start", "cluster"]
    completed = await _start(layout, *command)
    priority.lower(layout.directory)
    if completed:
        additions.note_defined(layout)


async def _start(layout: Layout, *command: str) -> bool:
    """Run kwokctl; False if a component ended that may have come too early, which :func:`all_running` starts again."""
    try:
        await kwokctl.run(layout, *command, "--timeout", "90s")
    except kwokctl.ComponentEnded as ended:
        if ended.component not in api.SERVING:
            return False
        raise ProviderError(api.explain(layout, str(ended))) from None
    except ProviderError as error:
        if not await _has_definitions(layout):
            raise ProviderError(api.explain(layout, str(error))) from None
    return True


async def _has_definitions(layout: Layout) -> bool:
    """Whether kwokctl has failed only because the definitions that it was to create are there, as after a killed run.

    It then fails after all is started: it cannot change a definition (v0.8.0, pkg/kwokctl/snapshot/load.go).
    """
    kinds = objects.to_define(layout.settings())
    if not kinds or dead_components(layout):
        return False
    try:
        async with api.client(layout) as client:
            return not await objects.undefined(client, kinds)
    except (ApiError, Unreachable):
        return False


async def all_running(layout: Layout, report: Reporter) -> str:
    """Wait until the API server is ready and return the cluster's identity; components that have exited are restarted.

    On a busy machine, the controller manager exits when the API server is not healthy ten seconds after its own start
    (k8s.io/kubernetes cmd/kube-controller-manager/app, WaitForAPIServer).
    """
    identity, starts = await api.answering(layout, report), 0
    while ended := dead_components(layout):
        if starts == _STARTS:
            raise ProviderError(api.explain(layout, f"{', '.join(ended)} of cluster {layout.name} ended"))
        starts += 1
        why = "" if set(api.SERVING) & set(ended) else ": ended, as the API server was slow to answer"
        report.status(f"starting {', '.join(ended)} again{why}")
        await start_components(layout)
        identity = await api.answering(layout, report)
    return identity


async def add(layout: Layout, wanted: WantedControlPlane, claims: ports.Claims, report: Reporter) -> None:
    """Complete a control plane that kwokctl has just made."""
    additions.note_defined(layout)
    started: list[str] = []
    if configuration.has_additions(wanted.options):
        additions.configure(layout, wanted, [], claims)
        await _define(layout, wanted, report)
        started = dead_components(layout)
        for each in addition.every():
            each.require_space(layout, started)
        await start_components(layout)
        await all_running(layout, report)
    async with api.client(layout) as client:
        await additions.apply(client, layout, wanted)
    for each in addition.every():
        await each.answering(layout, started, report)


async def reconfigure(layout: Layout, wanted: WantedControlPlane, report: Reporter, claims: ports.Claims) -> None:
    """Rewrite the components' settings and end the components concerned; the next start makes them read these."""
    if problem := additions.port_problem(layout, wanted):
        raise ProviderError(problem)
    report.status("applying changed settings")
    with api.explained(layout):
        undefined = []
        if kinds := configuration.custom_resources(wanted.options):
            await _start_serving(layout, report)
            async with api.client(layout) as client:
                # kwokctl fails on definitions that are there.
                undefined = await objects.undefined(client, kinds)
        additions.configure(layout, wanted, undefined, claims)
        await _define(layout, wanted, report)


async def _define(layout: Layout, wanted: WantedControlPlane, report: Reporter) -> None:
    """Make the kinds without which a component would not start."""
    if not any(each.has_kinds(wanted.options) for each in addition.every()):
        return
    if await _start_serving(layout, report):
        # All components were started, and these too early.
        too_early = [each.starts_after_api_server(wanted.options) for each in addition.every()]
        end(layout, [name for name in too_early if name])
    async with api.client(layout) as client:
        for each in addition.asked(wanted.options):
            await each.define(client, layout, wanted.options)


async def _start_serving(layout: Layout, report: Reporter) -> bool:
    """Make sure that an API server answers; returns whether the components had to be started for that."""
    if processes.running(layout.directory).keys() >= set(api.SERVING):
        return False
    await start_components(layout)
    await api.answering(layout, report)
    return True


async def _release_leases(layout: Layout, patience: float) -> bool:
    """Remove the leases of a kwok-controller that ended; False if they could not be within so many seconds."""
    async with api.client(layout, patience=patience) as client:
        return await new_pods.release_leases(client)
