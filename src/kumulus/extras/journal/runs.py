"""The journals of runs, as the core asks about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kumulus.extras.journal import book
from kumulus.nodes.runs import Runs

if TYPE_CHECKING:
    from kumulus.kube import Client


class _Journals(Runs):
    def under_way(self, identity: str) -> str:
        """See :meth:`Runs.under_way`."""
        return book.under_way(identity)

    def left(self, identity: str) -> str:
        """See :meth:`Runs.left`; what another command has to finish, an update cannot put back."""
        runs = [each.changes for each in book.unrestored(identity) if not each.changes.finish]
        names = [f"{each.command} run {each.run}" for each in runs]
        return f"as {', '.join(names)} has left it" if names else ""

    async def put_back(self, client: Client, identity: str | None = None) -> list[str]:
        """See :meth:`Runs.put_back`."""
        # Imported here: a plugin that only compares properties needs no HTTP library.
        from kumulus.extras.journal import recover

        if identity is None:
            return await recover.recover(client)
        return await recover.recover_cluster(client, identity) if book.unrestored(identity) else []

    def forget(self, identity: str) -> None:
        """See :meth:`Runs.forget`."""
        book.discard(identity)


RUNS = _Journals()
