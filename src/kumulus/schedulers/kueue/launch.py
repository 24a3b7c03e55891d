"""Kueue: its controller with all of its webhooks, as its own manifests install it, but as a local process.

The API server finds a webhook by a Service. That of a local process is of type ExternalName, for localhost, so that the
names in the certificate stay what Kueue's certificate rotation makes them. It writes certificates into a Secret, which
a kubelet would mount as files; :func:`_mount_certificates` does that here.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kumulus.kube import ApiError
from kumulus.schedulers import definitions, registry
from kumulus.schedulers.errors import SchedulerError
from kumulus.schedulers.kueue import workloads
from kumulus.schedulers.launch import binary, configuration
from kumulus.schedulers.launch.plan import CLIENT_BURST, CLIENT_QPS, Plan, Program, Request
from kumulus.surroundings import files

if TYPE_CHECKING:
    from kumulus.kube import Client

NAMESPACE = "kueue-system"
_SERVICE = "kueue-webhook-service"
_SECRET = "kueue-webhook-server-cert"  # noqa: S105 - its name
_FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset")
_CONCURRENCY = {"Job.batch": 5, "Workload.kueue.x-k8s.io": 10, "LocalQueue.kueue.x-k8s.io": 5}
_OF_ITS_OWN = ("pod", "deployment", "statefulset")
"""Integrations that are named without an API group, and whose webhooks are asked about every pod of the cluster."""
# The kinds whose older version is converted by the webhook: config/components/crd/kustomization.yaml of the module.
_CONVERTED = ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")


def plan(request: Request) -> Plan:
    """See :class:`Plan`.

    Raises:
        SchedulerError: the program is not there, or the configuration cannot be used.
    """
    scheduler = registry.get(request.name)
    executable, version = binary.chosen(request)
    document = _document(request)
    webhooks, health = request.port(), request.port()
    certificates = request.directory / "certificates"
    _bind(document, request, webhooks, health, certificates)
    connection = configuration.section(document, "clientConnection", request.config)
    connection.setdefault("qps", CLIENT_QPS)
    connection.setdefault("burst", CLIENT_BURST)
    file = request.directory / "kueue.yaml"
    program = Program(
        name=scheduler.name,
        binary=executable,
        arguments=(f"--config={file}", f"--kubeconfig={request.kubeconfig}", "--zap-log-level=1"),
        environment={},
        ready=f"http://127.0.0.1:{health}/readyz",
    )
    return Plan(
        programs=[program],
        version=version,
        scheduler_names=(scheduler.scheduler_name,),
        settings={"clientQPS": connection["qps"], "clientBurst": connection["burst"]},
        files={file.name: yaml.safe_dump(document, sort_keys=False)},
        objects=_objects(webhooks, _frameworks(document, request.config)),
        awaited=functools.partial(_mount_certificates, directory=certificates),
        working=_webhooks_answer,
    )


def _document(request: Request) -> dict[str, Any]:
    if request.config is not None:
        return configuration.of_kind(request.config, "Configuration", "config.kueue.x-k8s.io")
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": list(_FRAMEWORKS)},
        "controller": {"groupKindConcurrency": dict(_CONCURRENCY)},
    }


def _bind(document: dict[str, Any], request: Request, webhooks: int, health: int, certificates: Path) -> None:
    """Set what a local process needs, whatever the user's configuration says of it."""
    document["namespace"] = NAMESPACE
    document["webhook"] = {"host": "127.0.0.1", "port": webhooks, "certDir": str(certificates)}
    document["health"] = {"healthProbeBindAddress": f"127.0.0.1:{health}"}
    document["metrics"] = {
        **configuration.section(document, "metrics", request.config),
        "bindAddress": f"127.0.0.1:{request.port()}",
    }
    document["leaderElection"] = {"leaderElect": False}
    document["internalCertManagement"] = {
        "enable": True,
        "webhookServiceName": _SERVICE,
        "webhookSecretName": _SECRET,
    }
    # Its API for pending workloads would keep its certificate in /visibility.
    configuration.section(document, "featureGates", request.config)["VisibilityOnDemand"] = False


