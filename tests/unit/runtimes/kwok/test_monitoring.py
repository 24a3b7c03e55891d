"""Prometheus and kube-state-metrics among a cluster's components: what is configured, and what a change touches."""

import dataclasses
import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from kumulus.extras.watch.addition import ADDITION as MONITORING
from kumulus.extras.watch.observability import Observability
from kumulus.extras.watch.scraping import configuration as scrape_configuration
from kumulus.kube import Connection
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes import directories
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import access, additions, configuration
from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.runtimes.kwok.runtime import KwokRuntime

ALL = Observability()
MEASURING = {"metrics-server", "prometheus", "kube-state-metrics"}
PORTS = {
    "etcd": 1,
    "kube-apiserver": 2,
    "kube-controller-manager": 3,
    "kube-scheduler": 4,
    "kwok-controller": 5,
    "metrics-server": 6,
    "kube-state-metrics": 7,
    "prometheus": 8,
}


def scraped(asked: Observability = ALL) -> dict[str, Any]:
    """The scrape configuration, its jobs by name."""
    found = scrape_configuration(asked, PORTS, "/pki", "rules.yaml", "test")
    return {**found, **{job["job_name"]: job for job in found["scrape_configs"]}}


def test_everything_that_has_metrics_is_scraped_and_only_on_this_machine() -> None:
    found = scraped()
    targets = {
        job["job_name"]: job["static_configs"][0]["targets"]
        for job in found["scrape_configs"]
        if job["job_name"] != "kubelet"
    }
    assert targets == {
        "kube-etcd": ["127.0.0.1:1"],
        "apiserver": ["127.0.0.1:2"],
        "kube-controller-manager": ["127.0.0.1:3"],
        "kube-scheduler": ["127.0.0.1:4"],
        "kwok-controller": ["127.0.0.1:5"],
        "metrics-server": ["127.0.0.1:6"],
        "kube-state-metrics": ["127.0.0.1:7"],
        "prometheus": ["127.0.0.1:8"],
    }
    assert found["kubelet"]["http_sd_configs"][0]["url"] == "https://127.0.0.1:5/discovery/prometheus"


