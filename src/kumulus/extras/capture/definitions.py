"""Defines the kinds of Kueue and Volcano in a clone, so that it can store captured queues without running either.

The definitions are those of the pinned tools. Kueue's older versions are converted by a webhook of its controller,
which does not run here: a capture asks for the stored version, which needs no conversion.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from kumulus.extras.capture.kinds import BY_NAME, KUEUE, VOLCANO
from kumulus.extras.schedulers import definitions
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.objects import CAPTURED_LABEL, established
from kumulus.kube.errors import tolerating

if TYPE_CHECKING:
    from kumulus.kube import Client

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TOOLS = {KUEUE: "kueue", VOLCANO: "volcano"}


async def define(client: Client, kinds: Collection[str]) -> dict[str, str]:
    """Define the kinds of a capture's objects that the cluster does not have.

    Args:
        client: of the clone.
        kinds: the kinds of the capture's objects.

    Returns:
        Why kinds could not be defined, by kind: their tool is not built.
    """
    missing: dict[str, str] = {}
    for group, tool in _TOOLS.items():
        wanted = {BY_NAME[kind].plural: kind for kind in kinds if BY_NAME[kind].group == group}
        if not wanted:
            continue
        try:
            found = definitions.crds(tool)
        except SchedulerError as error:
            missing |= dict.fromkeys(wanted.values(), str(error))
            continue
        for definition in found:
            if definition["spec"]["group"] == group and definition["spec"]["names"]["plural"] in wanted:
                await _define(client, definition, tool)
    return missing


async def _define(client: Client, definition: dict[str, Any], tool: str) -> None:
    metadata = definition["metadata"]
    spec = {key: value for key, value in definition["spec"].items() if key != "conversion"}
    marked = {**metadata, "labels": {**(metadata.get("labels") or {}), CAPTURED_LABEL: tool}}
    # An existing definition is used as it is: the cluster's own, or one of a clone that is being restored.
    with tolerating(409):
        await client.write("POST", _DEFINITIONS, {**definition, "metadata": marked, "spec": spec})
    await established(client, f"{_DEFINITIONS}/{metadata['name']}")
