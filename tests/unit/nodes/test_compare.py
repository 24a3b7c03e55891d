"""Live nodes against their pool: which fields differ, and the patches that put right only what is the pool's."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kumulus.model.applied import APPLIED, record_of
from kumulus.model.gfd import SIMULATED_POOL_LABEL
from kumulus.model.nodes import node_manifest
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, NodeInfo, Pool, Taint
from kumulus.nodes.pools.compare import field_differences, patches
from kumulus.nodes.pools.live import live_node

KWOK = Taint("kwok.x-k8s.io/node", "fake", "NoSchedule")
POOL = Pool(
    name="a100-use1",
    group="a100",
    zone="use1",
    region="",
    replicas=3,
    labels={CLUSTER_LABEL: "demo", POOL_LABEL: "a100-use1", "team": "search", "type": "kwok"},
    annotations={"example.com/note": "first"},
    taints=(KWOK,),
    capacity={"cpu": "96", "memory": "1360Gi", "pods": "110", "nvidia.com/gpu": "8"},
    allocatable={"cpu": "95", "memory": "1360Gi", "pods": "110", "nvidia.com/gpu": "8"},
    node_info=NodeInfo(kubelet_version="v1.35.4"),
)
Node = dict[str, Any]


def stored(pool: Pool = POOL, ordinal: int = 0) -> Node:
    """A node of the pool as the API server has it right after its creation."""
    node: Node = copy.deepcopy(node_manifest(pool, ordinal, "2026-01-01T00:00:00Z"))
    node["metadata"]["annotations"][APPLIED] = record_of(pool, ordinal)
    node["metadata"] |= {"uid": "u-1", "resourceVersion": "41"}
    return node


def different(node: Node, pool: Pool = POOL) -> dict[str, tuple[str | None, str | None]]:
    return {d.path: (d.have, d.want) for d in field_differences(pool, 0, live_node(node))}


def merged(target: Any, patch: Any) -> Any:
    """What a JSON merge patch makes of a document (RFC 7386, section 2)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def patched(node: Node, pool: Pool = POOL) -> Node:
    """The node after both patches, each applied to its subresource as the API server does."""
    return after_each(node, pool)[-1]


def after_each(node: Node, pool: Pool) -> list[Node]:
    """The node before, between and after the patches."""
    main, status = patches(pool, 0, live_node(node))
    found = [copy.deepcopy(node)]
    if main is not None:
        assert "status" not in main
        found.append(merged(found[-1], main))
    if status is not None:
        # The API server drops a spec that is patched through the status.
        assert set(status) <= {"status", "metadata"}
        found.append(merged(found[-1], status))
    return found


def settles(node: Node, pool: Pool = POOL) -> Node:
    """Patch the node and make sure that nothing is left to do."""
    result = patched(node, pool)
    assert different(result, pool) == {}
    assert patches(pool, 0, live_node(result)) == (None, None)
    return result


def test_what_the_fake_gpu_operator_empties_is_left_alone_and_nothing_else() -> None:
    simulated = replace(POOL, labels={**POOL.labels, SIMULATED_POOL_LABEL: "a100"})
    emptied = stored(simulated)
    # As its device plugin patches: every field of a Node's that Go does not leave out.
    emptied["status"]["nodeInfo"] = dict.fromkeys(emptied["status"]["nodeInfo"], "")
    assert different(emptied, simulated) == {}
    assert patches(simulated, 0, live_node(emptied)) == (None, None)

    fewer = copy.deepcopy(emptied)
    fewer["status"]["capacity"]["nvidia.com/gpu"] = "4"
    assert different(fewer, simulated) == {'capacity["nvidia.com/gpu"]': ("4", "8")}
    other = copy.deepcopy(emptied)
    other["status"]["nodeInfo"]["kubeletVersion"] = "v1.0.0"
    assert different(other, simulated).keys() == {
        f'nodeInfo["{key}"]' for key in ("architecture", "operatingSystem", "kubeletVersion")
    }
    elsewhere = stored()
    elsewhere["status"]["nodeInfo"] = dict.fromkeys(elsewhere["status"]["nodeInfo"], "")
    assert different(elsewhere).keys() == different(other, simulated).keys()


