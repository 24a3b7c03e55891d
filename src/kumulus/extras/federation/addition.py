"""Kueue beside a control plane of the runtime kwok that is a hub or a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kumulus.extras.federation import process
from kumulus.host.ports import Claims
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.kwok import api
from kumulus.runtimes.kwok.addition import Addition, Options
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client


class Kueue(Addition):
    """The Kueue of a cluster that works with others as one."""

    names = frozenset({process.NAME})

    def asked(self, options: Options) -> bool:
        """See :meth:`Addition.asked`."""
        return process.kueue_of(options) is not None

    def fingerprints(self, options: Options) -> dict[str, str]:
        """See :meth:`Addition.fingerprints`."""
        asked = process.kueue_of(options)
        return {} if asked is None else {process.NAME: process.fingerprint(asked)}

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        """See :meth:`Addition.configured`; its files are written here, too."""
        asked = process.kueue_of(options)
        if asked is None:
            return process.without_component(settings, layout)
        return process.with_component(settings, layout, asked, process.allotted(layout, claims))

    def has_kinds(self, options: Options) -> bool:
        """See :meth:`Addition.has_kinds`."""
        return self.asked(options)

    async def define(self, client: Client, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.define`."""
        await process.define(client, layout)

    async def apply(self, client: Client, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.apply`."""
        await (process.working(client, layout) if self.asked(options) else process.unregister(client))

    def ended_with_api_server(self, options: Options) -> str | None:
        """See :meth:`Addition.ended_with_api_server`: it would wait for its certificates."""
        return process.NAME

    async def answering(self, layout: Layout, started: Sequence[str], report: Reporter) -> None:
        """See :meth:`Addition.answering`."""
        if process.NAME in started:
            report.status("waiting for Kueue's webhooks")
            async with api.client(layout) as client:
                await process.working(client, layout)


ADDITION = Kueue()
