"""What is kept of each kind: the fields by which schedulers decide, as k8s.io/kubernetes pkg/scheduler reads them.

Sources: the plugins of kube-scheduler (NodeAffinity, TaintToleration, NodeResourcesFit, NodePorts,
PodTopologySpread, InterPodAffinity, VolumeBinding, VolumeZone, NodeVolumeLimits, DynamicResources, SchedulingGates,
DefaultPreemption, GangScheduling, TopologyPlacement, NodeDeclaredFeatures), k8s.io/dynamic-resource-allocation
(structured), and the API references of Kueue (kueue.x-k8s.io) and Volcano (scheduling.volcano.sh).

Checked against Kubernetes 1.35 to 1.37.
"""

from kumulus.extras.capture.grammar import Each, Form, Leaf, Selecting

WORD, QUANTITY, NAME, KEY, VALUE = Leaf.WORD, Leaf.QUANTITY, Leaf.NAME, Leaf.KEY, Leaf.VALUE
LABELS, RESOURCE, RESOURCES = Leaf.LABELS, Leaf.RESOURCE, Leaf.RESOURCES

_EXPRESSIONS: Form = [{"key": KEY, "operator": WORD, "values": [VALUE]}]
SELECTOR: Form = Selecting({"matchLabels": LABELS, "matchExpressions": _EXPRESSIONS})
# The value of a field is a node's name here: matchFields supports only metadata.name.
_TERM: Form = {
    "matchExpressions": _EXPRESSIONS,
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
_TOLERATION: Form = {"key": KEY, "operator": WORD, "value": VALUE, "effect": WORD, "tolerationSeconds": WORD}
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
    "tolerations": [_TOLERATION],
    "topologySpreadConstraints": [_SPREAD],
    "schedulingGates": [{"name": KEY}],
    "schedulingGroup": {"podGroupName": NAME},
    "hostNetwork": WORD,
    "overhead": RESOURCES,
    "runtimeClassName": NAME,
    "resources": {"requests": RESOURCES, "limits": RESOURCES},
    "resourceClaims": [{"name": NAME, "resourceClaimName": NAME, "resourceClaimTemplateName": NAME}],
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "volumes": [{"name": NAME, "persistentVolumeClaim": {"claimName": NAME, "readOnly": WORD}}],
}
POD_LABELS: Form = LABELS
QUEUE_ANNOTATIONS = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")
"""Annotations by which Volcano's controllers find the queue of a pod, and of a job."""
GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name", *QUEUE_ANNOTATIONS)
"""Annotations by which schedulers find a pod's gang and queue; the values are names of objects."""

TAINTS: Form = [{"key": KEY, "value": VALUE, "effect": WORD}]
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
_QUOTAS: Form = {
    "name": NAME,
    "resources": [
        {"name": RESOURCE, "nominalQuota": QUANTITY, "borrowingLimit": QUANTITY, "lendingLimit": QUANTITY},
    ],
}
_RESOURCE_GROUPS: Form = [{"coveredResources": [RESOURCE], "flavors": [_QUOTAS]}]
_FAIR: Form = {"weight": QUANTITY}

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
    "tolerations": [_TOLERATION],
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
                "tolerations": [_TOLERATION],
                "bindingConditions": [KEY],
                "bindingFailureConditions": [KEY],
                "consumedCapacity": Each(Leaf.ATTRIBUTE, QUANTITY),
            }
        ],
    },
    "nodeSelector": NODE_SELECTOR,
}

