"""Kueue: its controller with all its webhooks, as its own manifests install it, but as a local process."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kumulus.extras.federation import certificates, manifests
from kumulus.extras.federation.names import NAMESPACE
from kumulus.extras.schedulers import definitions, registry
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.launch import binary, configuration
from kumulus.extras.schedulers.launch.plan import CLIENT_BURST, CLIENT_QPS, LaunchPlan, LaunchRequest, SchedulerProgram
from kumulus.kube import safe_yaml

_FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset")
_CONCURRENCY = {"Job.batch": 5, "Workload.kueue.x-k8s.io": 10, "LocalQueue.kueue.x-k8s.io": 5}


def plan(request: LaunchRequest) -> LaunchPlan:
    """See :class:`LaunchPlan`."""
    scheduler = registry.get(request.name)
    executable, version = binary.chosen(request)
    document = _document(request)
    webhooks, health = request.port(), request.port()
    mounted = request.directory / "certificates"
    _bind(document, request, webhooks, health, mounted)
    connection = configuration.section(document, "clientConnection", request.config)
    connection.setdefault("qps", CLIENT_QPS)
    connection.setdefault("burst", CLIENT_BURST)
    file = request.directory / "kueue.yaml"
    program = SchedulerProgram(
        name=scheduler.name,
        binary=executable,
        arguments=(f"--config={file}", f"--kubeconfig={request.kubeconfig}", "--zap-log-level=1"),
        environment={},
        ready=f"http://127.0.0.1:{health}/readyz",
    )
    return LaunchPlan(
        programs=[program],
        version=version,
        scheduler_names=(scheduler.scheduler_name,),
        settings={"clientQPS": connection["qps"], "clientBurst": connection["burst"]},
        files={file.name: safe_yaml.written(document)},
        objects=_objects(webhooks, _frameworks(document, request.config)),
        awaited=functools.partial(certificates.mount, directory=mounted),
        working=functools.partial(certificates.webhooks_answer, every=0.1),
    )


def _document(request: LaunchRequest) -> dict[str, Any]:
    if request.config is not None:
        return configuration.of_kind(request.config, "Configuration", "config.kueue.x-k8s.io")
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": list(_FRAMEWORKS)},
        "controller": {"groupKindConcurrency": dict(_CONCURRENCY)},
    }


def _bind(document: dict[str, Any], request: LaunchRequest, webhooks: int, health: int, mounted: Path) -> None:
    """Set what a local process needs, overriding the user's configuration."""
    document["namespace"] = NAMESPACE
    document["webhook"] = {"host": "127.0.0.1", "port": webhooks, "certDir": str(mounted)}
    document["health"] = {"healthProbeBindAddress": f"127.0.0.1:{health}"}
    document["metrics"] = {
        **configuration.section(document, "metrics", request.config),
        "bindAddress": f"127.0.0.1:{request.port()}",
    }
    document["leaderElection"] = {"leaderElect": False}
    document["internalCertManagement"] = dict(certificates.MANAGEMENT)
    # Kueue's API for pending workloads would write its certificate to /visibility.
    configuration.section(document, "featureGates", request.config)["VisibilityOnDemand"] = False


def _frameworks(document: dict[str, Any], config: Path | None) -> list[str]:
    listed = configuration.section(document, "integrations", config).setdefault("frameworks", list(_FRAMEWORKS))
    if not isinstance(listed, list):
        raise SchedulerError(f"the scheduler's configuration {config}: integrations.frameworks is no list")
    return [str(each) for each in listed]


def _objects(port: int, frameworks: Sequence[str]) -> list[dict[str, Any]]:
    reached, of_module = functools.partial(certificates.reached, port), definitions.manifests("kueue")
    return [
        *manifests.definitions(of_module, reached),
        *certificates.objects(port),
        *manifests.webhooks(of_module, reached, frameworks),
    ]
