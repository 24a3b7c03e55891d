"""What a stack's cluster has besides the control plane; all of it is changed in place.

That is: stages as objects, usage, monitoring, Kueue, and an autoscaler.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kumulus.extras.scaling import applying, registry
from kumulus.host import ports, processes
from kumulus.model.observability import Observability
from kumulus.runtimes.base import Wanted
from kumulus.runtimes.kwok import autoscaling, configuration, kueue, metrics_server, monitoring, objects
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client

_PARTS = "parts"


def configure(layout: Layout, wanted: Wanted, undefined: Sequence[str], claims: ports.Claims) -> None:
    """Rewrite the settings of the components, and end the components that run with other ones.

    Args:
        layout: the cluster.
        wanted: the control plane the stack asks for.
        undefined: the kinds whose definitions kwokctl is to create.
        claims: provides further ports.

    Raises:
        toolchain.ToolMissing: a component is not built.
        ports.NoFreePort: there is none for a component.
        OSError: a component's files cannot be written.
    """
    asked = monitoring.asked_of(wanted.options)
    settings = objects.with_kinds(layout.settings(), configuration.custom_resources(wanted.options), undefined)
    settings = _with_metrics_server(settings, layout, wanted, claims)
    settings = _with_monitoring(settings, layout, asked, claims)
    settings = _with_kueue(settings, layout, wanted, claims)
    settings = _with_autoscaler(settings, layout, wanted, claims)
    running = processes.running(layout.directory)
    gone = {kueue.NAME, *autoscaling.names()} - configuration.parts(wanted.options).keys()
    processes.end([pid for name in {*outdated(layout, wanted), *gone} for pid in running.get(name, [])])
    layout.write_documents([settings, *configuration.controller_documents(wanted.options, wanted.nodes)])
    monitoring.write(layout, asked, monitoring.prices_of(wanted.options))
    autoscaling.write(layout, wanted.options)


def outdated(layout: Layout, wanted: Wanted) -> list[str]:
    """The components that have to be restarted, or ended, for the cluster to be as wanted."""
    try:
        then: Mapping[str, Any] = json.loads(layout.note().get(_PARTS, "{}"))
    except ValueError:
        then = {}
    now = configuration.parts(wanted.options)
    # A component that is not recorded was made by an earlier version, or by a run that was interrupted.
    return [name for name in {*now, *then, *_ALL} if name not in then or then[name] != now.get(name)]


_ALL = ("kwok-controller", metrics_server.NAME, *monitoring.NAMES)


def note(wanted: Wanted) -> dict[str, str]:
    """The note of a cluster that has everything as wanted."""
    return {
        "configuration": configuration.fingerprint(wanted.options),
        _PARTS: json.dumps(configuration.parts(wanted.options)),
    }


def has_kinds(wanted: Wanted) -> bool:
    """Whether there are kinds without which a component would not start."""
    return kueue.asked_of(wanted.options) is not None or bool(wanted.options.get("autoscaler"))


async def define(client: Client, layout: Layout, wanted: Wanted) -> None:
    """Make the kinds without which a component would not start.

    Raises:
        ApiError, Unreachable: the server refused.
        ProviderError: somebody else has made them.
    """
    if kueue.asked_of(wanted.options) is not None:
        await kueue.define(client, layout)
    if wanted.options.get("autoscaler"):
        await applying.apply(client, wanted.options)


def defined(layout: Layout) -> None:
    """Note that KWOK's definitions exist: kwokctl would fail to create them again."""
    if objects.is_defining(settings := layout.settings()):
        layout.write_settings(objects.defined(settings))


async def apply(client: Client, layout: Layout, wanted: Wanted) -> None:
    """Apply the objects of the wanted additions, and delete those of the others.

    Raises:
        ApiError, Unreachable: the server refused.
        ProviderError: somebody else has made one of them.
    """
    if wanted.options.get("stageObjects"):
        await objects.apply_base(client, configuration.base_stages(wanted.options))
    else:
        await objects.remove_base(client)
    await applying.apply(client, wanted.options)
    listen = metrics_server.port(layout.settings())
    if listen is not None:
        await metrics_server.register(client, listen)
    else:
        await metrics_server.unregister(client)
    if kueue.asked_of(wanted.options) is not None:
        await kueue.working(client, layout)
    else:
        await kueue.unregister(client)


def port_problem(layout: Layout, wanted: Wanted) -> str | None:
    """Why Prometheus cannot have the port that was asked for; None if it can, or already has it."""
    asked = monitoring.asked_of(wanted.options)
    chosen = asked.prometheusPort if asked else None
    if not chosen or layout.ports().get(monitoring.PROMETHEUS) == chosen or not ports.in_use(chosen):
        return None
    return (
        f"port {chosen} (observability.prometheusPort) is in use by {processes.listener(chosen)}; "
        "choose another port, or leave prometheusPort out to have a free one picked"
    )


def _with_metrics_server(
    settings: dict[str, Any], layout: Layout, wanted: Wanted, claims: ports.Claims
) -> dict[str, Any]:
    if not configuration.usage_kind(wanted.options):
        return metrics_server.without_component(settings)
    return metrics_server.with_component(settings, layout, metrics_server.port(settings) or claims.take())


def _with_autoscaler(settings: dict[str, Any], layout: Layout, wanted: Wanted, claims: ports.Claims) -> dict[str, Any]:
    found = registry.asked_of(wanted.options)
    if not found:
        return autoscaling.with_component(settings, layout, wanted.options, {})
    autoscaler, known = found[0], layout.ports()
    allotted = {}
    for key, (program, called) in autoscaling.ports(autoscaler).items():
        allotted[key] = known.get(autoscaling.port_key(program, called)) or claims.take()
    return autoscaling.with_component(settings, layout, wanted.options, allotted)


def _with_monitoring(
    settings: dict[str, Any], layout: Layout, asked: Observability | None, claims: ports.Claims
) -> dict[str, Any]:
    if asked is None:
        return monitoring.without_components(settings)
    known = layout.ports()
    allotted = {}
    for component, called in monitoring.PORTS:
        chosen = asked.prometheusPort if component == monitoring.PROMETHEUS else None
        there = known.get(component if called == "http" else f"{component} ({called})")
        allotted[component, called] = chosen or there or claims.take()
    return monitoring.with_components(settings, layout, asked, allotted)


def _with_kueue(settings: dict[str, Any], layout: Layout, wanted: Wanted, claims: ports.Claims) -> dict[str, Any]:
    asked = kueue.asked_of(wanted.options)
    if asked is None:
        return kueue.without_component(settings, layout)
    return kueue.with_component(settings, layout, asked, kueue.allotted(layout, claims))
