"""YuniKorn: core and shim in one process, without its web server and its admission controller."""

from typing import Any

from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.launch import binary, configuration
from kumulus.extras.schedulers.launch.plan import (
    CLIENT_BURST,
    CLIENT_QPS,
    LaunchPlan,
    LaunchRequest,
    SchedulerProgram,
    Setting,
)
from kumulus.extras.schedulers.yunikorn import workloads

_NAMESPACE = "yunikorn"
_CONFIG_MAP = "yunikorn-configs"
_QUEUES = "queues.yaml"


def plan(request: LaunchRequest) -> LaunchPlan:
    """See :class:`LaunchPlan`."""
    scheduler = registry.get(request.name)
    executable, version = binary.chosen(request)
    port = request.port()
    data = _data(request)
    program = SchedulerProgram(
        name=scheduler.name,
        binary=executable,
        arguments=(f"127.0.0.1:{port}",),
        environment={"KUBECONFIG": str(request.kubeconfig), "NAMESPACE": _NAMESPACE},
        ready=f"http://127.0.0.1:{port}/readyz",
    )
    settings: dict[str, Setting] = {"clientQPS": data["kubernetes.qps"], "clientBurst": data["kubernetes.burst"]}
    return LaunchPlan(
        programs=[program],
        version=version,
        scheduler_names=(scheduler.scheduler_name,),
        settings={name: int(value) if str(value).isdigit() else value for name, value in settings.items()},
        objects=[
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": _CONFIG_MAP, "namespace": _NAMESPACE},
                "data": data,
            },
        ],
    )


def _data(request: LaunchRequest) -> dict[str, str]:
    """The data of its ConfigMap: `queues.yaml` and settings such as `service.schedulingInterval`."""
    defaults = {"kubernetes.qps": str(CLIENT_QPS), "kubernetes.burst": str(CLIENT_BURST)}
    if request.config is None:
        return {**defaults, _QUEUES: workloads.queues({})}
    text, document = configuration.read(request.config)
    if isinstance(document.get("partitions"), list):
        return {**defaults, _QUEUES: text}
    data: Any = document.get("data")
    if document.get("kind") == "ConfigMap" and isinstance(data, dict):
        return {**defaults, _QUEUES: workloads.queues({}), **{key: str(value) for key, value in data.items()}}
    raise SchedulerError(
        f"the scheduler's configuration {request.config} has no partitions\n"
        "  Write a queues.yaml, or a ConfigMap yunikorn-configs"
    )
