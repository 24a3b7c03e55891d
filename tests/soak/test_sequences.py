"""Any sequence of specs, drift and cut-off runs ends in exactly the declared nodes, on a real control plane.

A run is cut off by cancelling its task between two requests, with the work in progress not recorded. A kill of the
process, which test_kills tests, has the same effect on the cluster, with less control of the moment.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kumulus.model.pools import POOL_LABEL
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from tests.integration.conftest import NODES, Plane, Pools, default_plane, operation, plane
from tests.support.said import Said
from tests.support.trials import Trial, note, soaking

pytestmark = pytest.mark.integration
__all__ = ["default_plane", "plane"]

names = st.sampled_from(["p-a", "p-b", "q-a"])
specs = st.fixed_dictionaries(
    {
        "replicas": st.integers(0, 25),
        "labels": st.dictionaries(
            st.sampled_from(["team", "rack", "example.com/x"]), st.sampled_from("abc"), max_size=2
        ),
        "annotations": st.dictionaries(st.sampled_from(["example.com/note", "n"]), st.sampled_from("abc"), max_size=2),
        "taints": st.lists(
            st.fixed_dictionaries(
                {
                    "key": st.sampled_from(["dedicated", "example.com/t"]),
                    "value": st.sampled_from(["", "v"]),
                    "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule"]),
                }
            ),
            max_size=2,
            unique_by=lambda taint: (taint["key"], taint["effect"]),
        ),
        "capacity": st.fixed_dictionaries(
            {"cpu": st.sampled_from(["4", "8"]), "memory": st.just("16Gi"), "pods": st.just("110")},
            optional={"nvidia.com/gpu": st.sampled_from(["1", "8"])},
        ),
    }
)
# Pools by name; changes to nodes behind the plugin's back; and whether the run that follows is cut off early.
steps = st.tuples(
    st.dictionaries(names, specs, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(["delete", "label", "unlabel", "taint", "intrude"]), st.integers(0, 24)), max_size=4
    ),
    st.none() | st.integers(0, 30),
)


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def drift(plane: Plane, kind: str, index: int) -> None:
    """Change one of the existing nodes."""
    nodes = sorted(node["name"] for node in plane.api.metadata(NODES))
    if not nodes:
        return
    name = nodes[index % len(nodes)]
    path = f"{NODES}/{name}"
    if kind == "delete":
        plane.api.delete(path)
    elif kind == "label":
        plane.api.merge(path, {"metadata": {"labels": {"team": "drifted", "theirs.example.com/kept": "yes"}}})
    elif kind == "unlabel":
        plane.api.merge(path, {"metadata": {"labels": {POOL_LABEL: None}}})
    elif kind == "taint":
        plane.api.merge(path, {"spec": {"taints": [{"key": "theirs", "effect": "NoExecute"}]}})
    else:
        # One intruder in a pool for each index: another step may have made this one already.
        pool = name.rpartition("-")[0]
        intruder = f"{pool}-intruder{index}"
        if intruder not in nodes:
            plane.api.create(NODES, {"metadata": {"name": intruder, "labels": {POOL_LABEL: pool}}})


class Stack:
    """The engine's part in an ``up --refresh``, with the plugin's own resource; when cut off, it forgets its work.

    Attributes:
        struck: how many runs were cut off during their work.
    """

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.state: dict[str, tuple[Properties, Properties]] = {}
        self.struck = 0

    async def up(self, pools: dict[str, Any], cut_after: int | None) -> None:
        connections = Connections()
        found = Pools.on(self.plane, connections)
        said = Said()
        task = asyncio.ensure_future(self._up(found, pools, said))
        if cut_after is not None:
            # Between two requests, with the work in progress not recorded.
            asyncio.get_running_loop().call_later(cut_after / 100, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            self.struck += 1
        finally:
            await connections.close()

    async def _up(self, found: Pools, pools: dict[str, Any], said: Said) -> None:
        for name, (inputs, outputs) in list(self.state.items()):
            seen = await found.read(inputs, outputs)
            if seen is None:
                del self.state[name]
            else:
                self.state[name] = (inputs, seen.outputs)
        for name, spec in pools.items():
            inputs = found.inputs(**{**spec, "name": name})
            known = self.state.get(name)
            if known is None:
                outputs = (await found.resource.create(operation(said), inputs))[1]
            elif found.resource.diff(known[1], inputs):
                op = operation(said, old_inputs=known[0])
                outputs = await found.resource.update(op, "id", known[1], inputs)
            else:
                outputs = known[1]
            self.state[name] = (inputs, outputs)
        for name in [name for name in self.state if name not in pools]:
            op = operation(said, old_inputs=self.state[name][0])
            await found.resource.delete(op, "id", self.state[name][1])
            del self.state[name]

    def faults(self, pools: dict[str, Any]) -> list[str]:
        """Where the nodes are not exactly as declared."""
        nodes = {node["metadata"]["name"]: node for node in self.plane.api.list(NODES)}
        wanted = {f"{name}-{n}": spec for name, spec in pools.items() for n in range(spec["replicas"])}
        found = [f"{name} is missing" for name in wanted.keys() - nodes.keys()]
        found += [f"{name} is too many" for name in nodes.keys() - wanted.keys()]
        for name in wanted.keys() & nodes.keys():
            found += [f"{name}: {fault}" for fault in node_faults(nodes[name], wanted[name])]
        return found


def node_faults(node: dict[str, Any], spec: dict[str, Any]) -> list[str]:
    """Which fields of a node are not as its pool's spec says."""
    labels, annotations = node["metadata"]["labels"], node["metadata"]["annotations"]
    theirs = {"theirs"}
    taints = {(t["key"], t["effect"]): t.get("value", "") for t in node["spec"].get("taints", [])}
    taints = {key: value for key, value in taints.items() if key[0] not in theirs}
    if "team" not in spec["labels"] and labels.get("team") == "drifted":
        # Another owner's label, as long as the pool declares none of that name.
        labels = {key: value for key, value in labels.items() if key != "team"}
    have = {
        "labels": {key: labels[key] for key in ("team", "rack", "example.com/x") if key in labels},
        "annotations": {key: annotations[key] for key in ("example.com/note", "n") if key in annotations},
        "taints": taints,
        "capacity": node["status"]["capacity"],
        "allocatable": node["status"]["allocatable"],
    }
    want = {
        "labels": spec["labels"],
        "annotations": spec["annotations"],
        "taints": {(t["key"], t["effect"]): t["value"] for t in spec["taints"]},
        "capacity": spec["capacity"],
        "allocatable": spec["capacity"],
    }
    return [f"{field} are {have[field]} instead of {want[field]}" for field in want if have[field] != want[field]]


