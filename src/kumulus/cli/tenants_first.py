"""Before a cluster that teams share is taken down: what their stacks still have in it, and what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.model.words import listed

ALL_THE_SAME = "--with-tenants"
_PATIENCE = 5.0
_NAMED = 3


def require_empty(stack: str, kubeconfig: Path) -> None:
    """Refuse while other stacks have objects in a tenant's namespace, unless the cluster does not answer.

    Raises:
        UserError: they do; says what they have, and what to do.
    """
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    try:
        found = asyncio.run(_look(kubeconfig))
    except (ApiError, KubeconfigError, Unreachable):
        return
    if found:
        raise UserError(refusal(stack, found))


def refusal(stack: str, found: dict[str, list[str]]) -> str:
    """The message of the refusal.

    Args:
        found: what is in each namespace.
    """
    lines = [f"{stack} is shared, and other stacks have something in it: their own destroy needs this cluster"]
    lines += [f"  {namespace}: {listed(made, _NAMED)}" for namespace, made in found.items()]
    return "\n".join(
        [
            *lines,
            "  First, in each team's project: pulumi destroy",
            f"  To take {stack} down all the same: add {ALL_THE_SAME}; the teams then write",
            "  PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy",
        ]
    )


async def _look(kubeconfig: Path) -> dict[str, list[str]]:
    from kumulus.kube import Client, load_kubeconfig
    from kumulus.nodes.guests import guests

    async with Client(load_kubeconfig(kubeconfig), patience=_PATIENCE) as client:
        return await guests(client)
