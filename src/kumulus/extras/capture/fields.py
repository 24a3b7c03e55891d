"""What is kept of each kind: the fields by which schedulers decide, as k8s.io/kubernetes pkg/scheduler reads them.

Sources: the plugins of kube-scheduler (NodeAffinity, TaintToleration, NodeResourcesFit, NodePorts,
PodTopologySpread, InterPodAffinity, VolumeBinding, VolumeZone, NodeVolumeLimits, DynamicResources, SchedulingGates,
DefaultPreemption, GangScheduling, TopologyPlacement, NodeDeclaredFeatures), k8s.io/dynamic-resource-allocation
(structured). What is kept of a scheduler's own kinds is in its folder.

Checked against Kubernetes 1.35 to 1.37.
"""

from collections.abc import Iterable, Mapping

from kumulus.extras.capture.kinds import OF_SCHEDULERS
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.forms import (
    BARE,
    CLAIMS,
    EXPRESSIONS,
    KEY,
    LABELS,
    NAME,
    QUANTITY,
    RESOURCE,
    RESOURCES,
    SELECTOR,
    TAINTS,
    TOLERATION,
    VALUE,
    WORD,
    Each,
    Form,
    Leaf,
)
from kumulus.extras.schedulers.kinds import ObjectKind

# The value of a field is a node's name here: matchFields supports only metadata.name.
_TERM: Form = {
    "matchExpressions": EXPRESSIONS,
    "matchFields": [{"key": WORD, "operator": WORD, "values": [NAME]}],
}
NODE_SELECTOR: Form = {"nodeSelectorTerms": [_TERM]}
_POD_TERM: Form = {
    "labelSelector": SELECTOR,
    "namespaces": [NAME],
    "namespaceSelector": SELECTOR,
    "topologyKey": KEY,
    "matchLabelKeys": [KEY],
    "mismatchLabelKeys": [KEY],
}
_POD_AFFINITY: Form = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": WORD, "podAffinityTerm": _POD_TERM}],
}
_AFFINITY: Form = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": NODE_SELECTOR,
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": WORD, "preference": _TERM}],
    },
    "podAffinity": _POD_AFFINITY,
    "podAntiAffinity": _POD_AFFINITY,
}
_NEEDS: Form = {"requests": RESOURCES, "limits": RESOURCES, "claims": [{"name": NAME, "request": NAME}]}
_CONTAINER: Form = {
    "name": NAME,
    "resources": _NEEDS,
    "ports": [{"hostPort": WORD, "containerPort": WORD, "protocol": WORD}],
    "restartPolicy": WORD,
}
_SPREAD: Form = {
    "maxSkew": WORD,
    "topologyKey": KEY,
    "whenUnsatisfiable": WORD,
    "labelSelector": SELECTOR,
    "minDomains": WORD,
    "nodeAffinityPolicy": WORD,
    "nodeTaintsPolicy": WORD,
    "matchLabelKeys": [KEY],
}
POD_SPEC: Form = {
    "schedulerName": NAME,
    "priorityClassName": NAME,
    "priority": WORD,
    "preemptionPolicy": WORD,
    "nodeSelector": LABELS,
    "affinity": _AFFINITY,
    "tolerations": [TOLERATION],
    "topologySpreadConstraints": [_SPREAD],
    "schedulingGates": [{"name": KEY}],
    "schedulingGroup": {"podGroupName": NAME},
    "hostNetwork": WORD,
    "overhead": RESOURCES,
    "runtimeClassName": NAME,
    "resources": {"requests": RESOURCES, "limits": RESOURCES},
    "resourceClaims": CLAIMS,
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "volumes": [{"name": NAME, "persistentVolumeClaim": {"claimName": NAME, "readOnly": WORD}}],
}
POD_LABELS: Form = LABELS
QUEUE_ANNOTATIONS: tuple[str, ...] = registry.all_of("queue_annotations")
"""Annotations by which schedulers find the queue of a pod, and of a job."""
GROUP_ANNOTATIONS: tuple[str, ...] = registry.all_of("kept_annotations", "queue_annotations")
"""Annotations by which schedulers find a pod's gang and queue; the values are names of objects."""

