"""KAI: its scheduler, its binder and its podgrouper, from flags alone.

Its operator, its webhooks and the controllers that only sum up the status of queues and groups are left out: one of
them listens on every address of the machine, which no flag changes. Flags and objects as tried with v0.17.0.
"""

from kumulus.extras.schedulers import definitions, registry
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.kai import workloads
from kumulus.extras.schedulers.launch import binary, configuration
from kumulus.extras.schedulers.launch.plan import (
    CLIENT_BURST,
    CLIENT_QPS,
    LaunchPlan,
    LaunchRequest,
    SchedulerProgram,
    Setting,
)
from kumulus.extras.schedulers.templates import Manifest

_RESERVATIONS = "kai-resource-reservation"
"""The namespace of the pods by which the binder reserves the GPU of a fraction, and their account."""
_SCALING = "kai-scale-adjust"
_WORKS = {
    "kai-scheduler": "action_scheduling_latency_milliseconds{",
    "kai-binder": 'controller_runtime_max_concurrent_reconciles{controller="bindrequest"}',
    "kai-podgrouper": 'controller_runtime_max_concurrent_reconciles{controller="pod"}',
}
"""What their metrics have once they work: the scheduler has had a cycle, the others follow the cluster.

The binder has a port for probes on which it answers none.
"""
_SETTINGS: dict[str, Setting] = {
    "clientQPS": CLIENT_QPS,
    "clientBurst": CLIENT_BURST,
    "schedulePeriodSeconds": 1,
    "maxConsolidationPreemptees": 16,
    "binderConcurrency": 100,
    "podgrouperConcurrency": 50,
}
"""The period and how many pods a consolidation may move are KAI's defaults, the concurrency that of its scale tests."""


def plan(request: LaunchRequest) -> LaunchPlan:
    """See :class:`LaunchPlan`."""
    scheduler = registry.get(request.name)
    executable, version = binary.chosen(request)
    file = request.directory / "kai-scheduler.conf"
    own = {
        "kai-scheduler": (
            # Of 127.0.0.1, as KAI has it.
            f"--plugin-server-port={request.port()}",
            f"--schedule-period={_SETTINGS['schedulePeriodSeconds']}s",
            f"--max-consolidation-preemptees={_SETTINGS['maxConsolidationPreemptees']}",
            # Otherwise nothing says of a pod that it was preempted.
            "--update-pod-eviction-condition=true",
            *((f"--scheduler-conf={file}",) if request.config else ()),
        ),
        "kai-binder": (
            f"--max-concurrent-reconciles={_SETTINGS['binderConcurrency']}",
            # It needs a ConfigMap that only KAI's webhook names in a pod.
            '--plugins={"gpusharing":{"enabled":false}}',
        ),
        "kai-podgrouper": (f"--max-concurrent-reconciles={_SETTINGS['podgrouperConcurrency']}",),
    }
    programs = []
    for tool, arguments in own.items():
        first, metrics = tool == scheduler.tools[0], f"127.0.0.1:{request.port()}"
        listens = (
            (f"--listen-address={metrics}",)
            if first
            else (f"--metrics-bind-address={metrics}", "--health-probe-bind-address=0")
        )
        programs.append(
            SchedulerProgram(
                name=tool,
                binary=executable if first else definitions.find(tool, scheduler.tool_set),
                arguments=(
                    *arguments,
                    *listens,
                    f"--qps={CLIENT_QPS}",
                    f"--burst={CLIENT_BURST}",
                    "--leader-elect=false",
                ),
                # The scheduler has no flag for it, and would take ~/.kube/config.
                environment={"KUBECONFIG": str(request.kubeconfig), "TMPDIR": str(request.directory)},
                ready=f"http://{metrics}/metrics",
                ready_says=_WORKS[tool],
            )
        )
    account = {"name": _RESERVATIONS, "namespace": _RESERVATIONS}
    return LaunchPlan(
        programs=programs,
        version=version,
        scheduler_names=(scheduler.scheduler_name,),
        settings=_SETTINGS,
        files={file.name: _configuration(request)} if request.config else {},
        objects=[
            *definitions.crds(scheduler.name),
            *(_namespace(name) for name in (_RESERVATIONS, _SCALING)),
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
            workloads.root(),
        ],
    )


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _configuration(request: LaunchRequest) -> str:
    assert request.config is not None
    text, document = configuration.read(request.config)
    actions, tiers = document.get("actions", ""), document.get("tiers", [])
    if not isinstance(actions, str) or not isinstance(tiers, list) or not (actions or tiers):
        raise SchedulerError(
            f"the scheduler's configuration {request.config} has no actions and tiers\n"
            '  Write it as KAI has it: actions: "allocate, reclaim" and tiers: [{plugins: […]}]'
        )
    return text
