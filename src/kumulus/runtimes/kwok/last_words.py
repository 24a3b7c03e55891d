"""What a component's log says last, in the message of an error about it."""

from __future__ import annotations

from kumulus.host import inotify
from kumulus.runtimes.kwok.layout import Layout


def with_log(message: str, layout: Layout, component: str) -> str:
    """Add the last lines of a component's log to a message, and what to do about a cause that is known.

    Args:
        message: what is wrong.
        layout: the cluster.
        component: one of its components.

    Returns:
        the message; as it is if the log is empty or missing.
    """
    tail = layout.log_tail(component)
    if not tail:
        return message
    if inotify.refused(tail):
        message += f"\n  {_no_instance()}"
    return f"{message}\n  last lines of the log of {component}:\n{tail}"


def _no_instance() -> str:
    most = inotify.limit()
    bound = f"the limit of {most} " if most is not None else "a limit "
    return (
        f"There are no inotify instances left: {bound}is for all of a user's programs together, and each cluster takes "
        f"seven to nine. Raise it and run `pulumi up` again: {inotify.remedy(2 * (most or 0))}"
    )
