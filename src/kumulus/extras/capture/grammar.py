"""What is kept of an object, and what each kept text is: one table from which reducing and renaming both follow.

A field that the table does not name is left out. So only a line in `fields.py`, or among a scheduler's kinds, can let a
part of an object into a capture, or a name past the anonymization.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from kumulus.extras.capture import cel
from kumulus.extras.capture.words import Words
from kumulus.extras.schedulers.forms import Each, Form, Leaf, Selecting
from kumulus.model.named_nodes import TOPOLOGY_PREFIX

_NUMBER = re.compile(r"[0-9]{1,18}%?")
# The API's own words that WORD fields can have; any other text in such a field is left out.
_API_WORDS = """
    In NotIn Exists DoesNotExist Gt Lt Equal NoSchedule PreferNoSchedule NoExecute DoNotSchedule ScheduleAnyway Honor
    Ignore Never PreemptLowerPriority TCP UDP SCTP Always OnFailure metadata.name Immediate WaitForFirstConsumer Retain
    Delete Recycle Filesystem Block ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod BestEffortFIFO StrictFIFO
    Any LowerPriority LowerOrNewerEqualPriority Borrow TryNextFlavor MayStopSearch Preempt None Hold HoldAndDrain
    IfHealthyBudget AlwaysAllow Pod Container PersistentVolumeClaim Terminating NotTerminating BestEffort NotBestEffort
    PriorityClass CrossNamespacePodAffinity VolumeAttributesClass RollingUpdate Recreate OnDelete OrderedReady Parallel
    Indexed NonIndexed ExactCount All RestartAllContainersOnContainerExits ExtendWebSocketsToKubelet
    GuaranteedQoSPodCPUResize InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
    InPlacePodVerticalScalingMemoryBackedVolumes UserNamespacesHostNetworkSupport VolumeBindMountOptions
    DRANodeAllocatableResources DRAOptionalNodeOperations
"""
_WORDS = frozenset(_API_WORDS.split())
_MOST_TEXT = 4096
# k8s.io/api/resource/v1, CELSelectorExpressionMaxLength.
_MOST_EXPRESSION = 10 * 1024


def reduced(form: Form, value: Any) -> Any:
    """What is kept of a value; None for nothing. Anything that does not have the form is left out."""
    if isinstance(form, Leaf):
        return _LEAVES[form](value)
    if isinstance(form, Selecting):
        return (reduced(form.fields, value) or {}) if isinstance(value, Mapping) else None
    if isinstance(form, Each):
        if not isinstance(value, Mapping):
            return None
        named = {str(key): reduced(form.of, each) for key, each in sorted(value.items()) if _short(key) is not None}
        return {key: each for key, each in named.items() if each is not None} or None
    if isinstance(form, Mapping):
        if not isinstance(value, Mapping):
            return None
        kept = {key: found for key, each in form.items() if (found := reduced(each, value.get(key))) is not None}
        return kept or None
    if not isinstance(value, list):
        return None
    listed = [found for each in value if (found := reduced(form[0], each)) is not None]
    return listed or None


def renamed(form: Form, value: Any, names: Words) -> Any:
    """A value from `reduced` with every name in it replaced; None for nothing.

    Raises:
        CannotRename: it is not certain what is a name in an expression.
    """
    if isinstance(form, Leaf):
        return _renamed_leaf(form, value, names)
    if isinstance(form, Selecting):
        return renamed(form.fields, value, names) or {}
    if isinstance(form, Each):
        pairs = ((_renamed_leaf(form.key, key, names), renamed(form.of, each, names)) for key, each in value.items())
        return dict(sorted(pairs))
    if isinstance(form, Mapping):
        here = _with_key(form, value, names)
        kept = {
            key: found
            for key, each in value.items()
            if (found := here[key] if key in here else renamed(form[key], each, names)) is not None
        }
        return kept or None
    return [found for each in value if (found := renamed(form[0], each, names)) is not None]


def _with_key(form: Mapping[str, Form], value: Mapping[str, Any], names: Words) -> dict[str, Any]:
    """The renamed values of an expression or a toleration: their key determines what may stay."""
    key = str(value.get("key", ""))
    found: dict[str, Any] = {}
    if key and form.get("value") is Leaf.VALUE and "value" in value:
        found["value"] = names.value(key, value["value"])
    if key and "values" in value and form.get("values") == [Leaf.VALUE]:
        found["values"] = [names.value(key, each) for each in value["values"]]
    return found


def _renamed_leaf(form: Leaf, value: Any, names: Words) -> Any:
    if form in _RENAMED:
        return _RENAMED[form](names, value)
    if form is Leaf.LABELS:
        # Sorted, since a capture of the clone has them in that order.
        return dict(sorted((names.key_of(key), names.value(key, each)) for key, each in value.items()))
    if form is Leaf.RESOURCES:
        return dict(sorted((names.resource(key), each) for key, each in value.items()))
    return value


_RENAMED: Mapping[Leaf, Callable[[Words, str], str]] = {
    Leaf.NAME: Words.name,
    Leaf.KEY: Words.key_of,
    Leaf.RESOURCE: Words.resource,
    Leaf.VALUE: lambda names, text: names.value("", text),
    Leaf.DRIVER: Words.driver,
    Leaf.ATTRIBUTE: Words.attribute,
    Leaf.REQUEST: lambda names, text: "/".join(map(names.name, text.split("/"))),
    Leaf.DEVICE_TEXT: Words.device_text,
    Leaf.VERSION: Words.version,
    Leaf.EXPRESSION: lambda names, text: cel.renamed(text, names),
}


def _word(value: Any) -> Any:
    if isinstance(value, bool | int):
        return value
    return value if isinstance(value, str) and (value in _WORDS or _NUMBER.fullmatch(value)) else None


def _quantity(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and cel.is_plain_quantity(value) else None


def _short(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= _MOST_TEXT else None


def _expression(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= _MOST_EXPRESSION else None


def _labels(value: Any) -> dict[str, str] | None:
    if not isinstance(value, Mapping):
        return None
    kept = {str(key): each for key, each in sorted(value.items()) if _short(each) is not None and not _ours(str(key))}
    return kept or None


def _resources(value: Any) -> dict[str, str] | None:
    if not isinstance(value, Mapping):
        return None
    kept = {str(key): found for key, each in sorted(value.items()) if (found := _quantity(each)) is not None}
    return kept or None


def _ours(key: str) -> bool:
    """Whether a label is Kumulus' own: if the captured cluster is itself a clone, the new clone gets its own labels."""
    prefix, slash, _ = key.partition("/")
    if key.startswith(TOPOLOGY_PREFIX):
        # Pods may have affinity to racks by these labels.
        return False
    return bool(slash) and (prefix == "kumulus.io" or prefix.endswith(".kumulus.io"))


# Each leaf is named: one that is new and not in here must not get into a capture as a text of any content.
_LEAVES: Mapping[Leaf, Callable[[Any], Any]] = {
    Leaf.WORD: _word,
    Leaf.QUANTITY: _quantity,
    Leaf.NAME: _short,
    Leaf.KEY: _short,
    Leaf.VALUE: _short,
    Leaf.LABELS: _labels,
    Leaf.RESOURCE: _short,
    Leaf.RESOURCES: _resources,
    Leaf.DRIVER: _short,
    Leaf.ATTRIBUTE: _short,
    Leaf.REQUEST: _short,
    Leaf.DEVICE_TEXT: _short,
    Leaf.VERSION: _short,
    Leaf.EXPRESSION: _expression,
}
