"""ResourceSlices compared with what is wanted, and a cluster that knows of none."""

import contextlib
import copy
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from kumulus.kube import ApiError, Client, Connection
from kumulus.model.devices import Devices
from kumulus.model.node_changes import FieldChange
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Pool
from kumulus.model.slices import SlicePart, slice_manifest
from kumulus.nodes.pools.compare import LiveSlice, slice_differences
from kumulus.nodes.pools.slices import NotServed, observe_slices, publish
from tests.support.apiserver import listening

DEVICES = Devices("gpu.nvidia.com", 4, {"productName": {"string": "NVIDIA L40S"}}, {"memory": "46068Mi"})
POOL = Pool("l40s-a", "l40s", "a", "", 2, {CLUSTER_LABEL: "lab", POOL_LABEL: "l40s-a"}, devices=DEVICES)


def slice_of(**metadata: Any) -> dict[str, Any]:
    """The slice of node 1, as the API server has it."""
    made = copy.deepcopy(slice_manifest(POOL, SlicePart(1, 0), "uid-1"))
    made["metadata"] |= {"uid": "slice-uid", "resourceVersion": "7", "generation": 1, **metadata}
    return made


def compared(live: dict[str, Any]) -> tuple[LiveSlice, list[FieldChange]]:
    return slice_differences(POOL, SlicePart(1, 0), "uid-1", live)


def differences(live: dict[str, Any]) -> list[str]:
    return [str(each) for each in compared(live)[1]]


def test_a_slice_as_wanted_does_not_differ_whatever_others_wrote_on_it() -> None:
    assert differences(slice_of()) == []
    labelled = slice_of()
    labelled["metadata"]["labels"]["example.com/mine"] = "yes"
    labelled["metadata"]["annotations"] = {"note": "x"}
    assert differences(labelled) == []


def test_what_all_devices_have_in_common_is_told_once() -> None:
    live = slice_of()
    for device in live["spec"]["devices"]:
        device["attributes"]["productName"] = {"string": "NVIDIA L4"}
    del live["spec"]["devices"][2]["capacity"]
    assert differences(live) == [
        'devices[4 of 4].attributes.productName.string: "NVIDIA L4" instead of "NVIDIA L40S"',
        'devices["gpu-2"].capacity: missing instead of "{"memory": {"value": "46068Mi"}}"',
    ]


def test_devices_too_many_missing_or_in_another_order_are_told() -> None:
    live = slice_of()
    live["spec"]["devices"][3]["name"] = "gpu-9"
    assert differences(live) == [
        'devices["gpu-3"]: missing instead of "published"',
        'devices["gpu-9"]: "published" instead of none',
    ]
    applied = slice_of()
    applied["spec"]["devices"].reverse()
    assert differences(applied) == ['devices: "another order" instead of "gpu-0, gpu-1, …"']


@pytest.mark.parametrize(
    ("change", "told", "replace", "surplus"),
    [
        ({"driver": "other.example.com"}, 'driver: "other.example.com" instead of "gpu.nvidia.com"', True, ()),
        ({"nodeName": "x"}, 'nodeName: "x" instead of "l40s-a-1"', True, ()),
        ({"pool": {"name": "x", "generation": 1, "resourceSliceCount": 1}}, 'pool.name: "x" instead', True, ()),
        ({"pool": {"name": "l40s-a-1", "generation": 5, "resourceSliceCount": 1}}, 'pool.generation: "5"', False, ()),
        ({"allNodes": True}, 'allNodes: "true" instead of none', False, ("allNodes",)),
    ],
)
def test_a_slice_is_changed_in_place_where_the_api_server_lets_one(
    change: dict[str, Any], told: str, replace: bool, surplus: tuple[str, ...]
) -> None:
    live = slice_of()
    live["spec"] |= change
    (only,) = differences(live)
    assert only.startswith(told)
    seen, _ = compared(live)
    assert (seen.replace, seen.surplus) == (replace, surplus)


@pytest.mark.parametrize("owners", [[], [{"kind": "Node", "uid": "uid-0"}]])
def test_a_slice_that_another_node_owns_or_nobody_is_made_anew(owners: list[dict[str, str]]) -> None:
    live = slice_of(ownerReferences=owners)
    assert differences(live)[0].startswith("owner: ")
    assert compared(live)[0].replace


@pytest.mark.parametrize("takes", [True, False])
async def test_a_slice_is_published_again_until_the_api_servers_cache_has_its_node(takes: bool) -> None:
    """Only one that says what devices take of their node is looked at in this way."""
    taken = {"memory": {"overhead": {"perPod": "2Gi"}}} if takes else {}
    devices, tries = replace(DEVICES, node_allocatable_resources=taken), 0

    async def behind(_: web.Request) -> web.Response:
        nonlocal tries
        tries += 1
        late = {"reason": "Forbidden", "message": 'node "l40s-a-1" not found for device "gpu-0"'}
        return web.json_response(late, status=403) if tries < 3 else web.json_response({}, status=201)

    async with listening(behind) as address, Client(Connection(address, "test"), patience=0.2) as client:
        with contextlib.nullcontext() if takes else pytest.raises(ApiError, match="not found for device"):
            await publish(client, replace(POOL, devices=devices), SlicePart(1, 0), "uid-1")
    assert tries == (3 if takes else 1)


async def test_a_cluster_without_the_api_says_what_to_do() -> None:
    async def unknown(_: web.Request) -> web.Response:
        return web.Response(status=404, text="404 page not found")

    async with listening(unknown) as address, Client(Connection(address, "test"), patience=0.2) as client:
        for asked in (
            observe_slices(client, POOL, {}),
            publish(client, POOL, SlicePart(0, 0), "uid-0"),
        ):
            with pytest.raises(NotServed, match=r"does not serve resource\.k8s\.io/v1.* take Kubernetes 1\.34"):
                await asked
