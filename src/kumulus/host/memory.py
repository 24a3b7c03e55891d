"""How much memory there is: the machine's, or as much of it as a container's limit allows."""

from pathlib import Path

import psutil

# The limits of control groups, versions 2 and 1; a container sees its own limit there.
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")


def total(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory that programs started here may use together."""
    found = [int(psutil.virtual_memory().total)]
    for name in _LIMITS:
        try:
            text = (groups / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return min(found)
