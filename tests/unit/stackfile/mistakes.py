"""Mistakes planted into a right stack file and a right experiment file, for whatever has to find them.

Each is a place in the file, what is written there (`GONE` takes the key away), and words that the loader has to say.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

GONE = object()
Place = tuple[str | int, ...]
Mistakes = Mapping[str, tuple[Place, object] | tuple[Place, object, str]]

_C: Place = ("config", "kumulus:cluster")
_G: Place = (*_C, "nodeGroups", 0)
_T: Place = (*_G, "nodeTemplate")
_P: Place = (*_G, "placement", 0)
_H: Place = (*_C, "nodeGroups", 1)
_L: Place = (*_C, "podLifecycles", 0)
_S: Place = (*_C, "autoscaler")

STACK: dict[str, Any] = {
    "encryptionsalt": "v1:abc=:v1:def:ghi",
    "config": {
        "aws:region": "eu-central-1",
        "kumulus:cluster": {
            "runtime": "kwok",
            "kubernetesVersion": "1.35.4",
            "nodeGroups": [
                {
                    "name": "a100",
                    "placement": [{"availabilityZone": "use1", "replicas": 4, "region": "us-east1"}],
                    "topology": {"nodesPerRack": 2, "racksPerBlock": 2, "preset": "kueue"},
                    "nodeTemplate": {
                        "metadata": {"labels": {"example.com/team": "search"}},
                        "taints": [{"key": "example.com/dedicated", "effect": "NoSchedule"}],
                        "capacity": {"cpu": 96, "memory": "1360Gi", "pods": "110", "nvidia.com/gpu": "8"},
                        "nodeInfo": {"architecture": "arm64"},
                    },
                },
                {"name": "h100", "instanceType": "a3-highgpu-8g", "placement": []},
            ],
            "clusterAddons": [{"name": "metrics", "chart": "metrics-server", "repoURL": "https://charts.example.com"}],
            "faults": [{"name": "xid", "kind": "gpu-fell-off-bus", "target": {"percent": "10%", "zone": "use1"}}],
            "podLifecycles": [{"name": "training", "run": {"lognormal": {"median": "10m", "sigma": 0.5}}}],
            "podUsage": [{"name": "training", "cpu": "80%", "memory": {"range": {"from": "1Gi", "to": "2Gi"}}}],
            "observability": {"retention": "12h", "memory": "2Gi"},
            "tenants": [{"name": "research", "quota": {"requests.nvidia.com/gpu": "16", "pods": 50}}],
            "kwok": {"apiServerPort": 6443, "featureGates": {"SomeGate": True}, "runtimeConfig": {"api/all": True}},
        },
    },
}
CLUSTER: dict[str, Any] = STACK["config"]["kumulus:cluster"]
STACK_MISTAKES: Mistakes = {
    "a key of the namespace that is none": (("config", "kumulus:clutser"), {}),
    "no cluster at all": (("config", "kumulus:cluster"), GONE, "cluster: is missing; write kumulus:cluster"),
    "a runtime that is none": (("config", "kumulus:runtime"), "kwock", 'runtime: is "kwock"; write kwok'),
    "a switch that is none": (("config", "kumulus:skipAddons"), "yes", 'skipAddons: is "yes"; write true or false'),
    "prices that are no path": (("config", "kumulus:prices"), 5, "prices: is 5; write the path"),
    "nodes that are no path": (("config", "kumulus:nodes"), 5),
    "two descriptions of the cluster": (("config", "kumulus:clusterConfig"), "gcp.yaml", "leave one of the two out"),
    "an unknown key of the cluster": ((*_C, "nodeGroup"), [], "nodeGroup: is not a known key; write nodeGroups"),
    "an unknown key without a value": ((*_C, "nodeGroup"), None),
    "a version that is not whole": ((*_C, "kubernetesVersion"), "1.35", "not a whole Kubernetes version"),
    "a number for a version": ((*_C, "kubernetesVersion"), 1.35, "is 1.35, not"),
    "capitals in a group's name": ((*_G, "name"), "A100", "write a100"),
    "an empty name": ((*_C, "name"), ""),
    "negative replicas": ((*_P, "replicas"), -1, "from 0 to 100,000"),
    "replicas in quotes": ((*_P, "replicas"), "5", "a number of nodes"),
    "nodes that are no list": ((*_P, "nodes"), "node-a"),
    "a node without a name": ((*_P, "nodes"), [{"labels": {}}]),
    "a node's name with capitals": ((*_P, "nodes"), [{"name": "Node-A"}]),
    "a node with a label of ours": ((*_P, "nodes"), [{"name": "a", "labels": {"kumulus.io/pool": "x"}}]),
    "a node in a place with a blank": ((*_P, "nodes"), [{"name": "a", "labels": {"topology.kumulus.io/rack": "r 3"}}]),
    "a node with a key too many": ((*_P, "nodes"), [{"name": "a", "taints": []}]),
    "a node that is cordoned in quotes": ((*_P, "nodes"), [{"name": "a", "unschedulable": "yes"}]),
    "half a replica": ((*_P, "replicas"), 2.5, "not whole"),
    "a zone left out": ((*_P, "availabilityZone"), GONE, "availabilityZone: is missing"),
    "one placement in place of a list": ((*_G, "placement"), {"availabilityZone": "use1", "replicas": 4}),
    "a group without a template": (_T, GONE, "write nodeTemplate: {capacity"),
    "a capacity without pods": ((*_T, "capacity", "pods"), GONE, 'nothing would schedule; write pods: "110"'),
    "a quantity with a wrong suffix": ((*_T, "capacity", "memory"), "1360GB", "1360Gi"),
    "a negative quantity": ((*_T, "capacity", "cpu"), "-96", "negative"),
    "half a GPU": ((*_T, "capacity", "nvidia.com/gpu"), "0.5"),
    "a resource that no pod can request": ((*_T, "capacity", "gpu"), "8", "write nvidia.com/gpu"),
    "a label that is Kumulus' own": ((*_T, "metadata", "labels", "kumulus.io/pool"), "x", "Kumulus sets"),
    "a label with a blank": ((*_T, "metadata", "labels", "example.com/team"), "search and rank"),
    "a feature whose name is none": ((*_T, "declaredFeatures"), ["in-place"], "not the name of a feature"),
    "a feature twice": ((*_T, "declaredFeatures"), ["InPlace", "InPlace"], "repeats InPlace"),
    "an effect that is none": ((*_T, "taints", 0, "effect"), "NoShedule", "write NoSchedule"),
    "Karpenter without zones": (_S, {"name": "karpenter"}),
    "cluster-autoscaler without its program": (_S, {"name": "cluster-autoscaler"}),
    "zones for cluster-autoscaler": (
        _S,
        {"name": "cluster-autoscaler", "binary": "bin/ca", "zones": ["us-central1-a"]},
    ),
    "an option of cluster-autoscaler's that is ours": (
        _S,
        {"name": "cluster-autoscaler", "binary": "bin/ca", "options": {"kubeconfig": "x"}},
    ),
    "a program for Karpenter": (_S, {"name": "karpenter", "zones": ["us-central1-a"], "binary": "bin/karpenter"}),
    "a plugin of the fake GPU operator's that is not run": ((*_C, "gpuOperator"), {"exporter": True}),
    "the fewest nodes without the most": ((*_H, "minReplicas"), 1),
    "bounds and a topology": ((*_G, "maxReplicas"), 9),
    "bounds that nobody keeps": ((*_H, "maxReplicas"), 9),
    "an instance type that is not in the catalog": ((*_H, "instanceType"), "a3-highgpu-9g"),
    "a preset that is none": ((*_G, "topology", "preset"), "slurm"),
    "blocks of no size": ((*_G, "topology"), {"nodesPerRack": 2, "blocks": 3}),
    "a repository without a protocol": ((*_C, "clusterAddons", 0, "repoURL"), "charts.example.com", "https://"),
    "a fault that is not in the catalog": ((*_C, "faults", 0, "kind"), "xid-97", "not in the catalog; write xid-"),
    "a fault's image with a blank": ((*_C, "faults", 0, "pods"), {"images": ["web server:404"]}),
    "more than all of the nodes": ((*_C, "faults", 0, "target", "percent"), 110, "is 110, more than 100"),
    "a duration without a unit": ((*_L, "run"), 600),
    "a resize without a share": ((*_L, "resizes"), [{"outcome": "deferred"}]),
    "an outcome of resizes that is none": ((*_L, "resizes"), [{"share": 0.5, "outcome": "proposed"}]),
    "a termination without a unit": ((*_L, "termination"), 20),
    "what must run and has a duration": ((*_L, "mustRun"), "fail"),
    "a distribution that is none": ((*_L, "run"), {"gaussian": {"mean": "10m"}}),
    "a kind of owners in small letters": ((*_L, "selector"), {"ownerKinds": ["jobset"]}, "write JobSet"),
    "a kind of owners with a blank": ((*_L, "selector"), {"ownerKinds": ["My Job"]}, "write a kind such as Job"),
    "a namespace with a blank": ((*_L, "selector"), {"namespaces": ["a b"]}, "selector.namespaces[0]: "),
    "more than all of a request": ((*_C, "podUsage", 0, "cpu"), "120%"),
    "a share as a load": ((*_C, "podUsage", 0, "cpu"), {"load": "80%"}),
    "a quota of what no quota knows": ((*_C, "tenants", 0, "quota", "jobs"), "5"),
    "a namespace of Kubernetes' own": ((*_C, "tenants", 0, "namespace"), "kube-system"),
    "a share of devices that fail that is none": ((*_C, "kwok", "deviceBindings"), {"gpu.nvidia.com": {"failures": 2}}),
    "conditions that devices have twice": (
        (*_G, "resourceSlices"),
        {"bindingConditions": ["A", "A"], "bindingFailureConditions": ["B"]},
    ),
    "what devices take of a node in two ways": (
        (*_G, "resourceSlices"),
        {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": 1, "capacityKey": "milli"}}}},
    ),
    "a port that only root may have": ((*_C, "kwok", "apiServerPort"), 80, "from 1024 to 65,535"),
    "workloads of nobody": ((*_C, "kwok", "workloads"), "kueue"),
    "a feature gate that is a text": ((*_C, "kwok", "featureGates", "SomeGate"), "true", "true or false"),
    "an interval in words": ((*_C, "observability", "scrapeInterval"), "every minute"),
    # What a schema cannot say.
    "two groups of one name": ((*_H, "name"), "a100", "already nodeGroups[0].name"),
    "an add-on that depends on none": ((*_C, "clusterAddons", 0, "dependsOn"), ["prometheus"], "not an add-on"),
    "settings of another runtime": ((*_C, "kind"), {"wait": "3m"}, "write runtime: kind"),
    "a fault on nodes that are none": ((*_C, "faults", 0, "target", "zone"), "use7"),
    "more nodes than places": ((*_G, "topology", "blocks"), 0.5),
    "racks that do not fit into domains": ((*_G, "topology", "nodesPerNvlinkDomain"), 3),
}
STACK_BEYOND: Mapping[str, str] = {
    "bounds that nobody keeps": "whether there is an autoscaler stands in another part of the file",
    "two groups of one name": "names are compared with each other",
    "an add-on that depends on none": "names are looked up in another part of the file",
    "settings of another runtime": "the runtime may be given beside the cluster, as kumulus:runtime",
    "a fault on nodes that are none": "the nodes follow from the groups",
    "racks that do not fit into domains": "one number has to be a multiple of another",
}

_K: Place = ("config", "kumulus:clusters")
_M: Place = (*_K, 0)
_D: Place = ("config", "kumulus:defaults")
MANY: dict[str, Any] = {
    "config": {
        "kumulus:hub": "hub",
        "kumulus:defaults": {
            "runtime": "kwok",
            "nodeGroups": [{"name": "h100", "instanceType": "a3-highgpu-8g", "placement": []}],
            "kwok": {"heartbeatFactor": 9},
        },
        "kumulus:clusters": [
            {"name": "worker", "count": 2, "kwok": {"heartbeatFactor": 5}},
            {"name": "hub", "nodeGroups": []},
        ],
    }
}
MANY_MISTAKES: Mistakes = {
    "clusters beside a cluster": (_C, {}, "cluster: describes the cluster, and clusters do so too"),
    "defaults of none": (_K, GONE, "hub: has no effect without clusters"),
    "no clusters": (_K, [], "clusters: is a list; write a list of clusters, each with a name"),
    "one cluster in place of a list": (_K, {"name": "a"}, "clusters: is a mapping; write a list of clusters"),
    "a cluster that is a name": (_M, "worker", 'clusters[0]: is "worker"; write a mapping with a name'),
    "a cluster without a name": ((*_M, "name"), GONE, "clusters[0].name: is missing; write name: worker"),
    "a name with capitals": ((*_M, "name"), "Worker", "clusters[0].name: "),
    "no clusters of a kind": ((*_M, "count"), 0, "clusters[0].count: is 0, less than 1"),
    "too many of a kind": ((*_M, "count"), 101),
    "half a cluster": ((*_M, "count"), 1.5),
    "an unknown key of a cluster": ((*_M, "replicas"), 2),
    "a runtime that is none": ((*_M, "runtime"), "kwock"),
    "a group without a template": ((*_M, "nodeGroups"), [{"name": "a", "placement": []}]),
    "defaults that are a list": (_D, [], "defaults: is a list; write a mapping"),
    "a name for all": ((*_D, "name"), "x", "defaults.name: is each cluster's own"),
    "an unknown key of the defaults": ((*_D, "nodegroups"), []),
    "a factor in words": ((*_D, "kwok", "heartbeatFactor"), "five"),
    "a hub that is a number": (("config", "kumulus:hub"), 1, "hub: is 1; write the name of one of the clusters"),
    "a hub without a name": (("config", "kumulus:hub"), ""),
    "a key of the namespace that is none": (("config", "kumulus:cluters"), []),
    # What a schema cannot say.
    "a runtime of all that is none": (("config", "kumulus:runtime"), "kwock", '\n  runtime: is "kwock"; write kwok'),
    "a name too long for the stack's": ((*_M, "name"), "a" * 36, "of 43 characters, at most 40 are allowed"),
    "too many of all kinds": ((*_K, 1, "count"), 99, "clusters: are 101; write 100 or"),
    "a hub that is none": (("config", "kumulus:hub"), "hup", 'hub: "hup" is none of the clusters; write hub'),
    "two clusters of one name": (
        (*_K, 1, "name"),
        "worker-1",
        'clusters[1].name: "worker-1" is already one of clusters[0]',
    ),
    "one port for two": (
        (*_D, "kwok", "apiServerPort"),
        7000,
        'clusters[1].kwok.apiServerPort: is also the port of "worker-0"',
    ),
}
MANY_BEYOND: Mapping[str, str] = {
    "a name too long for the stack's": "it depends on the stack's name",
    "too many of all kinds": "counts are added",
    "a hub that is none": "names are looked up in another part of the file",
    "two clusters of one name": "names follow from counts, and are compared with each other",
    "one port for two": "what clusters have is compared with each other",
}

_W: Place = ("workloads", 0)
EXPERIMENT: dict[str, Any] = {
    "name": "fill",
    "description": "all GPUs are allocated",
    "about": {"source": "ours", "expected": "all", "emulation": "nothing"},
    "stack": "quickstart",
    "seed": 1,
    "repetitions": 2,
    "scheduler": {"name": "volcano"},
    "workloads": [
        {
            "name": "training",
            "jobs": 10,
            "workers": 8,
            "requests": {"cpu": "8", "nvidia.com/gpu": 8},
            "arrival": {"poisson": 4, "after": "10s"},
            "affinity": {"preferred": "rack"},
            "priority": 100,
            "duration": {"normal": {"mean": "10m", "sigma": "1m"}},
        },
        {"name": "web", "kind": "Deployment", "workers": 3},
    ],
    "timeline": [
        {"at": "30s", "fault": {"name": "rack", "kind": "unreachable", "target": {"rack": "r3"}}},
        {"at": "1m", "clear": "rack"},
        {"at": "2m", "after": "created", "scheduler": "restart"},
        {"at": "3m", "kill": "worker-1"},
        {"at": "4m", "restore": "worker-1"},
        {"run": {"command": "python3 operator.py", "background": True}},
    ],
    "until": "running",
    "settle": "5s",
    "timeout": "10m",
    "expect": [
        {"measure": "allocation.gpu", "atLeast": "99%"},
        {"measure": "timeToSchedule.p99", "atMost": "2s"},
        {"workload": "web", "nodes": ["a100-use1-0"]},
        {"nodes": {"fault": "rack"}, "cordoned": True, "within": "10s"},
        {"workload": "web", "onFaultedNodes": 0, "within": "30s"},
    ],
}
EXPERIMENT_MISTAKES: Mistakes = {
    "an unknown key": (("workload",), []),
    "an unknown key without a value": (("workload",), None),
    "no name": (("name",), GONE),
    "a name with a blank": (("name",), "gpu fill"),
    "no workloads": (("workloads",), []),
    "one workload in place of a list": (("workloads",), {"name": "training"}),
    "a negative seed": (("seed",), -1),
    "no repetition": (("repetitions",), 0),
    "a scheduler that is none": (("scheduler", "name"), "volcanoo"),
    "an end that is none": (("until",), "done"),
    "a time without a unit": (("timeout",), 600),
    "a negative time": (("settle",), "-5s"),
    "an unknown key of a workload": ((*_W, "worker"), 8),
    "no workers": ((*_W, "workers"), 0),
    "more workers than can be": ((*_W, "workers"), 20_001),
    "a kind that is none": ((*_W, "kind"), "StatefulSet"),
    "a quantity with a wrong suffix": ((*_W, "requests", "memory"), "8 GB"),
    "half a GPU": ((*_W, "requests", "nvidia.com/gpu"), 0.5),
    "a rate of nothing": ((*_W, "arrival", "poisson"), 0),
    "two rates": ((*_W, "arrival", "rate"), 4),
    "a place that is none": ((*_W, "affinity", "preferred"), "shelf"),
    "a priority beyond a user's": ((*_W, "priority"), 2_000_000_000),
    "a distribution without its spread": ((*_W, "duration"), {"normal": {"mean": "10m"}}),
    "an end of what has none": (("workloads", 1, "duration"), "10m"),
    "a manifest beside what it describes": ((*_W, "manifest"), "job.yaml"),
    "a recording beside what it decides": ((*_W, "replay"), {"file": "day.jsonl"}),
    "an event without an action": (("timeline", 0), {"at": "30s"}),
    "an event of two actions": (("timeline", 1, "delete"), "training"),
    "an action that is none": (("timeline", 2, "scheduler"), "pause"),
    "a fault that is not in the catalog": (("timeline", 0, "fault", "kind"), "unreachabel"),
    "a measure that is none": (("expect", 0, "measure"), "allocation.gpus"),
    "a threshold left out": (("expect", 0, "atLeast"), GONE),
    "a share without a per cent sign": (("expect", 0, "atLeast"), 99),
    "a duration without its unit": (("expect", 1, "atMost"), 2),
    "GPU-seconds with a unit": (("expect", 0), {"measure": "work.lost", "atMost": "600s"}),
    "nodes beside a measure": (("expect", 0, "nodes"), ["a100-use1-0"]),
    "nodes that are no list": (("expect", 2, "nodes"), "a100-use1-0"),
    "a fault's nodes without a time": (("expect", 3, "within"), GONE),
    "a fault's nodes by another key": (("expect", 3, "nodes"), {"faults": "rack"}),
    "a fault's nodes, and how far from a baseline": (("expect", 3, "within"), "10% of baseline"),
    "a time without its unit after a fault": (("expect", 4, "within"), "30"),
    "a list of nodes that are cordoned": (("expect", 3, "nodes"), ["a100-use1-0"]),
    "less than no pod": (("expect", 4, "onFaultedNodes"), -1),
    "a program without a command": (("timeline", 5, "run"), {"background": True}),
    # What a schema cannot say.
    "two workloads of one name": (("workloads", 1, "name"), "training"),
    "a fault that ends and never began": (("timeline", 1, "clear"), "racks"),
    "a worker that comes back and was never away": (("timeline", 4, "restore"), "worker-2"),
    "a scheduler that is stopped for good": (("timeline", 2, "scheduler"), "stop"),
    "a binary for the cluster's own scheduler": (("scheduler",), {"binary": "./mine"}),
    "the nodes of a workload that is none": (("expect", 2, "workload"), "webb"),
    "the nodes of a fault that is none": (("expect", 3, "nodes"), {"fault": "racks"}),
}
EXPERIMENT_BEYOND: Mapping[str, str] = {
    "two workloads of one name": "names are compared with each other",
    "a fault that ends and never began": "names are looked up in another part of the file",
    "a worker that comes back and was never away": "names are looked up in another part of the file",
    "a scheduler that is stopped for good": "it depends on the order of the timeline",
    "the nodes of a workload that is none": "names are looked up in another part of the file",
    "the nodes of a fault that is none": "names are looked up in another part of the file",
}


def places(value: object, place: Place = ()) -> Iterator[Place]:
    """Every place in a file."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*place, key)
        yield from places(each, (*place, key))


def planted(whole: Mapping[str, Any], place: Place, value: object) -> dict[str, Any]:
    """A copy of a file with something else at a place, or nothing there for `GONE`."""
    copied = copy.deepcopy(dict(whole))
    holder: Any = copied
    for part in place[:-1]:
        holder = holder[part]
    if value is GONE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return copied
