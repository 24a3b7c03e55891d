"""A stack file's `federation`: who is hub, who is worker, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kumulus.model.errors import SpecError
from kumulus.model.quantity import parse
from kumulus.stackfile.clusters import Stack, load_stack
from kumulus.stackfile.federation import quota, together

GROUP = {
    "name": "a",
    "placement": [{"availabilityZone": "z", "replicas": 2}],
    "nodeTemplate": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
}
CLUSTERS = [{"name": "hub", "nodeGroups": []}, {"name": "worker", "count": 2}, {"name": "west"}]


def read(federation: Any, **config: Any) -> Stack:
    whole = {"defaults": {"nodeGroups": [GROUP]}, "clusters": CLUSTERS, "federation": federation, **config}
    return load_stack({f"kumulus:{key}": value for key, value in whole.items()}, "many", Path())


def told(federation: Any, **config: Any) -> list[str]:
    with pytest.raises(SpecError) as raised:
        read(federation, **config)
    return str(raised.value).splitlines()[1:]


def test_a_name_with_a_count_stands_for_all_of_its_clusters() -> None:
    found = read({"kind": "multikueue", "workers": ["worker"]}, hub="hub").federation
    assert found is not None
    assert (found.hub, found.workers) == ("hub", ("worker-0", "worker-1"))


def test_all_but_the_hub_are_workers_where_none_is_named() -> None:
    found = read({"kind": "multikueue", "hub": "west"}).federation
    assert found is not None
    assert (found.hub, found.workers) == ("west", ("hub", "worker-0", "worker-1"))


def test_kueue_is_beside_the_hub_and_its_workers_and_nobody_else() -> None:
    found = read({"kind": "multikueue", "workers": ["worker-1"], "workerLostTimeout": "60s"}, hub="hub")
    assert {name: each.kueue for name, each in found.clusters.items()} == {
        "hub": {"origin": "many-hub", "workerLostTimeout": "1m"},
        "worker-0": None,
        "worker-1": {"origin": "many-worker-1"},
        "west": None,
    }
    offered = read({"kind": "multikueue", "dispatcher": "incremental", "stepSize": 2}, hub="hub").clusters["hub"].kueue
    assert offered == {
        "origin": "many-hub",
        "workerLostTimeout": "15m",
        "dispatcher": "incremental",
        "stepSize": 2,
    }
    assert read(None).federation is None
    assert {each.kueue for each in read(None).clusters.values()} == {None}


@pytest.mark.parametrize(
    ("federation", "config", "said"),
    [
        ({"kind": "multikueue"}, {}, "federation.hub: is missing, and the stack names no hub"),
        ({"kind": "multikueue", "hub": "hbu"}, {}, 'federation.hub: "hbu" is none of the clusters; write hub'),
        (
            {"kind": "multikueue", "workers": ["worker-2"]},
            {"hub": "hub"},
            'federation.workers[0]: "worker-2" is none of the clusters; write worker-',
        ),
        (
            {"kind": "multikueue", "workers": ["west", "hub"]},
            {"hub": "hub"},
            'federation.workers[1]: "hub" is the hub; leave it out',
        ),
        ({"kind": "multikueue", "workers": []}, {"hub": "hub"}, "federation.workers: is empty"),
        ({"kind": "multikueue", "workers": ["west", "west"]}, {"hub": "hub"}, 'federation.workers: has "west" twice'),
        ({"kind": "karmada"}, {"hub": "hub"}, "federation.kind: "),
        ({"kind": "multikueue", "lost": "1m"}, {"hub": "hub"}, "federation.lost: "),
        ({"kind": "multikueue", "workerLostTimeout": 5}, {"hub": "hub"}, "federation.workerLostTimeout: is 5"),
        ({"kind": "multikueue", "dispatcher": "random"}, {"hub": "hub"}, "federation.dispatcher: "),
        (
            {"kind": "multikueue", "stepSize": 2},
            {"hub": "hub"},
            "federation.stepSize: has no effect where Jobs are offered to all at once; write dispatcher: incremental",
        ),
    ],
)
def test_mistakes_are_told_with_their_place_and_remedy(federation: Any, config: dict[str, Any], said: str) -> None:
    (line,) = told(federation, **config)
    assert line.strip().startswith(said)


def test_a_federation_takes_several_clusters() -> None:
    with pytest.raises(SpecError, match="federation: has no effect without clusters"):
        load_stack({"kumulus:cluster": {"nodeGroups": []}, "kumulus:federation": {"kind": "multikueue"}}, "s", Path())
    (line,) = told({"kind": "multikueue", "hub": "only"}, clusters=[{"name": "only"}])
    assert "has no worker: the hub is the only cluster" in line


def test_a_quota_is_all_that_the_nodes_have_but_for_the_number_of_pods() -> None:
    clusters = read({"kind": "multikueue"}, hub="hub").clusters
    one = quota(clusters["west"].pools)
    assert one == {"cpu": parse("8"), "memory": parse("16Gi")}
    assert together([one, one, {"nvidia.com/gpu": parse(1)}]) == {
        "cpu": parse(16),
        "memory": parse("32Gi"),
        "nvidia.com/gpu": parse(1),
    }
    assert quota(clusters["hub"].pools) == {}
