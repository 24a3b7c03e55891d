"""Volcano: its scheduler and its controller-manager.

Its webhooks are left out: they fill in defaults, which our manifests have, and reject invalid objects.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import yaml

from kumulus.extras.schedulers import definitions, registry
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.launch import binary, configuration
from kumulus.extras.schedulers.launch.plan import CLIENT_BURST, CLIENT_QPS, LaunchPlan, LaunchRequest, SchedulerProgram
from kumulus.extras.schedulers.volcano import workloads
from kumulus.kube import safe_yaml

if TYPE_CHECKING:
    from kumulus.kube import Client

# The controllers whose kinds are among the definitions: job flows and shards are not.
_CONTROLLERS = "+gc-controller,+job-controller,+pg-controller,+queue-controller"
_PERIOD_S = 1
"""Between two scheduling cycles: Volcano's own default. A pod waits at least half of it on average."""
_TOPOLOGY = "network-topology-aware"
_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


def plan(request: LaunchRequest) -> LaunchPlan:
    """See :class:`LaunchPlan`."""
    scheduler = registry.get(request.name)
    executable, version = binary.chosen(request)
    file = request.directory / "volcano-scheduler.conf"
    common = (
        f"--kubeconfig={request.kubeconfig}",
        "--leader-elect=false",
        f"--kube-api-qps={CLIENT_QPS}",
        f"--kube-api-burst={CLIENT_BURST}",
        "--enable-healthz=true",
        "--enable-metrics=true",
    )
    own = {
        "volcano-scheduler": (
            f"--scheduler-conf={file}",
            f"--schedule-period={_PERIOD_S}s",
            # An invalid configuration is an error, rather than silently replaced by the default one.
            "--disable-default-scheduler-config=true",
            "--cache-dumper=false",
        ),
        "volcano-controller-manager": (f"--controllers={_CONTROLLERS}",),
    }
    programs = []
    for tool in scheduler.tools:
        health, metrics = request.port(), request.port()
        programs.append(
            SchedulerProgram(
                name=tool,
                binary=executable if tool == scheduler.tools[0] else definitions.find(tool, scheduler.tool_set),
                arguments=(
                    *common,
                    *own[tool],
                    f"--healthz-address=127.0.0.1:{health}",
                    f"--listen-address=127.0.0.1:{metrics}",
                ),
                # The program creates a socket for changing its log level, in /tmp by default.
                environment={"DEBUG_SOCKET_DIR": str(request.directory)},
                ready=f"http://127.0.0.1:{health}/healthz",
            )
        )
    return LaunchPlan(
        programs=programs,
        version=version,
        scheduler_names=(scheduler.scheduler_name,),
        settings={"clientQPS": CLIENT_QPS, "clientBurst": CLIENT_BURST, "schedulePeriodSeconds": _PERIOD_S},
        files={file.name: _configuration(request, file.name)},
        # The scheduler would create both queues itself; created here, they carry our label. HyperNodes have to be there
        # before it starts: of a tier that it does not know yet, it places a gang anywhere.
        objects=[
            *definitions.crds(scheduler.name),
            *(manifest for name in ("root", workloads.DEFAULT_QUEUE) for manifest in workloads.queue(name, "", {})),
            *(dict(each) for each in request.switches.places or ()),
        ],
        working=_default_queue_open,
    )


def _configuration(request: LaunchRequest, name: str) -> str:
    together = request.switches.places is not None
    if request.config is None:
        text = definitions.text(request.name, name)
        return _with_topology(text) if together else text
    text, document = configuration.read(request.config)
    if not isinstance(document.get("actions"), str) or not isinstance(document.get("tiers"), list):
        raise SchedulerError(
            f"the scheduler's configuration {request.config} has no actions and tiers\n"
            '  Write it as volcano-scheduler.conf is written: actions: "enqueue, allocate, backfill" and tiers: […]'
        )
    if together and _TOPOLOGY not in str(document["tiers"]):
        raise SchedulerError(
            f"the scheduler's configuration {request.config} lacks the plugin {_TOPOLOGY}: without it, volcano places "
            f"gangs anywhere\n  Add it to the plugins of a tier: - name: {_TOPOLOGY}"
        )
    return text


def _with_topology(text: str) -> str:
    """The default configuration with the plugin that keeps gangs in places, after all others."""
    document = yaml.safe_load(text)
    document["tiers"][-1]["plugins"].append({"name": _TOPOLOGY})
    return safe_yaml.written(document, width=120)


async def _default_queue_open(client: Client) -> None:
    """Wait until the controller has opened the queue; before, the scheduler would not admit anything."""
    while True:
        queue = await client.get(f"{_QUEUES}/{workloads.DEFAULT_QUEUE}")
        if queue.get("status", {}).get("state") == "Open":
            return
        await asyncio.sleep(0.05)
