"""Names that Kubernetes accepts, names of Kumulus' pools and nodes, and suggestions for misspelt ones.

Sources: RFC 1123 as in k8s.io/apimachinery/pkg/util/validation (labels, subdomains, qualified names, label values).
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
CLUSTER_NAME_LENGTH = 40
NODE_NAME_LENGTH = 63
"""Shorter than Kubernetes' limit of 253: the name is also the value of the label kubernetes.io/hostname."""

OWN_PREFIX = "kumulus.io"
SYSTEM_GROUP = "system"
"""The group of the pool that Kumulus adds itself, for the emulated pods of add-ons."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class ValueMistake:
    """What is wrong with one value, and what to write instead; without the place, which only the caller knows."""

    message: str
    remedy: str


def is_dns_label(text: str, longest: int = LABEL_LENGTH) -> bool:
    """Whether a text is a DNS-1123 label: lower-case letters, digits and inner dashes."""
    return len(text) <= longest and _LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str, longest: int = SUBDOMAIN_LENGTH) -> bool:
    """Whether a text is a DNS-1123 subdomain: labels separated by dots."""
    return len(text) <= longest and all(_LABEL.fullmatch(part) for part in text.split("."))


def dns_label_mistake(text: str, longest: int = LABEL_LENGTH) -> ValueMistake | None:
    """What keeps a text from being a DNS-1123 label of at most `longest` characters; None when nothing does."""
    if is_dns_label(text, longest):
        return None
    return _dns_mistake(text, longest, "lower-case letters, digits and inner dashes", dots=False)


def dns_subdomain_mistake(text: str, longest: int = SUBDOMAIN_LENGTH) -> ValueMistake | None:
    """What keeps a text from being a DNS-1123 subdomain of at most `longest` characters; None when nothing does."""
    if is_dns_subdomain(text, longest):
        return None
    return _dns_mistake(text, longest, "lower-case letters, digits, inner dashes and dots", dots=True)


def node_name_mistake(text: str) -> ValueMistake | None:
    """What keeps a text from being the name of a node, which is also a label's value; None when nothing does."""
    return dns_subdomain_mistake(text, NODE_NAME_LENGTH)


def dns_safe(text: str, longest: int = LABEL_LENGTH, dots: bool = False) -> str:
    """The nearest DNS-1123 name: `Team_A` becomes `team-a`; empty when no letter or digit is left.

    A name that has to be cut ends in five digits of its hash, so that two long names stay distinct.

    Args:
        longest: the most characters allowed.
        dots: whether dots may stay (a subdomain) or become dashes (a label).
    """
    safe = re.sub(r"[^a-z0-9.]+" if dots else r"[^a-z0-9]+", "-", text.lower())
    safe = re.sub(r"[-.]*\.[-.]*", ".", safe).strip("-.")
    if len(safe) <= longest:
        return safe
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:5]
    return f"{safe[: longest - 6].rstrip('-.')}-{digest}"


def label_key_mistake(key: str) -> ValueMistake | None:
    """What keeps a text from being the key of a label, taint or resource: a qualified name `[prefix/]name`."""
    remedy = "write a name such as example.com/team: a DNS name, a slash, then letters, digits, '-', '_' and '.'"
    prefix, slash, name = key.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return ValueMistake("has a prefix that is not a DNS-1123 name", remedy)
    if len(name) > LABEL_LENGTH:
        message = f"is {len(name)} characters long after its prefix, at most {LABEL_LENGTH} are allowed"
        return ValueMistake(message, remedy)
    if not _NAME.fullmatch(name):
        return ValueMistake("is not a qualified name", remedy)
    return None


def label_value_mistake(value: str) -> ValueMistake | None:
    """What keeps a text from being a label's value; None when nothing does, as with the empty text."""
    remedy = f"write at most {LABEL_LENGTH} letters, digits, '-', '_' and '.', the first and last a letter or digit"
    if len(value) > LABEL_LENGTH:
        return ValueMistake(f"is {len(value)} characters long, a label's value has at most {LABEL_LENGTH}", remedy)
    if value and not _NAME.fullmatch(value):
        return ValueMistake("is not a label value", remedy)
    return None


