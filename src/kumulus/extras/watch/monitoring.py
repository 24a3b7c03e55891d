"""Prometheus and kube-state-metrics as two more processes of a cluster: a stack's ``observability``.

metrics-server, which belongs to it, is in :mod:`kumulus.runtimes.kwok.metrics_server`.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kumulus import toolchain
from kumulus.extras.watch import dashboards
from kumulus.extras.watch.scraping import configuration
from kumulus.host import files
from kumulus.model.durations import seconds
from kumulus.model.observability import Observability, as_bytes, observability_from
from kumulus.model.quantity import human, parse
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import directories
from kumulus.runtimes.kwok import access, components, kwokctl, logs
from kumulus.runtimes.kwok.layout import Layout, dump

PROMETHEUS, KUBE_STATE_METRICS = "prometheus", "kube-state-metrics"
NAMES = (PROMETHEUS, KUBE_STATE_METRICS)
PORTS = ((PROMETHEUS, "http"), (KUBE_STATE_METRICS, "http"), (KUBE_STATE_METRICS, "telemetry"))
"""The ports that are needed, by component and name."""

# What the dashboards show and a scheduler's user looks at. Leases, which change all the time, secrets and the like
# would only take memory.
_RESOURCES = (
    "cronjobs", "daemonsets", "deployments", "horizontalpodautoscalers", "jobs", "namespaces", "nodes",
    "persistentvolumeclaims", "poddisruptionbudgets", "pods", "replicasets", "resourcequotas", "statefulsets",
)  # fmt: skip
# These are a third of each pod's series, and their content is also in others, or in the API.
_DENIED = (
    "kube_pod_.*tolerations",
    "kube_pod_(ips|service_account|restart_policy|scheduler|spec_volumes_.*|status_qos_class|status_initialized_time)",
    "kube_pod_status_(container_ready_time|ready_time|scheduled|scheduled_time|reason)",
    "kube_pod_container_state_started",
)
# A query that needs more samples, at 16 bytes each, fails without ending Prometheus.
_MOST_SAMPLES = 10_000_000
_NEEDED_BYTES = 256 << 20
_PATIENCE = 60.0


def observability_of(options: Mapping[str, Any]) -> Observability | None:
    """The monitoring that a cluster's options ask for."""
    raw = options.get("observability")
    return None if raw is None else observability_from(raw)


