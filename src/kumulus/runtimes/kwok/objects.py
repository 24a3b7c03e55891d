"""KWOK's stages as objects of the cluster, to which a stack adds its own.

While a stack declares none, kwok-controller reads the stages from its file: a control plane is then ready sooner and
needs no CustomResourceDefinitions (docs/decisions/pod-lifecycles.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.errors import tolerating
from kumulus.kwok.stages import STAGES
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.faults.stages import reread

if TYPE_CHECKING:
    from kumulus.kube import Client

STAGE, USAGE = "Stage", "ClusterResourceUsage"
"""The kinds of KWOK's that a stack may have as objects."""
_GROUP = "kwok.x-k8s.io"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TO_DEFINE = "enableCRDs"
_BASE = {"kumulus.io/stages": "base"}
_SERVED_S = 30.0


def with_kinds(settings: dict[str, Any], kinds: Sequence[str], undefined: Sequence[str]) -> dict[str, Any]:
    """Kwokctl's configuration with a kwok-controller that reads these kinds, and no others, as objects.

    Args:
        undefined: those of them whose definitions kwokctl is to create.
    """
    settings = defined(settings)
    components = [_with_flag(component, kinds) for component in settings.get("components") or []]
    options = {**settings["options"], **({_TO_DEFINE: list(undefined)} if undefined else {})}
    return {**settings, "options": options, "components": components}


def to_define(settings: dict[str, Any]) -> list[str]:
    """The kinds of KWOK's whose definitions kwokctl is yet to create."""
    return list((settings.get("options") or {}).get(_TO_DEFINE) or ())


def defined(settings: dict[str, Any]) -> dict[str, Any]:
    """The configuration once kwokctl has created the definitions."""
    options = {key: value for key, value in (settings.get("options") or {}).items() if key != _TO_DEFINE}
    return {**settings, "options": options}


async def undefined(client: Client, kinds: Sequence[str]) -> list[str]:
    """The given kinds of KWOK's that have no definition in the cluster."""
    known = {
        item["spec"]["names"]["kind"]
        async for page in client.pages(_DEFINITIONS)
        for item in page
        if item["spec"]["group"] == _GROUP
    }
    return [kind for kind in kinds if kind not in known]


def _with_flag(component: dict[str, Any], kinds: Sequence[str]) -> dict[str, Any]:
    if component.get("name") != "kwok-controller":
        return component
    arguments = [argument for argument in component.get("args") or [] if not argument.startswith("--enable-crds=")]
    return {**component, "args": [*arguments, *([f"--enable-crds={','.join(kinds)}"] if kinds else [])]}


async def apply_base(client: Client, stages: Sequence[dict[str, Any]]) -> None:
    """Make the cluster's base stages these and only these; the stack's own are left alone."""
    await _wait_until_served(client)
    wanted = {stage["metadata"]["name"]: stage for stage in stages}
    for name in await _base_names(client) - set(wanted):
        await objects.remove(client, f"{STAGES}/{name}")
    bodies = [{**stage, "metadata": {"name": name, "labels": _BASE}} for name, stage in wanted.items()]
    await asyncio.gather(*(objects.replace(client, STAGES, body) for body in bodies))
    await reread(client)


async def remove_base(client: Client) -> None:
    """Remove the base stages, which kwok-controller reads from its file again; without any, nothing happens."""
    with tolerating(404):
        for name in await _base_names(client):
            await objects.remove(client, f"{STAGES}/{name}")


async def _base_names(client: Client) -> set[str]:
    """The names of the base stages in a cluster."""
    return set(await objects.names(client, STAGES, objects.labelled(_BASE)))


async def _wait_until_served(client: Client) -> None:
    """Wait until the API server serves stages, which it does a moment after their definition was created."""
    if not await objects.wait_until(partial(_are_served, client), bool, _SERVED_S, every=0.05):
        raise ProviderError(
            f"the API server did not serve KWOK's stages within {_SERVED_S:g} s: either "
            "CustomResourceDefinition stages.kwok.x-k8s.io is not there, or the API server has not accepted it"
        )


async def _are_served(client: Client) -> bool:
    with tolerating(404):
        definition = await client.get(f"{_DEFINITIONS}/stages.kwok.x-k8s.io")
        await client.get(STAGES, {"limit": "1"})
        return objects.is_established(definition)
    return False
