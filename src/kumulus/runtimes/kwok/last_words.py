"""What a component's log says last, in the message of an error about it."""

from __future__ import annotations

from kumulus.host import inotify
from kumulus.runtimes.kwok.layout import Layout


def with_log(message: str, layout: Layout, component: str) -> str:
    """Add the last lines of a component's log to a message, and what to do about a cause that is known.

    Returns:
        the message; as it is if the log is empty or missing.
    """
    tail = layout.log_tail(component)
    if not tail:
        return message
    if remedy := inotify.shortage(tail):
        message += f"\n  {remedy}"
    return f"{message}\n  last lines of the log of {component}:\n{tail}"
