"""How many files and connections this process may have open at once."""

from __future__ import annotations

import resource
from contextlib import suppress

ENOUGH = 65_536
"""More than a hundred clusters' connections, in a table that costs nothing until it is used."""


def allow(enough: int = ENOUGH) -> int:
    """Raise this process's limit of open files as far as its user may, as Go's programs do at their start.

    Most systems begin with 1,024 for the sake of programs that use select(2), which this one does not, and allow far
    more. Programs that are started later inherit the limit.

    Args:
        enough: the limit is not raised beyond it, and not lowered.

    Returns:
        the limit now.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = enough if most == resource.RLIM_INFINITY else min(most, enough)
    if now in (resource.RLIM_INFINITY, wanted) or now > wanted:
        return now
    # A system may allow less than it says, as macOS does.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
