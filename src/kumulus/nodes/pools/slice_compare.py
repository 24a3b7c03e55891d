"""Compare a live ResourceSlice with what its pool wants, field by field. Pure functions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kumulus.model.devices import Devices
from kumulus.model.errors import path_text, under
from kumulus.model.pools import Pool
from kumulus.model.slices import Part, slice_labels, slice_spec
from kumulus.nodes.pools.compare import FieldDifference

# The API server refuses any change of these: such a slice is deleted and published again.
_IMMUTABLE = ("driver", "nodeName")


@dataclass(frozen=True, slots=True)
class LiveSlice:
    """What has to be known about a slice that is not as wanted."""

    uid: str
    """The object's UID."""
    surplus: tuple[str, ...] = ()
    """Keys of its spec that have to go."""
    replace: bool = False
    """Whether it cannot be changed in place: it has another owner, with which the garbage collector may delete it at
    any moment, or an immutable field differs."""


def slice_differences(
    pool: Pool, devices: Devices, part: Part, node_uid: str, live: Mapping[str, Any]
) -> list[FieldDifference]:
    """Return every field of a slice that is not as its pool wants it, devices by their names.

    Args:
        part: the node and which of its slices.
    """
    want, have, meta = slice_spec(pool, devices, part), live.get("spec") or {}, live["metadata"]
    found: list[FieldDifference] = []
    labels = meta.get("labels") or {}
    for key, value in slice_labels(pool).items():
        found += _leaf(f'labels["{key}"]', labels.get(key), value)
    if not _owned(meta, node_uid):
        found.append(FieldDifference("owner", ", ".join(_owners(meta)) or None, f"this node, {node_uid}"))
    if want != have:
        for key in sorted({*want, *have} - {"devices"}):
            found += _leaf(key, have.get(key), want.get(key))
        found += _device_differences(have.get("devices") or [], want.get("devices") or [])
        if not found:
            found.append(FieldDifference("devices", "another order", "gpu-0, gpu-1, …"))
    return found


def _device_differences(have: list[dict[str, Any]], want: list[dict[str, Any]]) -> list[FieldDifference]:
    """The differences between two lists of devices; one that many devices share is reported once."""
    there, wanted = ({str(device.get("name")): device for device in devices} for devices in (have, want))
    found: list[FieldDifference] = []
    alike: dict[FieldDifference, list[str]] = {}
    for name in {**wanted, **there}:
        if name not in there:
            found.append(FieldDifference(f'devices["{name}"]', None, "published"))
        elif name not in wanted:
            found.append(FieldDifference(f'devices["{name}"]', "published", None))
        else:
            for difference in _leaf("", there[name], wanted[name]):
                alike.setdefault(difference, []).append(name)
    for difference, names in alike.items():
        where = f'"{names[0]}"' if len(names) == 1 else f"{len(names)} of {len(wanted)}"
        found.append(FieldDifference(under(f"devices[{where}]", difference.path), difference.have, difference.want))
    return found


def _leaf(path: str, have: Any, want: Any) -> list[FieldDifference]:
    if have == want:
        return []
    if isinstance(have, Mapping) and isinstance(want, Mapping):
        found: list[FieldDifference] = []
        for key in sorted({*have, *want}):
            found += _leaf(under(path, path_text((key,))), have.get(key), want.get(key))
        return found
    return [FieldDifference(path, *(None if value is None else _text(value) for value in (have, want)))]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)[:100]


def _owners(meta: Mapping[str, Any]) -> list[str]:
    return [f"{owner.get('kind')} {owner.get('uid')}" for owner in meta.get("ownerReferences") or ()]


def _owned(meta: Mapping[str, Any], node_uid: str) -> bool:
    return [owner.get("uid") for owner in meta.get("ownerReferences") or ()] == [node_uid]


def live_slice(pool: Pool, devices: Devices, part: Part, node_uid: str, item: Mapping[str, Any]) -> LiveSlice:
    """Reduce a slice that is not as wanted; the arguments are those of :func:`slice_differences`."""
    want, have = slice_spec(pool, devices, part), item.get("spec") or {}
    fixed = any(have.get(key) != want[key] for key in _IMMUTABLE)
    fixed = fixed or (have.get("pool") or {}).get("name") != want["pool"]["name"]
    return LiveSlice(
        uid=item["metadata"]["uid"],
        surplus=tuple(key for key in have if key not in want),
        replace=fixed or not _owned(item["metadata"], node_uid),
    )
