"""All that is in a cluster, as its API server shows it, without what no two moments have in common."""

from contextlib import suppress
from typing import Any

from tests.support.api import Api, Object, Refused

_MOMENT = {"uid", "resourceVersion", "managedFields", "resourceVersionMatch"}


def everything(api: Api) -> dict[str, Object]:
    """Every object of every kind, by its path, without UIDs, times and resourceVersions; events are left out."""
    found: dict[str, Object] = {}
    groups = api.get("/apis")["groups"]
    for base in ("/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
        for kind in api.get(base)["resources"]:
            if "list" not in kind["verbs"] or "/" in kind["name"] or kind["name"] in ("events", "componentstatuses"):
                continue
            with suppress(Refused):
                for item in api.list(f"{base}/{kind['name']}"):
                    metadata = item["metadata"]
                    place = f"{base}/{kind['name']}/{metadata.get('namespace', '')}/{metadata['name']}"
                    found[place] = timeless(item)
    return found


def timeless(value: Any) -> Any:
    """A value without UIDs, times and resourceVersions."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in _MOMENT}
        return {key: timeless(each) for key, each in kept.items() if not key.endswith(("Time", "Timestamp"))}
    return [timeless(each) for each in value] if isinstance(value, list) else value
