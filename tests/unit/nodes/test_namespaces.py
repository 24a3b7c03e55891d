"""A stack's own namespace goes, whatever takes its name."""

import asyncio
from typing import Any

from kumulus.kube.namespaces import NAMESPACES
from kumulus.model.identity import Owner
from kumulus.nodes import namespaces
from kumulus.nodes.namespaces import WantedNamespace
from tests.support.object_store import storing

WANTED = WantedNamespace("team", Owner("aaaaaaaa", "p/dev"), {}, {})


async def test_a_namespace_is_gone_though_somebody_makes_one_of_its_name_at_once() -> None:
    async with storing() as store, store.client() as client:
        ours = store.put(NAMESPACES, WANTED.manifest())
        others: list[Any] = []

        def made_again(_verb: str, _path: str, _body: object) -> None:
            if WANTED.path not in store.objects and not others:
                others.append(store.put(NAMESPACES, {"metadata": {"name": WANTED.name}}))

        store.refuse = made_again
        assert await namespaces.remove(client, WANTED, "", asyncio.Event(), seconds=1.0) == ""
        assert store.under(NAMESPACES) == others != [ours]
