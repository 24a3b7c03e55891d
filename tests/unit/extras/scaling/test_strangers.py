"""An autoscaler's objects beside those that somebody else has made; with deployed ones in tests/kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kumulus.extras.scaling import applying, registry
from kumulus.nodes.errors import ProviderError
from tests.support.object_store import Store, storing

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
THERE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:scaler"}}


def asking(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have the options ask for an autoscaler that needs ClusterRoles of these names alone."""
    wanted = [{**THERE, "metadata": {"name": each}} for each in names]
    scaler = replace(registry.get("karpenter"), objects=lambda _: wanted, instances=())
    monkeypatch.setattr(registry, "autoscaler_of", lambda _: (scaler, {}))


def names(store: Store) -> list[str]:
    return [each["metadata"]["name"] for each in store.under(ROLES)]


async def test_what_somebody_else_made_is_left_alone_and_nothing_else_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async with storing() as store, store.client() as client:
        store.served |= {ROLES, applying.DEFINITIONS, ROLES.replace("roles", "rolebindings")}
        mine = store.put(ROLES, THERE)
        asking(monkeypatch, "system:other", "system:scaler")
        with pytest.raises(ProviderError, match="ClusterRole system:scaler was made by somebody else; remove that one"):
            await applying.apply(client, {})
        assert (names(store), store.objects[f"{ROLES}/system:scaler"]) == (["system:scaler"], mine)
        del store.objects[f"{ROLES}/system:scaler"]
        for _ in range(2):
            await applying.apply(client, {})
        assert names(store) == ["system:other", "system:scaler"]
