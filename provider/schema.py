"""The plugin's Pulumi schema: what `pulumi package get-schema` and SDK generators read."""

from __future__ import annotations

import json
from typing import Any

from provider import VERSION

_STRING = {"type": "string"}
_STRINGS = {"type": "object", "additionalProperties": _STRING}
_ANY = {"type": "object", "additionalProperties": {"$ref": "pulumi.json#/Any"}}


def _described(kind: dict[str, Any], description: str) -> dict[str, Any]:
    return {**kind, "description": description}


_CLUSTER_INPUTS = {
    "name": _described(_STRING, "The cluster's name: a DNS-1123 label. Changing it replaces the cluster."),
    "runtime": _described(_STRING, "How the control plane is had: kwok (local processes) or kind (containers)."),
    "kubernetesVersion": _described(_STRING, "Such as v1.35.4; the runtime's default, kept once the cluster exists."),
    "options": _described(_ANY, "The runtime's own options, as in the stack file's section of its name."),
    "home": _described(_STRING, "Directory of the cluster's files; $KUMULUS_HOME, or .kumulus beside the program."),
    "contents": _described(_ANY, "Names of its faults and pools, by which a preview tells what goes."),
}
_CLUSTER_OUTPUTS = {
    **{key: described for key, described in _CLUSTER_INPUTS.items() if key != "contents"},
    "identity": _described(_STRING, "UID of the kube-system namespace: another one is another cluster."),
    "kubeconfig": _described(_STRING, "Path of the kubeconfig file, known in previews."),
    "server": _described(_STRING, "Address of the API server."),
    "directory": _described(_STRING, "Directory of this cluster's files."),
    "status": _described(_STRING, "running, degraded, stopped, or incomplete: a part of it is lost."),
    "components": _described(_STRINGS, "Each component's state."),
    "endpoints": _described(_STRINGS, "Where further services answer: prometheus, of a stack with observability."),
}
_POOL_INPUTS = {
    "kubeconfig": _described(_STRING, "Path of the cluster's kubeconfig."),
    "clusterIdentity": _described(_STRING, "The cluster's identity; another one means other nodes."),
    "clusterName": _described(_STRING, "The cluster's name."),
    "name": _described(_STRING, "The pool's name; nodes are <name>-<ordinal>, from 0."),
    "replicas": _described({"type": "integer"}, "How many nodes; shrinking removes the highest ordinals."),
    "labels": _described(_STRINGS, "Labels of every node."),
    "gpu": _described(_STRINGS, "What the labels of GPU Feature Discovery follow from, in their place."),
    "annotations": _described(_STRINGS, "Annotations of every node."),
    "taints": _described({"type": "array", "items": _STRINGS}, "Taints of every node: key, value, effect."),
    "capacity": _described(_STRINGS, "Quantities by resource."),
    "allocatable": _described(_STRINGS, "Quantities by resource; the capacity where it names none."),
    "nodeInfo": _described(_STRINGS, "architecture, operatingSystem and kubeletVersion."),
    "topology": _described(_ANY, "By level (rack, block …): the label that names a node's place, and nodes per place."),
    "resourceSlices": _described(
        _ANY,
        "Devices of a node, one ResourceSlice each: driver, count, attributes, capacity, pcieRoots, numaNodes.",
    ),
    "shards": _described({"type": "integer"}, "How many kwok-controllers share the nodes, each by its label."),
}
_POOL_OUTPUTS = {
    **_POOL_INPUTS,
    "drift": _described(_ANY, "What a refresh found not to be as wanted: missing, extra and altered nodes and slices."),
}
_HYPERNODES_INPUTS = {
    **{key: _POOL_INPUTS[key] for key in ("kubeconfig", "clusterIdentity", "clusterName")},
    "pools": _described(_ANY, "By pool name: its zone, replicas and topology."),
}
_DEFINITIONS_INPUTS = {
    **{key: _POOL_INPUTS[key] for key in ("kubeconfig", "clusterIdentity", "clusterName")},
    "group": _described(_STRING, "The kinds' API group."),
}
_FAULT_INPUTS = {
    **{key: _POOL_INPUTS[key] for key in ("kubeconfig", "clusterIdentity", "clusterName")},
    "name": _described(_STRING, "The fault's name."),
    "kind": _described(_STRING, "The catalog's entry it is made from, for people to read."),
    "nodes": _described(_STRINGS, "Its nodes: by pool, ordinals as ranges, 0-99,105."),
    "node": _described(_ANY, "What it does to each node: conditions, taints, labels, annotations, capacity, kubelet."),
    "pods": _described(_ANY, "What it does to pods, and to which."),
    "lost": _described(_STRINGS, "What the fleet loses by it, quantities by resource."),
}
_NAMESPACE_INPUTS = {
    **{key: _POOL_INPUTS[key] for key in ("kubeconfig", "clusterIdentity", "clusterName")},
    "name": _described(_STRING, "The namespace's name. Changing it replaces the namespace."),
    "stack": _described(_STRING, "Whose it is: <organization>/<project>/<stack>; somebody else's is never touched."),
    "labels": _described(_STRINGS, "Labels it is to have; others stay."),
    "annotations": _described(_STRINGS, "Annotations it is to have; others stay."),
}
_RELEASE_INPUTS = {
    **{key: _POOL_INPUTS[key] for key in ("kubeconfig", "clusterIdentity", "clusterName")},
    "namespace": _described(_STRING, "The Helm release's namespace."),
    "name": _described(_STRING, "The Helm release's name."),
}
_GROUND_INPUTS = {
    **_RELEASE_INPUTS,
    "createNamespace": _described({"type": "boolean"}, "Make the namespace, and remove it with the last in it."),
}
_GROUND_OUTPUTS = {
    **_GROUND_INPUTS,
    "repairs": _described({"type": "integer"}, "How often something was in the release's way."),
    "foreign": _described(_STRING, "UID of the revision of somebody else's release that was there before."),
}
_READY_INPUTS = {
    **_RELEASE_INPUTS,
    "timeout": _described({"type": "number"}, "How many seconds to wait."),
    "revision": _described({"type": "integer"}, "The release's revision; another one is waited for anew."),
}
_CRDS_INPUTS = {
    **{key: _POOL_INPUTS[key] for key in ("kubeconfig", "clusterIdentity", "clusterName")},
    "name": _described(_STRING, "The add-on's name."),
    "chart": _described(_STRING, "A name in a repository, an oci:// reference or a path."),
    "repository": _described(_STRING, "The repository's URL."),
    "version": _described(_STRING, "The chart's version; the newest when it is not given."),
    "access": {**_described(_STRINGS, "What a private source asks for; not kept."), "secret": True},
    "values": {
        **_described(_ANY, "The release's values, for the chart's schema to look at; not kept."),
        "secret": True,
    },
}
_CRDS_OUTPUTS = {
    **{key: described for key, described in _CRDS_INPUTS.items() if key not in ("access", "values")},
    "crds": _described(_STRINGS, "A digest of each CRD's manifest, by name."),
    "drift": _described(_ANY, "What a refresh found not to be as wanted."),
}


