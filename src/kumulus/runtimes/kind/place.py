"""Where the kind runtime keeps a cluster's files, and whose containers are whose.

kind labels containers with the cluster's name only, and anybody may make a cluster of any name. So the note beside the
kubeconfig has the ids of the containers that were made here; see docs/decisions/kind.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import yaml

from kumulus.runtimes.kind.containers import Engine, Node
from kumulus.runtimes.place import Place
from kumulus.surroundings import files

LONGEST_S = 1800.0
"""How long kind may take to make a cluster. Pulling a node image of half a gigabyte can take a while; kind itself
knows no limit."""

_CREATING, _BEGUN = "creating", "begun"
# The engine may be in a virtual machine of this machine.
_CLOCKS_APART = timedelta(minutes=1)


class KindPlace(Place):
    """Paths of one kind cluster."""

    FILES: ClassVar[frozenset[str]] = Place.FILES | {"kind.yaml"}
    MADE_ALONE: ClassVar[frozenset[str]] = frozenset({"kumulus.tmp"})

    @property
    def config_file(self) -> Path:
        """What kind was given as its configuration."""
        return self.directory / "kind.yaml"

    def begin(self, owner: str, engine: Engine, config: Mapping[str, Any]) -> None:
        """Record who creates a cluster here before anything else, so that a killed creation can be attributed."""
        self.directory.mkdir(mode=0o700)
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        self.write_note({"owner": owner, "provider": engine.provider, "state": _CREATING, _BEGUN: begun})
        files.write(self.config_file, yaml.safe_dump(dict(config), sort_keys=False))

    def complete(self, owner: str, engine: Engine, nodes: Sequence[Node]) -> None:
        """Note that the cluster is whole, and which containers it is."""
        made = json.dumps({node.name: node.container for node in nodes})
        self.write_note({"owner": owner, "provider": engine.provider, "containers": made})

    def containers(self) -> dict[str, str]:
        """By name, the ids of the containers that were made; {} while they are being made, or nothing is known."""
        try:
            found = json.loads(self.note().get("containers", "{}"))
        except ValueError:
            return {}
        return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

    def owns(self, nodes: Sequence[Node]) -> bool:
        """Whether containers are those that were made here, or that a killed run was making.

        Of the latter no id is known. They were created while kind was allowed to make them: a cluster that somebody
        makes under the same name later, or had made before, is not taken for what the killed run has left.
        """
        note, known = self.note(), set(self.containers().values())
        if note.get("state") != _CREATING:
            return all(node.container in known for node in nodes)
        if _BEGUN not in note:
            return True  # of an earlier version
        begun = datetime.fromisoformat(note[_BEGUN])
        first, last = begun - _CLOCKS_APART, begun + timedelta(seconds=LONGEST_S)
        return all(node.created is not None and first <= node.created <= last for node in nodes)

    def engine(self, options: Mapping[str, Any]) -> Engine:
        """The engine that the containers were made with, or else the one that would be chosen now."""
        return Engine.chosen({**options, **({"provider": p} if (p := self.note().get("provider")) else {})})
