"""kube-scheduler beside the cluster's own, and builds of it with more plugins: Coscheduling, or the user's binary."""

from __future__ import annotations

from typing import Any

import yaml

from kumulus.schedulers import catalog, definitions
from kumulus.schedulers.errors import SchedulerError
from kumulus.schedulers.launch import binary, configuration
from kumulus.schedulers.launch.plan import CLIENT_BURST, CLIENT_QPS, Plan, Program, Request, Setting

_KIND, _GROUP = "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io"
_OF_THE_CLUSTER = "default-scheduler"
_PERMIT_WAIT_SECONDS = 10
_REJECTED_SECONDS = 10
"""After which a gang that Coscheduling has rejected is looked at again.

The plugin asks to be told of new pods and groups only (its EventsToRegister), not of pods that end. With the default of
five minutes a gang would wait that long before a half-empty cluster.
"""


def plan(request: Request) -> Plan:
    """See :class:`Plan`.

    Raises:
        SchedulerError: the program is not there, or the configuration cannot be used.
    """
    scheduler = catalog.get(request.name)
    executable, version = binary.chosen(request)
    document = _document(request, scheduler)
    connection = configuration.section(document, "clientConnection", request.config)
    connection["kubeconfig"] = str(request.kubeconfig)
    connection.setdefault("qps", CLIENT_QPS)
    connection.setdefault("burst", CLIENT_BURST)
    # There is one of it. Electing a leader it would end itself whenever the API server is silent for ten seconds.
    configuration.section(document, "leaderElection", request.config)["leaderElect"] = False
    names = _names(document, request)
    port = request.port()
    file = request.directory / "scheduler.yaml"
    settings: dict[str, Setting] = {"clientQPS": connection["qps"], "clientBurst": connection["burst"]}
    arguments = [
        f"--config={file}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
    ]
    if scheduler.name == "coscheduling":
        arguments.append(f"--pod-max-in-unschedulable-pods-duration={_REJECTED_SECONDS}s")
        settings["rejectedGangSeconds"] = _REJECTED_SECONDS
    program = Program(
        name=scheduler.name,
        binary=executable,
        arguments=arguments,
        environment={},
        ready=f"https://127.0.0.1:{port}/readyz",
    )
    return Plan(
        programs=[program],
        version=version,
        scheduler_names=names,
        settings=settings,
        files={file.name: yaml.safe_dump(document, sort_keys=False)},
        objects=definitions.crds(scheduler.name) if scheduler.name == "coscheduling" else [],
    )


def _document(request: Request, scheduler: catalog.Scheduler) -> dict[str, Any]:
    if request.config is not None:
        return configuration.of_kind(request.config, _KIND, _GROUP)
    profile: dict[str, Any] = {"schedulerName": scheduler.scheduler_name}
    if scheduler.name == "coscheduling":
        # Its queue sort keeps the pods of a gang together; a profile can have only one.
        profile["plugins"] = {
            "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
            "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        }
        arguments = {"permitWaitingTimeSeconds": _PERMIT_WAIT_SECONDS}
        profile["pluginConfig"] = [{"name": "Coscheduling", "args": arguments}]
    return {"apiVersion": f"{_GROUP}/v1", "kind": _KIND, "profiles": [profile]}


def _names(document: dict[str, Any], request: Request) -> tuple[str, ...]:
    profiles = document.get("profiles")
    listed = profiles if isinstance(profiles, list) else [{}]
    names = tuple(str((each or {}).get("schedulerName") or _OF_THE_CLUSTER) for each in listed)
    if _OF_THE_CLUSTER in names:
        raise SchedulerError(
            f"the scheduler's configuration {request.config}: profiles[{names.index(_OF_THE_CLUSTER)}] is for "
            f"{_OF_THE_CLUSTER}, whose pods the cluster's own scheduler places\n"
            f"  Write another name, such as schedulerName: {catalog.get(request.name).scheduler_name}"
        )
    return names
