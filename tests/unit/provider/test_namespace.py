"""The resource Namespace, on an API server that keeps objects in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kumulus.kube.namespaces import NAMESPACES
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation
from kumulus.provider.resources.namespace import Namespace
from tests.support.object_store import storing
from tests.support.said import Said
from tests.unit.provider.test_fault import KUBECONFIG


def urn(name: str) -> str:
    return f"urn:pulumi:dev::p::kumulus:index:Namespace::{name}"


@pytest.mark.parametrize(("declared", "stays"), [("other", True), ("research", False), ("", False)])
async def test_a_namespace_that_the_stack_declares_under_another_name_stays(
    declared: str, stays: bool, tmp_path: Path
) -> None:
    """It goes if it is declared under its own name: `destroy --run-program` checks it, too."""

    def operation(name: str) -> Operation:
        return Operation(urn(name), said, asyncio.Event())

    said = Said()
    async with storing() as store:
        store.served.add(NAMESPACES)
        system = store.put(NAMESPACES, {"metadata": {"name": "kube-system"}})
        (tmp_path / "k").write_text(KUBECONFIG.format(address=store.address))
        inputs = {
            "kubeconfig": str(tmp_path / "k"),
            "clusterIdentity": system["metadata"]["uid"],
            "clusterName": "dev",
            "clusterOutlivesStack": False,
            "stackId": "a" * 32,
            "name": "team",
            "stack": "organization/p/dev",
        }
        connections = Connections()
        await Namespace(connections).create(operation("research"), inputs)
        resource = Namespace(connections)
        if declared:
            # Pulumi checks, and creates, before it deletes.
            resource.declare(urn(declared), inputs)
        await resource.delete(operation("research"), "dev/team", inputs)
        assert (f"{NAMESPACES}/team" in store.objects) == stays
        assert (said.messages == ["namespace team stays: the stack has it under another name"]) == stays
        await connections.close()
