"""What a stack asks of its cluster besides the control plane: stages as objects, and measured use; all in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from host import ports, processes
from provider.runtimes.base import Wanted
from provider.runtimes.kwok import configuration, metrics_server, objects
from provider.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kube import Client


def configure(layout: Layout, wanted: Wanted, undefined: Sequence[str]) -> None:
    """Write the settings of kwok-controller and metrics-server anew, and end both where they would not do any more.

    Args:
        layout: the cluster.
        wanted: the control plane the stack asks for.
        undefined: the kinds that kwokctl is to create the definitions of.

    Raises:
        toolchain.ToolMissing: metrics-server is not built.
        ports.NoFreePort: there is none for it.
    """
    settings = objects.with_kinds(layout.settings(), configuration.custom_resources(wanted.options), undefined)
    settings = _with_metrics_server(settings, layout, wanted)
    layout.write_documents([settings, *configuration.controller_documents(wanted.options)])
    running = processes.running(layout.directory)
    processes.end([pid for name in ("kwok-controller", metrics_server.NAME) for pid in running.get(name, [])])


def defined(layout: Layout) -> None:
    """Note that KWOK's definitions are there: kwokctl would fail on creating them again."""
    if objects.is_defining(settings := layout.settings()):
        others = [document for document in layout.documents() if document.get("kind") != settings["kind"]]
        layout.write_documents([objects.defined(settings), *others])


async def apply(client: Client, layout: Layout, wanted: Wanted) -> None:
    """Put into the cluster what belongs to the additions, and take out what belongs to others.

    Raises:
        ApiError, Unreachable: the server refused.
    """
    if wanted.options.get("stageObjects"):
        await objects.apply_base(client, configuration.base_stages(wanted.options))
    else:
        await objects.remove_base(client)
    listen = metrics_server.port(layout.settings())
    if listen is not None:
        await metrics_server.register(client, listen)
    else:
        await metrics_server.unregister(client)


def _with_metrics_server(settings: dict[str, Any], layout: Layout, wanted: Wanted) -> dict[str, Any]:
    if not wanted.options.get("podUsage"):
        return metrics_server.without_component(settings)
    listen = metrics_server.port(settings)
    if listen is None:
        taken = {port for other in layout.directory.parent.glob("*") for port in Layout(other).ports().values()}
        with ports.Claims(avoid=taken) as claims:
            listen = claims.take()
    return metrics_server.with_component(settings, layout, listen)