# Without its policy, no group would be stored; a mode is chosen by its name alone.
_OF_TEMPLATES: dict[str, Form] = {
    "schedulingConstraints": {"topology": [{"key": KEY}]},
    "disruptionMode": {"single": Selecting({}), "all": Selecting({})},
    "priorityClassName": NAME,
    "preemptionPolicy": WORD,
}
_OF_GROUPS: dict[str, Form] = {
    "parentCompositePodGroupName": NAME,
    "workloadRef": {"workloadName": NAME, "templateName": NAME},
    **_OF_TEMPLATES,
}
_OF_PODS: dict[str, Form] = {
    "schedulingPolicy": {"basic": Selecting({}), "gang": {"minCount": WORD}},
    "resourceClaims": [{"name": NAME, "resourceClaimName": NAME, "resourceClaimTemplateName": NAME}],
}
POD_GROUP: dict[str, Form] = {**_OF_GROUPS, **_OF_PODS}
"""The spec of a PodGroup of Kubernetes' own; one of Volcano has other fields."""
_COMPOSITE: dict[str, Form] = {"schedulingPolicy": {"basic": Selecting({}), "gang": {"minGroupCount": WORD}}}
_WORKLOAD: dict[str, Form] = {"podGroupTemplates": [{"name": NAME, **_OF_TEMPLATES, **_OF_PODS}]}
# A tree of groups has four levels at most.
for _ in range(4):
    _WORKLOAD |= {"compositePodGroupTemplates": [{"name": NAME, **_OF_TEMPLATES, **_COMPOSITE, **_WORKLOAD}]}

META: Form = {"name": NAME, "namespace": NAME, "labels": LABELS}
BARE: Form = {"name": NAME, "namespace": NAME}

OBJECTS: dict[str, dict[str, Form]] = {
    "Namespace": {"metadata": META},
    "PriorityClass": {"metadata": BARE, "value": WORD, "globalDefault": WORD, "preemptionPolicy": WORD},
    "RuntimeClass": {
        "metadata": BARE,
        "handler": NAME,
        "overhead": {"podFixed": RESOURCES},
        "scheduling": {"nodeSelector": LABELS, "tolerations": [_TOLERATION]},
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
    "ResourceFlavor": {
        "metadata": BARE,
        "spec": {
            "nodeLabels": LABELS,
            "nodeTaints": TAINTS,
            "tolerations": [_TOLERATION],
            "topologyName": NAME,
        },
    },
    "ClusterQueue": {
        "metadata": BARE,
        "spec": {
            "cohort": NAME,
            "cohortName": NAME,
            "queueingStrategy": WORD,
            "namespaceSelector": SELECTOR,
            "resourceGroups": _RESOURCE_GROUPS,
            "preemption": {
                "reclaimWithinCohort": WORD,
                "withinClusterQueue": WORD,
                "borrowWithinCohort": {"policy": WORD, "maxPriorityThreshold": WORD},
            },
            "flavorFungibility": {"whenCanBorrow": WORD, "whenCanPreempt": WORD},
            "fairSharing": _FAIR,
            "stopPolicy": WORD,
        },
    },
    "Cohort": {
        "metadata": BARE,
        "spec": {"parent": NAME, "parentName": NAME, "resourceGroups": _RESOURCE_GROUPS, "fairSharing": _FAIR},
    },
    "LocalQueue": {"metadata": BARE, "spec": {"clusterQueue": NAME, "stopPolicy": WORD, "fairSharing": _FAIR}},
    "WorkloadPriorityClass": {"metadata": BARE, "value": WORD},
    "Topology": {"metadata": BARE, "spec": {"levels": [{"nodeLabel": KEY}]}},
    "Queue": {
        "metadata": BARE,
        "spec": {
            "weight": WORD,
            "priority": WORD,
            "reclaimable": WORD,
            "capability": RESOURCES,
            "deserved": RESOURCES,
            "guarantee": {"resource": RESOURCES},
            "parent": NAME,
        },
    },
    "Workload": {"metadata": BARE, "spec": _WORKLOAD},
    "CompositePodGroup": {"metadata": BARE, "spec": {**_OF_GROUPS, **_COMPOSITE}},
    "PodGroup": {
        "metadata": BARE,
        "spec": {**POD_GROUP, "minMember": WORD, "minResources": RESOURCES, "queue": NAME},
    },
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
