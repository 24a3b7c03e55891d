"""The keys of a stack's configuration in the namespace kumulus, and what is wrong with them by themselves."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from kumulus.host import extras
from kumulus.model.checks import unknown_key_problems
from kumulus.model.errors import Problem, shown
from kumulus.model.names import instead
from kumulus.runtimes import registry

CONSENTS = ("moveHere", "allowReplace")
"""Keys by which the user allows the plugin irreversible actions: they are part of its configuration."""
WITH_CLUSTERS = ("defaults", "hub", *extras.names("stack_sections"))
"""Keys that have no effect without `clusters`."""
SEVERAL = ("clusters", *WITH_CLUSTERS)
"""Keys of a stack of several clusters, which :mod:`kumulus.stackfile.clusters` reads."""
CONFIG_KEYS = ("cluster", "clusterConfig", *SEVERAL, "runtime", "skipAddons", "prices", "nodes", *CONSENTS)


@dataclass(frozen=True)
class StackSettings:
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
    def read(cls, config: Mapping[str, object]) -> StackSettings:
        """Read them from the configuration, with or without the namespace in its keys."""
        values = {str(key).removeprefix("kumulus:"): value for key, value in config.items() if value is not None}
        if "cluster" in values:
            values["cluster"] = parsed(values["cluster"])
        problems = unknown_key_problems((), values, CONFIG_KEYS)
        problems += _source_problems(values)
        wanted = values.get("runtime")
        if wanted is not None and wanted not in registry.NAMES:
            problems.append(Problem("runtime", f"is {shown(wanted)}", instead(wanted, registry.NAMES)))
            wanted = None
        for key, page in (("prices", "prices"), ("nodes", "fleets")):
            if key in values and not _is_text(values[key]):
                remedy = f"write the path of a file (docs/{page}.md)"
                problems.append(Problem(key, f"is {shown(values[key])}", remedy))
        if _is_text(values.get("nodes")) and "clusterConfig" in values:
            problems.append(Problem("nodes", "has no effect with clusterConfig", "leave it out"))
        for key in ("skipAddons", *CONSENTS):
            if key in values and not isinstance(values[key], bool) and values[key] not in ("true", "false"):
                problems.append(Problem(key, f"is {shown(values[key])}", "write true or false"))
        return cls(values, wanted, values.get("skipAddons") in (True, "true"), tuple(problems))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _source_problems(values: Mapping[str, object]) -> list[Problem]:
    """Problems of the keys that describe the cluster: none of them, both, or no location."""
    location = values.get("clusterConfig")
    if "cluster" in values and location is not None:
        return [Problem("clusterConfig", "describes the cluster, and so does cluster", "leave one of the two out")]
    if location is not None and not _is_text(location):
        return [Problem("clusterConfig", f"is {shown(location)}", "write the path or URL of a KEMU ClusterConfig")]
    if location is None and "cluster" not in values:
        remedy = (
            "write kumulus:cluster with nodeGroups, kumulus:clusters with several, or kumulus:clusterConfig with the "
            "path of a KEMU file"
        )
        return [Problem("cluster", "is missing", remedy)]
    return []


def parsed(value: object) -> object:
    """A key's value; a text is read as JSON, which `pulumi config set` writes, and stays a text if it is none."""
    if isinstance(value, str):
        # If it does not parse, the model reports that a text is not a mapping.
        with contextlib.suppress(ValueError, RecursionError):
            return cast(object, json.loads(value))
    return value