def schema_json() -> str:
    """Return the package schema (https://www.pulumi.com/docs/iac/extending-pulumi/schema/) as JSON text."""
    resources = {
        "kumulus:index:Cluster": {
            "description": "The control plane of an emulated cluster.",
            "inputProperties": _CLUSTER_INPUTS,
            "requiredInputs": ["name"],
            "properties": _CLUSTER_OUTPUTS,
            "required": ["name", "identity", "kubeconfig", "server", "directory", "status", "components"],
        },
        "kumulus:index:NodePool": {
            "description": "The emulated nodes of one node group in one availability zone, as one resource.",
            "inputProperties": _POOL_INPUTS,
            "requiredInputs": ["kubeconfig", "clusterIdentity", "clusterName", "name", "replicas"],
            "properties": _POOL_OUTPUTS,
            "required": ["name", "replicas"],
        },
        "kumulus:index:HyperNodes": {
            "description": "Volcano's HyperNodes for the topology of a cluster's pools, as one resource.",
            "inputProperties": _HYPERNODES_INPUTS,
            "requiredInputs": list(_HYPERNODES_INPUTS),
            "properties": {
                **_HYPERNODES_INPUTS,
                "made": _described({"type": "integer"}, "How many of them there are; 0 without Volcano's CRD."),
                "drift": _POOL_OUTPUTS["drift"],
            },
            "required": list(_HYPERNODES_INPUTS),
        },
        "kumulus:index:Fault": {
            "description": "Something that goes wrong on nodes or with pods, for as long as it is declared.",
            "inputProperties": _FAULT_INPUTS,
            "requiredInputs": ["kubeconfig", "clusterIdentity", "clusterName", "name", "nodes", "node"],
            "properties": {**_FAULT_INPUTS, "drift": _described(_STRING, "What a refresh found not to be as wanted.")},
            "required": ["name", "nodes"],
        },
        "kumulus:index:Namespace": {
            "description": "A namespace that is the stack's own: deleted with everything in it when the stack goes.",
            "inputProperties": _NAMESPACE_INPUTS,
            "requiredInputs": ["kubeconfig", "clusterIdentity", "clusterName", "name", "stack"],
            "properties": {**_NAMESPACE_INPUTS, "drift": _described(_STRINGS, "What is not as wanted, by its path.")},
            "required": ["name", "stack"],
        },
        "kumulus:index:Definitions": {
            "description": "The kinds of an API group that a chart brings, which Helm would leave behind.",
            "inputProperties": _DEFINITIONS_INPUTS,
            "requiredInputs": list(_DEFINITIONS_INPUTS),
            "properties": {
                **_DEFINITIONS_INPUTS,
                "before": _described({"type": "array", "items": _STRING}, "Those that were there first, which stay."),
            },
            "required": list(_DEFINITIONS_INPUTS),
        },
        "kumulus:index:ReleaseGround": {
            "description": "That nothing an interrupted update has left is in a Helm release's way.",
            "inputProperties": _GROUND_INPUTS,
            "requiredInputs": list(_RELEASE_INPUTS),
            "properties": _GROUND_OUTPUTS,
            "required": list(_RELEASE_INPUTS),
        },
        "kumulus:index:ReleaseMark": {
            "description": "A note in the cluster that a Pulumi state has a Helm release.",
            "inputProperties": _RELEASE_INPUTS,
            "requiredInputs": list(_RELEASE_INPUTS),
            "properties": _RELEASE_INPUTS,
            "required": list(_RELEASE_INPUTS),
        },
        "kumulus:index:ReleaseReady": {
            "description": "That what a Helm release has in the cluster has come up, and what operators make of it.",
            "inputProperties": _READY_INPUTS,
            "requiredInputs": [*_RELEASE_INPUTS, "timeout"],
            "properties": _READY_INPUTS,
            "required": [*_RELEASE_INPUTS, "timeout"],
        },
        "kumulus:index:ChartCrds": {
            "description": "The CRDs of a Helm chart, made and kept up to date.",
            "inputProperties": _CRDS_INPUTS,
            "requiredInputs": ["kubeconfig", "clusterIdentity", "clusterName", "name", "chart"],
            "properties": _CRDS_OUTPUTS,
            "required": ["name", "chart"],
        },
        "kumulus:index:Lifetime": {
            "description": "The life of one cluster, for other resources to be deletedWith; nothing outside the state.",
            "inputProperties": {"clusterIdentity": _POOL_INPUTS["clusterIdentity"]},
            "requiredInputs": ["clusterIdentity"],
            "properties": {"clusterIdentity": _POOL_INPUTS["clusterIdentity"]},
            "required": ["clusterIdentity"],
        },
    }
    return json.dumps({"name": "kumulus", "version": VERSION, "resources": resources})
