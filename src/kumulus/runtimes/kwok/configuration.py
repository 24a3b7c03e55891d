"""Turn the options of a cluster into the configuration of kwokctl and kwok-controller, and fingerprints of it."""

from collections.abc import Mapping
from typing import Any

from kumulus import toolchain
from kumulus.kwok import node_metrics
from kumulus.kwok.base_stages import stages
from kumulus.kwok.claim_stages import claim_stages, volume_stages
from kumulus.model.active_faults import WITHOUT_KWOK
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import access, addition, components, gates, logs, objects, pod_logs, sizing
from kumulus.runtimes.kwok.layout import Layout

# Controllers of an emulated fleet play stages for thousands of objects: KWOK's default of 4 at once made all nodes
# Ready tens of seconds late (docs/clusters.md).
_PARALLELISM = 32
_CONFIG_API = "config.kwok.x-k8s.io/v1alpha1"
_FLAGS = {
    "kube-apiserver": {
        # kwokctl sets none, and Kubernetes' default of 10.0.0.0/24 would be full after 254 Services.
        "service-cluster-ip-range": "10.96.0.0/16",
        # It taints each new node as not ready, until the controller manager removes the taint. Our nodes are posted
        # Ready: without the plugin, they take pods at once, and the cluster saves two requests for each of them.
        "disable-admission-plugins": "TaintNodesByCondition",
    },
    "kube-controller-manager": {
        # There is one of each controller. With leader election, they would exit when etcd or the API server is silent
        # for ten seconds, and a restarted one would wait for its predecessor's lease to expire.
        "leader-elect": "false",
        # It tells kubelets, of which there are none, how long to cache secrets, and patches every node each time a
        # fleet passes 100, 500, 1,000 and 2,000 nodes.
        "controllers": "*,-ttl-controller",
    },
    "kube-scheduler": {"leader-elect": "false"},
    "kwok-controller": {"manage-all-nodes": "false", "manage-nodes-with-label-selector": f"!{WITHOUT_KWOK}"},
}
# The flags that kwokctl sets itself: ours replace them, and all others are added.
_OF_KWOKCTL = {
    access.ALWAYS_ALLOWED,
    "advertise-client-urls",
    "etcd-servers",
    "initial-advertise-peer-urls",
    "initial-cluster",
    "listen-client-urls",
    "listen-peer-urls",
    "manage-all-nodes",
    "node-monitor-grace-period",
}
# Of an etcd whose data may be lost. It has no other members, but until it has elected itself it waits for them: with
# its defaults for up to a second, half of one on average.
_LOSABLE = {"unsafe-no-fsync": "true", "heartbeat-interval": "20", "election-timeout": "100"}
_COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")
_PORT_KEYS = (
    "etcdPort",
    "etcdPeerPort",
    "kubeApiserverPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
    "kwokControllerPort",
)

REPLACED_BY = frozenset(("apiServerPort", "featureGates", "runtimeConfig", "workloads", "etcdFsync", "heartbeatFactor"))


def port_keys(options: dict[str, Any]) -> list[str]:
    """Names of the kwokctl options whose port has to be found: all but those the stack chose."""
    return [key for key in _PORT_KEYS if not (key == "kubeApiserverPort" and options.get("apiServerPort"))]


def usage_kind(options: Mapping[str, Any]) -> str | None:
    """Which of :data:`node_metrics.Kind` the nodes' endpoints serve; ``gpus`` if only an addition needs them."""
    if kind := options.get("podUsage"):
        return str(kind)
    return "gpus" if any(each.measures for each in addition.asked(options)) else None


def custom_resources(options: Mapping[str, Any]) -> list[str]:
    """The kinds that kwok-controller reads as objects of the cluster instead of from its file."""
    kinds = [objects.STAGE] if options.get("stageObjects") else []
    return [*kinds, objects.USAGE] if usage_kind(options) else kinds


