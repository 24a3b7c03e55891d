"""Keep what Pulumi remembers of a declaration short."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Pulumi's own five frames, and the two nearest of ours.
_FRAMES = 7


@contextmanager
def short() -> Iterator[None]:
    """Have the resources that are declared meanwhile record where, and not the whole stack of calls down to asyncio.

    Pulumi keeps that stack in the state: 1.5 KB of every resource, a third of the state of 10,000 nodes, with paths of
    this machine in it; and collecting it reads source files. It has no option for it, but takes as many frames as
    Python's ``sys.tracebacklimit`` allows (``traceback.extract_stack``).
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = _FRAMES
    try:
        yield
    finally:
        if before is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = before
