"""Times in a pod's status, shifted by the time that has passed, so that what depends on them continues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

_ENDED = ("Succeeded", "Failed")
_TIMES = ("startTime", "startedAt", "finishedAt")


def moved(status: Mapping[str, Any], seconds: int) -> dict[str, Any]:
    """A pod's status with its times moved forward; those of a pod that has ended stay.

    Args:
        status: as the API server has it.
        seconds: by how much.
    """
    return dict(status) if status.get("phase") in _ENDED else _moved(dict(status), seconds)


def _moved(found: Any, seconds: int) -> Any:
    if isinstance(found, list):
        return [_moved(each, seconds) for each in found]
    if not isinstance(found, Mapping):
        return found
    return {
        key: _later(value, seconds) if key in _TIMES and isinstance(value, str) else _moved(value, seconds)
        for key, value in found.items()
    }


def _later(time: str, seconds: int) -> str:
    moment = datetime.fromisoformat(time.replace("Z", "+00:00")) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