def base_stages(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The stages of every cluster with these options, whatever else the stack declares."""
    own = stages(events=options.get("events") == "kubelet")
    own += [*volume_stages(), *claim_stages(options.get("deviceBindings") or {})]
    return [*own, *(stage for each in addition.every() for stage in each.stages(options))]


def controller_documents(
    options: Mapping[str, Any], nodes: int | None = None, directory: str = ""
) -> list[dict[str, Any]]:
    """The documents kwok-controller reads at its start: its parallelism, metrics, and stages that are no objects.

    The directory is the cluster's; it is left out, as is the number of nodes, where clusters are compared.
    """
    found: list[dict[str, Any]] = [
        {
            "apiVersion": _CONFIG_API,
            "kind": "KwokConfiguration",
            "metadata": {"name": "kwok"},
            "options": {
                "podPlayStageParallelism": _PARALLELISM,
                "nodePlayStageParallelism": _PARALLELISM,
                "nodeLeaseParallelism": sizing.lease_parallelism(nodes),
                # kwokctl saves these options without KWOK's own default, and pods then have no address.
                "cidr": "10.0.0.0/16",
                # Likewise: it would only say that logs are disabled.
                "enableDebuggingHandlers": True,
            },
        },
        *pod_logs.documents(directory),
    ]
    if not options.get("stageObjects"):
        found += base_stages(options)
    if kind := usage_kind(options):
        found.append(node_metrics.metric(kind))
    return found


def fingerprint(options: Mapping[str, Any]) -> str:
    """Identify the settings that are changed in place; a fleet that grows changes none."""
    # The name of an addition's class is part of it: under another one, each cluster with it would be configured again.
    added = {
        type(each).__name__: [each.fingerprints(options), each.objects(options)] for each in addition.asked(options)
    }
    wanted = [
        controller_documents(options),
        custom_resources(options),
        base_stages(options),
        added,
    ]
    return components.fingerprint(wanted)


def component_fingerprints(options: Mapping[str, Any]) -> dict[str, str]:
    """Identify the settings of the components that are restarted when theirs change: by each one's name."""
    found = {"kwok-controller": components.fingerprint([controller_documents(options), custom_resources(options)])}
    if kind := usage_kind(options):
        found["metrics-server"] = components.fingerprint(kind)
    for each in addition.asked(options):
        found |= each.fingerprints(options)
    return found


def has_additions(options: Mapping[str, Any]) -> bool:
    """Whether there are components that kwokctl does not start by itself."""
    return bool(addition.asked(options)) or usage_kind(options) is not None


def documents(wanted: WantedControlPlane, ports: dict[str, int]) -> list[dict[str, Any]]:
    """The documents for ``kwokctl create cluster --config``; the ports are by their :func:`port_keys`."""
    head = {
        "apiVersion": _CONFIG_API,
        "kind": "KwokctlConfiguration",
        "options": _options(wanted, ports),
        "componentsPatches": _patches(wanted, ports),
    }
    directory = str(Layout.of(wanted.home, wanted.name).directory)
    return [head, *controller_documents(wanted.options, wanted.nodes, directory)]


def _options(wanted: WantedControlPlane, ports: dict[str, int]) -> dict[str, Any]:
    """The options of kwokctl itself."""
    options = wanted.options
    version = wanted.kubernetes_version
    kwokctl: dict[str, Any] = {
        "runtime": "binary",
        # kwokctl's own default is 0.0.0.0.
        "bindAddress": "127.0.0.1",
        "securePort": True,
        "kubeAuthorization": True,
        "kubeAdmission": True,
        "disableQPSLimits": True,
        "kubeVersion": version,
        "etcdBinary": str(toolchain.find("etcd")),
        "kwokControllerBinary": str(toolchain.find("kwok")),
        "kubeApiserverBinary": str(toolchain.find("kube-apiserver", version)),
        "kubeControllerManagerBinary": str(toolchain.find("kube-controller-manager", version)),
        "kubeSchedulerBinary": str(toolchain.find("kube-scheduler", version)),
        **ports,
    }
    if options.get("apiServerPort"):
        kwokctl["kubeApiserverPort"] = int(options["apiServerPort"])
    if feature_gates := gates.feature_gates(options):
        kwokctl["kubeFeatureGates"] = feature_gates
    if runtime_config := gates.runtime_config(options):
        kwokctl["kubeRuntimeConfig"] = runtime_config
    if options.get("etcdQuota"):
        kwokctl["etcdQuotaBackendSize"] = str(options["etcdQuota"])
    if factor := sizing.heartbeat_factor(options, wanted.nodes):
        kwokctl["heartbeatFactor"] = factor
    if kinds := custom_resources(options):
        kwokctl["enableCRDs"] = kinds
    return kwokctl


def _patches(wanted: WantedControlPlane, ports: dict[str, int]) -> list[dict[str, Any]]:
    """The changes to the components that kwokctl starts."""
    options = wanted.options
    pki = Layout.of(wanted.home, wanted.name).directory / "pki"
    flags = (
        _FLAGS,
        access.etcd_flags(pki, ports["etcdPort"], ports["etcdPeerPort"]),
        access.controller_flags(pki),
        kubelet_flags(ports["kwokControllerPort"]),
        logs.FLAGS,
        sizing.flags(options, wanted.nodes),
        {"etcd": _LOSABLE} if options.get("etcdFsync") is False else {},
    )
    return [
        *(_flags(component, values) for each in flags for component, values in each.items()),
        *({"name": component, "extraEnvs": _variables(component, wanted.nodes)} for component in _COMPONENTS),
    ]


def _flags(component: str, flags: Mapping[str, str]) -> dict[str, Any]:
    """A patch of a component's flags."""
    arguments = [
        {"key": key, "value": value, **({"override": True} if key in _OF_KWOKCTL else {})}
        for key, value in flags.items()
    ]
    return {"name": component, "extraArgs": arguments}


def _variables(component: str, nodes: int | None) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in sizing.environment(component, nodes).items()]


def kubelet_flags(port: int) -> dict[str, dict[str, str]]:
    """The API server's flags for kubelets, all of which are kwok-controller's port.

    By default, it asks DNS for a node's name, and sends logs and exec to whoever has that name (k8s.io/kubernetes
    pkg/kubelet/client). Emulated nodes call themselves localhost, and name no port of their own.
    """
    return {"kube-apiserver": {"kubelet-preferred-address-types": "InternalDNS", "kubelet-port": str(port)}}
