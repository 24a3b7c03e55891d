"""Kueue as a component of a control plane: its configuration, and what the API server has to know to find it."""

import functools
from collections.abc import Mapping
from typing import Any

from kumulus.extras.federation import certificates, manifests
from kumulus.extras.federation.names import ALL_AT_ONCE, LOST_AFTER, NAMESPACE

NAME = "kueue"
FRAMEWORKS = ("batch/job",)
"""What it queues: Jobs, as MultiKueue hands them on whole."""
PORTS = ("webhooks", "health", "http")
"""The names of the ports that it listens on; ``http`` serves its metrics."""
_DISPATCHERS = {
    ALL_AT_ONCE: "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
    "incremental": "kueue.x-k8s.io/multikueue-dispatcher-incremental",
}
# Kueue's defaults are 20 and 30 requests a second; the control plane's other programs have practically no limit here.
_CLIENT = {"qps": 5000, "burst": 10000}
_CONCURRENCY = {
    "Job.batch": 10,
    "Workload.kueue.x-k8s.io": 10,
    "LocalQueue.kueue.x-k8s.io": 5,
    "ClusterQueue.kueue.x-k8s.io": 5,
}


def configuration(options: Mapping[str, Any], ports: Mapping[str, int], mounted: str) -> dict[str, Any]:
    """Kueue's Configuration (kueue.sigs.k8s.io/docs/reference/kueue-config.v1beta2).

    Args:
        options: `origin` (a mark on what Kueue creates in other clusters), `workerLostTimeout`, `dispatcher` and its
            `stepSize`; each may be left out.
        ports: by :data:`PORTS`.
        mounted: the directory in which it finds its certificates.
    """
    multikueue: dict[str, Any] = {
        "gcInterval": "1m",
        "origin": options.get("origin") or "multikueue",
        "workerLostTimeout": options.get("workerLostTimeout") or LOST_AFTER,
    }
    if dispatcher := options.get("dispatcher"):
        multikueue["dispatcherName"] = _DISPATCHERS[dispatcher]
    if step := options.get("stepSize"):
        multikueue["incrementalDispatcherConfig"] = {"stepSize": int(step)}
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "webhook": {"host": "127.0.0.1", "port": ports["webhooks"], "certDir": mounted},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports['health']}"},
        # Its metrics are only for clients with a token of the cluster.
        "metrics": {"bindAddress": f"127.0.0.1:{ports['http']}"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": dict(certificates.MANAGEMENT),
        "clientConnection": dict(_CLIENT),
        "controller": {"groupKindConcurrency": dict(_CONCURRENCY)},
        "integrations": {"frameworks": list(FRAMEWORKS)},
        "multiKueue": multikueue,
        # Its API for pending workloads would keep its certificate in /visibility.
        "featureGates": {"VisibilityOnDemand": False},
    }


def definitions(port: int) -> list[dict[str, Any]]:
    """The CustomResourceDefinitions of Kueue."""
    return manifests.definitions(manifests.kept(), functools.partial(certificates.reached, port))


def objects(port: int) -> list[dict[str, Any]]:
    """What else Kueue needs in the cluster; arguments and errors as for :func:`definitions`."""
    reached = functools.partial(certificates.reached, port)
    return [*certificates.objects(port), *manifests.webhooks(manifests.kept(), reached, FRAMEWORKS)]
