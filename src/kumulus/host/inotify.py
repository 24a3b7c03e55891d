"""inotify instances: a user's programs share a limit of them, 128 unless the machine's administrator raises it.

Kubernetes' components take one for each certificate, token or configuration file that they watch; a control plane
takes seven. If there is none left, they look at their files now and then instead, but Kueue ends (inotify(7), "/proc
interfaces").
"""

import os
import re
from contextlib import suppress
from pathlib import Path

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
SETTING = "fs.inotify.max_user_instances"
_PROCESSES = Path("/proc")
_INSTANCE = "anon_inode:inotify"
# As Go's runtime and github.com/fsnotify/fsnotify name EMFILE of inotify_init1(2).
_REFUSED = re.compile(r"(?:inotify|fsnotify).*too many open files", re.IGNORECASE)


def limit(file: Path = LIMIT) -> int | None:
    """How many instances each user may have; None on a system without inotify."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def used(processes: Path = _PROCESSES) -> int:
    """How many instances this user's processes have; those shared by several processes count for each."""
    count = 0
    for process in processes.iterdir():
        # It may end meanwhile, and other users' are not to be looked into.
        with suppress(OSError):
            if process.name.isdigit() and process.stat().st_uid == os.getuid():
                count += sum(map(_is_instance, (process / "fd").iterdir()))
    return count


def refused(log: str) -> bool:
    """Whether a program says in its log that it got no instance."""
    return _REFUSED.search(log) is not None


def shortage(log: str) -> str:
    """A sentence on what to do if a program says in its log that it got no instance; empty if it does not."""
    if not refused(log):
        return ""
    most = limit()
    bound = f"the limit of {most} " if most is not None else "a limit "
    return (
        f"There are no inotify instances left: {bound}is for all of a user's programs together, and each cluster takes "
        f"seven to nine. Raise it and try again: {remedy(2 * (most or 0))}"
    )


def remedy(enough: int) -> str:
    """What an administrator may do about it, in one line.

    Args:
        enough: the limit to set at least; the one proposed is 1,024 or more.
    """
    return f"`sudo sysctl {SETTING}={max(1024, enough)}`; a line in /etc/sysctl.d keeps it"


def _is_instance(descriptor: Path) -> bool:
    with suppress(OSError):
        return os.readlink(descriptor) == _INSTANCE
    return False
