"""Runs of extras that change a cluster for a while (experiments, questions, restores), as the core asks about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kumulus.host import extras

if TYPE_CHECKING:
    from kumulus.kube import Client


class RunError(Exception):
    """What a run has left cannot be put back, or not now; the message says what to do."""


class Runs(Protocol):
    """What an extra knows of its runs. A cluster is named by its identity; nothing but `put_back` uses the network."""

    def under_way(self, identity: str) -> str:
        """Which run is or may be under way on a cluster, with the remedy; empty if none is."""

    def left(self, identity: str) -> str:
        """Which ended runs have left what `put_back` undoes, as ``as experiment run 3 has left it``; empty for none."""

    async def put_back(self, client: Client, identity: str | None = None) -> list[str]:
        """Undo what ended runs have left, and say each change.

        Args:
            identity: the cluster's; asked for if it is not given.

        Raises:
            RunError: not all of it can be undone.
        """

    def forget(self, identity: str) -> None:
        """The cluster is gone, and with it all that runs have left on it."""


def every() -> list[Runs]:
    """The runs of each extra that has some."""
    return extras.brought("runs")


def under_way(identity: str) -> str:
    """See :meth:`Runs.under_way`; of the first extra that has one."""
    return next(filter(None, (each.under_way(identity) for each in every())), "")


def left(identity: str) -> str:
    """See :meth:`Runs.left`; of the first extra that has left something."""
    return next(filter(None, (each.left(identity) for each in every())), "")


def forget(identity: str) -> None:
    """See :meth:`Runs.forget`; of every extra."""
    for each in every():
        each.forget(identity)


async def put_back(client: Client, identity: str | None = None) -> list[str]:
    """See :meth:`Runs.put_back`; of every extra."""
    return [line for each in every() for line in await each.put_back(client, identity)]