def prices_of(options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The prices of a cluster's machines in its options, for the rules on what nodes cost."""
    return list(options.get("prices") or ())


def endpoints(layout: Layout) -> dict[str, str]:
    """Where Prometheus answers, if the cluster has one."""
    port = layout.ports().get(PROMETHEUS)
    if not port:
        return {}
    return {PROMETHEUS: f"https://127.0.0.1:{port}"}


def described(old: Observability | None, new: Observability | None) -> list[str]:
    """What a change of the section means, for people; [] when there is no change."""
    if old == new:
        return []
    if new is None:
        return ["observability: Prometheus goes, with its samples, and kube-state-metrics"]
    kept = f"up to {new.retention} or {human('memory', parse(new.retentionSize))} of samples"
    if old is None:
        return [f"observability: Prometheus ({kept}), kube-state-metrics and metrics-server are started"]
    changed = [name for name, value in fingerprints(new).items() if fingerprints(old)[name] != value]
    return [f"observability: {' and '.join(changed)} will be restarted; samples stay ({kept})"]


def repriced(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What a change of machine prices means for a cluster with monitoring before and after, for people."""
    if observability_of(old) is None or observability_of(new) is None or prices_of(old) == prices_of(new):
        return []
    return ["observability: prometheus will be restarted, with other prices of machines; samples stay"]


def with_components(
    settings: Mapping[str, Any], layout: Layout, asked: Observability, ports: Mapping[tuple[str, str], int]
) -> dict[str, Any]:
    """Kwokctl's configuration with both among the components that it starts.

    Args:
        settings: the ``KwokctlConfiguration`` that kwokctl saved.
        layout: the cluster.
        asked: what is measured.
        ports: a port for each of :data:`PORTS`.

    Raises:
        toolchain.ToolMissing: a component is not built; the message says how to get it.
    """
    for name in NAMES:
        components.link(layout, name, toolchain.find(name))
    return components.replaced(settings, NAMES, *_definitions(layout, asked, ports))


def without_components(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Kwokctl's configuration without them."""
    return components.replaced(settings, NAMES)


def write(layout: Layout, asked: Observability | None, prices: Sequence[Mapping[str, Any]]) -> None:
    """Write Prometheus' configuration and rules, and both programs' access; without Prometheus, remove all, also data.

    Args:
        layout: the cluster, its ``kwok.yaml`` written already.
        asked: what is measured.
        prices: what machines cost.

    Raises:
        OSError: the disk is full, or the like.
    """
    folder = layout.directory / PROMETHEUS
    if asked is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    files.write(folder / "rules.yaml", dashboards.rules(prices))
    wanted = configuration(asked, layout.ports(), str(layout.directory / "pki"), "rules.yaml", layout.name)
    pki = str(layout.directory / "pki")
    files.write(folder / "prometheus.yaml", dump([wanted]))
    files.write(folder / "web.yaml", dump([access.web_configuration(pki)]))
    files.write(folder / "client.yaml", dump([access.client_configuration(pki)]))


def require_space(layout: Layout, dead: Sequence[str]) -> None:
    """Raise if Prometheus is to be started on a disk that is nearly full.

    Raises:
        ProviderError: the disk is full.
    """
    free = directories.free_bytes(layout.directory / PROMETHEUS)
    if PROMETHEUS in dead and free < _NEEDED_BYTES:
        raise ProviderError(
            f"no disk space: {free / 2**20:,.0f} MiB free at {layout.home}, Prometheus of cluster {layout.name} needs "
            f"{_NEEDED_BYTES / 2**20:,.0f} MiB to start; free some, or leave observability out of the stack file"
        )


async def answering(layout: Layout, started: Sequence[str], report: Reporter) -> None:
    """Wait until Prometheus answers, if it was started: it may have hours of samples to read first.

    Raises:
        ProviderError: one of the two has ended; the message has its log's last lines.
    """
    if PROMETHEUS not in started:
        return
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.kube import ApiError, Client, Unreachable

    connection = access.connection(layout.directory / "pki", endpoints(layout)[PROMETHEUS])
    async with Client(connection, request_timeout=5.0) as client:
        give_up = time.monotonic() + _PATIENCE
        while time.monotonic() < give_up:
            gone = kwokctl.missing_component(layout.directory)
            if gone in NAMES:
                raise ProviderError(logs.with_log(f"{gone} of cluster {layout.name} ended", layout, gone))
            try:
                await client.get("/-/ready", patience=0.5)
                return
            except (ApiError, Unreachable):
                report.status("waiting for Prometheus")
                await asyncio.sleep(0.1)
    report.warn(f"Prometheus of cluster {layout.name} still reads its samples; it will answer when it has")


def fingerprints(asked: Observability, prices: Sequence[Mapping[str, Any]] = ()) -> dict[str, str]:
    """For each component, a hash of everything that decides how it runs, except its place."""
    nowhere = Layout(components.NOWHERE)
    ports = dict.fromkeys(PORTS, 0)
    every = dict.fromkeys(("etcd", *_SCRAPED, "metrics-server", *NAMES), 0)
    prometheus, state = _definitions(nowhere, asked, ports)
    scraped = configuration(asked, every, "", "", "")
    return {
        PROMETHEUS: components.fingerprint([prometheus, scraped, dashboards.rules(prices), asked.prometheusPort]),
        KUBE_STATE_METRICS: components.fingerprint(state),
    }


_SCRAPED = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")


def _definitions(
    layout: Layout, asked: Observability, ports: Mapping[tuple[str, str], int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = layout.directory / PROMETHEUS
    return components.definition(
        layout,
        PROMETHEUS,
        [
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--storage.tsdb.retention.time={seconds(asked.retention):.0f}s",
            f"--storage.tsdb.retention.size={as_bytes(asked.retentionSize)}B",
            f"--web.listen-address=127.0.0.1:{ports[PROMETHEUS, 'http']}",
            f"--web.config.file={folder / 'web.yaml'}",
            # A regular expression for whole origins, by default any; no origin has this name.
            "--web.cors.origin=none",
            f"--query.max-samples={_MOST_SAMPLES}",
            "--query.timeout=30s",
            "--log.level=warn",
        ],
        {name: port for (component, name), port in ports.items() if component == PROMETHEUS},
        links=(KUBE_STATE_METRICS, *_SCRAPED),
        # Not a limit: beyond it Go collects garbage all the time, and the scrapes' own limits keep it from growing.
        environment={"GOMEMLIMIT": str(as_bytes(asked.memory))},
    ), components.definition(
        layout,
        KUBE_STATE_METRICS,
        [
            f"--kubeconfig={layout.kubeconfig}",
            f"--tls-config={folder / 'web.yaml'}",
            "--host=127.0.0.1",
            f"--port={ports[KUBE_STATE_METRICS, 'http']}",
            "--telemetry-host=127.0.0.1",
            f"--telemetry-port={ports[KUBE_STATE_METRICS, 'telemetry']}",
            f"--resources={','.join(_RESOURCES)}",
            f"--metric-labels-allowlist={dashboards.allowed((*dashboards.NODE_LABELS, *asked.nodeLabels))}",
            f"--metric-annotations-allowlist={dashboards.allowed(dashboards.NODE_ANNOTATIONS)}",
            f"--metric-denylist={','.join(_DENIED)}",
        ],
        {name: port for (component, name), port in ports.items() if component == KUBE_STATE_METRICS},
        links=("kube-apiserver",),
    )
