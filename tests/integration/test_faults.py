"""A pool whose requests are cut, refused, failed and delayed: it goes on, and past a deadline says how far it got."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.pools.observe import Patience
from kumulus.provider.resources import pool_properties
from kumulus.provider.resources.base import Properties
from tests.integration.conftest import Plane, Pools, operation
from tests.support.faultproxy import FaultProxy, Harm, Kind
from tests.support.said import Said
from tests.support.trials import soaking

pytestmark = pytest.mark.integration
COUNT = 150
# More than can be under way at once: some are done, some are not, and some have not been begun.
LARGE = 450
CUTS: tuple[Kind, ...] = ("cut", "lost answer", "half an answer")


class Far:
    """Pools that reach their control plane through a proxy."""

    def __init__(self, pools: Pools, proxy: FaultProxy, kubeconfig: Path) -> None:
        self.pools, self.proxy = pools, proxy
        self._kubeconfig = str(kubeconfig)

    def inputs(self, replicas: int, name: str | None = None, **template: Any) -> Properties:
        return {**self.pools.inputs(replicas, name, **template), "kubeconfig": self._kubeconfig}

    def outage(self, seconds: float | None = None) -> Said:
        """A reporter at whose first word every connection is cut and no new one taken, for a while or for good."""
        said = Said()

        def refuse(_: str) -> None:
            said.on_status = None
            self.proxy.refuse()
            if seconds is not None:
                asyncio.get_running_loop().call_later(seconds, self.proxy.accept)

        said.on_status = refuse
        return said


@pytest.fixture
def proxy(plane: Plane) -> Iterator[FaultProxy]:
    with FaultProxy(plane.directory) as made:
        yield made


@pytest.fixture
async def far(proxy: FaultProxy, pools: Pools, tmp_path: Path) -> Far:
    return Far(pools, proxy, proxy.kubeconfig(tmp_path / "kubeconfig.yaml"))


ALL = Harm((*CUTS, "429", "500", "slow"), share=0.2, delay=0.5)
EACH = [
    Harm(CUTS, share=0.2),
    Harm(("429",), share=0.1),
    Harm(("500",), share=0.3),
    Harm(("slow",), share=0.3, delay=0.5),
]


@pytest.mark.parametrize("harm", [*EACH, ALL] if soaking() else [ALL], ids=lambda harm: " ".join(harm.kinds))
async def test_a_pool_is_made_changed_and_removed_whatever_happens_to_its_requests(far: Far, harm: Harm) -> None:
    inputs = far.inputs(COUNT)
    far.proxy.harm(harm)
    assert await far.pools.create(inputs) == inputs
    made = far.pools.uids(inputs)
    assert made.keys() == {f"{inputs['name']}-{ordinal}" for ordinal in range(COUNT)}

    changed = far.inputs(COUNT - 30, inputs["name"], labels={"team": "ads"})
    assert await far.pools.update(changed, inputs) == changed
    nodes = far.pools.nodes(inputs)
    assert {name: made[name] for name in nodes} == far.pools.uids(inputs)
    assert nodes.keys() == {f"{inputs['name']}-{ordinal}" for ordinal in range(COUNT - 30)}
    assert {node["metadata"]["labels"]["team"] for node in nodes.values()} == {"ads"}

    await far.pools.delete(changed)
    assert far.pools.nodes(inputs) == {}
    assert set(far.proxy.done) == set(harm.kinds)
    far.proxy.harm(None)


async def test_an_outage_of_two_seconds_is_waited_for(far: Far) -> None:
    inputs = far.inputs(COUNT)
    started = time.monotonic()
    assert await far.pools.create(inputs, far.outage(2)) == inputs
    assert time.monotonic() - started > 2
    assert len(far.pools.nodes(inputs)) == COUNT


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that stays away is looked at for three seconds afterwards, and not for as long as a busy one needs."""
    monkeypatch.setattr(pool_properties, "CALM", Patience(whole=3.0, still=1.0))


@pytest.mark.usefixtures("hurried")
async def test_past_its_deadline_a_create_says_what_was_done_and_the_next_goes_on(far: Far) -> None:
    inputs = far.inputs(LARGE)
    with pytest.raises(PartialFailure) as raised:
        await far.pools.create(inputs, far.outage(), timeout=8)
    far.proxy.accept()
    there = len(far.pools.nodes(inputs))
    assert 0 < there < LARGE
    said = re.search(r"nodes: (\d+) created; (\d+) left to do: ", str(raised.value))
    assert said is not None
    done, left = map(int, said.groups())
    # An answer that was cut leaves the client in the dark: such a node counts as not done.
    assert done <= there
    assert done + left == LARGE
    assert raised.value.outputs["replicas"] == done
    # Nobody could look what is there: the next run does.
    assert raised.value.outputs["drift"]["missing"] == "not known: the cluster does not answer"
    assert "`pulumi up --refresh` brings a cluster back that is down" in str(raised.value)

    assert await far.pools.update(inputs, raised.value.outputs) == inputs
    assert len(far.pools.nodes(inputs)) == LARGE


@pytest.mark.usefixtures("hurried")
async def test_past_its_deadline_an_update_records_what_was_done_and_the_next_goes_on(far: Far) -> None:
    inputs = far.inputs(LARGE)
    await far.pools.create(inputs)
    changed = far.inputs(LARGE, inputs["name"], labels={"team": "ads"})
    said = Said()
    said.on_status = lambda _: far.proxy.harm(Harm(("429",)))
    with pytest.raises(PartialFailure) as raised:
        await far.pools.update(changed, inputs, said, timeout=6)
    far.proxy.harm(None)
    teams = Counter(node["metadata"]["labels"]["team"] for node in far.pools.nodes(inputs).values())
    assert 0 < teams["ads"] < LARGE
    said_of = re.search(r"nodes: (\d+) changed; (\d+) left to do: ", str(raised.value))
    assert said_of is not None
    done, left = map(int, said_of.groups())
    assert done <= teams["ads"], "an answer that did not come in time counts as not done"
    assert done + left == LARGE
    assert "not finished within 6 s, the time allowed for it (customTimeouts)" in str(raised.value)

    found = await far.pools.read(changed)
    assert found is not None
    assert await far.pools.update(changed, found.outputs) == changed
    assert await far.pools.drift(changed) == {}


async def test_past_its_deadline_a_delete_says_what_was_done_and_the_next_goes_on(far: Far) -> None:
    inputs = far.inputs(LARGE)
    await far.pools.create(inputs)
    with pytest.raises(ProviderError) as raised:
        await far.pools.resource.delete(operation(far.outage(), timeout=8), "id", inputs)
    far.proxy.accept()
    assert 0 < len(far.pools.nodes(inputs)) < LARGE
    assert re.search(rf"pool {inputs['name']}: nodes: \d+ removed; \d+ left to do: ", str(raised.value))
    await far.pools.delete(inputs)
    assert far.pools.nodes(inputs) == {}
