"""Names in a shared cluster: another stack's are refused, and those of nobody known unless they are recorded."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.kube import ApiError
from kumulus.nodes.ownership import NotOurs
from kumulus.provider.resources.taken import refuse_names as refuse

ONE, TWO = "1" * 32, "2" * 32
PATH, FREE = "/apis/resource.k8s.io/v1/deviceclasses/gpu.nvidia.com", "/apis/kwok.x-k8s.io/v1alpha1/stages/free"


class Cluster:
    """A client of a cluster with one DeviceClass."""

    def __init__(self, marked: str) -> None:
        labels = {"kumulus.io/stack-id": marked} if marked else {}
        named = {"kumulus.io/stack": "kumulus/dev"} if marked else {}
        self.metadata = {"name": "gpu.nvidia.com", "labels": labels, "annotations": named}

    async def get(self, path: str, **_: object) -> dict[str, Any]:
        if path != PATH:
            raise ApiError(404, "NotFound", "not found", "GET", path)
        return {"metadata": self.metadata}


@pytest.mark.parametrize(
    ("marked", "recorded"),
    [(ONE, []), (ONE, [PATH]), ("", [PATH])],
)
async def test_the_stacks_own_are_no_obstacle(marked: str, recorded: list[str]) -> None:
    cluster: Any = Cluster(marked)
    await refuse(cluster, [FREE, PATH], [ONE], recorded)


@pytest.mark.parametrize(
    ("marked", "recorded", "says"),
    [
        (TWO, [], r"belongs to the stack kumulus/dev \(identity 22222222\)"),
        (TWO, [PATH], r"belongs to the stack kumulus/dev \(identity 22222222\)"),
        ("", [FREE], "was made by somebody else"),
    ],
)
async def test_what_is_anothers_is_refused_with_whose_it_is(marked: str, recorded: list[str], says: str) -> None:
    cluster: Any = Cluster(marked)
    with pytest.raises(NotOurs, match=rf"deviceclasses/gpu.nvidia.com is there already and {says}"):
        await refuse(cluster, [FREE, PATH], [ONE], recorded)
