"""Volcano's HyperNode kind, as far as tests need it: its name, its scope, and what it refuses."""

from typing import Any

from tests.support.api import Api

HYPERNODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = "hypernodes.topology.volcano.sh"

_TEXT = {"type": "string"}
_SELECTOR = {
    "type": "object",
    "properties": {
        "exactMatch": {"type": "object", "required": ["name"], "properties": {"name": _TEXT}},
        "labelMatch": {
            "type": "object",
            "properties": {"matchLabels": {"type": "object", "additionalProperties": _TEXT}},
        },
    },
    "x-kubernetes-validations": [{"rule": "has(self.exactMatch) != has(self.labelMatch)", "message": "one of the two"}],
}
_MEMBER = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string", "enum": ["Node", "HyperNode"]}, "selector": _SELECTOR},
}
_SPEC = {
    "type": "object",
    "required": ["tier"],
    "properties": {
        "tier": {"type": "integer", "minimum": 0},
        "tierName": _TEXT,
        "members": {"type": "array", "minItems": 1, "items": _MEMBER},
    },
}


def install(api: Api) -> None:
    """Install the CRD and wait until it can be used."""
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}},
    }
    names = {"kind": "HyperNode", "listKind": "HyperNodeList", "plural": "hypernodes", "singular": "hypernode"}
    body: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD},
        "spec": {"group": "topology.volcano.sh", "scope": "Cluster", "names": names, "versions": [version]},
    }
    api.create(CRDS, body)
    api.until(CRDS, lambda found: "Established" in _conditions(found.get(CRD, {})))


def _conditions(crd: Any) -> set[str]:
    conditions = crd.get("status", {}).get("conditions") or []
    return {condition["type"] for condition in conditions if condition["status"] == "True"}
