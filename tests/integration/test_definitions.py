"""The kinds that KWOK's charts bring: they go with the stack that has brought them, unless somebody else needs them."""

from collections.abc import AsyncIterator, Iterator

import pytest

from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.definitions import KWOK, Definitions
from tests.integration.conftest import Plane, operation
from tests.support.kinds import CRDS, REMOVAL_S, crd, there, without
from tests.support.said import Said

pytestmark = pytest.mark.integration
HELM = "pulumi-resource-kubernetes"
NAMES = tuple(f"{name}.{KWOK}" for name in ("firsts", "seconds", "thirds"))
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def made(plane: Plane, name: str, manager: str = HELM) -> None:
    """Make one, as a program of that name."""
    annotations = {"api-approved.kubernetes.io": "https://example.com"}  # the group is under k8s.io
    plane.api.create(f"{CRDS}?fieldManager={manager}", crd(name, annotations=annotations))


def until(plane: Plane, wanted: set[str]) -> None:
    """Wait until they are those that are there: the API server removes a kind after its objects."""
    plane.api.until(CRDS, lambda found: set(found) & set(NAMES) == wanted, timeout=REMOVAL_S)


@pytest.fixture
def bare(plane: Plane) -> Iterator[Plane]:
    """A cluster without these kinds, before and after; the kwok runtime's KWOK reads its stages from a file."""
    with without(plane.api, NAMES):
        yield plane


@pytest.fixture
async def resource() -> AsyncIterator[Definitions]:
    connections = Connections()
    yield Definitions(connections)
    await connections.close()


async def created(resource: Definitions, plane: Plane) -> Properties:
    return (await resource.create(operation(Said()), {**plane.place, "group": KWOK}))[1]


async def test_what_helm_made_since_goes_and_what_was_there_stays(bare: Plane, resource: Definitions) -> None:
    made(bare, NAMES[0])
    outputs = await created(resource, bare)
    made(bare, NAMES[1])
    await resource.delete(operation(Said()), KWOK, outputs)
    until(bare, {NAMES[0]})


async def test_what_somebody_else_has_made_or_written_stays(bare: Plane, resource: Definitions) -> None:
    outputs, said = await created(resource, bare), Said()
    for name, manager in zip(NAMES, ("kubectl-create", HELM, HELM), strict=True):
        made(bare, name, manager)
    labelled = {"metadata": {"labels": {"team": "theirs"}}}
    bare.api.merge(f"{CRDS}/{NAMES[1]}?fieldManager=their-operator", labelled)
    await resource.delete(operation(said), KWOK, outputs)
    until(bare, set(NAMES[:2]))
    assert said.messages == [
        f"{NAMES[0]} stays: kubectl-create has written it",
        f"{NAMES[1]} stays: their-operator has written it",
    ]


async def test_all_stay_while_another_s_kwok_runs(bare: Plane, resource: Definitions) -> None:
    outputs, said = await created(resource, bare), Said()
    made(bare, NAMES[0])
    labels = {"app": "kwok-controller"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    bare.api.create(DEPLOYMENTS, {"metadata": {"name": "theirs", "labels": labels}, "spec": spec})
    try:
        await resource.delete(operation(said), KWOK, outputs)
    finally:
        bare.api.delete(f"{DEPLOYMENTS}/theirs")
    assert there(bare.api, NAMES) == {NAMES[0]}
    (line,) = said.messages
    assert "default/theirs, which is not this stack's" in line
