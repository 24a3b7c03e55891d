"""kube-scheduler alongside the cluster's own, builds of it with more plugins, and the user's own builds."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.decisions import asked, log
from kumulus.extras.schedulers.decisions.document import NAME as DECISIONS
from kumulus.extras.schedulers.decisions.filters import PARALLELISM
from kumulus.extras.schedulers.descriptor import OF_THE_CLUSTER, Scheduler
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.extender import new_secret
from kumulus.extras.schedulers.launch import binary, configuration
from kumulus.extras.schedulers.launch.plan import (
    CLIENT_BURST,
    CLIENT_QPS,
    LaunchPlan,
    LaunchRequest,
    SchedulerProgram,
    Setting,
)
from kumulus.kube import safe_yaml

_KIND, _GROUP = "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io"
_READER = "kumulus.extras.schedulers.decisions.reader"


@dataclass(frozen=True)
class Build:
    """What a build of kube-scheduler with more plugins needs in addition."""

    profile: Mapping[str, object] = field(default_factory=dict)
    """Fields of its default profile, besides the scheduler name of :class:`Scheduler`."""
    arguments: Sequence[str] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """What must be equal for a fair comparison with another run."""
    objects: Callable[[], list[dict[str, Any]]] = list
    """Gives the manifests to create before the start; called last, once everything else is in order."""


PLAIN = Build()


def plan(request: LaunchRequest, build: Build = PLAIN) -> LaunchPlan:
    """See :class:`LaunchPlan`."""
    scheduler = registry.get(request.name)
    executable, version = binary.chosen(request)
    document = _document(request, scheduler, build)
    connection = configuration.section(document, "clientConnection", request.config)
    connection["kubeconfig"] = str(request.kubeconfig)
    connection.setdefault("qps", CLIENT_QPS)
    connection.setdefault("burst", CLIENT_BURST)
    # Only one instance runs. With leader election it would exit whenever the API server is silent for ten seconds.
    configuration.section(document, "leaderElection", request.config)["leaderElect"] = False
    names = _names(document, request.config)
    port = request.port()
    file = request.directory / "scheduler.yaml"
    limits: dict[str, Setting] = {"clientQPS": connection["qps"], "clientBurst": connection["burst"]}
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(request.switches.gates.items()))
    arguments = [
        f"--config={file}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
        *build.arguments,
        *([f"--feature-gates={gates}"] if gates else []),
        *(log.ARGUMENTS if request.switches.decisions else ()),
    ]
    noting = _noting(document, names, port, request) if request.switches.decisions else None
    places = [str(request.directory / name) for name in (DECISIONS, asked.NAME)]
    reader = (sys.executable, "-P", "-m", _READER, *places)
    program = SchedulerProgram(
        name=scheduler.name,
        binary=executable,
        arguments=arguments,
        environment={},
        ready=f"https://127.0.0.1:{port}/readyz",
        through=reader if noting else (),
        ready_too=[noting.ready] if noting else (),
    )
    return LaunchPlan(
        programs=[program],
        version=version,
        scheduler_names=names,
        settings={**limits, **build.settings, **({"featureGates": gates} if gates else {})},
        files={file.name: safe_yaml.written(document), **({asked.NAME: noting.text()} if noting else {})},
        objects=build.objects(),
    )


def _noting(
    document: dict[str, Any], names: tuple[str, ...], port: int, request: LaunchRequest
) -> asked.ListenerSettings:
    """Add the extender that records what the filters did to the configuration's extenders; returns its settings."""
    others = document.get("extenders") or []
    if not isinstance(others, list):
        raise SchedulerError(f"the scheduler's configuration {request.config}: extenders is {others!r}\n  Write a list")
    settings = asked.ListenerSettings(
        port=request.port(),
        secret=new_secret(),
        metrics=f"https://127.0.0.1:{port}/metrics",
        profiles=names,
        # kube-scheduler itself rejects anything but a number.
        parallelism=at_once if isinstance(at_once := document.get("parallelism"), int) else PARALLELISM,
    )
    # First, so that it sees all nodes that passed the filters.
    document["extenders"] = [settings.extender(alone=not others), *others]
    return settings


def profiles(name: str, config: Path) -> tuple[str, ...]:
    """The names of the profiles in a user's configuration."""
    return _names(_own(config, registry.get(name), PLAIN), config)


def _document(request: LaunchRequest, scheduler: Scheduler, build: Build) -> dict[str, Any]:
    if request.config is not None:
        return _own(request.config, scheduler, build)
    profile = {"schedulerName": scheduler.scheduler_name, **build.profile}
    return {"apiVersion": f"{_GROUP}/v1", "kind": _KIND, "profiles": [profile]}


def _own(config: Path, scheduler: Scheduler, build: Build) -> dict[str, Any]:
    document = configuration.of_kind(config, _KIND, _GROUP)
    listed = document["profiles"] = document.get("profiles") or [dict(build.profile)]
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise SchedulerError(f"the scheduler's configuration {config}: profiles is no list of mappings")
    if len(listed) == 1 and not listed[0].get("schedulerName"):
        # kube-scheduler would take it for the profile of the cluster's pods.
        listed[0]["schedulerName"] = scheduler.scheduler_name
    return document


def _names(document: dict[str, Any], config: Path | None) -> tuple[str, ...]:
    names = tuple(str(each.get("schedulerName") or OF_THE_CLUSTER) for each in document["profiles"])
    if OF_THE_CLUSTER in names:
        raise SchedulerError(
            f"the scheduler's configuration {config}: profiles[{names.index(OF_THE_CLUSTER)}] is for "
            f"{OF_THE_CLUSTER}, whose pods the cluster's own scheduler places\n"
            "  Write another name, such as schedulerName: mine; the pods get it"
        )
    return names
