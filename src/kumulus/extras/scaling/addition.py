"""An autoscaler beside a control plane of the runtime kwok."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from kumulus.extras.scaling import applying, process, registry
from kumulus.host.ports import Claims
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.kwok.addition import Addition, Options
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client


class Scaling(Addition):
    """The autoscaler that a stack's section `autoscaler` asks for."""

    names = frozenset(process.names())

    def asked(self, options: Options) -> bool:
        """See :meth:`Addition.asked`."""
        return bool(options.get("autoscaler"))

    def fingerprints(self, options: Options) -> dict[str, str]:
        """See :meth:`Addition.fingerprints`."""
        return process.fingerprints(options)

    def objects(self, options: Options) -> Any:
        """See :meth:`Addition.objects`."""
        return options.get("autoscaler")

    def stages(self, options: Options) -> list[dict[str, Any]]:
        """See :meth:`Addition.stages`."""
        return process.stages(options)

    def described(self, old: Options, new: Options) -> list[str]:
        """See :meth:`Addition.described`."""
        return process.described(old, new)

    def options_of(self, components: Collection[str]) -> dict[str, Any]:
        """See :meth:`Addition.options_of`."""
        there = [name for name in registry.NAMES if registry.get(name).programs[0].name in components]
        return {"autoscaler": {"name": there[0]}} if there else {}

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        """See :meth:`Addition.configured`."""
        found, known, allotted = registry.autoscaler_of(options), layout.ports(), {}
        for key, (program, called) in process.ports(found[0]).items() if found else ():
            allotted[key] = known.get(process.port_key(program, called)) or claims.take()
        return process.with_component(settings, layout, options, allotted)

    def write(self, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.write`."""
        process.write(layout, options)

    def has_kinds(self, options: Options) -> bool:
        """See :meth:`Addition.has_kinds`."""
        return self.asked(options)

    async def define(self, client: Client, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.define`."""
        await applying.apply(client, options)

    async def apply(self, client: Client, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.apply`."""
        await applying.apply(client, options)

    def resumes(self, options: Options) -> str | None:
        """See :meth:`Addition.resumes`: the machines on their way are lost with the process."""
        return process.forgetful(options)

    async def resume(self, client: Client, options: Options, report: Reporter) -> None:
        """See :meth:`Addition.resume`."""
        if lost := await process.forget(client, options):
            report.info(f"{lost:,} machines were on their way when the autoscaler ended; it asks for them again")


ADDITION = Scaling()
