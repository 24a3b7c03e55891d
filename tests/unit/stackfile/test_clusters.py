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

CLUSTERS = [{"name": "hub", "nodeGroups": []}, {"name": "worker", "count": 2}, {"name": "west"}]


def group(name: str = "a", nodes: int = 2) -> dict[str, Any]:
    template = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "9"}}
    return {"name": name, "placement": [{"availabilityZone": "z", "replicas": nodes}], "nodeTemplate": template}


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


def test_a_mistake_in_a_setting_of_the_stack_is_its_own_even_where_a_cluster_has_that_key() -> None:
    said = told(clusters=[{"name": "a", "runtime": "kwok"}, {"name": "b"}], runtime="nope", skipAddons="maybe")
    assert [line.strip().partition(": ")[0] for line in said] == ["runtime", "skipAddons"]


def test_a_mistake_in_the_file_of_prices_is_reported_once_and_with_its_name(tmp_path: Path) -> None:
    config = {"clusters": [{"name": "a"}, {"name": "b"}], "prices": "prices.yaml"}
    (tmp_path / "prices.yaml").write_text("{}")
    with pytest.raises(SpecError) as raised:
        load_stack(config, "many", tmp_path)
    assert raised.value.source == str(tmp_path / "prices.yaml")
    assert [each.path for each in raised.value.problems] == ["regions"]


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


def federation(**keys: Any) -> dict[str, Any]:
    shared = {"defaults": {"nodeGroups": [group()]}, "clusters": CLUSTERS, "hub": "hub"}
    return {**shared, "federation": {"kind": "multikueue", **keys}}


@pytest.mark.parametrize(
    ("keys", "hub", "workers"),
    [
        # A name with a count stands for all of its clusters; where none is named, they are all but the hub.
        ({"workers": ["worker"]}, "hub", ("worker-0", "worker-1")),
        ({"hub": "west"}, "west", ("hub", "worker-0", "worker-1")),
    ],
)
def test_a_federation_has_a_hub_and_workers(keys: dict[str, Any], hub: str, workers: tuple[str, ...]) -> None:
    found = read(**federation(**keys)).joined["federation"]
    assert isinstance(found, Federated)
    assert (found.hub, found.workers) == (hub, workers)


def test_kueue_is_beside_the_hub_and_its_workers_and_nobody_else() -> None:
    found = read(**federation(workers=["worker-1"], workerLostTimeout="60s"))
    assert {name: each.section_options.get("kueue") for name, each in found.clusters.items()} == {
        "hub": {"origin": "many-hub", "workerLostTimeout": "1m"},
        "worker-0": None,
        "worker-1": {"origin": "many-worker-1"},
        "west": None,
    }
    offered = read(**federation(dispatcher="incremental", stepSize=2)).clusters["hub"].section_options["kueue"]
    by_two = {"dispatcher": "incremental", "stepSize": 2}
    assert offered == {"origin": "many-hub", "workerLostTimeout": "15m", **by_two}
    alone = read(clusters=CLUSTERS, federation=None)
    assert alone.joined == {}
    assert {each.section_options.get("kueue") for each in alone.clusters.values()} == {None}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"hub": "hbu"}, 'hub: "hbu" is none of the clusters; write hub'),
        ({"workers": ["worker-2"]}, 'workers[0]: "worker-2" is none of the clusters; write worker-'),
        ({"workers": ["west", "hub"]}, 'workers[1]: "hub" is the hub; leave it out'),
        ({"workers": []}, "workers: is empty"),
        ({"workers": ["west", "west"]}, 'workers: has "west" twice'),
        ({"kind": "karmada"}, "kind: "),
        ({"lost": "1m"}, "lost: "),
        ({"workerLostTimeout": 5}, "workerLostTimeout: is 5"),
        ({"dispatcher": "random"}, "dispatcher: "),
        (
            {"stepSize": 2},
            "stepSize: has no effect where Jobs are offered to all at once; write dispatcher: incremental",
        ),
    ],
)
def test_mistakes_in_a_federation_are_told_with_their_place_and_remedy(keys: dict[str, Any], said: str) -> None:
    (line,) = told(**federation(**keys))
    assert line.startswith(f"  federation.{said}")


def test_a_federation_takes_several_clusters() -> None:
    with pytest.raises(SpecError, match="federation: has no effect without clusters"):
        load_stack({"kumulus:cluster": {"nodeGroups": []}, "kumulus:federation": {"kind": "multikueue"}}, "s", Path())
    (line,) = told(**{**federation(), "hub": None})
    assert line.startswith("  federation.hub: is missing, and the stack names no hub")
    (line,) = told(**{**federation(hub="only"), "clusters": [{"name": "only"}], "hub": None})
    assert "has no worker: the hub is the only cluster" in line


def test_a_quota_is_all_that_the_nodes_have_but_for_the_number_of_pods() -> None:
    clusters = read(**federation()).clusters
    one = quota(clusters["west"].pools)
    assert one == {"cpu": parse("8"), "memory": parse("16Gi")}
    assert together([one, one, {"nvidia.com/gpu": parse(1)}]) == {
        "cpu": parse(16),
        "memory": parse("32Gi"),
        "nvidia.com/gpu": parse(1),
    }
    assert quota(clusters["hub"].pools) == {}
