"""The autoscalers: each has a folder of this package, and a name in its `__init__.py`.

A folder `NAME` has an :class:`~kumulus.extras.scaling.descriptor.AutoscalerDescriptor` called `AUTOSCALER` in its
`__init__.py`. It is imported when asked for, so that the names alone cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kumulus.extras.scaling.descriptor import AutoscalerDescriptor


def get(name: str) -> AutoscalerDescriptor:
    """The autoscaler with one of the :data:`~kumulus.extras.scaling.NAMES`."""
    found: AutoscalerDescriptor = import_module(f"kumulus.extras.scaling.{name.replace('-', '_')}").AUTOSCALER
    return found


def autoscaler_of(options: Mapping[str, Any]) -> tuple[AutoscalerDescriptor, Mapping[str, Any]] | None:
    """The autoscaler that a cluster's options ask for, with what they ask of it."""
    asked = options.get("autoscaler")
    return (get(str(asked["name"])), asked) if asked else None