_VOLUME: Form = {
    "capacity": RESOURCES,
    "accessModes": [WORD],
    "storageClassName": NAME,
    "volumeMode": WORD,
    "claimRef": {"namespace": NAME, "name": NAME},
    "nodeAffinity": {"required": NODE_SELECTOR},
    "csi": {"driver": KEY},
    "persistentVolumeReclaimPolicy": WORD,
}
_CLAIM: Form = {
    "accessModes": [WORD],
    "resources": {"requests": RESOURCES},
    "storageClassName": NAME,
    "volumeMode": WORD,
    "volumeName": NAME,
    "selector": SELECTOR,
}
_TOPOLOGY: Form = [{"matchLabelExpressions": [{"key": KEY, "values": [VALUE]}]}]

_COUNTERS: Form = Each(KEY, {"value": QUANTITY})
_CAPACITY: Form = {
    "value": QUANTITY,
    "requestPolicy": {
        "default": QUANTITY,
        "validValues": [QUANTITY],
        "validRange": {"min": QUANTITY, "max": QUANTITY, "step": QUANTITY},
    },
}
_TAKEN: Form = {
    "mapping": {"capacityKey": Leaf.ATTRIBUTE, "capacityMultiplier": QUANTITY, "deviceMultiplier": QUANTITY},
    "overhead": {"perPod": QUANTITY, "perContainer": QUANTITY},
}
DEVICE: dict[str, Form] = {
    "name": NAME,
    "attributes": Each(
        Leaf.ATTRIBUTE, {"int": WORD, "bool": WORD, "string": Leaf.DEVICE_TEXT, "version": Leaf.VERSION}
    ),
    "capacity": Each(Leaf.ATTRIBUTE, _CAPACITY),
    "consumesCounters": [{"counterSet": NAME, "counters": _COUNTERS}],
    "nodeName": NAME,
    "nodeSelector": NODE_SELECTOR,
    "allNodes": WORD,
    "taints": TAINTS,
    "bindsToNode": WORD,
    "bindingConditions": [KEY],
    "bindingFailureConditions": [KEY],
    "allowMultipleAllocations": WORD,
    "nodeAllocatableResources": Each(RESOURCE, _TAKEN),
}
_SLICE: Form = {
    "driver": Leaf.DRIVER,
    "pool": {"name": NAME, "generation": WORD, "resourceSliceCount": WORD},
    "nodeName": NAME,
    "nodeSelector": NODE_SELECTOR,
    "allNodes": WORD,
    "perDeviceNodeSelection": WORD,
    "sharedCounters": [{"name": NAME, "counters": _COUNTERS}],
    "devices": [DEVICE],
}

_ASKED: dict[str, Form] = {
    "deviceClassName": NAME,
    "selectors": [{"cel": {"expression": Leaf.EXPRESSION}}],
    "allocationMode": WORD,
    "count": WORD,
    "tolerations": [TOLERATION],
    "capacity": {"requests": Each(Leaf.ATTRIBUTE, QUANTITY)},
}
_DEVICES_ASKED: Form = {
    "devices": {
        "requests": [
            {"name": NAME, "exactly": {**_ASKED, "adminAccess": WORD}, "firstAvailable": [{"name": NAME, **_ASKED}]}
        ],
        "constraints": [
            {"requests": [Leaf.REQUEST], "matchAttribute": Leaf.ATTRIBUTE, "distinctAttribute": Leaf.ATTRIBUTE}
        ],
    },
}
_DEVICES_GIVEN: Form = {
    "devices": {
        "results": [
            {
                "request": Leaf.REQUEST,
                "driver": Leaf.DRIVER,
                "pool": NAME,
                "device": NAME,
                "adminAccess": WORD,
                "tolerations": [TOLERATION],
                "bindingConditions": [KEY],
                "bindingFailureConditions": [KEY],
                "consumedCapacity": Each(Leaf.ATTRIBUTE, QUANTITY),
            }
        ],
    },
    "nodeSelector": NODE_SELECTOR,
}

META: Form = {"name": NAME, "namespace": NAME, "labels": LABELS}


def _by_name(kinds: Iterable[ObjectKind]) -> dict[str, dict[str, Form]]:
    """The fields of kinds; two groups' kinds of one name have those of both, in the place of the later."""
    found: dict[str, dict[str, Form]] = {}
    for kind in kinds:
        made = {**(kind.fields or {})}
        for key, form in found.pop(kind.name, {}).items():
            other = made.get(key)
            made[key] = {**other, **form} if isinstance(form, Mapping) and isinstance(other, Mapping) else form
        found[kind.name] = made
    return found


