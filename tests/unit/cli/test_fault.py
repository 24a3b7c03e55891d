"""`kumulus fault`: its command line is a fault of the stack file, and mistakes in it are told like those."""

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kumulus.cli import fault, fault_actions, project, which
from kumulus.cli.errors import UserError
from kumulus.cli.main import main
from kumulus.model.node_sets import to_plain
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.nodes.faults import keeper
from kumulus.nodes.faults.records import ClusterRecords, Record, record_from
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec

NOW = "2026-11-22T10:00:00Z"
GROUP = {
    "name": "a100",
    "placement": [{"availabilityZone": "use1", "replicas": 5}],
    "nodeTemplate": {"capacity": {"pods": "110", "nvidia.com/gpu": "8"}},
}
KNOWN = ClusterRecords({}, {pool.name: pool for pool in pools(ClusterSpec.checked({"nodeGroups": [GROUP]}), "dev")})


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    fault.add_arguments(parser)
    return parser.parse_args(["inject", "x", *arguments])


@pytest.mark.parametrize(
    ("line", "described"),
    [
        (
            "--group a100 --node a100-use1-[0-2] --label kumulus.io/pool=a100-use1 --count 2 --kubelet notReady"
            " --condition GpuHWSlowDown=Active --taint example.com/odd=yes:NoSchedule"
            " --capacity nvidia.com/gpu=-1 --set-label example.com/state=odd",
            {
                "kubelet": "notReady",
                "target": {
                    "nodeGroup": "a100",
                    "names": ["a100-use1-[0-2]"],
                    "count": 2,
                    "labels": {"kumulus.io/pool": "a100-use1"},
                },
                "conditions": {"GpuHWSlowDown": {"reason": "Active"}},
                "taints": [{"key": "example.com/odd", "value": "yes", "effect": "NoSchedule"}],
                "labels": {"example.com/state": "odd"},
                "capacity": {"nvidia.com/gpu": "-1"},
            },
        ),
        (
            "--kind price-change --price-factor 2.5 --offer-zone z --instance-type a --instance-type b"
            " --capacity-type spot",
            {
                "kind": "price-change",
                "priceFactor": 2.5,
                "offers": {"zones": ["z"], "instanceTypes": ["a", "b"], "capacityTypes": ["spot"]},
            },
        ),
        (
            "--kind quota --limit cpu=64 --limit nodes=10 --instance-type e2-*",
            {"kind": "quota", "limits": {"cpu": "64", "nodes": "10"}, "offers": {"instanceTypes": ["e2-*"]}},
        ),
        (
            "--kind spot-interruption --percent 20 --notice 30s --label team=ml",
            {
                "kind": "spot-interruption",
                "notice": "30s",
                "target": {"percent": "20", "labels": {"team": "ml"}},
            },
        ),
    ],
)
def test_a_command_line_is_a_fault_of_the_stack_file(line: str, described: dict[str, Any]) -> None:
    assert fault.described_options(parsed(*line.split())) == {"name": "x", **described}


def test_choosing_the_cluster_leaves_the_faults_own_options_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = tmp_path / "kubeconfig.yaml"
    kubeconfig.touch()
    monkeypatch.setattr(project, "chosen", lambda stack: stack)
    monkeypatch.setattr(which, "chosen", lambda *_: which.StackCluster("many", "worker-1", "many-worker-1"))
    monkeypatch.setattr(project, "kubeconfig", lambda _: kubeconfig)
    described = []

    async def inject(found: which.StackCluster, args: argparse.Namespace) -> int:
        described.append((found.label, fault.described_options(args)))
        return 0

    monkeypatch.setattr(fault_actions, "inject", inject)
    for options in ((), ("--label", "a=b")):
        args = parsed("--kind", "spot-reclaim", *options)
        before = fault.described_options(args)
        args.action, args.stack, args.cluster = "inject", "many", "worker-1"
        assert fault.run(args) == 0
        assert described.pop() == ("many/worker-1", before)


def test_nodes_are_chosen_among_the_pools_on_record() -> None:
    args = parsed("--kind", "xid-79", "--node", "a100-use1-3")
    args.stack = "dev"
    found = fault_actions._resolved(args, KNOWN)
    assert (found.kind, to_plain(found.nodes)) == ("gpu-fell-off-bus", {"a100-use1": "3"})
    with pytest.raises(UserError, match="pulumi up -s dev --refresh"):
        fault_actions._resolved(args, ClusterRecords({}, {}))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kind", "xid-480"], 'kind: "xid-480" is not in the catalog; write xid-48'),
        (["--kind", "xid-48", "--percent", "120"], 'target.percent: is "120", more than 100'),
        (["--kind", "xid-48", "--zone", "use2"], 'target.zone: "use2" matches no node; write use1'),
        (["--kind", "reboot", "--down-for", "soon"], 'downFor: is "soon", which is not a duration; write a duration'),
        (["--kind", "xid-48", "--node", "b-0"], 'target.names[0]: "b-0" is no node of the stack'),
        (["--taint", "odd"], "--taint odd: write it as KEY[=VALUE]:EFFECT"),
        (["--capacity", "gpu"], "--capacity gpu: write it as RESOURCE=CHANGE"),
        (["--limit", "cpu"], "--limit cpu: write it as RESOURCE=AMOUNT"),
        (["--label", "team"], "--label team: write it as KEY=VALUE"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_a_remedy(arguments: list[str], said: str) -> None:
    args = parsed(*arguments)
    args.stack = "dev"
    with pytest.raises(UserError) as caught:
        fault_actions._resolved(args, KNOWN)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["5", "soon", "-5m", "0s"])
def test_a_time_limit_that_is_none_is_told(text: str) -> None:
    with pytest.raises(UserError, match=r"--for is .*; write"):
        fault_actions._lasts(text)


def test_a_record_survives_its_way_through_the_cluster() -> None:
    record = Record(
        "x", "reboot", {"a": frozenset({1, 2})}, fault_kinds()["reboot"].node, fault_kinds()["evicted"].pods, until="t"
    )
    assert record_from(record.to_plain()) == record
    cut_off = replace(record, former=(replace(record, since=NOW).active(), Record("x").active()))
    assert record_from(json.loads(json.dumps(cut_off.to_plain()))) == cut_off


def test_the_process_that_ends_a_fault_ends_when_the_cluster_is_gone(tmp_path: Path) -> None:
    until = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert keeper.main(tmp_path / "kubeconfig.yaml", "x", until) == 0


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ({}, "xid-48, since 2026-11-22T10:00:00Z"),
        ({"a100-use1": frozenset({1, 3})}, "xid-48 on 2 nodes, since 2026-11-22T10:00:00Z"),
    ],
)
def test_a_fault_that_another_takes_the_place_of_is_named(nodes: dict[str, frozenset[int]], said: str) -> None:
    kind = fault_kinds()["xid-48"]
    record = Record("x", "xid-48", nodes, kind.node, kind.pods, since="2026-11-22T10:00:00Z")
    assert fault_actions.in_words(record) == said


def test_the_kinds_are_listed_without_a_cluster_also_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fault", "kinds"]) == 0
    rows = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "XID 79" in rows["gpu-fell-off-bus, xid-79"]
    assert main(["fault", "kinds", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in listed] == list(fault_kinds())
