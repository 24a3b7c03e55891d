"""A stack's configuration in the namespace kumulus: its keys, what is wrong with them by themselves, and its secrets.

Pulumi passes a program its configuration in plain text and only reports that a whole key, such as `kumulus:cluster`,
contains a secret. The stack file shows where: each secret is written as `{secure: <ciphertext>}`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from kumulus.model.checks import unknown_key_problems
from kumulus.model.errors import Problem, SpecError, Where, path_text, shown
from kumulus.model.names import suggest
from kumulus.runtimes import registry
from kumulus.stackfile.yamltext import read_stack_file

CONSENTS = ("moveHere", "allowReplace")
"""Keys by which the user allows the plugin irreversible actions: they are part of its configuration."""
SEVERAL = ("clusters", "defaults", "hub", "federation")
"""Keys of a stack of several clusters, which :mod:`kumulus.stackfile.clusters` reads."""
CONFIG_KEYS = ("cluster", "clusterConfig", *SEVERAL, "runtime", "skipAddons", "prices", "nodes", *CONSENTS)


@dataclass(frozen=True)
class Settings:
    """The configuration's keys, each either valid or reported as a problem."""

    values: Mapping[str, object]
    """By key, without the namespace and without keys that have no value; a `cluster` in JSON is parsed."""
    runtime: str | None
    """The runtime that overrides the cluster's; None for the cluster's own."""
    skip_addons: bool
    """Whether the cluster's add-ons are left out."""
    problems: tuple[Problem, ...]
    """What is wrong."""

    @classmethod
    def read(cls, config: Mapping[str, object]) -> Settings:
        """Read them from the configuration, with or without the namespace in its keys."""
        values = {str(key).removeprefix("kumulus:"): value for key, value in config.items() if value is not None}
        problems = unknown_key_problems((), values, CONFIG_KEYS)
        problems += _sources(values)
        wanted = values.get("runtime")
        if wanted is not None and wanted not in registry.NAMES:
            near = suggest(wanted, registry.NAMES) if isinstance(wanted, str) else None
            remedy = f"write {near}" if near else f"write one of {', '.join(registry.NAMES)}"
            problems.append(Problem("runtime", f"is {shown(wanted)}", remedy))
            wanted = None
        skip = values.get("skipAddons")
        if not _is_switch(skip):
            problems.append(Problem("skipAddons", f"is {shown(skip)}", "write true or false"))
        if (own := values.get("prices")) is not None and (not isinstance(own, str) or not own.strip()):
            problems.append(Problem("prices", f"is {shown(own)}", "write the path of a file (docs/prices.md)"))
        if (file := values.get("nodes")) is not None and (not isinstance(file, str) or not file.strip()):
            problems.append(Problem("nodes", f"is {shown(file)}", "write the path of a file (docs/fleets.md)"))
        elif file is not None and "clusterConfig" in values:
            problems.append(Problem("nodes", "has no effect with clusterConfig", "leave it out"))
        for key in CONSENTS:
            if not _is_switch(values.get(key)):
                problems.append(Problem(key, f"is {shown(values[key])}", "write true or false"))
        return cls(values, wanted, skip is True or skip == "true", tuple(problems))


def _is_switch(value: object) -> bool:
    return value is None or isinstance(value, bool) or value in ("true", "false")


def _sources(values: dict[str, object]) -> list[Problem]:
    """Problems of the keys that describe the cluster; JSON text is replaced by its parsed value."""
    location = values.get("clusterConfig")
    if "cluster" in values and location is not None:
        return [Problem("clusterConfig", "describes the cluster, and so does cluster", "leave one of the two out")]
    if location is not None and (not isinstance(location, str) or not location.strip()):
        return [Problem("clusterConfig", f"is {shown(location)}", "write the path or URL of a KEMU ClusterConfig")]
    if location is None and "cluster" not in values:
        remedy = (
            "write kumulus:cluster with nodeGroups, kumulus:clusters with several, or kumulus:clusterConfig with the "
            "path of a KEMU file"
        )
        return [Problem("cluster", "is missing", remedy)]
    if isinstance(values.get("cluster"), str):
        # If it does not parse, the model reports that a text is not a mapping.
        with contextlib.suppress(ValueError, RecursionError):
            values["cluster"] = json.loads(cast(str, values["cluster"]))
    return []


HIDDEN = "[secret]"
_SECURE = "secure"


@dataclass(frozen=True)
class Secrets:
    """The places of secrets in a cluster's description."""

    places: tuple[Where, ...] = ()
    """Keys and indices, outermost first; an empty place means that the whole description is secret."""

    def within(self, *where: str | int) -> tuple[Where, ...]:
        """The places below a given one, relative to it; an empty place when everything there is secret."""
        if any(where[: len(place)] == place for place in self.places):
            return ((),)
        return tuple(place[len(where) :] for place in self.places if place[: len(where)] == where)


def places_of_secrets(document: object, key: str) -> tuple[Where, ...]:
    """The places of the secrets in a key's value.

    Args:
        document: a parsed stack file; may be malformed.
        key: such as `kumulus:cluster`, which according to Pulumi contains a secret.

    Returns:
        the places in the key's value; all of it if the file has no secret there, since then Pulumi read another file.
    """
    config = document.get("config") if isinstance(document, Mapping) else None
    value = config.get(key) if isinstance(config, Mapping) else None
    return tuple(_places(value, ())) or ((),)


def read_secrets(file: Path, key: str) -> Secrets:
    """The secrets of a stack file in a key's value; a file that cannot be read counts as one without the key."""
    return Secrets(places_of_secrets(parsed(file), key))


def parsed(file: Path) -> object:
    """A stack file's document; None when it cannot be read."""
    try:
        return read_stack_file(file)
    except (OSError, UnicodeDecodeError, SpecError):
        return None


def hidden(problems: Iterable[Problem], secrets: Secrets) -> list[Problem]:
    """Problems without quotes of secret values."""
    paths = [path_text(place) for place in secrets.places]
    return [
        Problem(each.path, "is not what is needed here; its value is secret and not shown", "set it again")
        if any(_is_below(each.path, path) for path in paths)
        else each
        for each in problems
    ]


def _is_below(path: str, place: str) -> bool:
    return not place or (path.startswith(place) and path[len(place) :][:1] in ("", ".", "["))


def without_secrets(value: object) -> object:
    """A stack file's value with a placeholder for each secret, for commands that cannot decrypt and need no secrets."""
    if _is_secret(value):
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: without_secrets(inner) for key, inner in value.items()}
    return [without_secrets(inner) for inner in value] if isinstance(value, list) else value


def left_out(value: object) -> object:
    """A stack file's value without its secrets, for uses in which a placeholder would not be a valid value."""
    if isinstance(value, Mapping):
        return {key: left_out(inner) for key, inner in value.items() if not _is_secret(inner)}
    return [left_out(inner) for inner in value if not _is_secret(inner)] if isinstance(value, list) else value


def _is_secret(value: object) -> bool:
    return isinstance(value, Mapping) and list(value) == [_SECURE] and isinstance(value[_SECURE], str)


def _places(value: object, where: Where) -> Iterable[Where]:
    if _is_secret(value):
        yield where
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _places(inner, (*where, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, (*where, index))