def _frameworks(document: dict[str, Any], config: Path | None) -> list[str]:
    listed = configuration.section(document, "integrations", config).setdefault("frameworks", list(_FRAMEWORKS))
    if not isinstance(listed, list):
        raise SchedulerError(f"the scheduler's configuration {config}: integrations.frameworks is no list")
    return [str(each) for each in listed]


def _objects(port: int, frameworks: Sequence[str]) -> list[dict[str, Any]]:
    service = {"name": _SERVICE, "namespace": NAMESPACE, "port": port}
    made: list[dict[str, Any]] = []
    for definition in definitions.crds("kueue"):
        if definition["spec"]["names"]["plural"] in _CONVERTED:
            webhook = {"clientConfig": {"service": {**service, "path": "/convert"}}, "conversionReviewVersions": ["v1"]}
            spec = {**definition["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}
            made.append({**definition, "spec": spec})
        else:
            made.append(definition)
    target = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    inside = {"namespace": NAMESPACE}
    made += [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": _SECRET, **inside}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": _SERVICE, **inside}, "spec": target},
    ]
    return [*made, *(_webhooks(each, service, frameworks) for each in definitions.manifests("kueue") if _asks(each))]


def _asks(manifest: dict[str, Any]) -> bool:
    return str(manifest["kind"]).endswith("WebhookConfiguration")


def _webhooks(manifest: dict[str, Any], service: dict[str, Any], frameworks: Sequence[str]) -> dict[str, Any]:
    """The module's webhooks for Kueue's own kinds and those of the integrations, to be found at our service."""
    kinds = {_resource(each) for each in frameworks}
    made = copy.deepcopy(manifest)
    made["metadata"]["name"] = f"kueue-{manifest['metadata']['name']}"
    made["webhooks"] = []
    for webhook in copy.deepcopy(manifest["webhooks"]):
        asked = {
            (group, resource.partition("/")[0])
            for rule in webhook["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        if not (asked & kinds or any(group == "kueue.x-k8s.io" for group, _ in asked)):
            continue
        webhook["clientConfig"]["service"] = {**service, "path": webhook["clientConfig"]["service"]["path"]}
        if asked & {_resource(each) for each in _OF_ITS_OWN}:
            names = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
            webhook["namespaceSelector"] = {"matchExpressions": [names]}
        made["webhooks"].append(webhook)
    return made


def _resource(framework: str) -> tuple[str, str]:
    """The API group and the plural of an integration: batch and jobs for `batch/job`."""
    group, _, kind = framework.rpartition("/")
    if framework in _OF_ITS_OWN:
        group = "" if framework == "pod" else "apps"
    return group, f"{kind}s"


async def _mount_certificates(client: Client, directory: Path) -> None:
    """Write the certificates that Kueue makes to where it looks for them."""
    while True:
        secret = await client.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{_SECRET}")
        data = secret.get("data") or {}
        if {"tls.crt", "tls.key"} <= data.keys():
            _write_certificates(directory, data)
            return
        await asyncio.sleep(0.05)


def _write_certificates(directory: Path, data: Mapping[str, str]) -> None:
    directory.mkdir(mode=0o700, exist_ok=True)
    # Kueue waits for the certificate, and expects its key to be there then.
    for name in ("ca.crt", "tls.key", "tls.crt"):
        files.write(directory / name, base64.b64decode(data.get(name, "")), mode=0o600)


async def _webhooks_answer(client: Client) -> None:
    """The API server reaches the webhooks: a request for nothing but that."""
    (flavor, *_) = workloads.queue("kumulus-probe", NAMESPACE, {"cpu": "1"})
    path = f"/apis/{flavor['apiVersion']}/resourceflavors"
    while True:
        try:
            await client.request("POST", path, params={"dryRun": "All"}, body=flavor, patience=0.0)
            return
        except ApiError as error:
            if not error.transient and "webhook" not in error.message:
                raise
        await asyncio.sleep(0.1)
