"""Prometheus and kube-state-metrics beside a control plane of the runtime kwok."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kumulus.extras.watch import monitoring
from kumulus.host import ports, processes
from kumulus.host.ports import Claims
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.kwok.addition import Addition, Options
from kumulus.runtimes.kwok.layout import Layout


class Monitoring(Addition):
    """What a stack's section `observability` asks for, besides metrics-server."""

    names = frozenset(monitoring.NAMES)

    def asked(self, options: Options) -> bool:
        """See :meth:`Addition.asked`."""
        return monitoring.observability_of(options) is not None

    def fingerprints(self, options: Options) -> dict[str, str]:
        """See :meth:`Addition.fingerprints`."""
        asked = monitoring.observability_of(options)
        return {} if asked is None else monitoring.fingerprints(asked, monitoring.prices_of(options))

    def described(self, old: Options, new: Options) -> list[str]:
        """See :meth:`Addition.described`."""
        changed = monitoring.described(monitoring.observability_of(old), monitoring.observability_of(new))
        return [*changed, *monitoring.repriced(old, new)]

    def endpoints(self, layout: Layout) -> dict[str, str]:
        """See :meth:`Addition.endpoints`."""
        return monitoring.endpoints(layout)

    def port_problem(self, layout: Layout, options: Options) -> str | None:
        """See :meth:`Addition.port_problem`: None if Prometheus can have the port, or already has it."""
        asked = monitoring.observability_of(options)
        chosen = asked.prometheusPort if asked else None
        if not chosen or layout.ports().get(monitoring.PROMETHEUS) == chosen or not ports.in_use(chosen):
            return None
        return (
            f"port {chosen} (observability.prometheusPort) is in use by {processes.listener(chosen)}; "
            "choose another port, or leave prometheusPort out to have a free one picked"
        )

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        """See :meth:`Addition.configured`."""
        asked = monitoring.observability_of(options)
        if asked is None:
            return monitoring.without_components(settings)
        known, allotted = layout.ports(), {}
        for component, called in monitoring.PORTS:
            chosen = asked.prometheusPort if component == monitoring.PROMETHEUS else None
            there = known.get(component if called == "http" else f"{component} ({called})")
            allotted[component, called] = chosen or there or claims.take()
        return monitoring.with_components(settings, layout, asked, allotted)

    def write(self, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.write`."""
        monitoring.write(layout, monitoring.observability_of(options), monitoring.prices_of(options))

    def require_space(self, layout: Layout, dead: Sequence[str]) -> None:
        """See :meth:`Addition.require_space`."""
        monitoring.require_space(layout, dead)

    async def answering(self, layout: Layout, started: Sequence[str], report: Reporter) -> None:
        """See :meth:`Addition.answering`."""
        await monitoring.answering(layout, started, report)


ADDITION = Monitoring()
