"""What KWOK may patch of a pod: the one that it has seen, as it has seen it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kumulus.kwok import base_stages

BASE = [each for each in base_stages.stages() if each["spec"]["resourceRef"]["kind"] == "Pod"]


def patches(stage: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a stage patches, whichever of its forms it has."""
    following = stage["spec"].get("next", {})
    yield from following.get("patches", [])
    yield from (step["patch"] for step in stage["spec"].get("steps", []) if "patch" in step)


@pytest.mark.parametrize("stage", BASE, ids=[each["metadata"]["name"] for each in BASE])
def test_a_patch_is_of_the_pod_that_kwok_has_seen_and_of_no_other_or_later_one(stage: dict[str, Any]) -> None:
    found = list(patches(stage))
    assert found
    for patch in found:
        lines = patch["template"].splitlines()[:3]
        assert lines == [
            "metadata:",
            "  uid: {{ .metadata.uid | Quote }}",
            "  resourceVersion: {{ .metadata.resourceVersion | Quote }}",
        ]
