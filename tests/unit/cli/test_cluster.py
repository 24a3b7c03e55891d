"""Which nodes are a stack's own in a cluster that it shares, and which cluster is meant."""

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kumulus.cli import cluster, project, stack_file
from kumulus.cli.errors import UserError
from kumulus.cli.which import StackCluster
from kumulus.model.identity import STACK_ID, Owner
from kumulus.nodes.faults import records
from kumulus.runtimes import place
from tests.support.object_store import storing
from tests.unit.model.test_fault_changes import pool
from tests.unit.provider.stored import KUBECONFIG


async def test_nodes_of_another_stack_on_the_same_cluster_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = tmp_path / "k"
    monkeypatch.setattr(project, "kubeconfig", lambda _: kubeconfig)
    monkeypatch.setattr(stack_file, "by_users_program", lambda _: True)
    monkeypatch.setattr(stack_file, "prices", lambda _: None)
    monkeypatch.setattr(place, "cluster_owner", lambda _: Owner("1" * 32, "a"))
    async with storing() as store, store.client() as client:
        kubeconfig.write_text(KUBECONFIG.format(address=store.address))
        for number, name in (("1", "ours"), ("2", "theirs")):
            of_stack = {**pool().labels, STACK_ID: number * 32}
            await records.write_pool(client, replace(pool(), name=name, labels=of_stack))
        found = await asyncio.to_thread(cluster.fleet, StackCluster("a", "", "a"))
    assert [each.name for each in found.pools] == ["ours"]
    assert found.from_cluster


def test_a_kubeconfig_and_a_stacks_cluster_are_not_named_both() -> None:
    parser = argparse.ArgumentParser()
    cluster.add_arguments(parser)
    with pytest.raises(UserError, match="--cluster is of a stack"):
        cluster.named(parser.parse_args(["--kubeconfig", "k", "--cluster", "hub"]))
    assert cluster.named(parser.parse_args(["--kubeconfig", "k"])).kubeconfig == Path("k")
