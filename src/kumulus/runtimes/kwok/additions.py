"""What a stack's cluster has besides the control plane; all of it is changed in place.

That is: stages as objects, usage, and what extras add (:mod:`kumulus.runtimes.kwok.addition`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kumulus.host import ports, processes
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import addition, configuration, metrics_server, objects, pod_logs
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client

# The key in a cluster's note that has the fingerprint of each component.
_PARTS = "parts"


def configure(layout: Layout, wanted: WantedControlPlane, undefined: Sequence[str], claims: ports.Claims) -> None:
    """Rewrite the components' settings, and end the components that run with other settings.

    Args:
        undefined: the kinds that kwokctl is to define when it starts the components.
    """
    settings = objects.with_kinds(layout.settings(), configuration.custom_resources(wanted.options), undefined)
    if configuration.usage_kind(wanted.options):
        settings = metrics_server.with_component(settings, layout, metrics_server.port_of(settings) or claims.take())
    else:
        settings = metrics_server.without_component(settings)
    every = addition.every()
    for each in every:
        settings = each.configured(settings, layout, wanted.options, claims)
    unwanted = {name for each in every for name in each.names} - configuration.component_fingerprints(
        wanted.options
    ).keys()
    running = processes.running(layout.directory)
    processes.end([pid for name in {*outdated(layout, wanted), *unwanted} for pid in running.get(name, [])])
    pod_logs.write(layout)
    documents = configuration.controller_documents(wanted.options, wanted.nodes, str(layout.directory))
    layout.write_documents([settings, *documents])
    for each in every:
        each.write(layout, wanted.options)


def outdated(layout: Layout, wanted: WantedControlPlane) -> list[str]:
    """The components that have to be restarted, or ended, for the cluster to be as wanted."""
    try:
        noted: Mapping[str, Any] = json.loads(layout.note().get(_PARTS, "{}"))
    except ValueError:
        noted = {}
    now = configuration.component_fingerprints(wanted.options)
    # A component that is not noted was made by a run that was interrupted.
    names = {*now, *noted, metrics_server.NAME}
    return [name for name in names if name not in noted or noted[name] != now.get(name)]


def note(wanted: WantedControlPlane) -> dict[str, str]:
    """The note of a cluster that has everything as wanted."""
    return {
        "configuration": configuration.fingerprint(wanted.options),
        _PARTS: json.dumps(configuration.component_fingerprints(wanted.options)),
    }


def note_defined(layout: Layout) -> None:
    """Note that KWOK's definitions exist: kwokctl would fail to create them again."""
    settings = layout.settings()
    if objects.to_define(settings):
        layout.write_settings(objects.defined(settings))


async def apply(client: Client, layout: Layout, wanted: WantedControlPlane) -> None:
    """Apply the objects of the wanted additions, and delete those of the others."""
    if wanted.options.get("stageObjects"):
        await objects.apply_base(client, configuration.base_stages(wanted.options))
    else:
        await objects.remove_base(client)
    port = metrics_server.port_of(layout.settings())
    if port is not None:
        await metrics_server.register(client, port)
    else:
        await metrics_server.unregister(client)
    for each in addition.every():
        await each.apply(client, layout, wanted.options)


def port_problem(layout: Layout, wanted: WantedControlPlane) -> str | None:
    """Why a component cannot have the port that was asked for; None if each can."""
    return next(filter(None, (each.port_problem(layout, wanted.options) for each in addition.every())), None)
