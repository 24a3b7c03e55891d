"""Kueue as one more process of a cluster that is a hub or a worker of a federation."""

from __future__ import annotations

import asyncio
import operator
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kumulus import toolchain
from kumulus.extras.federation import certificates, component
from kumulus.host import files, processes
from kumulus.host.ports import Claims
from kumulus.kube import namespaces, objects
from kumulus.kube.namespaces import NAMESPACES
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.ownership import make
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.kwok import api, components, logs
from kumulus.runtimes.kwok.addition import Addition, Options
from kumulus.runtimes.kwok.layout import Layout, dump

if TYPE_CHECKING:
    from kumulus.kube import Client

NAME = component.NAME
_MOUNTED = "certificates"
_PATIENCE = 90.0
_GOING = 30.0
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_MARK = components.mark(NAME)
"""Labels of what is made here; a Kueue that a chart has installed has another manager."""
_OURS = (_MARK, "Kueue", "leave the cluster out of kumulus:federation")


def ports(layout: Layout) -> dict[str, int]:
    """Kueue's ports, by :data:`component.PORTS`; {} for a cluster without Kueue."""
    known = layout.ports()
    named = {called: NAME if called == "http" else f"{NAME} ({called})" for called in component.PORTS}
    return {called: known[name] for called, name in named.items() if name in known}


class KueueAddition(Addition):
    """The Kueue of a cluster that works with others as one."""

    names = frozenset({NAME})

    def asked(self, options: Options) -> bool:
        return options.get(NAME) is not None

    def fingerprints(self, options: Options) -> dict[str, str]:
        if not self.asked(options):
            return {}
        nowhere = dict.fromkeys(component.PORTS, 0)
        wanted = [
            _definition(Layout(components.ANY_DIRECTORY), nowhere),
            component.configuration(options[NAME], nowhere, ""),
        ]
        return {NAME: components.fingerprint(wanted)}

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        """See :meth:`Addition.configured`; its files are written here, too."""
        folder = layout.directory / NAME
        if not self.asked(options):
            shutil.rmtree(folder, ignore_errors=True)
            return components.replaced(settings, (NAME,))
        there = ports(layout)
        listening = {called: there.get(called) or claims.take() for called in component.PORTS}
        components.link(layout, NAME, toolchain.find(NAME))
        folder.mkdir(mode=0o700, exist_ok=True)
        wanted = component.configuration(options[NAME], listening, str(folder / _MOUNTED))
        files.write(folder / "config.yaml", dump([wanted]), mode=0o600)
        return components.replaced(settings, (NAME,), _definition(layout, listening))

    def has_kinds(self, options: Options) -> bool:
        return self.asked(options)

    async def define(self, client: Client, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.define`: all that Kueue needs before it starts; without its kinds, it would exit."""
        port = ports(layout)["webhooks"]
        made = component.definitions(port)
        await asyncio.gather(*(make(client, each, *_OURS) for each in made))
        served = (objects.wait_until_established(client, objects.address(each), _PATIENCE) for each in made)
        if not all(await asyncio.gather(*served)):
            raise ProviderError("the API server does not take Kueue's definitions; `pulumi up --refresh` tries again")
        for each in component.objects(port):
            await make(client, each, *_OURS)

    async def apply(self, client: Client, layout: Layout, options: Options) -> None:
        await (working(client, layout) if self.asked(options) else unregister(client))

    def starts_after_api_server(self, options: Options) -> str | None:
        """See :meth:`Addition.starts_after_api_server`: it would wait for its certificates."""
        return NAME

    async def answering(self, layout: Layout, started: Sequence[str], report: Reporter) -> None:
        if NAME in started:
            report.status("waiting for Kueue's webhooks")
            async with api.client(layout) as client:
                await working(client, layout)


async def working(client: Client, layout: Layout) -> None:
    """Wait until Kueue has its certificates and its webhooks answer."""
    task = asyncio.ensure_future(_working(client, layout))
    give_up = time.monotonic() + _PATIENCE
    try:
        while not task.done():
            await asyncio.wait([task], timeout=0.5)
            gone = NAME not in processes.running(layout.directory)
            if not task.done() and (gone or time.monotonic() > give_up):
                what = "ended" if gone else f"does not answer after {_PATIENCE:.0f} s"
                raise ProviderError(logs.with_log(f"{NAME} of cluster {layout.name} {what}", layout, NAME))
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _working(client: Client, layout: Layout) -> None:
    await certificates.mount(client, layout.directory / NAME / _MOUNTED)
    await certificates.webhooks_answer(client, every=0.2)


async def unregister(client: Client) -> None:
    """Delete all that was made here, with every object of Kueue's kinds; finding none is success.

    Kueue has to be ended first: its finalizers and webhooks, which nothing then handles, are removed here.
    """
    query = objects.labelled(_MARK)
    for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        for name in await objects.names(client, f"{_ADMISSION}/{kind}", query):
            await objects.remove(client, f"{_ADMISSION}/{kind}/{name}")
    for name in await objects.names(client, _DEFINITIONS, query):
        await objects.release_instances(client, await client.get(f"{_DEFINITIONS}/{name}"))
        await objects.remove(client, f"{_DEFINITIONS}/{name}")
    for name in await objects.names(client, NAMESPACES, query):
        await namespaces.remove(client, f"{NAMESPACES}/{name}")

    # An installation right afterwards would find objects that are still being deleted.
    async def left() -> list[str]:
        return [*await objects.names(client, _DEFINITIONS, query), *await objects.names(client, NAMESPACES, query)]

    await objects.wait_until(left, operator.not_, _GOING, every=0.2)


def _definition(layout: Layout, listening: Mapping[str, int]) -> dict[str, Any]:
    return components.definition(
        layout,
        NAME,
        [
            f"--config={layout.directory / NAME / 'config.yaml'}",
            f"--kubeconfig={layout.kubeconfig}",
            "--zap-log-level=1",
        ],
        listening,
        links=("kube-apiserver",),
        environment={"GOGC": "200"},
    )


ADDITION = KueueAddition()
