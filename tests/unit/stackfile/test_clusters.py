"""Several clusters in one stack file: what becomes of each, and where mistakes are told."""

import json
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.federation.section import Federated, quota, together
from kumulus.model.errors import SpecError
from kumulus.model.quantity import parse
from kumulus.stackfile.clusters import Stack, load_stack, merged, names_in
from kumulus.stackfile.secrets import Secrets

GROUP = {
    "name": "a",
    "placement": [{"availabilityZone": "z", "replicas": 2}],
    "nodeTemplate": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
}
CLUSTERS = [{"name": "hub", "nodeGroups": []}, {"name": "worker", "count": 2}, {"name": "west"}]


def group(name: str, nodes: int = 2) -> dict[str, Any]:
    placement = [{"availabilityZone": "z", "replicas": nodes}]
    return {"name": name, "placement": placement, "nodeTemplate": {"capacity": {"cpu": "1", "pods": "9"}}}


def read(secrets: dict[str, Secrets] | None = None, **config: Any) -> Stack:
    return load_stack({f"kumulus:{key}": value for key, value in config.items()}, "many", Path(), secrets=secrets)


def told(**config: Any) -> list[str]:
    with pytest.raises(SpecError) as raised:
        read(**config)
    return str(raised.value).splitlines()[1:]


def test_each_cluster_is_the_defaults_with_its_own_merged_over_them() -> None:
    found = read(
        defaults={"nodeGroups": [group("a")], "kwok": {"heartbeatFactor": 9, "etcdFsync": False}},
        clusters=[
            {"name": "hub", "nodeGroups": []},
            {"name": "worker", "count": 2, "kwok": {"heartbeatFactor": 4}},
            {"name": "west", "nodeGroups": [group("b", 5)], "kwok": None},
        ],
        hub="hub",
    )
    assert found.hub == "hub"
    assert found.only is None
    assert {
        name: (each.cluster_name, each.member, each.spec.kwok.heartbeatFactor, [pool.replicas for pool in each.pools])
        for name, each in found.clusters.items()
    } == {
        "hub": ("many-hub", "hub", 9, []),
        "worker-0": ("many-worker-0", "worker-0", 4, [2]),
        "worker-1": ("many-worker-1", "worker-1", 4, [2]),
        "west": ("many-west", "west", 9, [5]),
    }
    assert {each.spec.kwok.etcdFsync for each in found.clusters.values()} == {False}


def test_one_cluster_is_what_it_was() -> None:
    found = read(cluster={"nodeGroups": [group("a")]})
    assert list(found.clusters) == [""]
    assert found.only is not None
    assert (found.only.cluster_name, found.only.member) == ("many", "")


def test_the_engine_hands_lists_and_mappings_over_as_json() -> None:
    clusters = [{"name": "a"}, {"name": "b"}]
    assert read(clusters=json.dumps(clusters), defaults="{}") == read(clusters=clusters, defaults={})


def test_a_mistake_is_told_where_it_was_written_and_once() -> None:
    said = told(
        defaults={"kwok": {"apiServerPort": 80}, "nodegroups": []},
        clusters=[{"name": "a", "count": 3}, {"name": "b", "kwok": {"heartbeatFactor": 0}, "nodeGroups": [{}]}],
    )
    places = [line.strip().partition(": ")[0] for line in said]
    assert sorted(places) == [
        "clusters[1].kwok.heartbeatFactor",
        "clusters[1].nodeGroups[0].name",
        "clusters[1].nodeGroups[0].nodeTemplate",
        "clusters[1].nodeGroups[0].placement",
        "defaults.kwok.apiServerPort",
        "defaults.nodegroups",
    ]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"clusters": []}, "clusters: is a list; write a list of clusters, each with a name"),
        ({"clusters": {"name": "a"}}, "clusters: is a mapping; write a list of clusters"),
        ({"clusters": [{"name": "a"}, "b"]}, 'clusters[1]: is "b"; write a mapping with a name'),
        ({"clusters": [{}]}, "clusters[0].name: is missing; write name: worker"),
        ({"clusters": [{"name": "A"}]}, "clusters[0].name"),
        ({"clusters": [{"name": "a", "count": 0}]}, "clusters[0].count: is 0, less than 1"),
        ({"clusters": [{"name": "a"}, {"name": "a"}]}, 'clusters[1].name: "a" is already one of clusters[0]'),
        ({"clusters": [{"name": "a", "count": 2}, {"name": "a-1"}]}, 'clusters[1].name: "a-1" is already one of'),
        ({"clusters": [{"name": "a" * 36}]}, "of 41 characters, at most 40 are allowed"),
        ({"clusters": [{"name": "a", "count": 90}, {"name": "b", "count": 11}]}, "clusters: are 101; write 100 or"),
        ({"clusters": [{"name": "a"}], "defaults": {"name": "x"}}, "defaults.name: is each cluster's own"),
        ({"clusters": [{"name": "a"}], "defaults": []}, "defaults: is a list; write a mapping"),
        ({"clusters": [{"name": "worker"}], "hub": "wroker"}, 'hub: "wroker" is none of the clusters; write worker'),
        ({"clusters": [{"name": "a"}], "hub": 3}, "hub: is 3; write the name of one of the clusters"),
        ({"clusters": [{"name": "a"}], "cluster": {}}, "cluster: describes the cluster, and clusters do so too"),
        ({"hub": "a", "cluster": {}}, "hub: has no effect without clusters"),
        ({"clusters": [{"name": "a"}], "runtime": "kwock"}, 'runtime: is "kwock"; write kwok'),
        (
            {"clusters": [{"name": "a"}, {"name": "b"}], "defaults": {"kwok": {"apiServerPort": 7000}}},
            'clusters[1].kwok.apiServerPort: is also the port of "a"',
        ),
    ],
)
def test_mistakes_between_the_clusters(config: dict[str, Any], expected: str) -> None:
    assert any(expected in line for line in told(**config)), told(**config)