def is_own(key: str) -> bool:
    """Whether a label or annotation key is reserved for Kumulus: under kumulus.io/."""
    prefix, slash, _ = key.rpartition("/")
    return bool(slash) and (prefix == OWN_PREFIX or prefix.endswith(f".{OWN_PREFIX}"))


def pool_name(group: str, zone: str) -> str:
    """The name of the pool of a group's nodes in one zone."""
    return f"{group}-{zone}"


def default_cluster_name(stack: str) -> str:
    """A cluster's name from a stack's: the part after its organisation and project, DNS-1123 safe, ≤ 40 characters."""
    return dns_safe(stack.rpartition("/")[2], CLUSTER_NAME_LENGTH) or "kumulus"


def node_name(pool: str, ordinal: int) -> str:
    """The name of a pool's node; ordinals count from 0."""
    return f"{pool}-{ordinal}"


def uuid_of(digits: str) -> str:
    """A UUID of 32 hexadecimal digits."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def collisions(pools: Iterable[str]) -> list[tuple[int, int]]:
    """Pools that may share a node name, whatever their replicas: pairs of indices, the first pool's and a later one's.

    An ordinal contains no dash, so a node name splits in one way only, at its last dash: two pools share a node name
    exactly when they have the same name, like group `a` in zone `b-c` and group `a-b` in zone `c`. `x-1-0` is node 0
    of pool `x-1` and never a node of `x`, whose nodes are named `x-1`, `x-2`.
    """
    first: dict[str, int] = {}
    found = []
    for index, pool in enumerate(pools):
        if pool in first:
            found.append((first[pool], index))
        else:
            first[pool] = index
    return found


def suggest(key: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known key that a misspelt one most likely means, ignoring case; None if none has the likeness, of 0 to 1."""
    return next(iter(nearest(key, known, 1, likeness)), None)


def instead(written: object, known: Iterable[str], *, most: int = 1, listed: int | None = None, also: str = "") -> str:
    """What to write instead of a value that is none of the known names: those that it may mean, or else all.

    Args:
        most: how many names it may mean.
        listed: how many of all are listed; None for each.
        also: what else may be written, after the list.
    """
    names = tuple(known)
    near = nearest(written, names, most) if isinstance(written, str) else []
    return f"write {' or '.join(near)}" if near else f"write one of {', '.join(names[:listed])}{also}"


# Shorter texts are misspelt names rather than the beginning of one.
_SHORTEST_BEGINNING = 4


def nearest(key: str, known: Iterable[str], most: int = 3, likeness: float = 0.6) -> list[str]:
    """The known keys that a misspelt one may mean, ignoring case, most likely first; empty when none is similar.

    If it is the beginning of at most `most` keys, these are meant.
    """
    return list(_nearest(key, tuple(known), most, likeness))


@lru_cache(maxsize=256)
def _nearest(key: str, known: tuple[str, ...], most: int, likeness: float) -> tuple[str, ...]:
    # Cached, because a mistake that is repeated a thousand times would take a second.
    # Imported only on a mistake, because the import would slow down every start of the plugin.
    import difflib

    lowered = {name.lower(): name for name in known}
    if len(key) >= _SHORTEST_BEGINNING:
        begun = [name for lower, name in lowered.items() if lower.startswith(key.lower())]
        if 0 < len(begun) <= most:
            return tuple(begun)
    plain = key.lower().replace("_", "").replace("-", "")
    for attempt in (key.lower(), plain):
        near = difflib.get_close_matches(attempt, lowered, n=most, cutoff=likeness)
        if near:
            return tuple(lowered[name] for name in near)
    return ()


def _dns_mistake(text: str, longest: int, allowed: str, dots: bool) -> ValueMistake:
    if not text:
        return ValueMistake("is empty", f"write a name of {allowed}")
    if len(text) > longest:
        return ValueMistake(f"is {len(text)} characters long, at most {longest} are allowed", "write a shorter name")
    safe = dns_safe(text, longest, dots)
    return ValueMistake("is not a DNS-1123 name", f"write {safe}" if safe else f"write a name of {allowed}")
