"""What is changed of the cluster before a run, and what others changed during it: snapshots, autoscalers, cordons."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.journal import autoscaling
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.errors import JournalError
from kumulus.extras.journal.snapshots import restore
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.scaling.applying import LABEL
from kumulus.extras.scaling.karpenter.objects import CAPACITY_TYPE, node_class, node_pool
from kumulus.extras.snapshots.file import SUFFIX, DamagedSnapshot
from kumulus.kube import ApiError, Unreachable
from kumulus.kube.objects import NODES
from kumulus.model.words import counted, listed
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.existing.source import outlives_by_note

if TYPE_CHECKING:
    from kumulus.extras.lab.file.model import Beginning
    from kumulus.kube import Client

_SOON = 5.0


@asynccontextmanager
async def autoscaled(
    client: Client, journal: Journal, experiment: ExperimentSpec, say: Callable[[str], None]
) -> AsyncIterator[None]:
    """Give the autoscaler what the experiment specifies, and put the stack's own back afterwards.

    Args:
        experiment: without the section `autoscaler`, nothing is done.
    """
    wanted = experiment.autoscaler
    if wanted is None:
        yield
        return
    there = await autoscaling.pools(client)
    if there is None:
        raise LabError(
            "the experiment has pools for an autoscaler, and the cluster has none; write autoscaler: in its stack "
            "file, and `pulumi up`"
        )
    pools = None
    if wanted.nodePools:
        offered = sorted({value for pool in there for value in _capacity_types(pool)})
        pools = [node_pool(each.model_dump(), offered) for each in wanted.nodePools]
        for each in pools:
            # Labelled like the stack's own, so that `up` deletes it if nothing else has.
            each["metadata"]["labels"] = {LABEL: wanted.name}
    changed = None
    if wanted.registrationDelay is not None:
        # The models of a whole stack file, which no other run needs.
        from kumulus.extras.scaling.machines import delays

        changed = node_class(delays(wanted.registrationDelay, f"{experiment.name}/{experiment.seed}"))
    try:
        await autoscaling.exchange(client, journal, pools, changed)
        yield
    finally:
        await _put_back(client, journal, say)


async def _put_back(client: Client, journal: Journal, say: Callable[[str], None]) -> None:
    exchanged = journal.changes.autoscaler
    if exchanged is None:
        return
    try:
        await autoscaling.put_back(client, exchanged)
        journal.drop(autoscaler=None)
    except (JournalError, ApiError, Unreachable) as error:
        say(f"the autoscaler has not all of the stack's pools again, the next command will see to it: {error}")


def _capacity_types(pool: dict[str, Any]) -> list[str]:
    requirements = pool["spec"]["template"]["spec"].get("requirements") or []
    return [value for each in requirements if each["key"] == CAPACITY_TYPE for value in each.get("values") or ()]


@asynccontextmanager
async def cordons_reported(client: Client, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Say in the end which nodes are cordoned that were not before: by an operator, as a run cordons none itself."""
    before = await _cordoned(client)
    yield
    after = await _cordoned(client)
    if before is not None and after is not None and (left := sorted(after - before)):
        are = f"{counted(len(left), 'node')} {'is' if len(left) == 1 else 'are'} cordoned, and not before the run"
        say(f"{are}; to undo: kubectl uncordon {listed(left, separator=' ')}")


async def _cordoned(client: Client) -> set[str] | None:
    """The names of the cordoned nodes; None where nothing answers soon, or the user may not see nodes."""
    with suppress(ApiError, Unreachable, TimeoutError):
        async with asyncio.timeout(_SOON):
            page = await client.get(NODES, {"fieldSelector": "spec.unschedulable=true"})
        return {each["metadata"]["name"] for each in page["items"]}
    return None


async def begin_from(
    client: Client, journal: Journal, wanted: Beginning, snapshots: Path, kubeconfig: Path, stop: asyncio.Event
) -> str:
    """Restore a snapshot; returns a line about what was done."""
    name = wanted.snapshot
    file = snapshots / f"{Path(name).name}{SUFFIX}"
    _require(file, name)
    if outlives_by_note(kubeconfig) and not wanted.allowDeletion:
        raise LabError(
            "from: the cluster is others', too, and a restore deletes what was created since in the snapshot's "
            "namespaces; write allowDeletion: true below from, if that is meant"
        )
    try:
        done = await restore(client, journal, kubeconfig, file, stop)
    except (ProviderError, DamagedSnapshot) as error:
        raise LabError(f"from: snapshot {name}: {error}") from None
    except OSError as error:
        raise LabError(f"from: snapshot {name}: {error.strerror or error}") from None
    return f"begins from the snapshot {name}: {done.summary}"


def _require(file: Path, name: str) -> None:
    """Refuse a snapshot that is not there; says which are."""
    if not file.is_file():
        there = ", ".join(sorted(each.name.removesuffix(SUFFIX) for each in file.parent.glob(f"*{SUFFIX}")))
        remedy = f"there are {there}" if there else f"make it: kumulus snapshot save {name}"
        raise LabError(f"from: there is no snapshot {name}; {remedy}")
