"""Ensures that a cluster is changed only from the machine and project it belongs to, or moved here on request."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kumulus.host import files, lifetime, machine
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.model.contents import is_preview
from kumulus.nodes import runs
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.provider.settings import PluginSettings
from kumulus.runtimes import apiserver, directories
from kumulus.runtimes.base import Observed, RecordedControlPlane, Runtime
from kumulus.runtimes.place import Place, described_owner, same_owner
from kumulus.runtimes.whereabouts import LOST, Away, away


class Shown:
    """Which replacements of clusters a pulumi command has shown in its preview: an update must not make any other.

    Pulumi does not say whether an update had a preview, and it starts a plugin for each of the two. Both plugins have
    the same parent, pulumi itself. The first leaves a note under the parent's identity, and the second looks for it.

    Args:
        command: the identity of pulumi's process, see :mod:`kumulus.host.lifetime`; by default this process's parent.
        folder: where the notes are.
    """

    def __init__(self, command: str | None = None, folder: Path | None = None) -> None:
        self._command = command or lifetime.parent()
        self._folder = folder or machine.state_home() / "kumulus" / "shown"

    def note(self, directory: str) -> None:
        """Note that the command has shown the replacement of the cluster with this directory.

        If the note cannot be written, the update requires the user's explicit consent.
        """
        if self._command is None:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._forget_ended()
            files.write(self._file(directory), self._command, 0o600)

    def has(self, directory: str) -> bool:
        """Whether the command has shown the replacement of the cluster with this directory."""
        with suppress(OSError, ValueError):
            return self._command is not None and self._file(directory).read_text() == self._command
        return False

    def _file(self, directory: str) -> Path:
        name = hashlib.sha256(f"{self._command} {directory}".encode()).hexdigest()[:32]
        return self._folder / name

    def _forget_ended(self) -> None:
        for file in self._folder.iterdir():
            with suppress(OSError, ValueError):
                if lifetime.runs(file.read_text()) is False:
                    file.unlink()


UNSHOWN = "KUMULUS_UNSHOWN"
"""Set by a caller whose update had no preview that anybody saw: for programs that do not say what is a preview."""


class RecordedPlaces:
    """Where recorded clusters are, as seen from where the plugin works."""

    def __init__(self, runtimes: Mapping[str, Runtime], settings: PluginSettings, shown: Shown | None = None) -> None:
        self._runtimes = runtimes
        self._settings = settings
        self._shown = shown or Shown()
        # By the directory in the record: the clusters that are to be moved here.
        self._moving: dict[str, Away] = {}
        # The directories in which a cluster may be made again without asking.
        self._agreed: set[str] = set()

    def require_here_or_moving(self, outputs: Properties, report: Reporter) -> None:
        """Refuse a cluster that is elsewhere, unless it is to be moved here; then report what the move means."""
        self._require_known(outputs)
        found = self._away(outputs)
        if found is not None and not (self._settings.move_here and found.moving):
            raise ProviderError(found.refusal)
        if found is not None:
            report.warn(found.moving)
        elif self._settings.move_here and self._is_bound(outputs.get("runtime")):
            report.warn(
                "the cluster is here; take kumulus:moveHere out of the stack file (`pulumi config rm "
                "kumulus:moveHere`), or the next `up` on another machine moves it there"
            )

    def require_here(self, outputs: Properties) -> None:
        """Refuse a cluster that is elsewhere: it can be neither read nor deleted from here."""
        self._require_known(outputs)
        if found := self._away(outputs):
            raise ProviderError(found.refusal)

    def _require_known(self, outputs: Properties) -> None:
        """Refuse cluster files that a later version wrote in a format that this one does not know."""
        runtime, directory = self._runtimes.get(str(outputs.get("runtime"))), outputs.get("directory")
        if runtime is not None and directory and (why := runtime.place(str(directory)).too_new()):
            raise ProviderError(why)

    def require_own(self, outputs: Properties, owner: str) -> None:
        """Refuse to repair what somebody else has made since then where a recorded cluster was.

        Args:
            owner: the one that this update records; an import keeps the owner that it found until then.
        """
        recorded, directory = str(outputs.get("owner")), Path(str(outputs.get("directory")))
        found = Place(directory).note().get("owner", recorded)
        if not (same_owner(found, recorded) or same_owner(found, owner)):
            raise ProviderError(
                f"{directory} now belongs to {described_owner(found)}; set another `name:` in kumulus:cluster, or "
                "destroy that one where it was made"
            )

    def move_differences(self, outputs: Properties) -> list[PropertyDifference]:
        """What changes of a recorded cluster because the user has it moved here.

        To be called after :meth:`require_here_or_moving`. The move is kept in mind for :meth:`require_consent` and
        :meth:`end_moved`.
        """
        found = self._away(outputs)
        if found is not None and self._settings.move_here and found.moving:
            self._moving[str(found.directory)] = found
            return [PropertyDifference("machine", "update" if found.taken_up else "update-replace")]
        return []

    def require_consent(self, outputs: Properties, inputs: Properties, found: Sequence[PropertyDifference]) -> None:
        """Refuse to replace an existing cluster, unless a preview has shown it or the user has allowed it.

        Args:
            inputs: as declared now; their contents say whether this is a preview.
        """
        why = [each.path for each in found if each.replaces]
        if not why or not self._is_bound(outputs.get("runtime")):
            return
        directory = str(outputs.get("directory"))
        if "status" in why or directory in self._moving:
            # A cluster that is gone has nothing to lose, and the user has consented to a move.
            self._agreed.add(directory)
        if (moving := self._moving.get(directory)) and moving.files is not None:
            # Its files were moved with the project, so the cluster is made again in their directory.
            self._agreed.add(str(moving.files))
        self._require_consent(directory, inputs, f"cluster {outputs.get('name')} would be replaced ({', '.join(why)})")

    def require_consent_to_make_again(self, directory: str, inputs: Properties) -> None:
        """Refuse likewise to make a cluster in the place of one that is there, as a forced replacement does."""
        self._require_consent(directory, inputs, f"cluster {inputs.get('name')} is there and would be made again")

    def _require_consent(self, directory: str, inputs: Properties, what: str) -> None:
        if directory in self._agreed:
            return
        preview = is_preview(inputs.get("contents"))
        if preview:
            self._shown.note(directory)
            return
        # A program does not say whether this is a preview; who runs an update that had none sets the variable.
        shown = not os.environ.get(UNSHOWN) if preview is None else self._shown.has(directory)
        if shown or self._settings.allow_replace:
            return
        raise ProviderError(
            f"{what}, {LOST}; nothing was changed. `pulumi up` shows it "
            "and asks; `pulumi config set kumulus:allowReplace true` allows it without a preview"
        )

    async def end_moved(self, outputs: Properties, recorded: RecordedControlPlane, report: Reporter) -> bool:
        """End what is left of a recorded cluster that is being moved here; False if it is not being moved.

        Of a moved project, the old cluster is deleted, and its files at the new place. A cluster on another machine is
        left as it is. One that is elsewhere and not being moved is refused.
        """
        found = self._moving.get(recorded.directory)
        if found is None:
            self.require_here(outputs)
            return False
        runtime = self._runtimes[str(outputs.get("runtime"))]
        if found.files is not None:
            # Running processes still have the path that they were started with.
            await runtime.delete(recorded, report)
            directories.remove(runtime.place(str(found.files)))
        return True

    def machine(self, runtime: str) -> dict[str, str] | None:
        """This machine, for a cluster that is here; None if its runtime is not bound to one machine."""
        if not self._is_bound(runtime):
            return None
        here = self._settings.place.here.machine
        return {"id": here.id, "name": here.name}

    def _is_bound(self, runtime: object) -> bool:
        """Whether clusters of a runtime exist only on one machine each."""
        found = self._runtimes.get(str(runtime))
        return found is not None and found.on_one_machine

    def _away(self, outputs: Properties) -> Away | None:
        return away(outputs, self._settings.place.here) if self._is_bound(outputs.get("runtime")) else None


def left_by_runs(outputs: Properties) -> str:
    """A text about changes that ended runs have left on a recorded cluster, or none. Does not use the network."""
    identity: Any = outputs.get("identity")
    return runs.left(identity) if isinstance(identity, str) and identity else ""


def require_no_run(identity: str) -> None:
    """Refuse to take a cluster away while a run is or may be under way on it. Does not use the network."""
    if identity and (who := runs.under_way(identity)):
        raise ProviderError(f"{who}; nothing was removed")


async def put_back(seen: Observed, report: Reporter) -> None:
    """Undo the changes that ended runs have left."""
    if not runs.left(seen.identity):
        return
    try:
        async with apiserver.client(Path(seen.kubeconfig)) as client:
            for line in await runs.put_back(client, seen.identity):
                report.info(line)
    except (ApiError, KubeconfigError, Unreachable, runs.RunError) as error:
        raise ProviderError(f"what a run has left is not all put back: {error}") from None