EXACT = "exact after the last up"
FAULT = "a random sequence of specs, drift and cut-off runs"


def test_any_sequence_of_specs_drift_and_cut_off_runs_converges(plane: Plane, loop: asyncio.Runner) -> None:
    count = struck = 0

    def recorded(stack: Stack, outcome: str, began: float) -> None:
        """Record the trial if one of its runs was cut off during its work."""
        nonlocal count, struck
        count, struck = count + 1, struck + stack.struck
        if stack.struck:
            exact, seconds = outcome == EXACT, round(time.monotonic() - began, 1)
            note(Trial(FAULT, "up --refresh", "between two requests", outcome, exact, seconds, stack.struck))

    @settings(
        max_examples=60 if soaking() else 4,
        deadline=None,
        derandomize=not soaking(),
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,) if soaking() else (Phase.generate, Phase.shrink),
        database=None,
    )
    @given(sequence=st.lists(steps, min_size=2, max_size=5), last=st.dictionaries(names, specs, max_size=3))
    def converges(sequence: list[Any], last: dict[str, Any]) -> None:
        stack, began = Stack(plane), time.monotonic()
        wrong: list[str] = []
        try:
            for pools, harm, cut_after in sequence:
                if cut_after is not None:
                    loop.run(stack.up(pools, cut_after))
                # Pulumi does not know a pool whose creation was cut off: the next up must still declare it.
                loop.run(stack.up(pools, None))
                wrong += stack.faults(pools)
                assert wrong == []
                for kind, index in harm:
                    drift(plane, kind, index)
            for wanted in (last, {}):
                loop.run(stack.up(wanted, None))
                wrong += stack.faults(wanted)
                assert wrong == []
        except Exception as error:
            recorded(stack, "; ".join(wrong[:3]) or f"{type(error).__name__}: {error}"[:600], began)
            raise
        recorded(stack, EXACT, began)

    converges()
    assert struck > 0, "no run was cut off amid its work"
