"""The runtime existing on a real control plane with RBAC: users of few rights, and a real node in a pool's way."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation, Properties
from kumulus.provider.resources.node_pool import NodePool
from kumulus.runtimes.base import Observed, WantedControlPlane
from kumulus.runtimes.existing import FAULTS, KWOK, NODES
from kumulus.runtimes.existing.kwok import find_kwok
from kumulus.runtimes.existing.runtime import ExistingRuntime
from tests.integration.conftest import NODES as NODES_PATH
from tests.integration.conftest import Plane, Pools
from tests.support.elsewhere import ROOT, Elsewhere
from tests.support.said import Said

pytestmark = pytest.mark.integration

NODES_RBAC = ROOT / "docs" / "rbac" / "nodes.yaml"


@pytest.fixture(scope="module")
def elsewhere(plane: Plane) -> Iterator[Elsewhere]:
    made = Elsewhere(Path(plane.observed.kubeconfig))
    made.apply(NODES_RBAC)
    yield made
    command = [str(toolchain.find("kubectl")), "--kubeconfig", str(made.kubeconfig), "delete", "-f", str(NODES_RBAC)]
    subprocess.run([*command, "--wait=false"], capture_output=True, check=True, timeout=60)
    made.close()


class User:
    """A user with a token, whose stack uses the cluster."""

    def __init__(self, folder: Path, elsewhere: Elsewhere, token: str) -> None:
        self.config = folder / "config"
        self.config.write_text(json.dumps(elsewhere.user(token)))
        self.home, self.runtime = folder / "home", ExistingRuntime()

    def wanted(self, *needs: str) -> WantedControlPlane:
        options: dict[str, Any] = {"kubeconfig": str(self.config), "context": "team", "needs": list(needs)}
        return WantedControlPlane("shared", "me", str(self.home), "", options)

    async def create(self, *needs: str) -> Observed:
        return await self.runtime.create(self.wanted(*needs), Said(), asyncio.Event())


@pytest.fixture
def user(tmp_path: Path, elsewhere: Elsewhere) -> User:
    return User(tmp_path, elsewhere, elsewhere.token("kumulus", "stack"))


async def test_the_permissions_of_the_docs_suffice_for_nodes(user: User, plane: Plane) -> None:
    seen = await user.create(NODES, FAULTS)
    assert (seen.identity, seen.health) == (plane.identity, "running")


async def test_permissions_that_are_missing_are_named_all_at_once(user: User) -> None:
    with pytest.raises(ProviderError) as raised:
        await user.create(NODES, KWOK)
    said = str(raised.value)
    assert "the user 'stack' lacks permissions that this stack needs: " in said
    for words in (
        "customresourcedefinitions.apiextensions.k8s.io: list, watch, create, delete;",
        "clusterroles.rbac.authorization.k8s.io: get, create, patch, delete;",
        "secrets in kube-system: get, list, create, update, delete;",
        "deployments.apps in kube-system: get, watch, create, patch, delete;",
    ):
        assert words in said
    assert "nodes:" not in said


async def test_a_user_without_any_rights_learns_which_comes_first(tmp_path: Path, elsewhere: Elsewhere) -> None:
    nobody = User(tmp_path, elsewhere, elsewhere.token("default", "default"))
    with pytest.raises(ProviderError, match=r"lacks permissions that this stack needs: namespaces: get .*forbidden"):
        await nobody.create(NODES)


async def test_credentials_that_are_no_longer_good_are_told_with_the_remedy(
    tmp_path: Path, elsewhere: Elsewhere
) -> None:
    accounts = "/api/v1/namespaces/kumulus/serviceaccounts"
    elsewhere.api.create(accounts, {"metadata": {"name": "leaver"}})
    leaver = User(tmp_path, elsewhere, elsewhere.token("kumulus", "leaver"))
    elsewhere.api.delete(f"{accounts}/leaver")
    with pytest.raises(ProviderError, match=r"does not accept the credentials of the user 'stack' .*renew them"):
        await leaver.create(NODES)


async def test_a_pool_whose_names_real_nodes_carry_is_refused_before_any_node_is_made(
    user: User, pools: Pools, elsewhere: Elsewhere
) -> None:
    seen = await user.create(NODES)
    inputs: Properties = {**pools.inputs(3), "kubeconfig": seen.kubeconfig}
    taken = f"{inputs['name']}-1"
    elsewhere.add_node(taken)
    connections = Connections()
    try:
        resource = NodePool(connections)
        for preview in (True, False):
            with pytest.raises(ProviderError) as raised:
                await resource.create(Operation("urn", Said(), asyncio.Event(), preview=preview), inputs)
            assert f"real nodes carry its names: {taken}; nothing was changed" in str(raised.value)
        made = [node for node in elsewhere.api.metadata(NODES_PATH) if node["name"].startswith(inputs["name"])]
        assert [node["name"] for node in made] == [taken]
    finally:
        await connections.close()
        elsewhere.api.delete(f"{NODES_PATH}/{taken}")


async def test_a_cluster_that_is_not_found_is_not_one_that_is_gone(user: User, pools: Pools) -> None:
    """Elsewhere the nodes of such a cluster are gone with it; here a destroy must not pass them over."""
    seen = await user.create(NODES)
    inputs: Properties = {**pools.inputs(1), "kubeconfig": seen.kubeconfig}
    connections = Connections()
    try:
        resource = NodePool(connections)
        operation = Operation("urn", Said(), asyncio.Event())
        other = {**inputs, "clusterIdentity": "another"}
        with pytest.raises(ProviderError, match=r"another cluster .* in place of another; nothing was changed"):
            await resource.delete(operation, "id", other)
        missing = {**inputs, "kubeconfig": f"{user.home}/clusters/other/existing.yaml"}
        with pytest.raises(ProviderError, match="does not exist; `pulumi refresh` writes this machine's copy of it"):
            await resource.delete(operation, "id", missing)
    finally:
        await connections.close()


async def test_kwok_is_found_where_another_has_installed_it(user: User, elsewhere: Elsewhere) -> None:
    asked = {"kubeconfig": str(user.config), "context": "team", "release": "mine"}
    assert (await find_kwok(asked))["controller"] == ""
    labels = {"app.kubernetes.io/name": "kwok", "app.kubernetes.io/instance": "theirs"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "kwok", "image": "none"}]}}
    body: dict[str, Any] = {
        "metadata": {"name": "kwok", "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}},
    }
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    elsewhere.api.create(deployments, {**body, "spec": {**body["spec"], "template": template}})
    try:
        assert (await find_kwok(asked))["controller"] == "default/kwok"
        assert (await find_kwok({**asked, "release": "theirs"}))["controller"] == ""
        assert await find_kwok({**asked, "context": "missing"}) == {"controller": "", "stages": False}
    finally:
        elsewhere.api.delete(f"{deployments}/kwok")


async def test_a_cluster_that_does_not_answer_is_not_one_without_kwok(
    user: User, tmp_path: Path, elsewhere: Elsewhere
) -> None:
    """And what its user may not look at is left to the check of permissions, which says what is missing."""
    problem = (await find_kwok({"kubeconfig": str(user.config), "context": "nowhere", "release": "mine"}))["problem"]
    assert "context 'nowhere' of kubeconfig" in problem
    assert "is not reachable" in problem
    (tmp_path / "nobody").mkdir()
    nobody = User(tmp_path / "nobody", elsewhere, elsewhere.token("default", "default"))
    found = await find_kwok({"kubeconfig": str(nobody.config), "context": "team", "release": "mine"})
    assert found == {"controller": "", "stages": False}