def test_two_clusters_cannot_be_the_same_existing_one() -> None:
    existing = {"runtime": "existing", "existing": {"kubeconfig": "k.yaml", "context": "prod"}}
    said = told(clusters=[{"name": "a"}, {"name": "b"}], defaults=existing)
    assert 'is also the cluster of "a"' in said[-1]
    other = {"existing": {"context": "test"}}
    assert len(read(clusters=[{"name": "a"}, {"name": "b", **other}], defaults=existing).clusters) == 2


def test_secrets_are_those_of_the_entry_and_of_what_it_takes_from_the_defaults() -> None:
    found = read(
        {"defaults": Secrets((("tenants", 0, "namespace"),)), "clusters": Secrets(((0, "kwok", "etcdQuota"),))},
        defaults={"tenants": [{"name": "t", "namespace": "s"}]},
        clusters=[{"name": "a", "kwok": {"etcdQuota": "8Gi"}}, {"name": "b", "tenants": []}],
    )
    assert found.clusters["a"].secrets.places == (("kwok", "etcdQuota"), ("tenants", 0, "namespace"))
    assert found.clusters["b"].secrets.places == ()


def test_names_are_known_of_a_file_with_mistakes() -> None:
    config = {"kumulus:clusters": [{"name": "a", "count": 2, "nodegroup": 1}, {"name": 3}, "x", {"name": "b"}]}
    assert names_in(config) == ["a-0", "a-1", "b"]
    assert names_in({"kumulus:clusters": json.dumps(config["kumulus:clusters"])}) == ["a-0", "a-1", "b"]
    assert names_in({"kumulus:cluster": {}}) == []


def test_mappings_are_merged_and_anything_else_replaced() -> None:
    below = {"a": {"x": 1, "y": {"z": [1]}}, "b": [1], "c": 1}
    assert merged(below, {"a": {"y": {"w": 2}}, "b": [2], "c": None, "d": None}) == {
        "a": {"x": 1, "y": {"z": [1], "w": 2}},
        "b": [2],
        "c": 1,
        "d": None,
    }
    assert below["a"] == {"x": 1, "y": {"z": [1]}}


def federated(federation: Any, **config: Any) -> Stack:
    whole = {"defaults": {"nodeGroups": [GROUP]}, "clusters": CLUSTERS, "federation": federation, **config}
    return load_stack({f"kumulus:{key}": value for key, value in whole.items()}, "many", Path())


def told_of(federation: Any, **config: Any) -> list[str]:
    with pytest.raises(SpecError) as raised:
        federated(federation, **config)
    return str(raised.value).splitlines()[1:]


def test_a_name_with_a_count_stands_for_all_of_its_clusters() -> None:
    found = federated({"kind": "multikueue", "workers": ["worker"]}, hub="hub").joined["federation"]
    assert isinstance(found, Federated)
    assert (found.hub, found.workers) == ("hub", ("worker-0", "worker-1"))


def test_all_but_the_hub_are_workers_where_none_is_named() -> None:
    found = federated({"kind": "multikueue", "hub": "west"}).joined["federation"]
    assert isinstance(found, Federated)
    assert (found.hub, found.workers) == ("west", ("hub", "worker-0", "worker-1"))


def test_kueue_is_beside_the_hub_and_its_workers_and_nobody_else() -> None:
    found = federated({"kind": "multikueue", "workers": ["worker-1"], "workerLostTimeout": "60s"}, hub="hub")
    assert {name: each.handed.get("kueue") for name, each in found.clusters.items()} == {
        "hub": {"origin": "many-hub", "workerLostTimeout": "1m"},
        "worker-0": None,
        "worker-1": {"origin": "many-worker-1"},
        "west": None,
    }
    offered = (
        federated({"kind": "multikueue", "dispatcher": "incremental", "stepSize": 2}, hub="hub")
        .clusters["hub"]
        .handed["kueue"]
    )
    assert offered == {
        "origin": "many-hub",
        "workerLostTimeout": "15m",
        "dispatcher": "incremental",
        "stepSize": 2,
    }
    assert federated(None).joined == {}
    assert {each.handed.get("kueue") for each in federated(None).clusters.values()} == {None}


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
    (line,) = told_of(federation, **config)
    assert line.strip().startswith(said)


def test_a_federation_takes_several_clusters() -> None:
    with pytest.raises(SpecError, match="federation: has no effect without clusters"):
        load_stack({"kumulus:cluster": {"nodeGroups": []}, "kumulus:federation": {"kind": "multikueue"}}, "s", Path())
    (line,) = told_of({"kind": "multikueue", "hub": "only"}, clusters=[{"name": "only"}])
    assert "has no worker: the hub is the only cluster" in line


def test_a_quota_is_all_that_the_nodes_have_but_for_the_number_of_pods() -> None:
    clusters = federated({"kind": "multikueue"}, hub="hub").clusters
    one = quota(clusters["west"].pools)
    assert one == {"cpu": parse("8"), "memory": parse("16Gi")}
    assert together([one, one, {"nvidia.com/gpu": parse(1)}]) == {
        "cpu": parse(16),
        "memory": parse("32Gi"),
        "nvidia.com/gpu": parse(1),
    }
    assert quota(clusters["hub"].pools) == {}
