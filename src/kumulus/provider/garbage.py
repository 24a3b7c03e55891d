"""How often Python looks for garbage in the plugin."""

from __future__ import annotations

import gc


def look_rarely() -> None:
    """Set what is loaded by now aside, and look for cycles a hundredth as often as Python does by itself.

    The objects of a request are gone with it, without a search; at thousands of requests the searches took a tenth of
    the plugin's time (docs/performance.md).
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
