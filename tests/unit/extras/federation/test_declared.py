"""Objects that a stack declares: what counts as a difference, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.extras.federation import declared
from kumulus.kube import ApiError
from kumulus.model.identity import STACK_ID, Owner
from kumulus.nodes.errors import ProviderError

MINE, OTHER = Owner("1" * 32, "organization/p/dev"), Owner("2" * 32, "organization/p/other")


class Server:
    """An API server's objects by address; what is written is kept."""

    def __init__(self, **objects: Any) -> None:
        self.objects: dict[str, dict[str, Any]] = objects
        self.asked: list[str] = []

    async def get(self, path: str, patience: float | None = None) -> Any:
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found", "GET", path)
        return self.objects[path]

    async def create(self, path: str, body: dict[str, Any]) -> None:
        self.asked.append(f"POST {path}")
        self.objects[f"{path}/{body['metadata']['name']}"] = body

    async def write(self, verb: str, path: str, body: dict[str, Any], *, content_type: str = "") -> None:
        self.asked.append(f"{verb} {path}")
        self.objects[path] = body

    async def delete(self, path: str, options: Any = None) -> None:
        self.asked.append(f"DELETE {path}")
        del self.objects[path]


def queue(quota: str = "16Gi", name: str = "a") -> dict[str, Any]:
    resources = [{"name": "memory", "nominalQuota": quota}]
    flavors = [{"name": "a", "resources": resources}]
    return {"apiVersion": "k.io/v1", "kind": "Queue", "metadata": {"name": name}, "spec": {"flavors": flavors}}


PATH = "/apis/k.io/v1/queues/a"


async def test_what_is_missing_is_made_with_whose_it_is_and_then_nothing_is_left_to_do() -> None:
    server: Any = Server()
    seen = await declared.look(server, [queue()], MINE)
    assert seen.missing == ["Queue a"]
    await declared.converge(server, [queue()], MINE, seen)
    assert server.objects[PATH]["metadata"]["labels"] == {STACK_ID: MINE.identity}
    again = await declared.look(server, [queue()], MINE, recorded=[PATH])
    assert again.drift() == {}
    server.asked.clear()
    await declared.converge(server, [queue()], MINE, again)
    assert server.asked == []


@pytest.mark.parametrize(
    ("there", "different"),
    [
        ("16Gi", {}),
        ("16384Mi", {}),
        (str(16 * 2**30), {}),
        ("8Gi", {"altered": "Queue a (spec.flavors[0].resources[0].nominalQuota)"}),
    ],
)
async def test_an_amount_in_another_unit_is_no_difference(there: str, different: dict[str, str]) -> None:
    server: Any = Server(**{PATH: {**declared.marked(queue(there), MINE), "status": {"pending": 3}}})
    seen = await declared.look(server, [queue()], MINE, recorded=[PATH])
    assert seen.drift() == different
    await declared.converge(server, [queue()], MINE, seen)
    assert server.asked == ([f"PATCH {PATH}"] if different else [])


async def test_what_the_server_adds_is_no_difference_and_another_list_is() -> None:
    there = declared.marked(queue(), MINE)
    there["spec"] = {**there["spec"], "defaulted": True}
    server: Any = Server(**{PATH: there})
    assert (await declared.look(server, [queue()], MINE, recorded=[PATH])).drift() == {}
    there["spec"]["flavors"] = [*there["spec"]["flavors"], {"name": "b"}]
    assert (await declared.look(server, [queue()], MINE, recorded=[PATH])).altered == {"Queue a": "spec.flavors"}


async def test_a_list_of_which_nothing_is_wanted_any_more_is_emptied() -> None:
    server: Any = Server(**{PATH: declared.marked(queue(), MINE)})
    emptied = {**queue(), "spec": {"flavors": []}}
    seen = await declared.look(server, [emptied], MINE, recorded=[PATH])
    assert seen.altered == {"Queue a": "spec.flavors"}
    await declared.converge(server, [emptied], MINE, seen)
    assert server.objects[PATH]["spec"] == {"flavors": []}
    # The server omits an empty list.
    server.objects[PATH]["spec"] = {}
    assert (await declared.look(server, [emptied], MINE, recorded=[PATH])).drift() == {}


async def test_what_others_have_made_is_refused_and_left_alone() -> None:
    theirs = declared.marked(queue("1Gi"), OTHER)
    server: Any = Server(**{PATH: theirs})
    seen = await declared.look(server, [queue()], MINE, recorded=[PATH])
    with pytest.raises(ProviderError, match="Queue a is there already, and belongs to the stack organization/p/other"):
        await declared.converge(server, [queue()], MINE, seen)
    await declared.remove(server, [PATH], MINE)
    assert server.objects == {PATH: theirs}
    assert server.asked == []


async def test_what_is_wanted_no_more_is_removed() -> None:
    server: Any = Server(**{PATH: declared.marked(queue(), MINE)})
    seen = await declared.look(server, [queue(name="b")], MINE, recorded=[PATH])
    assert (seen.missing, seen.extra) == (["Queue b"], [PATH])
    await declared.converge(server, [queue(name="b")], MINE, seen)
    assert list(server.objects) == ["/apis/k.io/v1/queues/b"]


async def test_a_binding_is_made_anew_since_what_it_refers_to_cannot_change() -> None:
    binding = {"apiVersion": "rbac/v1", "kind": "RoleBinding", "metadata": {"name": "a", "namespace": "n"}}
    path = "/apis/rbac/v1/namespaces/n/rolebindings/a"
    server: Any = Server(**{path: declared.marked({**binding, "roleRef": {"name": "old"}}, MINE)})
    wanted = [{**binding, "roleRef": {"name": "new"}}]
    await declared.converge(server, wanted, MINE, await declared.look(server, wanted, MINE, recorded=[path]))
    assert server.asked == [f"DELETE {path}", f"POST {path.removesuffix('/a')}"]
