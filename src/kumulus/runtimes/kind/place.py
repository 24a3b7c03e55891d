"""Where the kind runtime keeps a cluster's files, and which containers are the cluster's.

kind labels containers with the cluster's name only, and anybody may make a cluster of any name. So the note next to the
kubeconfig has the ids of the containers that were made here; see docs/decisions/kind.md.
"""

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from kumulus.host import files
from kumulus.host.machine import state_home
from kumulus.kube import safe_yaml
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import directories
from kumulus.runtimes.kind import CONFIG_FILE, PROVIDERS
from kumulus.runtimes.kind.containers import ContainerEngine, NodeContainer
from kumulus.runtimes.place import Place, unfinished

LONGEST_S = 1800.0
"""How long kind may take to make a cluster. Pulling a node image of half a gigabyte can take a while; kind itself
has no limit."""

_CREATING, _BEGUN = "creating", "begun"
# The engine may run in a virtual machine of this machine, with a clock of its own.
_CLOCKS_APART = timedelta(minutes=1)


class KindPlace(Place):
    """Paths of one kind cluster."""

    FILES: ClassVar[frozenset[str]] = Place.FILES | {CONFIG_FILE}
    OURS_WITHOUT_NOTE: ClassVar[frozenset[str]] = frozenset({unfinished("kumulus.json")})

    @property
    def config_file(self) -> Path:
        """The file with the configuration that kind was given."""
        return self.directory / CONFIG_FILE

    def begin(self, owner: str, engine: ContainerEngine, config: Mapping[str, Any]) -> None:
        """Record who creates a cluster here before anything else, so that a killed creation can be attributed."""
        self.directory.mkdir(mode=0o700)
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        self.write_note({"owner": owner, "provider": engine.provider, "state": _CREATING, _BEGUN: begun})
        claim(self.directory)
        files.write(self.config_file, safe_yaml.written(dict(config)))

    def complete(self, owner: str, engine: ContainerEngine, nodes: Sequence[NodeContainer]) -> None:
        """Note that the cluster is complete, and the ids of its containers."""
        made = json.dumps({node.name: node.id for node in nodes})
        self.write_note({"owner": owner, "provider": engine.provider, "containers": made})

    def containers(self) -> dict[str, str]:
        """The ids of the containers that were made, by name; {} while they are being made, or if they are unknown."""
        try:
            found = json.loads(self.note().get("containers", "{}"))
        except ValueError:
            return {}
        return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

    def owns(self, nodes: Sequence[NodeContainer]) -> bool:
        """Whether the containers were made here, or left by a killed run that was making them.

        The ids of the latter are unknown, so they count only if created within the time that kind was given, and if no
        other directory's run has begun since. So a cluster that somebody made under the same name, before or after, is
        not taken for one of ours.
        """
        note, known = self.note(), set(self.containers().values())
        if note.get("state") != _CREATING:
            return all(node.id in known for node in nodes)
        if is_anothers(self.directory) or _BEGUN not in note:
            return False
        begun = datetime.fromisoformat(note[_BEGUN])
        first, last = begun - _CLOCKS_APART, begun + timedelta(seconds=LONGEST_S)
        return all(node.created is not None and first <= node.created <= last for node in nodes)

    def engine(self, options: Mapping[str, Any]) -> ContainerEngine:
        """The engine that the containers were made with, or else the one that would be chosen now."""
        noted = self.note().get("provider", "")
        return ContainerEngine(noted) if noted in PROVIDERS else ContainerEngine.chosen(options)


# Who makes the kind cluster of a name, or was the last to begin: the engine knows names only, whoever asks it.
#
# kind looks for containers of a name before it pulls the node image. If it fails afterwards, it removes all containers
# of that name, among them those that a run of another directory has made meanwhile. So only one run of this user makes
# a cluster of one name at a time. Its directory is noted, and the claim stays: what a killed run has left cannot be
# distinguished from the cluster that another directory's run has made since by anything else.


@asynccontextmanager
async def making_alone(cluster: str, report: Reporter) -> AsyncIterator[None]:
    """Wait until no other run makes a cluster of that name; where no state can be kept, nobody is waited for."""
    lock = None
    with suppress(OSError):
        lock, _ = await files.take_lock(_claim_file(cluster), lambda: report.status(directories.waiting(cluster)))
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def claim(directory: Path) -> None:
    """Note that a cluster is about to be made for a directory, whose name is the cluster's."""
    with suppress(OSError):
        # In place: a new file would not be locked.
        _claim_file(directory.name).write_text(str(directory))


def is_anothers(directory: Path) -> bool:
    """Whether the last run that began to make a cluster of that name was another directory's."""
    return _claimed_by(directory.name) not in ("", str(directory))


def forget_claim(directory: Path) -> None:
    """Remove the claim of a directory whose cluster is gone."""
    with suppress(OSError):
        if _claimed_by(directory.name) == str(directory):
            _claim_file(directory.name).unlink()


def _claimed_by(cluster: str) -> str:
    """The directory of the last run that began to make a cluster of that name; empty if that is not known."""
    try:
        return _claim_file(cluster).read_text()
    except (OSError, ValueError):
        return ""


def _claim_file(cluster: str) -> Path:
    return state_home() / "kumulus" / "kind" / cluster
