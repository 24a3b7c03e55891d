"""Checks of the parts of a node template, shared by the stack file's models and the plugin's wire form.

Each takes a place and the plain value there, and returns every problem that it finds.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, cast

from kumulus.model.errors import Problem, Where, path_text, shown
from kumulus.model.names import (
    ValueMistake,
    instead,
    is_own,
    label_key_mistake,
    label_value_mistake,
    suggest,
)
from kumulus.model.quantity import LARGEST, NANO, QuantityError, parse

MOST_REPLICAS = 100_000
"""The most nodes of a pool."""
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
_NATIVE_PREFIXES = ("hugepages-", "attachable-volumes-")
_ANNOTATION_BYTES = 256 * 1024
_NODE_INFO_KEYS = ("architecture", "operatingSystem", "kubeletVersion")
# k8s.io/kubernetes pkg/apis/core/validation, nodeDeclaredFeatureRegexp and its length.
_FEATURE = re.compile(r"(?=.{1,253}\Z)[A-Z][a-zA-Z0-9]*(?:/[a-zA-Z][a-zA-Z0-9]*)*")
_TAINT_KEYS = ("key", "value", "effect")

P = ParamSpec("P")
Check: TypeAlias = Callable[Concatenate[Where, object, P], list[Problem]]
MistakeOf = Callable[[str], ValueMistake | None]


def problem(where: Where, message: str, remedy: str = "") -> Problem:
    """A problem at a place given as keys and indices."""
    return Problem(path_text(where), message, remedy)


def no_text_problem(where: Where, value: object) -> Problem:
    """The problem of a value that has to be a text."""
    remedy = 'write "", or a text'
    # Nobody knows any more how the file writes it: `1.10` is 1.1, `0777` is 511, `yes` is true.
    if isinstance(value, bool | int | float):
        remedy = f'write it in quotes: "{shown(value)}", or as the file has it'
    return problem(where, f"is {shown(value)}, not a text", remedy)


def text_problems(where: Where, raw: object, mistake_of: MistakeOf, remedy: str = "") -> list[Problem]:
    """Whether a value is a text without a mistake.

    Args:
        remedy: what to write instead of a value that is no text; without it, that of :func:`no_text_problem`.
    """
    if not isinstance(raw, str):
        return [problem(where, f"is {shown(raw)}", remedy) if remedy else no_text_problem(where, raw)]
    mistake = mistake_of(raw)
    return [problem(where, f"{shown(raw)} {mistake.message}", mistake.remedy)] if mistake else []


def switch_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is true or false."""
    return [] if isinstance(raw, bool) else [problem(where, f"is {shown(raw)}", "write true or false")]


def mapping_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a mapping with string keys; nothing else can be checked unless it is."""
    if not isinstance(raw, Mapping):
        return [problem(where, f"is {shown(raw)}", "write a mapping of keys and values")]
    return [
        problem(where, f"has the key {shown(key)}, which is no text", f'write "{shown(key)}" in quotes')
        for key in raw
        if not isinstance(key, str)
    ]


def of_mapping(check: Callable[Concatenate[Where, Mapping[str, Any], P], list[Problem]]) -> Check[P]:
    """Turn a check of a mapping into a check of any value; that a value is no mapping is then its only problem."""

    @wraps(check)
    def checked(where: Where, raw: object, /, *args: P.args, **kwargs: P.kwargs) -> list[Problem]:
        wrong = mapping_problems(where, raw)
        return wrong or check(where, cast(Mapping[str, Any], raw), *args, **kwargs)

    return checked


def matching(pattern: re.Pattern[str], what: str, remedy: str) -> Check[[]]:
    """A check that a value is a text that matches a pattern; `what` ends the sentence "is …, not "."""

    def check(where: Where, raw: object) -> list[Problem]:
        if isinstance(raw, str) and pattern.fullmatch(raw):
            return []
        return [problem(where, f"is {shown(raw)}, not {what}", remedy)]

    return check


def unknown_key_problems(where: Where, raw: Mapping[str, object], known: Iterable[str]) -> list[Problem]:
    """Unknown keys, each with the key that was probably meant."""
    names = tuple(known)
    return [
        problem((*where, str(key)), "is not a known key", unknown_key_remedy(str(key), names))
        for key in raw
        if key not in names
    ]


def unknown_key_remedy(key: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown key: the nearest known one, or the list of them."""
    names = tuple(known)
    near = suggest(key, names)
    return f"write {near}" if near else f"leave it out or write one of {', '.join(names)}"


