"""Kueue's own manifests from its Go module, changed so that the API server finds Kueue as a local process."""

import copy
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kumulus import toolchain
from kumulus.extras.federation.names import NAMESPACE
from kumulus.kube.safe_yaml import FAST_LOADER

OF_ITS_OWN = ("pod", "deployment", "statefulset")
"""Integrations that are named without an API group, and whose webhooks are called for every pod of the cluster."""
# The kinds whose older version is converted by the webhook: config/components/crd/kustomization.yaml of the module.
_CONVERTED = ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")

Reached = Callable[[str], dict[str, Any]]
"""From a webhook's path to the clientConfig by which the API server reaches it."""


def kept() -> tuple[Mapping[str, Any], ...]:
    """Every manifest that was kept when Kueue was built."""
    toolchain.find("kueue")
    return _parsed(toolchain.kept("kueue"))


def definitions(manifests: Iterable[Mapping[str, Any]], reached: Reached) -> list[dict[str, Any]]:
    """The CustomResourceDefinitions, with older versions of a kind converted by the webhook."""
    made = []
    for definition in manifests:
        if definition["kind"] != "CustomResourceDefinition":
            continue
        spec = definition["spec"]
        if spec["names"]["plural"] in _CONVERTED:
            webhook = {"clientConfig": reached("/convert"), "conversionReviewVersions": ["v1"]}
            spec = {**spec, "conversion": {"strategy": "Webhook", "webhook": webhook}}
        made.append({**definition, "spec": spec})
    return made


def webhooks(
    manifests: Iterable[Mapping[str, Any]], reached: Reached, frameworks: Sequence[str]
) -> list[dict[str, Any]]:
    """The configurations of the webhooks for Kueue's own kinds and those of the integrations."""
    return [_webhooks(each, reached, frameworks) for each in manifests if each["kind"].endswith("WebhookConfiguration")]


def _webhooks(manifest: Mapping[str, Any], reached: Reached, frameworks: Sequence[str]) -> dict[str, Any]:
    kinds = {_resource(each) for each in frameworks}
    name = f"kueue-{manifest['metadata']['name']}"
    made = {**manifest, "metadata": {**manifest["metadata"], "name": name}, "webhooks": []}
    for webhook in copy.deepcopy(manifest["webhooks"]):
        asked = {
            (group, resource.partition("/")[0])
            for rule in webhook["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        if not (asked & kinds or any(group == "kueue.x-k8s.io" for group, _ in asked)):
            continue
        webhook["clientConfig"] = reached(webhook["clientConfig"]["service"]["path"])
        if asked & {_resource(each) for each in OF_ITS_OWN}:
            names = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
            webhook["namespaceSelector"] = {"matchExpressions": [names]}
        made["webhooks"].append(webhook)
    return made


def _resource(framework: str) -> tuple[str, str]:
    """The API group and the plural of an integration: batch and jobs for `batch/job`."""
    group, _, kind = framework.rpartition("/")
    if framework in OF_ITS_OWN:
        group = "" if framework == "pod" else "apps"
    return group, f"{kind}s"


@functools.lru_cache(maxsize=1)
def _parsed(folder: Path) -> tuple[Mapping[str, Any], ...]:
    # Workload's definition alone is 1.4 MB, and takes half a second to parse.
    documents = (yaml.load_all(file.read_text(), Loader=FAST_LOADER) for file in sorted(folder.glob("*.yaml")))
    return tuple(document for found in documents for document in found if document)
