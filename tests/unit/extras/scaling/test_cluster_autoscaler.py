"""How cluster-autoscaler is started, what its provider knows, and what the stack file has to say of both."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.scaling import registry
from kumulus.extras.scaling.addition import ADDITION as AUTOSCALING
from kumulus.extras.scaling.cluster_autoscaler import interface, service
from kumulus.extras.scaling.cluster_autoscaler.groups import ScalableGroups, group_of, node_of, provider_id
from kumulus.extras.scaling.cluster_autoscaler.service import Service
from kumulus.extras.scaling.descriptor import AutoscalerPlace
from kumulus.kube.messages import message_classes
from kumulus.model.errors import SpecError
from kumulus.model.pools import POOL_LABEL, Bounds, Pool
from kumulus.runtimes.kwok import configuration
from kumulus.stackfile.load import load

ZONE = "us-central1-a"
PLACE = AutoscalerPlace(
    Path("/f"), Path("/f/k.yaml"), {"http": 1, "node-groups/http": 2}, Path("/a.yaml"), Path("/pki")
)


def group(**fields: Any) -> dict[str, Any]:
    placement = [{"availabilityZone": ZONE, "replicas": 2}]
    return {"name": "web", "instanceType": "e2-standard-4", "placement": placement, "maxReplicas": 6, **fields}


def asked(base: Path, **fields: Any) -> dict[str, Any]:
    """The option of the cluster that a section makes."""
    (base / "ca").write_text("#!/bin/sh\n")
    (base / "ca").chmod(0o755)
    section = {"name": "cluster-autoscaler", "binary": "ca", **fields}
    found = load({"cluster": {"autoscaler": section, "nodeGroups": [group()]}}, "dev", base).section_options[
        "autoscaler"
    ]
    assert found is not None
    # It goes through Pulumi, whose numbers are floats.
    return dict(json.loads(json.dumps(found), parse_int=float))


def refusal(base: Path, cluster: dict[str, Any]) -> str:
    (base / "ca").write_text("#!/bin/sh\n")
    (base / "ca").chmod(0o755)
    with pytest.raises(SpecError) as caught:
        load({"cluster": cluster}, "dev", base)
    return str(caught.value)


def test_it_is_told_where_its_provider_is_and_what_the_user_asks(tmp_path: Path) -> None:
    options = {"expander": "price", "scale-down-enabled": False, "max-nodes-total": 40}
    found = asked(tmp_path, options=options, registrationDelay="40s")
    scaler, provider = registry.get("cluster-autoscaler").programs
    assert scaler.executable(found) == tmp_path / "ca"
    assert scaler.arguments(found, PLACE) == [
        "--expander=price",
        "--max-nodes-total=40",
        "--scale-down-enabled=false",
        "--cloud-provider=externalgrpc",
        "--cloud-config=/f/cloud-config.yaml",
        "--kubeconfig=/f/k.yaml",
        "--address=127.0.0.1:1",
        "--namespace=kube-system",
        "--leader-elect=false",
    ]
    files = registry.get("cluster-autoscaler").files(found, PLACE)
    cloud = json.loads(files["cloud-config.yaml"])
    assert (cloud["address"], cloud["cacert"]) == ("127.0.0.1:2", "/pki/ca.crt")
    settings = json.loads(files["node-groups.json"])
    assert settings["delays"] == [40]
    assert settings["hourly"] == {f"web-{ZONE}": pytest.approx(0.134, rel=0.01)}
    assert provider.arguments(found, PLACE)[-4:] == ["2", "/a.yaml", "/pki", "/f/node-groups.json"]


def test_drawn_delays_are_many(tmp_path: Path) -> None:
    found = asked(tmp_path, registrationDelay={"uniform": {"from": "10s", "to": "20s"}})
    assert len(set(found["registrationDelays"])) > 400
    assert asked(tmp_path)["hourly"]
    assert "registrationDelays" not in asked(tmp_path)


def test_a_change_of_its_options_restarts_it_alone_and_their_order_nothing(tmp_path: Path) -> None:
    before = {"autoscaler": asked(tmp_path, options={"expander": "price", "v": 4})}
    turned = {"autoscaler": asked(tmp_path, options={"v": 4, "expander": "price"})}
    after = {"autoscaler": asked(tmp_path, options={"expander": "random", "v": 4})}
    assert configuration.component_fingerprints(before) == configuration.component_fingerprints(turned)
    then, now = AUTOSCALING.fingerprints(before), AUTOSCALING.fingerprints(after)
    assert {name for name in now if now[name] != then[name]} == {"cluster-autoscaler"}
    elsewhere = AUTOSCALING.fingerprints({"autoscaler": {**before["autoscaler"], "binary": "/other/ca"}})
    assert {name for name in elsewhere if elsewhere[name] != then[name]} == {"cluster-autoscaler"}
    assert AUTOSCALING.described({}, before) == [
        "autoscaler: cluster-autoscaler is started; it resizes groups with maxReplicas"
    ]
    assert AUTOSCALING.described(before, {}) == ["autoscaler: cluster-autoscaler goes, node groups have their replicas"]


SECTION = {"name": "cluster-autoscaler", "binary": "ca"}


@pytest.mark.parametrize(
    ("section", "fields", "words"),
    [
        (SECTION, {"maxReplicas": None}, "autoscaler.name: has nothing to do: no node group has maxReplicas"),
        (None, {}, "nodeGroups[0].maxReplicas: has no effect: nobody scales"),
        ({"name": "karpenter", "zones": [ZONE]}, {}, "is for cluster-autoscaler, and the stack has karpenter"),
        ({**SECTION, "binary": "other"}, {}, "other is not there"),
        ({**SECTION, "binary": ""}, {}, "autoscaler.binary: is missing"),
        ({**SECTION, "zones": [ZONE]}, {}, "autoscaler.zones: has no effect with cluster-autoscaler"),
        ({**SECTION, "options": {"--v": 1}}, {}, 'autoscaler.options["--v"]: is no option\'s name'),
        ({**SECTION, "options": {"kubeconfig": "x"}}, {}, "autoscaler.options.kubeconfig: is what Kumulus sets itself"),
        (SECTION, {"minReplicas": 3}, "nodeGroups[0].placement[0].replicas: is 2, and the group's bounds are 3"),
        (SECTION, {"minReplicas": 7}, "nodeGroups[0].minReplicas: is 7, more than maxReplicas, 6"),
        (SECTION, {"topology": {"nodesPerRack": 2}}, "nodeGroups[0].topology: is not supported with maxReplicas"),
        (
            SECTION,
            {"placement": [{"availabilityZone": ZONE, "replicas": 1, "nodes": [{"name": "a"}]}]},
            "nodeGroups[0].placement[0].nodes: names nodes",
        ),
    ],
)
def test_what_stack_and_autoscaler_would_fight_over_is_refused(
    tmp_path: Path, section: dict[str, Any] | None, fields: dict[str, Any], words: str
) -> None:
    assert words in refusal(tmp_path, {"autoscaler": section, "nodeGroups": [group(**fields)]})


def test_faults_of_offerings_are_karpenters(tmp_path: Path) -> None:
    fault = {"name": "none-left", "kind": "stock-out"}
    said = refusal(tmp_path, {"autoscaler": SECTION, "nodeGroups": [group()], "faults": [fault]})
    assert "is about what Karpenter is offered (stock-out)" in said


def test_every_call_of_the_interface_has_an_answer_and_its_messages() -> None:
    calls = set(Service(ScalableGroups(None), {}).calls())  # type: ignore[arg-type]
    assert len(calls) == sum(name.endswith("Request") for name in interface.TABLES)
    for call in calls:
        asked, answered = interface.of_call(call)
        assert asked.DESCRIPTOR.name.endswith("Request")
        assert answered.DESCRIPTOR.name.endswith("Response")
    # The wire itself, as Go's client writes it: field 2, a text; field 1, a number.
    resize = interface.of_call("NodeGroupIncreaseSize")[0](id="g", delta=3)
    assert resize.SerializeToString() == bytes([0x08, 3, 0x12, 1]) + b"g"
    node = interface.of_call("NodeGroupForNode")[0](node={"labels": {"a": "b"}})
    assert re.fullmatch(rb"\x0a.\x1a.\x0a\x01a\x12\x01b", node.SerializeToString())


def pool(name: str, cpu: str, memory: str) -> Pool:
    has = {"cpu": cpu, "memory": memory, "pods": "110"}
    return Pool(name, name, "", "", 1, {}, capacity=has, allocatable=has, bounds=Bounds(0, 5))


def test_a_machine_on_its_way_is_in_its_group_by_its_id() -> None:
    pools = {name: pool(name, "4", "16Gi") for name in ("web", "web-2")}
    for each in pools.values():
        coming = provider_id(each, 3)
        assert group_of(pools, coming, {}) is each
        assert node_of(coming) == each.node_name(3)
        # As a node it has its name and labels.
        assert group_of(pools, each.node_name(3), {POOL_LABEL: each.name}) is each
        assert group_of(pools, each.node_name(3), {}) is None
    assert group_of(pools, "kumulus://other/other-3", {}) is None
    assert group_of(pools, "kumulus://web/web-x", {}) is None
    assert group_of(pools, "web", {}) is None


def test_a_pod_costs_its_share_of_the_machine_where_that_is_the_cheapest() -> None:
    pools = [pool("small", "4", "16Gi"), pool("large", "16", "128Gi"), pool("free", "64", "256Gi")]
    hourly = {"small": 1.0, "large": 6.0}

    def cost(**requests: str) -> float | None:
        container = {"resources": {"requests": {name: {"string": much} for name, much in requests.items()}}}
        made = message_classes()["Pod"](spec={"containers": [container]})
        return service.cheapest(pools, hourly, service.requested(made.SerializeToString()))

    assert cost(cpu="1") == pytest.approx(0.25)
    # 8 of 16 GiB are half of the small one, and a sixteenth of the large one.
    assert cost(cpu="1", memory="8Gi") == pytest.approx(6 / 16)
    assert cost(cpu="5") == pytest.approx(6 * 5 / 16)
    assert cost(cpu="17") is None
    assert cost() == 0.0