def whole_problems(where: Where, raw: object, least: int, most: int, what: str = "a whole number") -> list[Problem]:
    """Whether a value is an integer within bounds; 5.0 is 5, since JSON has one number type, and true is no integer."""
    remedy = f"write {what} from {least} to {most:,}"
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return [problem(where, f"is {shown(raw)}", remedy)]
    if isinstance(raw, float) and not (math.isfinite(raw) and raw.is_integer()):
        return [problem(where, f"is {shown(raw)}, which is not whole", remedy)]
    if raw < least:
        return [problem(where, f"is {shown(raw)}, less than {least}", remedy)]
    if raw > most:
        return [problem(where, f"is {shown(raw)}, more than {most:,}", remedy)]
    return []


def share_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a share: a number from 0 to 1."""
    remedy = "write a number from 0 to 1, such as 0.05 for one in twenty"
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
        return [problem(where, f"is {shown(raw)}, not a share", remedy)]
    return [] if 0 <= raw <= 1 else [problem(where, f"is {shown(raw)}, not between 0 and 1", remedy)]


def replicas_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a valid number of nodes for one placement: 0 to 100,000."""
    if isinstance(raw, int | float) and not isinstance(raw, bool) and raw > MOST_REPLICAS:
        remedy = f"write {MOST_REPLICAS:,} or fewer; more nodes take several zones or groups"
        return [problem(where, f"is {shown(raw)}, more nodes than one placement can have", remedy)]
    return whole_problems(where, raw, 0, MOST_REPLICAS, "a number of nodes")


def label_problems(where: Where, raw: object, own_too: bool = False) -> list[Problem]:
    """Problems of a mapping of labels.

    Args:
        own_too: whether keys under kumulus.io/, which Kumulus sets itself, are allowed.
    """
    found = _text_map_problems(where, raw, label_key_mistake, label_value_mistake)
    return found + ([] if own_too else _own_key_problems(where, raw, "label"))


def annotation_problems(where: Where, raw: object, own_too: bool = False) -> list[Problem]:
    """Problems of a mapping of annotations; the arguments are those of `label_problems`."""
    # The prefix of an annotation's key may have capitals, which apimachinery lowers first.
    found = _text_map_problems(where, raw, lambda key: label_key_mistake(key.lower()), lambda _: None)
    if not found and isinstance(raw, Mapping):
        size = sum(len(text.encode("utf-8", "replace")) for item in raw.items() for text in item)
        if size > _ANNOTATION_BYTES:
            message = f"is {size:,} bytes in all, a node has at most {_ANNOTATION_BYTES:,}"
            found = [problem(where, message, "write less")]
    return found + ([] if own_too else _own_key_problems(where, raw, "annotation"))


def taint_problems(where: Where, raw: object) -> list[Problem]:
    """Problems of a list of taints `{key, value, effect}`; each key and effect may occur once, as in Kubernetes."""
    if not isinstance(raw, list | tuple):
        remedy = "write a list of {key, value, effect}, or [] for no taint at all"
        return [problem(where, f"is {shown(raw)}", remedy)]
    found: list[Problem] = []
    seen: set[str] = set()
    for index, taint in enumerate(raw):
        here = (*where, index)
        if wrong := _one_taint_problems(here, taint):
            found += wrong
            continue
        name = f"{taint['key']}:{taint['effect']}"
        if name in seen:
            found.append(problem(here, f"repeats the taint {name}", "keep one of the two"))
        seen.add(name)
    return found


@of_mapping
def node_info_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of `{architecture, operatingSystem, kubeletVersion}`, each an optional string."""
    found = unknown_key_problems(where, raw, _NODE_INFO_KEYS)
    for key in _NODE_INFO_KEYS:
        if raw.get(key) is not None:
            # The first two are also the values of the labels kubernetes.io/arch and kubernetes.io/os.
            found += text_problems((*where, key), raw[key], label_value_mistake)
    return found


def feature_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a list of names of features, each once, as the API server takes them (core/validation)."""
    remedy = "write a list of names such as [RestartAllContainersOnContainerExits], or [] for none"
    if not isinstance(raw, list | tuple):
        return [problem(where, f"is {shown(raw)}", remedy)]
    found = [
        problem((*where, index), f"{shown(name)} is not the name of a feature", remedy)
        for index, name in enumerate(raw)
        if not (isinstance(name, str) and _FEATURE.fullmatch(name))
    ]
    return found or [
        problem((*where, index), f"repeats {name}", "leave it out")
        for index, name in enumerate(raw)
        if name in raw[:index]
    ]