OBJECTS: dict[str, dict[str, Form]] = {
    "Namespace": {"metadata": META},
    "PriorityClass": {"metadata": BARE, "value": WORD, "globalDefault": WORD, "preemptionPolicy": WORD},
    "RuntimeClass": {
        "metadata": BARE,
        "handler": NAME,
        "overhead": {"podFixed": RESOURCES},
        "scheduling": {"nodeSelector": LABELS, "tolerations": [TOLERATION]},
    },
    "StorageClass": {
        "metadata": BARE,
        "provisioner": KEY,
        "volumeBindingMode": WORD,
        "reclaimPolicy": WORD,
        "allowedTopologies": _TOPOLOGY,
    },
    "CSIDriver": {"metadata": BARE, "spec": {"attachRequired": WORD, "storageCapacity": WORD}},
    "CSINode": {
        "metadata": BARE,
        "spec": {
            "drivers": [{"name": KEY, "nodeID": NAME, "topologyKeys": [KEY], "allocatable": {"count": WORD}}],
        },
    },
    "CSIStorageCapacity": {
        "metadata": BARE,
        "nodeTopology": SELECTOR,
        "storageClassName": NAME,
        "capacity": QUANTITY,
        "maximumVolumeSize": QUANTITY,
    },
    "PersistentVolume": {"metadata": META, "spec": _VOLUME},
    "PersistentVolumeClaim": {"metadata": META, "spec": _CLAIM},
    "DeviceClass": {
        "metadata": BARE,
        "spec": {"selectors": [{"cel": {"expression": Leaf.EXPRESSION}}], "extendedResourceName": RESOURCE},
    },
    "ResourceSlice": {"metadata": BARE, "spec": _SLICE},
    "ResourceClaimTemplate": {"metadata": META, "spec": {"metadata": {"labels": LABELS}, "spec": _DEVICES_ASKED}},
    # One that was made of a template has the pod or group that it was made for, and under which name this knows it.
    "ResourceClaim": {
        "metadata": META,
        "spec": _DEVICES_ASKED,
        "status": {"allocation": _DEVICES_GIVEN},
        "pod": {"name": NAME, "claim": NAME},
        "podGroup": {"name": NAME, "claim": NAME},
    },
    **_by_name(OF_SCHEDULERS),
    "PodDisruptionBudget": {
        "metadata": BARE,
        "spec": {
            "minAvailable": WORD,
            "maxUnavailable": WORD,
            "selector": SELECTOR,
            "unhealthyPodEvictionPolicy": WORD,
        },
    },
    "LimitRange": {
        "metadata": BARE,
        "spec": {
            "limits": [
                {
                    "type": WORD,
                    "default": RESOURCES,
                    "defaultRequest": RESOURCES,
                    "max": RESOURCES,
                    "min": RESOURCES,
                    "maxLimitRequestRatio": RESOURCES,
                }
            ]
        },
    },
    "ResourceQuota": {
        "metadata": BARE,
        "spec": {
            "hard": RESOURCES,
            "scopes": [WORD],
            "scopeSelector": {"matchExpressions": [{"scopeName": WORD, "operator": WORD, "values": [NAME]}]},
        },
    },
}
"""By kind, in the order in which a clone creates them: referenced kinds come first; quotas come last, so that what they
admitted before is admitted again."""

LAST = ("PodDisruptionBudget", "LimitRange", "ResourceQuota")
"""Kinds that are created after the pods."""

UNSEEN = {
    "containers' images, commands, arguments and environment": "images are read for ImageLocality's score only",
    "annotations, but those that name a pod's gang or queue": "no scheduler of these decides by them",
    "secrets, ConfigMaps and service accounts": "never asked for",
    "owners' own objects (ReplicaSets, Jobs …)": "kept as a pod's kind and name of owner; they would make pods again",
    "pods that have ended": "they hold nothing",
    "images on nodes": "read only for ImageLocality's score, which is 0 everywhere in a clone",
    "Services' and ReplicaSets' selectors": "read only for the score of the default topology spread",
    "what their devices take of nodes, in pods' statuses": "the scheduler's; a clone's counts new pods",
    "ResourceClaims made for extended resources": "in a clone their devices are free",
    "configuration and derived attributes in ResourceClaims": "parameters of drivers; an alpha feature",
    "whose Workloads of scheduling.k8s.io are": "a link for tools; their owners' own objects are not kept",
    "configuration in DeviceClasses": "parameters of drivers; no scheduler reads them",
    "when a device was tainted": "read to evict later only; a clone's begin again",
    "start times of pods": "read only to choose among equal victims of a preemption",
    "nominated nodes": "a scheduler makes them again",
}
"""The parts of the captured kinds that are not kept, and why."""
