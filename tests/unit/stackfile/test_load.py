"""From a stack's configuration to what it is to become."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from kumulus.model.errors import SpecError
from kumulus.model.names import default_cluster_name
from kumulus.runtimes.kwok.runtime import KwokRuntime
from kumulus.stackfile.load import LoadedCluster, load
from tests.support import http_server

GROUP: dict[str, Any] = {
    "name": "a100",
    "placement": [{"availabilityZone": "use1", "replicas": 5}],
    "nodeTemplate": {"capacity": {"cpu": 96, "pods": 110, "nvidia.com/gpu": 8}},
}
CLUSTER: dict[str, Any] = {"nodeGroups": [GROUP]}
ADDON = {"name": "queue", "chart": "oci://example.com/queue"}
KEMU = """\
kind: ClusterConfig
spec:
  kindConfig: "{kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4}"
  clusterAddons: [{name: queue, chart: "oci://example.com/queue"}]
  nodeGroups:
    - name: a100
      placement: [{availabilityZone: use1, replicas: 5}]
      nodeTemplate: {capacity: {cpu: 96, pods: 110}}
"""


def read(config: dict[str, Any], base: Path = Path(), **overrides: Any) -> LoadedCluster:
    return load(config, "dev", base, **overrides)


def told(config: dict[str, Any], base: Path = Path(), **overrides: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        read(config, base, **overrides)
    assert len(str(caught.value).splitlines()) == 1 + len(caught.value.problems)
    return {problem.path: f"{problem.message}; {problem.remedy}" for problem in caught.value.problems}


@pytest.fixture
def kemu(tmp_path: Path) -> Path:
    (tmp_path / "kemu.yaml").write_text(KEMU)
    return tmp_path


@pytest.fixture
def server() -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = {"/kemu.yaml": KEMU.encode(), "/binary": b"\xff\xfe\x00"}.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

    with http_server.serving(Answer) as address:
        yield f"http://{address}"


def test_a_stacks_own_cluster_is_loaded_with_its_pools() -> None:
    loaded = read({"cluster": CLUSTER})
    assert (loaded.cluster_name, loaded.flavour, loaded.source) == ("dev", "kumulus", "stacks/Pulumi.dev.yaml")
    assert [(pool.name, pool.replicas) for pool in loaded.pools] == [("a100-use1", 5)]
    assert loaded.pools[0].labels["kumulus.io/cluster"] == "dev"
    assert loaded.notices == ()


def test_keys_may_have_the_projects_prefix_and_the_cluster_may_be_json() -> None:
    assert read({"kumulus:cluster": json.dumps(CLUSTER)}) == read({"cluster": CLUSTER})


def test_keys_without_a_value_count_as_absent() -> None:
    config = {"cluster": CLUSTER, "clusterConfig": None, "runtime": None, "skipAddons": None}
    assert read(config) == read({"cluster": CLUSTER})


@pytest.mark.parametrize(
    ("stack", "name"), [("acme/shop/Team_A.1", "team-a-1"), ("s" * 40, "s" * 40), ("___", "kumulus")]
)
def test_the_clusters_default_name_is_made_from_the_stacks(stack: str, name: str) -> None:
    assert default_cluster_name(stack) == name


def test_a_stack_name_that_is_cut_stays_different_from_others() -> None:
    names = {default_cluster_name("s" * 60 + end) for end in "ab"}
    assert len(names) == 2
    assert {len(name) for name in names} == {40}


@pytest.mark.parametrize("written", [{}, {"runtime": None}, {"runtime": "kwok"}])
def test_a_section_of_the_files_runtime_is_left_out_where_the_stack_overrides_that(written: dict[str, Any]) -> None:
    loaded = read({"cluster": {**written, "kwok": {"apiServerPort": 7000}}, "runtime": "kind"})
    assert [str(each) for each in loaded.notices] == ["kwok: is for the runtime kwok, so it is not used with kind"]


def test_the_stack_can_override_the_files_runtime(kemu: Path) -> None:
    assert read({"cluster": CLUSTER, "runtime": "kind"}).spec.runtime == "kind"
    assert read({"clusterConfig": "kemu.yaml"}, kemu).spec.runtime == "kwok"
    config = read({"clusterConfig": "kemu.yaml", "runtime": "kind"}, kemu).spec.kindConfig
    assert config is not None
    assert config["kind"] == "Cluster"


@pytest.mark.parametrize("skip", [True, "true"])
def test_add_ons_can_be_left_out(skip: object, kemu: Path) -> None:
    own = {"cluster": {**CLUSTER, "clusterAddons": [ADDON]}}
    assert len(read(own).spec.clusterAddons) == 1
    assert read({**own, "skipAddons": skip}).spec.clusterAddons == []
    assert read({"clusterConfig": "kemu.yaml", "skipAddons": skip}, kemu).spec.clusterAddons == []


@pytest.mark.parametrize(
    ("own", "version"),
    [
        ({}, KwokRuntime().default_version()),
        ({"kubernetesVersion": "1.36.3"}, "v1.36.3"),
        ({"runtime": "kind", "kubernetesVersion": "1.36.3"}, "v1.36.3"),
        ({"runtime": "kind"}, "fake"),
    ],
)
def test_nodes_have_the_version_of_their_cluster(own: dict[str, Any], version: str) -> None:
    (pool,) = read({"cluster": {**CLUSTER, **own}}).pools
    assert pool.node_info.kubelet_version == version
    named = {**GROUP, "nodeTemplate": {**GROUP["nodeTemplate"], "nodeInfo": {"kubeletVersion": "v1.35.4"}}}
    (pool,) = read({"cluster": {**CLUSTER, **own, "nodeGroups": [named]}}).pools
    assert pool.node_info.kubelet_version == "v1.35.4"


def test_emulated_add_ons_bring_the_system_pool() -> None:
    own = {**CLUSTER, "clusterAddons": [ADDON]}
    pool = read({"cluster": own}).system_pool
    assert pool is not None
    assert pool.name == "system"
    assert read({"cluster": CLUSTER}).system_pool is None
    assert read({"cluster": {**own, "runtime": "kind"}}).system_pool is None


@pytest.mark.parametrize(
    ("config", "path", "words"),
    [
        ({"cluster": []}, "cluster", "is a list, not a mapping"),
        ({"cluster": "a text"}, "cluster", "not a mapping"),
        ({"clusterConfig": 5}, "clusterConfig", "path or URL"),
        ({"clusterConfig": " "}, "clusterConfig", "path or URL"),
        ({"cluster": {}, "skipAddons": 1}, "skipAddons", "true or false"),
        ({"cluster": {}, "skipAddon": True}, "skipAddon", "write skipAddons"),
    ],
)
def test_mistakes_in_the_configuration_are_told(config: dict[str, Any], path: str, words: str) -> None:
    problems = told(config)
    assert list(problems) == [path]
    assert words in problems[path]


def test_mistakes_in_the_configuration_and_the_cluster_are_told_at_once() -> None:
    assert list(told({"cluster": {"nodegroups": []}, "skipAddon": True})) == ["skipAddon", "nodegroups"]


def test_a_kemu_file_is_found_from_the_projects_directory(kemu: Path) -> None:
    loaded = read({"clusterConfig": "kemu.yaml"}, kemu)
    assert (loaded.flavour, loaded.source) == ("kemu", "kemu.yaml")
    assert loaded.pools[0].labels["kubernetes.io/os"] == "kemu"
    assert [notice.path for notice in loaded.notices] == ["spec.kindConfig"]


def test_a_missing_file_is_told_with_the_one_that_was_meant(kemu: Path) -> None:
    problems = told({"clusterConfig": "kemu.yml"}, kemu)
    assert problems == {"clusterConfig": f'there is no file "{kemu}/kemu.yml"; write {kemu}/kemu.yaml'}


def test_files_that_cannot_be_read_are_told(kemu: Path) -> None:
    (kemu / "binary").write_bytes(b"\xff\xfe\x00")
    unreadable = dict.fromkeys(("a\0b", "kemu.yaml/x", "x" * 5000), "cannot be read")
    for path, words in {".": "directory", "binary": "UTF-8", **unreadable}.items():
        assert words in told({"clusterConfig": path}, kemu)["clusterConfig"]


def test_a_kemu_file_is_read_from_a_url(server: str, kemu: Path) -> None:
    loaded = read({"clusterConfig": f"{server}/kemu.yaml"})
    assert loaded.pools == read({"clusterConfig": "kemu.yaml"}, kemu).pools
    assert loaded.source == f"{server}/kemu.yaml"


def test_urls_that_cannot_be_read_are_told(server: str) -> None:
    answers = {
        f"{server}/missing": "answers 404",
        f"{server}/binary": "UTF-8",
        "http://127.0.0.1:1/x": "cannot be reached",
        "http://[::1/x": "cannot be read",
        "http:///x": "",
        "https://127.0.0.1:99999/x": "",
        "ftp://example.com/x": "neither http nor https",
        "file:///etc/hostname": "neither http nor https",
    }
    for url, words in answers.items():
        assert words in told({"clusterConfig": url})["clusterConfig"]


def test_credentials_in_a_url_are_never_shown(server: str) -> None:
    with pytest.raises(SpecError) as caught:
        read({"clusterConfig": "http://user:hidden@127.0.0.1:1/x"})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("section", "key"), [("kwokCharts", "chart"), ("kwokCharts", "stageFastChart"), ("prometheusStack", "chart")]
)
@pytest.mark.parametrize("name", ["mine", "x" * 300])
def test_a_local_chart_of_what_comes_along_has_to_be_there(tmp_path: Path, section: str, key: str, name: str) -> None:
    cluster: dict[str, Any] = {"runtime": "kind", "observability": {}, section: {key: f"./{name}"}}
    assert list(told({"cluster": cluster}, tmp_path)) == [f"{section}.{key}"]


def test_a_local_chart_that_is_not_installed_need_not_be_there(tmp_path: Path) -> None:
    read({"cluster": {"runtime": "kind", "kwokCharts": {"install": False, "chart": "./mine"}}}, tmp_path)


def test_a_local_chart_has_to_be_there(tmp_path: Path) -> None:
    config = {"cluster": {"clusterAddons": [{"name": "mine", "chart": "./charts/mine"}]}}
    assert "is not there" in told(config, tmp_path)["clusterAddons[0].chart"]
    chart = tmp_path / "charts" / "mine"
    chart.mkdir(parents=True)
    assert "no Chart.yaml" in told(config, tmp_path)["clusterAddons[0].chart"]
    (chart / "Chart.yaml").touch()
    assert read(config, tmp_path).spec.clusterAddons[0].chart == "./charts/mine"


def test_a_stack_names_a_file_of_prices(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("regions: {us-east-1: {onDemand: {m5.xlarge: 0.1}}}")
    for own, hourly in (({"prices": "own.yaml"}, 0.1), ({}, 0.192)):
        price = read({"cluster": CLUSTER, **own}, tmp_path).known_prices().of("m5.xlarge", "us-east-1")
        assert price is not None
        assert price.hourly == hourly


def test_mistakes_in_a_stacks_prices_are_told(kemu: Path) -> None:
    (kemu / "own.yaml").write_text("regions: {us-east-1: {onDemand: {m5.xlarge: -1}}}")
    for config in ({"cluster": CLUSTER}, {"clusterConfig": "kemu.yaml"}):
        assert "a negative price" in str(told({**config, "prices": "own.yaml"}, kemu))
        assert "No such file" in str(told({**config, "prices": "gone.yaml"}, kemu))
