"""The directories of clusters on this machine: their disk space, their privacy, and what is wrong with a place."""

import errno
import os
import pwd
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from kumulus.host import files
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.place import Place, described_owner, same_owner

_NEEDED_BYTES = 1 << 30
# etcd allocates its log in segments of 64 MB, and exits when it cannot.
_LITTLE_BYTES = 64 << 20


def prepare_home(place: Place) -> None:
    """Make the parent directory of clusters; refuses a disk that has no room for a control plane."""
    try:
        # An existing home, such as /srv, keeps its mode: each cluster's directory is private anyway.
        place.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.directory.parent.mkdir(mode=0o700, exist_ok=True)
        free = free_bytes(place.home)
    except OSError as error:
        raise ProviderError(os_error(error, place)) from None
    if free < _NEEDED_BYTES:
        raise ProviderError(
            f"no disk space: {free / 2**20:,.0f} MiB free at {place.home}, a control plane needs "
            f"{_NEEDED_BYTES / 2**20:,.0f} MiB; free some, or set KUMULUS_HOME to a directory on another disk"
        )


def no_room(directory: Path) -> str:
    """The message if the disk of a directory, which may not exist yet, has too little room left; empty if enough."""
    try:
        free = free_bytes(directory)
    except OSError:
        return ""
    if free >= _LITTLE_BYTES:
        return ""
    return f"no disk space: {free / 2**20:,.0f} MiB free at {directory}; free some, and run `pulumi up --refresh`"


def keep_private(place: Place, private: Iterable[Path]) -> None:
    """Make a cluster's directory, and these keys and kubeconfigs in it, accessible to their owner only."""
    for path in private:
        path.chmod(0o600)
    place.directory.chmod(0o700)


def remove(place: Place) -> list[str]:
    """Remove a cluster's files, and no others; returns the names of those others. Finding none is success."""
    try:
        require_own(place)
        left = place.foreign()
        # The note last, so that a killed removal leaves a directory that is recognised as a cluster's.
        found = [file for file in place.directory.iterdir() if file.name not in left and file != place.note_file]
        for file in [*found, place.note_file]:
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)
        if not left:
            place.directory.rmdir()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ProviderError(f"{error.filename or place.directory} cannot be removed: {error.strerror}") from None
    return left


def require_own(place: Place) -> None:
    """Refuse to change a place that is no directory, or another user's."""
    if wrong := _not_a_directory_of_ours(place.directory):
        raise ProviderError(f"{wrong}; it is left alone: remove it by hand")


def clear_up(place: Place, left: list[str], report: Reporter) -> None:
    """Report the files that :func:`remove` left; without a cluster, the parent directories go, too."""
    if left:
        report.warn(f"{place.directory} has files that are not the cluster's ({', '.join(left)}); they are left alone")
    for empty in (place.directory.parent, place.home):
        with suppress(OSError):
            empty.rmdir()


def not_ours(place: Place, owner: str) -> str:
    """The message that another owner has a place by now."""
    return f"{place.directory} now belongs to {described_owner(owner)}; it is left alone"


def require_free(place: Place, owner: str, *, preview: bool = False) -> None:
    """Refuse a place that belongs to somebody else or contains somebody else's files; nothing is changed.

    The owner is the new cluster's, whose interrupted runs may have left files there; empty where it is not known. In a
    preview, there may still be a cluster of any runtime, which an update would delete first.
    """
    remedy = "set another `name:` in kumulus:cluster, or KUMULUS_HOME to another directory"
    try:
        # The home may be a link that the user has chosen; below it, only we create anything.
        if problem := _of_another_user(place.home):
            raise ProviderError(f"{problem}; set KUMULUS_HOME to a directory of your own")
        for directory in (place.directory.parent, place.directory):
            if problem := _not_a_directory_of_ours(directory):
                raise ProviderError(f"{problem}; {remedy}")
        if not place.directory.exists():
            return
        if newer := place.too_new():
            raise ProviderError(newer)
        made_by = place.note().get("owner")
        if made_by is not None and owner and not same_owner(made_by, owner):
            # It may be this stack's own cluster: a stack whose resource has got another name has lost its identity.
            looks_like_ours = described_owner(made_by) == described_owner(owner)
            alias = ", or give its resource an alias if it had another name before" if looks_like_ours else ""
            raise ProviderError(
                f"a cluster named {place.name!r} that this stack did not make is at {place.directory} (made by "
                f"{described_owner(made_by)}); set another `name:` in kumulus:cluster, or destroy that one where it "
                f"was made{alias}"
            )
        foreign = place.foreign_to_all() if preview else place.foreign()
        if made_by is None:
            # Without a note, nothing proves who owns the kubeconfig.yaml there.
            names = {file.name for file in place.directory.iterdir()}
            foreign = sorted(names - place.OURS_WITHOUT_NOTE)
    except OSError as error:
        raise ProviderError(os_error(error, place)) from None
    if foreign:
        which = listed(foreign, 3)
        raise ProviderError(f"{place.directory} has files that are not this stack's ({which}); {remedy}, or clear it")


def _of_another_user(directory: Path) -> str:
    """A message that a directory is another user's; empty when it is ours, the administrator's, or missing."""
    try:
        owner = directory.stat().st_uid
    except FileNotFoundError:
        return ""
    if owner in (os.geteuid(), 0):
        return ""
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = str(owner)
    return f"{directory} belongs to the user {name}"


def _not_a_directory_of_ours(path: Path) -> str:
    """A message about what a path is instead of a directory of ours; empty when it is one, or missing."""
    if path.is_symlink():
        return f"{path} is a symbolic link to {os.readlink(path)}"
    if path.exists() and not path.is_dir():
        return f"{path} is not a directory"
    return _of_another_user(path)


def os_error(error: OSError, place: Place, *, made: bool = False) -> str:
    """The message for an error of the file system, with the remedy.

    A cluster that is `made` stays where it is; one that is being made can have another directory.
    """
    again = "run `pulumi up --refresh`"
    if error.errno == errno.ENOSPC:
        remedy = f"and {again}" if made else "or set KUMULUS_HOME to a directory on another disk"
        return f"no disk space left at {place.home}; free some, {remedy}"
    reason = error.strerror or str(error) or type(error).__name__
    remedy = f"put that right, and {again}" if made else "KUMULUS_HOME can name another directory"
    return f"{error.filename or place.directory}: {reason}; {remedy}"


def free_bytes(path: Path) -> int:
    """Bytes free for us on the file system of a path that may not exist yet."""
    while not path.exists():
        path = path.parent
    state = os.statvfs(path)
    return state.f_bavail * state.f_frsize


@asynccontextmanager
async def exclusive(place: Place, report: Reporter | None = None) -> AsyncIterator[bool]:
    """Let only one run at a time change a cluster; what it waits for is reported.

    Yields whether another run held the lock first: then the cluster may be no longer what it was, or whose it was.
    ProviderError if there can be no lock, as on a disk that has become read-only.
    """
    path = lock_file(place)

    def waits() -> None:
        if report is not None:
            report.status(waiting(place.name))

    try:
        lock, waited = await files.take_lock(path, waits)
    except OSError as error:
        raise ProviderError(os_error(error, place, made=place.directory.exists())) from None
    try:
        yield waited
    finally:
        if not place.directory.exists():
            path.unlink(missing_ok=True)
        os.close(lock)


def waiting(cluster: str) -> str:
    """What is said while another run changes a cluster."""
    return f"waiting for another run, which changes cluster {cluster}"


def lock_file(place: Place) -> Path:
    """The file whose lock a run holds while it changes a cluster."""
    return place.home / "clusters" / f".{place.name}.lock"
