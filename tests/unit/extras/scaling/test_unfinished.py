"""Which machines nobody finishes after Karpenter has ended; with Karpenter itself in tests/e2e/test_autoscaler.py."""

from dataclasses import replace
from typing import Any

import pytest

from kumulus.extras.scaling import applying, registry
from kumulus.extras.scaling.karpenter.unfinished import lost
from kumulus.nodes.errors import ProviderError
from tests.support.object_store import Store, storing

Object = dict[str, Any]
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
THERE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:scaler"}}


def claim(name: str, provider: str = "", *, registered: bool = False, going: bool = False) -> Object:
    conditions = [
        {"type": "Launched", "status": "True" if provider else "Unknown"},
        {"type": "Registered", "status": "True" if registered else "Unknown"},
    ]
    metadata = {"name": name, **({"deletionTimestamp": "2026-11-23T12:00:00Z"} if going else {})}
    return {
        "metadata": metadata,
        "status": {"conditions": conditions, **({"providerID": provider} if provider else {})},
    }


def node(name: str, *, registered: bool = False) -> Object:
    taints = [] if registered else [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]
    return {"metadata": {"name": name}, "spec": {"providerID": f"kwok://{name}", "taints": taints}}


@pytest.mark.parametrize(
    ("claims", "nodes", "wanted"),
    [
        ([], [], []),
        # On its way when Karpenter ended.
        ([claim("a", "kwok://one")], [], ["nodeclaims/a"]),
        # There, and Karpenter will see it.
        ([claim("a", "kwok://one")], [node("one")], []),
        ([claim("a", "kwok://one", registered=True)], [node("one", registered=True)], []),
        # Never launched: Karpenter does it.
        ([claim("a")], [], []),
        ([{"metadata": {"name": "a"}}], [], []),
        # Posted before its claim could say so, which is launched again.
        ([claim("a")], [node("one")], ["nodes/one"]),
        ([], [node("one")], ["nodes/one"]),
        # Karpenter's own to take away.
        ([claim("a", "kwok://one", registered=True)], [], []),
        ([claim("a", "kwok://one", going=True)], [], []),
        ([], [node("one", registered=True)], []),
        ([claim("a", "kwok://one"), claim("b", "kwok://two")], [node("two")], ["nodeclaims/a"]),
    ],
)
def test_lost_is_what_one_half_of_does_not_come(claims: list[Object], nodes: list[Object], wanted: list[str]) -> None:
    assert [path.split("/", 3 if "/api/v1" in path else 4)[-1] for path in lost(claims, nodes)] == wanted


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