def test_intervals_and_limits_follow_what_is_asked_for() -> None:
    found = scraped(dataclasses.replace(ALL, scrapeInterval="2s", nodeScrapeInterval="30s", memory="512Mi"))
    assert found["global"]["scrape_interval"] == found["global"]["evaluation_interval"] == "2s"
    # Prometheus refuses a timeout that is longer than the interval.
    assert found["global"]["scrape_timeout"] == "2s"
    assert (found["kubelet"]["scrape_interval"], found["kubelet"]["scrape_timeout"]) == ("30s", "30s")
    assert found["kube-state-metrics"]["sample_limit"] == (512 << 20) // 4096
    assert found["kubelet"]["target_limit"] == (512 << 20) // 4096 // 100


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A cluster with a control plane that kwokctl has set up; nothing runs."""
    monkeypatch.setattr("kumulus.toolchain.find", lambda name: Path(f"/tools/{name}"))
    made = Layout(tmp_path / "clusters" / "test")
    (made.directory / "bin").mkdir(parents=True)
    options = {"etcdPort": 21001, "kubeApiserverPort": 21002, "kwokControllerPort": 21005}
    options |= {"kubeControllerManagerPort": 21003, "kubeSchedulerPort": 21004}
    components: list[dict[str, Any]] = [
        {"name": name, "args": []} for name in ("etcd", "kube-apiserver", "kwok-controller")
    ]
    head = {"kind": "KwokctlConfiguration", "options": options, "components": components}
    made.kwok_file.write_text(dump([head]))
    return made


def wanted(**options: Any) -> WantedControlPlane:
    return WantedControlPlane("test", "me", "/home", "v1.35.4", options)


def ports() -> Any:
    """Gives ports one after the other."""
    return SimpleNamespace(take=count(30000).__next__)


def configure(layout: Layout, **options: Any) -> dict[str, list[str]]:
    """Configure a cluster as a run does that comes to its end; the arguments of each component of ours."""
    additions.configure(layout, wanted(**options), [], ports())
    layout.write_note({**layout.note(), **additions.note(wanted(**options))})
    return {str(each["name"]): each.get("args") or [] for each in layout.settings()["components"]}


def test_both_are_components_bound_to_this_machine_with_data_below_the_clusters_directory(layout: Layout) -> None:
    found = configure(layout, observability={"retention": "3h", "retentionSize": "1Gi"})
    assert set(found) == {"etcd", "kube-apiserver", "kwok-controller", *MEASURING}
    arguments = found["prometheus"]
    assert f"--storage.tsdb.path={layout.directory}/prometheus/data" in arguments
    assert "--storage.tsdb.retention.time=10800s" in arguments
    assert f"--storage.tsdb.retention.size={1 << 30}B" in arguments
    assert f"--web.listen-address=127.0.0.1:{layout.ports()['prometheus']}" in arguments
    # By default every web page may ask.
    assert "--web.cors.origin=none" in arguments
    assert {"--host=127.0.0.1", "--telemetry-host=127.0.0.1"} <= set(found["kube-state-metrics"])
    taken = layout.ports()
    assert len({taken[name] for name in ("prometheus", "kube-state-metrics", "kube-state-metrics (telemetry)")}) == 3
    assert (layout.directory / "prometheus" / "prometheus.yaml").exists()
    assert MONITORING.endpoints(layout) == {"prometheus": f"https://127.0.0.1:{taken['prometheus']}"}


def test_both_answer_the_clusters_certificate_alone(layout: Layout) -> None:
    found = configure(layout, observability={})
    file = layout.directory / "prometheus" / "web.yaml"
    assert f"--web.config.file={file}" in found["prometheus"]
    assert f"--tls-config={file}" in found["kube-state-metrics"]
    serving = yaml.safe_load(file.read_text())["tls_server_config"]
    assert serving["client_auth_type"] == "RequireAndVerifyClientCert"
    assert serving["client_ca_file"] == f"{layout.directory}/pki/ca.crt"
    jobs = {job["job_name"]: job for job in scraped()["scrape_configs"]}
    for name in ("kube-state-metrics", "prometheus"):
        assert jobs[name]["scheme"] == "https"
        assert jobs[name]["tls_config"]["key_file"] == "/pki/admin.key"


def test_further_node_labels_are_shown_besides_the_dashboards_own(layout: Layout) -> None:
    found = configure(layout, observability={"nodeLabels": ["example.com/team", "kumulus.io/group"]})
    [allowed] = [each for each in found["kube-state-metrics"] if each.startswith("--metric-labels-allowlist")]
    assert allowed.endswith("datastrophic.io/gpu-type,example.com/team]")
    assert allowed.count("kumulus.io/group") == 1


def test_a_change_restarts_what_it_concerns_and_keeps_the_ports(layout: Layout) -> None:
    configure(layout, observability={})
    before = layout.ports()
    assert additions.outdated(layout, wanted(observability={})) == []
    changes: dict[str, dict[str, Any]] = {
        "retention": {"retention": "48h"},
        "nodeLabels": {"nodeLabels": ["a/b"]},
        "port": {"prometheusPort": 9090},
    }
    outdated = {key: additions.outdated(layout, wanted(observability=change)) for key, change in changes.items()}
    assert outdated == {"retention": ["prometheus"], "nodeLabels": ["kube-state-metrics"], "port": ["prometheus"]}
    configure(layout, observability={"retention": "48h"})
    assert layout.ports() == before


def test_added_to_a_cluster_it_restarts_kwok_controller_which_has_to_play_the_kubelets(layout: Layout) -> None:
    configure(layout)
    assert set(additions.outdated(layout, wanted(observability={}))) == {"kwok-controller", *MEASURING}
    # With podUsage they are played already.
    configure(layout, podUsage="gpus")
    outdated = additions.outdated(layout, wanted(podUsage="gpus", observability={}))
    assert set(outdated) == {"prometheus", "kube-state-metrics"}


def test_without_it_nothing_is_left_of_it(layout: Layout) -> None:
    configure(layout, observability={})
    (layout.directory / "prometheus" / "data").mkdir()
    found = configure(layout)
    assert set(found) == {"etcd", "kube-apiserver", "kwok-controller"}
    assert not (layout.directory / "prometheus").exists()
    assert set(layout.ports()) == PORTS.keys() - MEASURING


def test_a_run_that_did_not_come_to_its_end_is_done_again(layout: Layout) -> None:
    additions.configure(layout, wanted(observability={}), [], ports())
    assert set(additions.outdated(layout, wanted(observability={}))) == {"kwok-controller", *MEASURING}


def test_a_cluster_without_it_keeps_the_fingerprint_it_was_made_with() -> None:
    assert configuration.fingerprint({}) == configuration.fingerprint({"observability": None, "kueue": None})
    changed = {configuration.fingerprint({"observability": each}) for each in ({}, {"memory": "2Gi"})}
    assert len({configuration.fingerprint({}), *changed}) == 3
    assert configuration.has_additions({"kueue": {}})
    assert not configuration.has_additions({})


def test_an_option_that_is_no_observability_is_told_with_its_place() -> None:
    found = KwokRuntime().problems({"observability": {"retention": "1 day", "prometheusPort": 80}})
    assert set(found) == {"observability.retention", "observability.prometheusPort"}
    assert KwokRuntime().problems({"observability": {}}) == {}
    assert KwokRuntime().problems({"observability": None}) == {}


def test_a_preview_says_what_a_change_means() -> None:
    none: dict[str, Any] = {}
    every: dict[str, Any] = {"observability": {}}
    smaller = {"observability": {"retentionSize": "1Gi"}}
    changes = [(none, every), (every, smaller), (every, none), (every, every), (none, none)]
    said = [line for old, new in changes for line in MONITORING.described(old, new)]
    assert said == [
        "observability: Prometheus (up to 24h or 2 GiB of samples), kube-state-metrics and metrics-server are started",
        "observability: prometheus will be restarted; samples stay (up to 24h or 1 GiB of samples)",
        "observability: Prometheus goes, with its samples, and kube-state-metrics",
    ]


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_that_is_in_use_is_told_with_its_holder_before_anything_is_ended(layout: Layout, busy_port: int) -> None:
    problem = additions.port_problem(layout, wanted(observability={"prometheusPort": busy_port}))
    assert problem is not None
    assert f"port {busy_port} (observability.prometheusPort) is in use by pid" in problem
    assert "choose another port, or leave prometheusPort out" in problem
    assert additions.port_problem(layout, wanted(observability={})) is None
    # Its own Prometheus listens there.
    configure(layout, observability={"prometheusPort": busy_port})
    assert additions.port_problem(layout, wanted(observability={"prometheusPort": busy_port})) is None


def test_a_full_disk_is_told_before_prometheus_is_started(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "free_bytes", lambda path: 12 << 20)
    with pytest.raises(
        ProviderError, match=r"no disk space: 12 MiB free at .*, Prometheus of cluster test needs 256 MiB"
    ):
        MONITORING.require_space(layout, ["prometheus"])
    MONITORING.require_space(layout, ["etcd"])


async def test_a_prometheus_that_ends_at_once_is_told_with_its_last_words(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(layout, observability={})
    # Without the certificates that kwokctl has made.
    monkeypatch.setattr(access, "connection", lambda _, server: Connection(server, "test"))
    (layout.directory / "logs").mkdir()
    (layout.directory / "logs" / "prometheus.log").write_text("opening storage failed: corrupted block\n")
    (layout.directory / "pids").mkdir()
    (layout.directory / "pids" / "prometheus.pid").write_text(str(2**22 + 1))
    with pytest.raises(ProviderError, match=r"(?s)prometheus of cluster test ended.*corrupted block"):
        await MONITORING.answering(layout, ["prometheus"], None)  # type: ignore[arg-type]