Differences = dict[str, tuple[str | None, str | None]]
ALTERATIONS: dict[str, tuple[Node, Differences]] = {
    "altered label": ({"metadata": {"labels": {"team": "ads"}}}, {'labels["team"]': ("ads", "search")}),
    "missing label": ({"metadata": {"labels": {"team": None}}}, {'labels["team"]': (None, "search")}),
    "lost pool label": (
        {"metadata": {"labels": {POOL_LABEL: None}}},
        {f'labels["{POOL_LABEL}"]': (None, "a100-use1")},
    ),
    "altered annotation": (
        {"metadata": {"annotations": {"example.com/note": "second"}}},
        {'annotations["example.com/note"]': ("second", "first")},
    ),
    "missing KWOK annotation": (
        {"metadata": {"annotations": {"kwok.x-k8s.io/node": None}}},
        {'annotations["kwok.x-k8s.io/node"]': (None, "fake")},
    ),
    "altered taint value": (
        {"spec": {"taints": [{"key": KWOK.key, "value": "x", "effect": KWOK.effect}]}},
        {f'taints["{KWOK.key}:NoSchedule"]': ("x", "fake")},
    ),
    "taint with another effect": (
        {"spec": {"taints": [{"key": KWOK.key, "value": "fake", "effect": "NoExecute"}]}},
        {f'taints["{KWOK.key}:NoSchedule"]': (None, "fake")},
    ),
    "missing taint": ({"spec": {"taints": None}}, {f'taints["{KWOK.key}:NoSchedule"]': (None, "fake")}),
    "altered capacity": (
        {"status": {"capacity": {"nvidia.com/gpu": "4"}}},
        {'capacity["nvidia.com/gpu"]': ("4", "8")},
    ),
    "missing allocatable": ({"status": {"allocatable": {"cpu": None}}}, {'allocatable["cpu"]': (None, "95")}),
    "altered nodeInfo": (
        {"status": {"nodeInfo": {"kubeletVersion": "v1.0.0"}}},
        {'nodeInfo["kubeletVersion"]': ("v1.0.0", "v1.35.4")},
    ),
    "everything missing": (
        {"status": None},
        {
            **{f'capacity["{key}"]': (None, value) for key, value in POOL.capacity.items()},
            **{f'allocatable["{key}"]': (None, value) for key, value in POOL.allocatable.items()},
            'nodeInfo["architecture"]': (None, "amd64"),
            'nodeInfo["operatingSystem"]': (None, "linux"),
            'nodeInfo["kubeletVersion"]': (None, "v1.35.4"),
        },
    ),
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_an_altered_field_is_named_with_what_it_has_and_should_have_and_put_right(what: str) -> None:
    alteration, expected = ALTERATIONS[what]
    node = merged(stored(), alteration)
    assert different(node) == expected
    settles(node)


FEWER = {key: value for key, value in POOL.capacity.items() if key != "nvidia.com/gpu"}
CHANGES: dict[str, tuple[Pool, Differences]] = {
    "label": (
        replace(POOL, labels={key: value for key, value in POOL.labels.items() if key != "team"}),
        {'labels["team"]': ("search", None)},
    ),
    "annotation": (replace(POOL, annotations={}), {'annotations["example.com/note"]': ("first", None)}),
    "taint": (replace(POOL, taints=()), {f'taints["{KWOK.key}:NoSchedule"]': ("fake", None)}),
    "resource": (
        replace(POOL, capacity=FEWER, allocatable={**FEWER, "cpu": "95"}),
        {'capacity["nvidia.com/gpu"]': ("8", None), 'allocatable["nvidia.com/gpu"]': ("8", None)},
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_the_template_no_longer_has_is_removed(what: str) -> None:
    pool, expected = CHANGES[what]
    node = stored()
    assert different(node, pool) == expected
    result = settles(node, pool)
    assert live_node(result) == replace(live_node(stored(pool)), version=result["metadata"]["resourceVersion"])


NAMED = replace(POOL, declared_features=("A", "B"))
RECENT = replace(POOL, node_info=NodeInfo(kubelet_version="v1.37.2"))


@pytest.mark.parametrize(
    ("have", "expected"),
    [
        (["A", "C"], {"B": (None, "declared"), "C": ("declared", None)}),
        ([], {"A": (None, "declared"), "B": (None, "declared")}),
    ],
)
def test_declared_features_that_somebody_changed_are_named_and_put_right(
    have: list[str], expected: dict[str, tuple[str | None, str | None]]
) -> None:
    node = stored(NAMED)
    node["status"]["declaredFeatures"] = have
    assert different(node, NAMED) == {f'declaredFeatures["{name}"]': each for name, each in expected.items()}
    assert settles(node, NAMED)["status"]["declaredFeatures"] == ["A", "B"]


@pytest.mark.parametrize("before", [POOL, NAMED, RECENT, replace(RECENT, declared_features=())])
@pytest.mark.parametrize("after", [POOL, NAMED, RECENT, replace(RECENT, declared_features=())])
def test_a_node_declares_what_its_pool_names_now_or_else_what_its_version_has(before: Pool, after: Pool) -> None:
    found = settles(stored(before), after)["status"].get("declaredFeatures")
    assert found == stored(after)["status"].get("declaredFeatures")


def test_what_nodes_of_a_version_declare_is_not_compared_as_an_api_server_may_drop_it() -> None:
    node = stored(RECENT)
    del node["status"]["declaredFeatures"]
    assert different(node, RECENT) == {}


def test_a_key_that_was_dropped_and_set_by_somebody_else_later_is_theirs() -> None:
    without = CHANGES["label"][0]
    node = settles(stored(), without)
    node["metadata"]["labels"]["team"] = "theirs"
    assert different(node, without) == {}
    assert patches(without, 0, live_node(node)) == (None, None)


DEDICATED = Taint("dedicated", "", "NoSchedule")
STEPS = {
    "plain": replace(POOL, capacity=FEWER, allocatable=FEWER, labels={CLUSTER_LABEL: "demo", POOL_LABEL: POOL.name}),
    "devices": POOL,
    "taint": replace(POOL, capacity=FEWER, allocatable=FEWER, taints=(KWOK, DEDICATED), annotations={}),
    "taint and devices": replace(POOL, taints=(KWOK, DEDICATED)),
    "other devices": replace(POOL, capacity={**FEWER, "amd.com/gpu": "4"}, allocatable={**FEWER, "amd.com/gpu": "4"}),
}


@pytest.mark.parametrize("begun", STEPS)
@pytest.mark.parametrize("had", STEPS)
def test_a_run_that_is_cut_off_between_two_patches_leaves_nothing_that_the_next_run_does_not_know_of(
    had: str, begun: str
) -> None:
    for cut_off in after_each(of_others(stored(STEPS[had])), STEPS[begun]):
        for wanted in STEPS.values():
            assert relevant(settles(cut_off, wanted)) == relevant(of_others(stored(wanted)))


def relevant(node: Node) -> Node:
    """What a pool owns of a node, its taints in any order."""
    meta, status = node["metadata"], node["status"]
    taints = sorted((each["key"], each["effect"]) for each in node["spec"].get("taints", ()))
    sections = {section: status[section] for section in ("capacity", "allocatable")}
    return {"labels": meta["labels"], "annotations": meta["annotations"], "taints": taints, **sections}


def of_others(node: Node) -> Node:
    """A node with what others put on it: labels, a cordon, a fault's taint and condition, an image, a resource."""
    node["metadata"]["labels"]["example.com/theirs"] = "yes"
    node["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"] = "15"
    node["spec"]["unschedulable"] = True
    node["spec"]["taints"] += [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"},
        {"key": "fault.example.com/gpu", "value": "xid-79", "effect": "NoExecute"},
    ]
    node["status"]["conditions"].append({"type": "GpuHealthy", "status": "False"})
    node["status"]["capacity"]["example.com/theirs"] = "3"
    return node


def test_what_others_put_on_a_node_is_no_drift() -> None:
    node = of_others(stored())
    assert different(node) == {}
    assert patches(POOL, 0, live_node(node)) == (None, None)


@pytest.mark.parametrize("what", sorted(ALTERATIONS.keys() - {"everything missing", "missing taint"}))
def test_putting_a_field_right_leaves_alone_what_is_not_the_pools(what: str) -> None:
    result = settles(of_others(merged(stored(), ALTERATIONS[what][0])))
    wanted = of_others(stored())
    written, expected = result["spec"].pop("taints"), wanted["spec"].pop("taints")
    assert all(taint in written for taint in expected)
    for item in (result, wanted):
        item["metadata"].pop("resourceVersion")
    assert result == wanted


def test_others_taints_are_written_back_as_they_were_when_ours_change() -> None:
    node = of_others(stored())
    main, _ = patches(replace(POOL, taints=(KWOK, Taint("dedicated", "", "NoSchedule"))), 0, live_node(node))
    assert main is not None
    assert main["spec"]["taints"] == [
        {"key": KWOK.key, "value": "fake", "effect": "NoSchedule"},
        {"key": "dedicated", "effect": "NoSchedule"},
        *node["spec"]["taints"][1:],
    ]


def test_a_version_is_required_of_the_server_only_when_taints_change() -> None:
    node = stored()
    node["metadata"]["labels"]["team"] = "ads"
    node["status"]["capacity"]["cpu"] = "1"
    main, status = patches(POOL, 0, live_node(node))
    assert main is None
    assert status == {"metadata": {"labels": {"team": "search"}}, "status": {"capacity": {"cpu": "96"}}}
    node["spec"] = {}
    main, _ = patches(POOL, 0, live_node(node))
    assert main is not None
    assert main["metadata"]["resourceVersion"] == "41"


def test_equal_quantities_in_another_spelling_are_no_drift() -> None:
    node = stored()
    node["status"]["capacity"] |= {"cpu": "96000m", "memory": "1392640Mi"}
    node["status"]["allocatable"]["cpu"] = "95.0"
    assert different(node) == {}
    assert patches(POOL, 0, live_node(node)) == (None, None)


def test_a_quantity_that_cannot_be_read_is_drift() -> None:
    node = stored()
    node["status"]["capacity"]["cpu"] = "1e300"  # the API server takes it
    assert different(node) == {'capacity["cpu"]': ("1e300", "96")}
    settles(node)


@pytest.mark.parametrize(
    "record",
    ["", "not json", "[]", "{}", "null", '{"labels": 5}', '{"labels":[],"annotations":[],"taints":["ab",1]}'],
)
def test_a_spoiled_record_is_written_anew_and_nothing_is_removed_by_it(record: str) -> None:
    node = of_others(stored())
    node["metadata"]["annotations"][APPLIED] = record
    assert different(node) == {f'annotations["{APPLIED}"]': ("another record", "our record")}
    result = settles(node)
    assert result["metadata"]["labels"]["example.com/theirs"] == "yes"
    assert json.loads(result["metadata"]["annotations"][APPLIED])["labels"] == sorted(
        {**POOL.labels, "kubernetes.io/hostname": ""}
    )


def test_a_missing_record_is_drift_by_itself_so_that_dropped_keys_can_be_removed_later() -> None:
    node = stored()
    del node["metadata"]["annotations"][APPLIED]
    assert list(different(node)) == [f'annotations["{APPLIED}"]']
    assert different(settles(node), CHANGES["label"][0]) == CHANGES["label"][1]


def test_a_label_that_somebody_set_before_the_template_did_is_the_pools_from_then_on() -> None:
    node = stored()
    node["metadata"]["labels"]["rack"] = "r1"
    with_rack = replace(POOL, labels={**POOL.labels, "rack": "r1"})
    assert different(settles(node, with_rack)) == {'labels["rack"]': ("r1", None)}


def test_a_difference_reads_as_a_sentence() -> None:
    node = stored()
    node["metadata"]["labels"] |= {"team": "ads"}
    del node["metadata"]["labels"]["type"]
    found = sorted(map(str, field_differences(replace(POOL, annotations={}), 0, live_node(node))))
    assert found == [
        'annotations["example.com/note"]: "first" instead of none',
        'labels["team"]: "ads" instead of "search"',
        'labels["type"]: missing instead of "kwok"',
    ]


@pytest.mark.parametrize(
    ("runtime", "real"), [("containerd://1.7.2", True), ("cri-o://1.30", True), ("kwok", False), ("", False)]
)
def test_a_kubelets_container_runtime_tells_a_real_node(runtime: str, real: bool) -> None:
    node = stored()
    node["status"]["nodeInfo"]["containerRuntimeVersion"] = runtime
    assert live_node(node).real is real


keys = st.sampled_from(["a", "b", "example.com/c", "team"])
texts = st.dictionaries(keys, st.sampled_from(["", "x", "y"]))
amounts = st.dictionaries(st.sampled_from(["cpu", "pods", "nvidia.com/gpu"]), st.sampled_from(["0", "1", "8", "1k"]))
taints = st.lists(
    st.builds(Taint, keys, st.sampled_from(["", "v"]), st.sampled_from(["NoSchedule", "NoExecute"])),
    unique_by=lambda taint: (taint.key, taint.effect),
    max_size=3,
).map(tuple)
some_pools = st.builds(
    lambda labels, annotations, taints, capacity: replace(
        POOL,
        labels={CLUSTER_LABEL: "demo", **labels},
        annotations=annotations,
        taints=taints,
        capacity=capacity,
        allocatable=capacity,
    ),
    texts,
    texts,
    taints,
    amounts,
)


@given(some_pools, some_pools, st.randoms())
def test_any_template_becomes_any_other_in_one_patch_and_others_fields_stay(
    before: Pool, after: Pool, luck: Any
) -> None:
    node = stored(before)
    node["spec"].setdefault("taints", []).append({"key": "theirs", "effect": "NoExecute"})
    node["metadata"]["labels"]["theirs"] = "yes"
    luck.shuffle(node["spec"]["taints"])
    result = settles(node, after)
    fresh = stored(after)
    assert result["metadata"]["labels"] == {**fresh["metadata"]["labels"], "theirs": "yes"}
    assert result["metadata"]["annotations"] == fresh["metadata"]["annotations"]
    assert result["status"] == fresh["status"]
    written = [str(taint) for taint in result["spec"]["taints"]]
    assert sorted(written) == sorted(
        str(taint) for taint in [*fresh["spec"].get("taints", []), {"key": "theirs", "effect": "NoExecute"}]
    )
