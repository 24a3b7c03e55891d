"""Why a stack refuses an existing cluster, in words: what is wrong, where, and what to do."""

from __future__ import annotations

from kumulus.kube import ApiError, Unreachable
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.existing.source import Source

GONE_FOR_GOOD = "if that cluster is gone for good, `pulumi stack rm --force` forgets what was in it"


def another_cluster(context: Source, identity: str, actual: str) -> ProviderError:
    """The context leads to another cluster than at the last update."""
    return ProviderError(
        f"{context} leads to another cluster: the UID of its namespace kube-system is {actual}, and was {identity} at "
        f"the last update; nothing was changed. Point the context back to the stack's cluster; {GONE_FOR_GOOD}"
    )


def not_allowed(context: Source, lacking: str) -> ProviderError:
    """Permissions are missing."""
    return ProviderError(
        f"{context}: the user {context.user!r} lacks permissions that this stack needs: {lacking}. "
        "docs/clusters.md has roles to grant them; nothing was changed"
    )


def not_asked(context: Source, error: ApiError | Unreachable) -> ProviderError:
    """The server does not answer, or not to this user."""
    if isinstance(error, Unreachable):
        return ProviderError(
            f"{context}: {error}; nothing was changed. When it answers, run this again; {GONE_FOR_GOOD}"
        )
    if error.status == 401:
        return ProviderError(
            f"{context}: {context.server} does not accept the credentials of the user {context.user!r} (401 "
            "Unauthorized): they may have expired; renew them, for example by logging in again, and run this again"
        )
    if error.status == 403:
        return not_allowed(context, f"namespaces: get ({error.message})")
    return ProviderError(f"{context}: {error}; nothing was changed")
