"""How often Python's garbage collector runs in the plugin."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Freeze the objects loaded so far, and collect cycles a hundredth as often as Python does by default.

    Reference counting frees a request's objects; with thousands of requests, collections took a tenth of the plugin's
    time (docs/performance.md).
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
