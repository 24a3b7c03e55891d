"""Keep the stack traces short that Pulumi records of declarations."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Pulumi's own five frames, and the two nearest of ours.
_FRAMES = 7


@contextmanager
def short() -> Iterator[None]:
    """Resources declared in the block record only the nearest frames, not the whole stack down to asyncio.

    Pulumi keeps that stack in the state: 1.5 KB for every resource, a third of the state of 10,000 nodes, with paths of
    this machine; and collecting it reads source files. Pulumi has no option for it, but takes as many frames as
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
