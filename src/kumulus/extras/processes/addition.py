"""The node `local` alongside a control plane of the runtime kwok: a stack's `kwok.processes`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus import toolchain
from kumulus.extras.processes.containers import NODE
from kumulus.extras.processes.egress import SOCKET
from kumulus.host import files
from kumulus.host.ports import Claims
from kumulus.kube import objects
from kumulus.kube.errors import ApiError, tolerating
from kumulus.kube.objects import NODES
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.addition import Addition, Options
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client

NAME = "local-node"
MARK = components.mark(NAME)
"""Labels of what is made here."""
_FOLDER, _SETTINGS, _SELECTOR = "local", "settings.json", "egress.json"
_FLAG = "--egress-selector-config-file="
_POLICY = "kumulus-processes"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
# Where policies and webhooks of users seldom apply.
_NAMESPACE = "kube-system"
_PODS = f"/api/v1{objects.inside(_NAMESPACE)}/pods"
_APPLIED_S = 30.0


class Processes(Addition):
    """The kubelet of the node `local`, the way from the API server to its pods, and the policy that puts them there."""

    names = frozenset({NAME})

    def asked(self, options: Options) -> bool:
        return bool(options.get("processes"))

    def fingerprints(self, options: Options) -> dict[str, str]:
        """See :meth:`Addition.fingerprints`; the API server is restarted when it gets the proxy, or loses it.

        With it the controller manager, which exits if it finds no API server in its first ten seconds.
        """
        if not self.asked(options):
            return {}
        restarted = dict.fromkeys(("kube-apiserver", "kube-controller-manager"), components.fingerprint(NAME))
        return {NAME: components.fingerprint(dict(options["processes"])), **restarted}

    def announced(self, options: Options) -> list[str]:
        images = ", ".join(sorted(options["processes"]))
        return [f"processes: pods of {images} run on this machine, as you, in namespaces of their own"]

    def described(self, old: Options, new: Options) -> list[str]:
        before, after = old.get("processes") or {}, new.get("processes") or {}
        if before == after:
            return []
        goes = [f"processes: the pods of {', '.join(sorted(before))} end, and those that follow them are emulated"]
        lines = self.announced(new) if after else goes
        return lines if before and after else [*lines, "processes: the API server is restarted"]

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        settings = _with_proxy(settings, str(layout.directory / _FOLDER / _SELECTOR) if self.asked(options) else None)
        if not self.asked(options):
            return components.replaced(settings, (NAME,))
        made = components.python(layout, NAME, "kumulus.extras.processes.kubelet")
        return components.replaced(settings, (NAME,), made)

    def write(self, layout: Layout, options: Options) -> None:
        folder = layout.directory / _FOLDER
        if not self.asked(options):
            shutil.rmtree(folder, ignore_errors=True)
            return
        folder.mkdir(mode=0o700, exist_ok=True)
        programs = {image: _program(image, program) for image, program in options["processes"].items()}
        files.write(folder / _SETTINGS, json.dumps({"programs": programs}, indent=1))
        files.write(folder / _SELECTOR, json.dumps(_selector()))

    def objects(self, options: Options) -> Any:
        return options.get("processes")

    async def apply(self, client: Client, layout: Layout, options: Options) -> None:
        if self.asked(options):
            for kind, manifest in _POLICIES.items():
                await objects.replace(client, f"{_ADMISSION}/{kind}", manifest(options["processes"]))
            await _require_applied(client, options["processes"])
            return
        ours = objects.labelled(MARK)
        for path in (*(f"{_ADMISSION}/{kind}" for kind in reversed(_POLICIES)), NODES):
            # Kubernetes before 1.36 has no such policies.
            with tolerating(404):
                for name in await objects.names(client, path, ours):
                    await objects.remove(client, f"{path}/{name}")


def _with_proxy(settings: dict[str, Any], file: str | None) -> dict[str, Any]:
    """Kwokctl's configuration with an API server that has this configuration of its egress, or none."""

    def changed(component: dict[str, Any]) -> dict[str, Any]:
        if component.get("name") != "kube-apiserver":
            return component
        others = [each for each in component.get("args") or [] if not str(each).startswith(_FLAG)]
        return {**component, "args": [*others, *([_FLAG + file] if file else [])]}

    return {**settings, "components": [changed(each) for each in settings.get("components") or []]}


def _program(image: str, program: str) -> str:
    """The file of a program: the user's, or a pinned tool's."""
    if "/" in program:
        file = Path(program)
    else:
        try:
            file = toolchain.find(program)
        except toolchain.ToolchainError as error:
            raise ProviderError(f"kwok.processes: {image}: {error}") from None
    if not (file.is_file() and os.access(file, os.X_OK)):
        raise ProviderError(f"kwok.processes: {image}: {file} is not an executable file")
    return str(file.resolve())


def _selector() -> dict[str, Any]:
    way = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": SOCKET}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": way}],
    }


def _policy(images: Mapping[str, str]) -> dict[str, Any]:
    """Puts pods on the node all of whose images the stack names; the scheduler never sees them."""
    named = json.dumps(sorted(images))
    all_named = (
        f"(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, {named}.exists(i, "
        "c.image == i || c.image.startsWith(i + ':') || c.image.startsWith(i + '@')))"
    )
    created = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": _POLICY, "labels": MARK},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [created]},
            "matchConditions": [
                {"name": "named", "expression": all_named},
                {"name": "free", "expression": "object.spec.?nodeName.orValue('') == ''"},
            ],
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": f'Object{{spec: Object.spec{{nodeName: "{NODE}"}}}}'},
                }
            ],
        },
    }


def _binding(_: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": _POLICY, "labels": MARK},
        "spec": {"policyName": _POLICY},
    }


async def _require_applied(client: Client, images: Mapping[str, str]) -> None:
    """Wait until the API server puts pods of all these images on the node; those created before would stay pending.

    Raises:
        ProviderError: it does not in time.
    """
    containers = [{"name": f"image-{number}", "image": image} for number, image in enumerate(sorted(images))]
    pod = {"metadata": {"generateName": f"{_POLICY}-"}, "spec": {"containers": containers}}

    async def tried() -> Any:
        return await client.create(f"{_PODS}?dryRun=All", pod)

    def on_node(made: Any) -> bool:
        return bool(made["spec"].get("nodeName") == NODE)

    await objects.wait_for_account(client, _NAMESPACE, _APPLIED_S)
    try:
        applied = await objects.wait_until(tried, on_node, _APPLIED_S)
    except ApiError:
        # The cluster's own policies and webhooks may refuse such a pod: then nothing is known, and nothing is wrong.
        return
    if not applied:
        message = f"the API server does not apply its MutatingAdmissionPolicy {_POLICY} within {_APPLIED_S:g} s"
        raise ProviderError(f"kwok.processes: {message}; run `pulumi up` again, which waits for it once more")


_POLICIES = {"mutatingadmissionpolicies": _policy, "mutatingadmissionpolicybindings": _binding}
ADDITION = Processes()