@of_mapping
def resource_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a mapping from resource names to quantities, by the API server's rules for a node's status.

    Source: k8s.io/kubernetes pkg/apis/core/validation, ValidateResourceQuantityValue: nothing negative, and whole
    numbers for pods and extended resources.
    """
    found: list[Problem] = []
    for name, written in raw.items():
        here = (*where, name)
        if mistake := label_key_mistake(name):
            found.append(problem(here, f"the resource's name {mistake.message}", mistake.remedy))
        found += quantity_problems(here, written, whole=is_counted_whole(name), example=_EXAMPLES.get(name, '"8"'))
    return found


def quantity_problems(where: Where, written: object, whole: bool = False, example: str = '"8Gi"') -> list[Problem]:
    """Problems of one quantity.

    Args:
        whole: whether it has to be a whole number.
        example: a valid quantity for the remedy.
    """
    remedy = f"write a quantity such as {example}"
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return [problem(where, f"is {shown(written)}", remedy)]
    try:
        amount = parse(written)
    except QuantityError as reason:
        return [problem(where, f"{shown(written)} {reason}", remedy)]
    if amount.nanos < 0:
        return [problem(where, f"{shown(written)} is negative", "write 0 or more")]
    if amount.nanos >= LARGEST * NANO:
        return [problem(where, f"{shown(written)} is more than Kubernetes can count (2^63)", remedy)]
    if whole and not amount.is_whole():
        return [problem(where, f"{shown(written)} is not a whole number", f"write a whole number such as {example}")]
    if amount.nanos % (NANO // 1000):
        return [problem(where, f"{shown(written)} is finer than a thousandth, which the API server rounds up", remedy)]
    return []


def resource_name_problems(where: Where, raw: Mapping[str, object]) -> list[Problem]:
    """Names that no pod could ever request: without a domain and not one of Kubernetes' own."""
    message = "is not a resource of Kubernetes and has no domain"
    found = []
    for name in raw:
        if not is_requestable(name):
            # A name with a line break would break the message's line.
            example = f"example.com/{name if name.isprintable() else 'gpu'}"
            meant = meant_resource(name) or f"{', '.join(NATIVE_RESOURCES)} or a name such as {example}"
            found.append(problem((*where, name), message, f"write {meant}"))
    return found


def is_requestable(resource: str) -> bool:
    """Whether a pod may request a resource of this name: Kubernetes' own, or one with a domain."""
    return "/" in resource or resource in NATIVE_RESOURCES or resource.startswith(_NATIVE_PREFIXES)


def is_counted_whole(resource: str) -> bool:
    """Whether a resource comes in whole pieces only: pods, and extended resources such as nvidia.com/gpu."""
    domain, slash, _ = resource.rpartition("/")
    if not slash:
        return resource == "pods"
    return domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def meant_resource(name: str) -> str | None:
    """The resource probably meant by a name without a domain: ephemeralStorage, gpu, mem; None when none is near."""
    if name.lower() in ("gpu", "gpus"):
        return "nvidia.com/gpu"
    return suggest(name, NATIVE_RESOURCES)


_EXAMPLES = {"cpu": '"96"', "memory": "1360Gi", "ephemeral-storage": "3Ti", "pods": '"110"'}


@of_mapping
def _text_map_problems(
    where: Where, raw: Mapping[str, Any], key_mistake: MistakeOf, value_mistake: MistakeOf
) -> list[Problem]:
    found: list[Problem] = []
    for key, value in raw.items():
        here = (*where, key)
        if mistake := key_mistake(key):
            found.append(problem(here, f"the key {mistake.message}", mistake.remedy))
        found += text_problems(here, value, value_mistake)
    return found


def _own_key_problems(where: Where, raw: object, what: str) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return []
    message, remedy = "is under kumulus.io/, which Kumulus sets itself", f"use a {what} of your own domain"
    return [problem((*where, key), message, remedy) for key in raw if isinstance(key, str) and is_own(key)]


@of_mapping
def _one_taint_problems(where: Where, taint: Mapping[str, Any]) -> list[Problem]:
    found = unknown_key_problems(where, taint, _TAINT_KEYS)
    example = "write a key such as example.com/dedicated"
    found += text_problems((*where, "key"), taint.get("key"), label_key_mistake, example)
    if taint.get("value") is not None:
        found += text_problems((*where, "value"), taint["value"], label_value_mistake)
    effect = taint.get("effect")
    if effect not in TAINT_EFFECTS:
        found.append(problem((*where, "effect"), f"is {shown(effect)}", instead(effect, TAINT_EFFECTS)))
    return found
