"""The policy pack's rules: what counts, which limit is whose, and where a chart may come from."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.policy import limits
from kumulus.model.pool_form import pool_to_properties
from kumulus.stackfile.addons import chart_kind, chart_name
from kumulus.stackfile.clusters import load_stack
from kumulus.stackfile.expand import pools, system_pool
from kumulus.stackfile.model import ClusterSpec

ROOT = Path(__file__).resolve().parents[4]
HTTPS, OCI = "https://charts.example.com/stable", "oci://registry.example.com/charts"


class Wrapped:
    """A list as the policy SDK hands it to rules."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


def pool(**template: Any) -> dict[str, Any]:
    """The inputs of a NodePool of three nodes, as an engine sends them: all numbers are floats."""
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}
    group = {
        "name": "a",
        "placement": [{"availabilityZone": "z", "replicas": 3}],
        "nodeTemplate": {"capacity": capacity},
        **template,
    }
    [made] = pools(ClusterSpec.checked({"nodeGroups": [group]}), "dev")
    return {**pool_to_properties(made), "replicas": 3.0, "kubeconfig": "/k", "clusterName": "dev"}


def test_nodes_and_gpus_of_a_pool_are_counted_as_everywhere_else() -> None:
    found = limits.pool_of(pool())
    assert found is not None
    assert (limits.nodes_of(found), limits.gpus_of(found)) == (3, 24)
    claimed = limits.pool_of(pool(gpuProduct="NVIDIA-L40S", resourceSlices={"extendedResource": False}))
    assert claimed is not None
    assert limits.gpus_of(claimed) == 24


def test_a_pool_that_an_autoscaler_resizes_counts_as_what_it_may_become() -> None:
    found = limits.pool_of({**pool(), "minReplicas": 1.0, "maxReplicas": 9.0})
    assert found is not None
    assert (limits.nodes_of(found), limits.gpus_of(found)) == (9, 72)


def test_the_pool_for_emulated_add_ons_is_nobodys() -> None:
    assert limits.pool_of(pool_to_properties(system_pool("dev", "v1.37.2"))) is None


def test_the_sdks_wrappers_and_numbers_become_plain() -> None:
    assert limits.plain({"taints": Wrapped({"key": "a"}), "n": 2.0, "x": 0.5, "none": None, "t": "ab"}) == {
        "taints": [{"key": "a"}],
        "n": 2,
        "x": 0.5,
        "none": None,
        "t": "ab",
    }


@pytest.mark.parametrize(
    ("stack", "limit"), [("team-a", 7), ("team-b", 16), ("team-b-dev", 4), ("other", 100), ("team-", 16)]
)
def test_a_stack_has_the_limit_of_its_name_or_of_the_longest_pattern_that_fits(stack: str, limit: int) -> None:
    config = {"most": 100.0, "stacks": {"team-*": 16.0, "team-b-*": 4.0, "team-a": 7.0}}
    assert limits.limit_for(stack, config) == limit
    assert limits.limit_for(stack, {"most": 5.0}) == 5


def test_a_stack_is_known_by_its_resources_urns() -> None:
    urn = "urn:pulumi:team-a::kumulus::kumulus:index:EmulatedCluster$kumulus:index:NodePool::a-z"
    assert limits.stack_of(urn) == "team-a"


def test_the_pool_with_which_a_limit_is_passed_is_told_and_no_pool_counts_twice() -> None:
    ledger = limits.PoolLedger()
    assert [ledger.total("one", 10), ledger.total("two", 6), ledger.total("one", 10)] == [10, 16, 16]
    assert limits.too_many("nodes", 16, "a-z", 6, 16, "team-a") == ""
    assert limits.too_many("nodes", 1_017, "a-z", 1_001, 16, "team-a") == (
        "team-a would have 1,017 nodes with the 1,001 of a-z, and may have 16: "
        "lower replicas in its nodeGroups, or have the limit raised"
    )
    assert limits.too_many("GPUs", 17, "cpu-z", 0, 16, "team-a") == "", "a pool without any is not to blame"


@pytest.mark.parametrize(
    ("chart", "repository", "allowed"),
    [
        ("x", HTTPS, True),
        ("x", f"{HTTPS}/", True),
        ("x", f"{HTTPS}/deeper", True),
        ("x", f"{HTTPS}.evil.org", False),
        ("x", "https://charts.example.com", False),
        ("x", "http://charts.example.com/stable", False),
        (f"{OCI}/x", None, True),
        ("oci://registry.example.com/charts-of-others/x", None, False),
        ("oci://other.example.com/x", HTTPS, False),
        ("/srv/charts/x", None, True),
    ],
)
def test_charts_come_from_allowed_repositories(chart: str, repository: str | None, allowed: bool) -> None:
    release = {"chart": chart, **({"repositoryOpts": {"repo": repository}} if repository else {})}
    said = limits.not_allowed(release, [HTTPS, f"{OCI}/"], local=True)
    assert (said == "") is allowed
    assert allowed or f"allowed are {HTTPS}, {OCI}" in said


@pytest.mark.parametrize(
    ("chart", "repository"),
    [
        ("x", f"{HTTPS}/../evil"),
        ("x", f"{HTTPS}/deeper/%2e%2E/../evil/"),
        ("x", f"{HTTPS}/.%2E"),
        (f"{OCI}/../evil/x", None),
        (f"{OCI}/%2E./evil/x", HTTPS),
    ],
)
def test_an_address_that_leads_out_of_an_allowed_one_is_refused(chart: str, repository: str | None) -> None:
    release = {"chart": chart, **({"repositoryOpts": {"repo": repository}} if repository else {})}
    said = limits.not_allowed(release, [HTTPS, OCI], local=True)
    assert said == f"its chart is from {limits.source_of(release)}, which has .. in it: write where that leads"


@pytest.mark.parametrize("chart", ["/srv/x", "./x", "../x", "..", ".", "charts/x", " ./x"])
def test_a_path_stays_one_whatever_repository_is_named_beside(chart: str) -> None:
    release = {"chart": chart, "repositoryOpts": {"repo": HTTPS}}
    assert limits.not_allowed(release, [HTTPS], local=True) == ""
    said = limits.not_allowed(release, [HTTPS], local=False)
    assert said == f"its chart is the local path {chart.strip()}, and allowed are {HTTPS}"


@pytest.mark.parametrize("file", sorted((ROOT / "stacks").glob("Pulumi.*.yaml")), ids=lambda file: file.name)
def test_the_stacks_of_this_repository_are_within_its_limits(file: Path) -> None:
    config = json.loads((ROOT / "src" / "kumulus" / "extras" / "policy" / "limits.json").read_text())
    stack = file.name.split(".")[1]
    clusters = load_stack(yaml.safe_load(file.read_text())["config"], stack, ROOT).clusters.values()
    every = [pool for loaded in clusters for pool in loaded.pools]
    nodes, gpus = sum(map(limits.nodes_of, every)), sum(map(limits.gpus_of, every))
    assert nodes <= limits.limit_for(stack, config["node-limit"])
    assert gpus <= limits.limit_for(stack, config["gpu-limit"])
    for addon in (addon for loaded in clusters for addon in loaded.spec.clusterAddons):
        if chart_kind(addon.chart) == "repository":
            release = {"chart": chart_name(addon.chart), "repositoryOpts": {"repo": addon.repoURL}}
            assert limits.not_allowed(release, config["addon-repositories"]["allowed"], local=True) == ""
