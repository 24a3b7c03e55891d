"""Prometheus and kube-state-metrics as two more processes of a cluster: a stack's ``observability``.

metrics-server, which belongs to it, is in :mod:`kumulus.runtimes.kwok.metrics_server`.
"""

import asyncio
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kumulus import toolchain
from kumulus.extras.watch import dashboards
from kumulus.extras.watch.observability import Observability, as_bytes, observability_from, observability_problems
from kumulus.extras.watch.scraping import configuration
from kumulus.host import files, processes
from kumulus.host.ports import Claims, in_use
from kumulus.model.durations import seconds
from kumulus.model.errors import Problem
from kumulus.model.quantity import human, parse
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import directories
from kumulus.runtimes.kwok import access, components, kwokctl, logs
from kumulus.runtimes.kwok.addition import Addition, Options
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
_SCRAPED = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")


class Monitoring(Addition):
    """What a stack's section `observability` asks for, besides metrics-server."""

    names = frozenset(NAMES)
    measures = True

    def asked(self, options: Options) -> bool:
        return _asked(options) is not None

    def problems(self, options: Options) -> list[Problem]:
        raw = options.get("observability")
        return [] if raw is None else observability_problems(("observability",), raw)

    def fingerprints(self, options: Options) -> dict[str, str]:
        asked = _asked(options)
        if asked is None:
            return {}
        ports = dict.fromkeys(PORTS, 0)
        every = dict.fromkeys(("etcd", *_SCRAPED, "metrics-server", *NAMES), 0)
        prometheus, state = _definitions(Layout(components.ANY_DIRECTORY), asked, ports)
        scraped, rules = configuration(asked, every, "", "", ""), dashboards.rules(_prices(options))
        return {
            PROMETHEUS: components.fingerprint([prometheus, scraped, rules, asked.prometheusPort]),
            KUBE_STATE_METRICS: components.fingerprint(state),
        }

    def described(self, old: Options, new: Options) -> list[str]:
        before, after = _asked(old), _asked(new)
        if after is None:
            gone = "observability: Prometheus goes, with its samples, and kube-state-metrics"
            return [gone] if before is not None else []
        kept = f"up to {after.retention} or {human('memory', parse(after.retentionSize))} of samples"
        if before is None:
            return [f"observability: Prometheus ({kept}), kube-state-metrics and metrics-server are started"]
        priced = {**old, "prices": _prices(new)}
        then, now = self.fingerprints(priced), self.fingerprints(new)
        changed = " and ".join(name for name in now if then[name] != now[name])
        lines = [f"observability: {changed} will be restarted; samples stay ({kept})"] if before != after else []
        if _prices(old) != _prices(new):
            lines.append("observability: prometheus will be restarted, with other prices of machines; samples stay")
        return lines

    def endpoints(self, layout: Layout) -> dict[str, str]:
        port = layout.ports().get(PROMETHEUS)
        if not port:
            return {}
        return {PROMETHEUS: f"https://127.0.0.1:{port}"}

    def port_problem(self, layout: Layout, options: Options) -> str | None:
        """See :meth:`Addition.port_problem`: None if Prometheus can have the port, or already has it."""
        asked = _asked(options)
        chosen = asked.prometheusPort if asked else None
        if not chosen or layout.ports().get(PROMETHEUS) == chosen or not in_use(chosen):
            return None
        return (
            f"port {chosen} (observability.prometheusPort) is in use by {processes.listener(chosen)}; "
            "choose another port, or leave prometheusPort out to have a free one picked"
        )

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        asked = _asked(options)
        if asked is None:
            return components.replaced(settings, NAMES)
        known, allotted = layout.ports(), {}
        for component, called in PORTS:
            chosen = asked.prometheusPort if component == PROMETHEUS else None
            there = known.get(component if called == "http" else f"{component} ({called})")
            allotted[component, called] = chosen or there or claims.take()
        for name in NAMES:
            components.link(layout, name, toolchain.find(name))
        return components.replaced(settings, NAMES, *_definitions(layout, asked, allotted))

    def write(self, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.write`: without Prometheus, all is removed, also its data."""
        asked, folder = _asked(options), layout.directory / PROMETHEUS
        if asked is None:
            shutil.rmtree(folder, ignore_errors=True)
            return
        folder.mkdir(mode=0o700, exist_ok=True)
        files.write(folder / "rules.yaml", dashboards.rules(_prices(options)))
        wanted = configuration(asked, layout.ports(), str(layout.directory / "pki"), "rules.yaml", layout.name)
        pki = str(layout.directory / "pki")
        files.write(folder / "prometheus.yaml", dump([wanted]))
        files.write(folder / "web.yaml", dump([_web_configuration(pki)]))
        files.write(folder / "client.yaml", dump([_client_configuration(pki)]))

    def require_space(self, layout: Layout, dead: Sequence[str]) -> None:
        """See :meth:`Addition.require_space`: Prometheus is not started on a disk that is nearly full."""
        free = directories.free_bytes(layout.directory / PROMETHEUS)
        if PROMETHEUS in dead and free < _NEEDED_BYTES:
            raise ProviderError(
                f"no disk space: {free / 2**20:,.0f} MiB free at {layout.home}, Prometheus of cluster {layout.name} "
                f"needs {_NEEDED_BYTES / 2**20:,.0f} MiB to start; free some, or leave observability out of the stack "
                "file"
            )

    async def answering(self, layout: Layout, started: Sequence[str], report: Reporter) -> None:
        """See :meth:`Addition.answering`: Prometheus may have hours of samples to read first."""
        if PROMETHEUS not in started:
            return
        # Imported here: a plugin that only compares properties needs no HTTP library.
        from kumulus.kube import ApiError, Client, Unreachable

        connection = access.connection(layout.directory / "pki", self.endpoints(layout)[PROMETHEUS])
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


def _asked(options: Options) -> Observability | None:
    raw = options.get("observability")
    return None if raw is None else observability_from(raw)


def _prices(options: Options) -> list[Mapping[str, Any]]:
    return list(options.get("prices") or ())


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


ADDITION = Monitoring()


def _web_configuration(pki: str) -> dict[str, Any]:
    """How Prometheus and kube-state-metrics serve: over TLS, to clients with a certificate of the cluster's authority.

    By default they have no authentication, and show the names of all pods to every user of the machine. Source: the
    "web configuration" of prometheus/exporter-toolkit, which both read.
    """
    return {
        "tls_server_config": {
            "cert_file": f"{pki}/admin.crt",
            "key_file": f"{pki}/admin.key",
            "client_auth_type": "RequireAndVerifyClientCert",
            "client_ca_file": f"{pki}/ca.crt",
            "min_version": "TLS13",
        }
    }


def _client_configuration(pki: str) -> dict[str, Any]:
    """Promtool's client configuration (``--http.config.file``)."""
    return {
        "tls_config": {
            "ca_file": f"{pki}/ca.crt",
            "cert_file": f"{pki}/admin.crt",
            "key_file": f"{pki}/admin.key",
        }
    }
