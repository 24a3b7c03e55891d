"""metrics-server as one more process of a cluster: behind ``kubectl top`` and the resource metrics API."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kumulus import toolchain
from kumulus.kube import objects
from kumulus.model.nodes import LOCALHOST
from kumulus.nodes.ownership import already_there
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client

NAME = "metrics-server"
_PORT = "metricsServerPort"
_SERVICE = f"/api/v1/namespaces/kube-system/services/{NAME}"
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_API = "v1beta1.metrics.k8s.io"
_REGISTRATION = f"{_API_SERVICES}/{_API}"
_AVAILABLE_S = 30.0
_MARK = components.mark(NAME)
"""Labels of what is made here; a metrics API that a chart has installed has another manager."""


def port_of(settings: dict[str, Any]) -> int | None:
    """Its port, by the configuration that kwokctl saved; None without a metrics-server."""
    found = (settings.get("options") or {}).get(_PORT)
    return int(found) if found else None


def with_component(settings: dict[str, Any], layout: Layout, port: int) -> dict[str, Any]:
    """The configuration that kwokctl saved, with a metrics-server that listens on that port."""
    components.link(layout, NAME, toolchain.find(NAME))
    pki = layout.directory / "pki"
    component = components.definition(
        layout,
        NAME,
        [
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            *(f"--{purpose}kubeconfig={layout.kubeconfig}" for purpose in ("", "authentication-", "authorization-")),
            # The API server authenticates as the administrator, whose certificate is the cluster's own.
            "--authentication-skip-lookup=true",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--tls-cert-file={pki / 'admin.crt'}",
            f"--tls-private-key-file={pki / 'admin.key'}",
            f"--kubelet-preferred-address-types={LOCALHOST['type']}",
            f"--kubelet-port={settings['options']['kwokControllerPort']}",
            # The certificate is kwok-controller's, made for no node.
            "--kubelet-insecure-tls",
            "--metric-resolution=15s",
        ],
        {},
        links=("kwok-controller",),
    )
    options = {**settings["options"], _PORT: port}
    return {**components.replaced(settings, (NAME,), component), "options": options}


def without_component(settings: dict[str, Any]) -> dict[str, Any]:
    """Kwokctl's configuration without metrics-server."""
    options = {key: value for key, value in (settings.get("options") or {}).items() if key != _PORT}
    return {**components.replaced(settings, (NAME,)), "options": options}


async def register(client: Client, port: int) -> None:
    """Make the API server forward the resource metrics API to metrics-server, and wait until it does.

    After half a minute, it goes on all the same. ProviderError if somebody else has made one of the two objects.
    """
    service: dict[str, Any] = {
        "metadata": {"name": NAME, "namespace": "kube-system", "labels": _MARK},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    registration: dict[str, Any] = {
        "metadata": {"name": _API, "labels": _MARK},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "service": {"name": NAME, "namespace": "kube-system", "port": port},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }
    for path, what in ((_SERVICE, f"Service kube-system/{NAME}"), (_REGISTRATION, f"APIService {_API}")):
        if (there := await objects.find(client, path)) and not _is_ours(there):
            raise already_there("metrics API", what, "take podUsage and observability out of the stack file")
    for collection, body in ((_SERVICE.rpartition("/")[0], service), (_API_SERVICES, registration)):
        await objects.create_or_merge(client, collection, body)
    look = partial(client.get, _REGISTRATION)
    await objects.wait_until(look, lambda found: objects.holds(found, "Available"), _AVAILABLE_S, every=0.2)


async def unregister(client: Client) -> None:
    """Undo :func:`register`; finding none of it, or somebody else's, is success."""
    for path in (_REGISTRATION, _SERVICE):
        if (there := await objects.find(client, path)) and _is_ours(there):
            await objects.remove(client, path)


def _is_ours(there: Mapping[str, Any]) -> bool:
    """Whether a Service or an APIService was made here."""
    return _MARK.items() <= (there["metadata"].get("labels") or {}).items()
