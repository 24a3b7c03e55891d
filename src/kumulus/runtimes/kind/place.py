"""Where the kind runtime keeps a cluster's files, and which containers are the cluster's.

kind labels containers with the cluster's name only, and anybody may make a cluster of any name. So the note beside the
kubeconfig has the ids of the containers that were made here; see docs/decisions/kind.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from kumulus.host import files
from kumulus.kube import yaml_writing
from kumulus.runtimes.kind import claim
from kumulus.runtimes.kind.containers import Engine, Node
from kumulus.runtimes.place import Place, unfinished

LONGEST_S = 1800.0
"""How long kind may take to make a cluster. Pulling a node image of half a gigabyte can take a while; kind itself
has no limit."""

_CREATING, _BEGUN = "creating", "begun"
# The engine may run in a virtual machine of this machine, with a clock of its own.
_CLOCKS_APART = timedelta(minutes=1)


class KindPlace(Place):
    """Paths of one kind cluster."""

    FILES: ClassVar[frozenset[str]] = Place.FILES | {"kind.yaml"}
    MADE_ALONE: ClassVar[frozenset[str]] = unfinished("kumulus.json")

    @property
    def config_file(self) -> Path:
        """The file with the configuration that kind was given."""
        return self.directory / "kind.yaml"

    def begin(self, owner: str, engine: Engine, config: Mapping[str, Any]) -> None:
        """Record who creates a cluster here before anything else, so that a killed creation can be attributed."""
        self.directory.mkdir(mode=0o700)
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        self.write_note({"owner": owner, "provider": engine.provider, "state": _CREATING, _BEGUN: begun})
        claim.note(self.directory)
        files.write(self.config_file, yaml_writing.written(dict(config)))

    def complete(self, owner: str, engine: Engine, nodes: Sequence[Node]) -> None:
        """Note that the cluster is complete, and the ids of its containers."""
        made = json.dumps({node.name: node.container for node in nodes})
        self.write_note({"owner": owner, "provider": engine.provider, "containers": made})

    def containers(self) -> dict[str, str]:
        """The ids of the containers that were made, by name; {} while they are being made, or if they are unknown."""
        try:
            found = json.loads(self.note().get("containers", "{}"))
        except ValueError:
            return {}
        return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

    def owns(self, nodes: Sequence[Node]) -> bool:
        """Whether the containers were made here, or left by a killed run that was making them.

        The ids of the latter are unknown, so they count only if created within the time that kind was given, and if no
        other directory's run has begun since. A cluster that somebody makes under the same name later, or had made
        before, is not taken for theirs.
        """
        note, known = self.note(), set(self.containers().values())
        if note.get("state") != _CREATING:
            return all(node.container in known for node in nodes)
        if claim.is_anothers(self.directory) or _BEGUN not in note:
            return False
        begun = datetime.fromisoformat(note[_BEGUN])
        first, last = begun - _CLOCKS_APART, begun + timedelta(seconds=LONGEST_S)
        return all(node.created is not None and first <= node.created <= last for node in nodes)

    def engine(self, options: Mapping[str, Any]) -> Engine:
        """The engine that the containers were made with, or else the one that would be chosen now."""
        return Engine.chosen({**options, **({"provider": p} if (p := self.note().get("provider")) else {})})
