"""``kumulus:index:ReleaseReady``: waits for a Helm release's workloads, including those that operators create.

It is declared after a release that nothing else waits for. See docs/decisions/observability.md.
"""

import asyncio
import time
from typing import ClassVar

from kumulus.extras.watch.readiness import Readiness, look
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError
from kumulus.provider.properties import INTEGER, NUMBER, Property
from kumulus.provider.resources.base import Operation, Properties, known
from kumulus.provider.resources.in_cluster import WORK_PATIENCE
from kumulus.provider.resources.release import OfRelease

_EVERY = 1.0
# Longer than a pod takes to start if its image is present; after that, the user sees the reason for the wait.
_QUIET = 20.0
_MOST_REASONS = 4
_REMEDY = (
    "have the nodes reach the images' registry, load the images into them (with runtime kind: loadImages), or name "
    "others in prometheusStack.valuesObject; kubectl describe pod tells more; then run the update again"
)


class ReleaseReady(OfRelease):
    """That what a Helm release has in the cluster has come up, and what operators make of it."""

    token: ClassVar[str] = "kumulus:index:ReleaseReady"
    inputs: ClassVar = (
        *OfRelease.inputs,
        Property("revision", INTEGER, "The release's revision; another one is waited for again."),
        Property("timeout", NUMBER, "How many seconds to wait.", required=True),
    )

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InCluster.make`: waits until the release is ready."""
        begun, reported, shown = time.monotonic(), False, ""
        patience = float(known(inputs, "timeout"))
        where = self.title(inputs)
        while True:
            with self.needing_cluster(inputs):
                client = await self.client(inputs, WORK_PATIENCE)
                found = await look(client, str(known(inputs, "namespace")), str(known(inputs, "name")))
            if not found.waiting:
                op.report.status(found.counted, last=True)
                return inputs
            waited = time.monotonic() - begun
            if waited >= patience:
                raise ProviderError(f"{where} is not ready after {patience:.0f} s: {_why(found)}; {_REMEDY}")
            status = f"{found.counted}{f': {found.reasons[0]}' if found.reasons else ''}"
            if status != shown:
                # Each status is a separate line if the output is not a terminal.
                op.report.status(status)
                shown = status
            if waited >= _QUIET and found.reasons and not reported:
                reported = True
                op.report.warn(f"waiting up to {patience:.0f} s for {_why(found)}")
            try:
                await asyncio.wait_for(op.stop.wait(), _EVERY)
            except TimeoutError:
                continue
            raise ProviderError(f"{where}: cancelled while waiting for {_why(found)}")


def _why(found: Readiness) -> str:
    """The reasons that pods give for waiting, or else the workloads that are waiting."""
    reasons = found.reasons or found.waiting
    return listed(reasons, _MOST_REASONS, "; ")
