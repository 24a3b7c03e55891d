"""The pack's rules, as pure functions of a stack's name, its resources' inputs and the pack's configuration."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit

from kumulus.model.names import SYSTEM_GROUP
from kumulus.model.pool_form import POOL_KEYS, pool_from_properties
from kumulus.model.pools import Pool
from kumulus.model.totals import totals

Props = Mapping[str, Any]


def stack_of(urn: str) -> str:
    """The stack that a URN is of, ``urn:pulumi:<stack>::<project>::<types>::<name>``."""
    return urn.removeprefix("urn:pulumi:").partition("::")[0]


def limit_for(stack: str, config: Mapping[str, Any]) -> int:
    """How many a stack may have.

    Args:
        config: ``most``, for every stack that ``stacks`` does not name; ``stacks`` by name or by a pattern such as
            ``search-*``; the longest match counts.
    """
    named: Mapping[str, Any] = config.get("stacks") or {}
    patterns = sorted((each for each in named if fnmatchcase(stack, each)), key=len)
    if stack in named:
        return int(named[stack])
    return int(named[patterns[-1]] if patterns else config["most"])


def pool_of(props: Props) -> Pool | None:
    """The pool that a NodePool's inputs describe; None for the one that Kumulus adds for emulated add-ons.

    One that an autoscaler resizes counts as what it may become: no policy is asked when it does.

    Raises:
        SpecError: they describe none, which the plugin will say too.
    """
    pool = pool_from_properties({key: plain(props[key]) for key in POOL_KEYS if props.get(key) is not None})
    if pool.group == SYSTEM_GROUP:
        return None
    return replace(pool, replicas=pool.bounds.most) if pool.bounds else pool


def nodes_of(pool: Pool) -> int:
    """How many nodes a pool has."""
    return pool.replicas


def gpus_of(pool: Pool) -> int:
    """How many GPUs a pool has, those that are had by claims alone included."""
    return totals([pool]).gpus


class PoolLedger:
    """Adds up what the pools of a stack have, in the order in which they are registered.

    Rules that look at one resource are asked before it is made, those that look at a whole stack when all of it is:
    the pool with which a limit is passed is refused before there are any nodes of it.
    """

    def __init__(self) -> None:
        self._amounts: dict[str, int] = {}
        self._lock = Lock()

    def total(self, urn: str, amount: int) -> int:
        """The sum over all pools up to this one; asked again for the same pool, it counts once."""
        with self._lock:
            self._amounts[urn] = amount
            return sum(self._amounts.values())


def too_many(what: str, total: int, pool: str, amount: int, most: int, stack: str) -> str:
    """What is said of the pool with which a limit is passed; empty while there is room."""
    if total <= most or not amount:
        return ""
    have = f"{stack} would have {total:,} {what} with the {amount:,} of {pool}, and may have {most:,}"
    return f"{have}: lower replicas in its nodeGroups, or have the limit raised"


def source_of(release: Props) -> str:
    """Where a Helm release's chart comes from: the URL of a repository, an ``oci://`` reference, or a path."""
    chart = str(release.get("chart") or "").strip()
    repository = (release.get("repositoryOpts") or {}).get("repo")
    # Helm takes a path and a URL as such, whatever repository is named; a repository's charts have no / in them.
    itself = "/" in chart or chart.startswith(".") or not repository
    return chart if itself else str(repository)


def not_allowed(release: Props, allowed: Iterable[str], local: bool) -> str:
    """What is said of a Helm release from somewhere else than the repositories allowed; empty for others.

    Args:
        allowed: URLs of repositories, and ``oci://`` references up to any slash in them.
        local: whether charts may be taken from a path.
    """
    source = source_of(release)
    places = [each.rstrip("/") for each in allowed]
    if "://" not in source:
        return "" if local else f"its chart is the local path {source}, and allowed are {_list(places)}"
    # Whole parts of a path: https://charts.example.com must not let https://charts.example.com.evil.org in.
    if any(source.rstrip("/") == place or source.startswith(f"{place}/") for place in places):
        # Whoever asks for it may resolve these first, and come out elsewhere.
        if ".." in unquote(urlsplit(source).path).split("/"):
            return f"its chart is from {source}, which has .. in it: write where that leads"
        return ""
    return f"its chart is from {source}, and allowed are {_list(places)}: take it from there, or have this one added"


def plain(value: Any) -> Any:
    """A value without the policy SDK's wrappers, which are neither dicts nor lists.

    Raises:
        pulumi_policy's UnknownValueError: a preview cannot know a part of it yet.
    """
    if isinstance(value, Mapping):
        return {key: plain(value[key]) for key in value}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return value
    return [plain(value[index]) for index in range(len(value))]


def _list(places: list[str]) -> str:
    return ", ".join(places) or "none"
