"""Keys of labels, taints and resources that mean the same in every cluster, and so do not reveal their owner.

Whole keys, not domains: anybody may use a label of their own under kubernetes.io. Sources: the well-known labels,
annotations and taints of kubernetes.io/docs/reference/labels-annotations-taints, the labels of GKE, EKS and AKS nodes,
Karpenter's and NVIDIA's GPU Feature Discovery. Those of schedulers are in their folders.
"""

import re

from kumulus.extras.schedulers import registry

_PLAIN = """
    cpu memory pods ephemeral-storage storage app component tier role type release version env job-name controller-uid
    pod-template-hash controller-revision-hash k8s-app services secrets configmaps persistentvolumeclaims
    replicationcontrollers resourcequotas limits.cpu limits.memory requests.cpu requests.memory requests.storage
    limits.ephemeral-storage requests.ephemeral-storage services.nodeports services.loadbalancers
"""
_BY_PREFIX = {
    "kubernetes.io": "os arch hostname role metadata.name name",
    "beta.kubernetes.io": "os arch instance-type",
    "failure-domain.beta.kubernetes.io": "zone region",
    "topology.kubernetes.io": "zone region",
    "node.kubernetes.io": """
        instance-type windows-build not-ready unreachable memory-pressure disk-pressure pid-pressure network-unavailable
        unschedulable out-of-service exclude-from-external-load-balancers exclude-disruption
    """,
    "node-role.kubernetes.io": "control-plane master worker agent infra",
    "node.cloudprovider.kubernetes.io": "uninitialized shutdown",
    "app.kubernetes.io": "name instance version component part-of managed-by created-by",
    "batch.kubernetes.io": "job-name controller-uid job-completion-index",
    "apps.kubernetes.io": "pod-index",
    "statefulset.kubernetes.io": "pod-name",
    "resource.kubernetes.io": "admin-access",
    "pod-security.kubernetes.io": "enforce audit warn enforce-version audit-version warn-version",
    "leaderworkerset.sigs.k8s.io": "name group-index worker-index group-key",
    "jobset.sigs.k8s.io": "jobset-name replicatedjob-name job-index",
    "nvidia.com": "gpu gpu.shared gpu.present gpu.deploy.operands gpu.clique",
    "amd.com": "gpu",
    "habana.ai": "gaudi",
    "google.com": "tpu",
    "aws.amazon.com": "neuron neuroncore",
    "vpc.amazonaws.com": "efa pod-eni",
    "rdma": "hca_shared_devices_a",
    "cloud.google.com": """
        gke-nodepool gke-accelerator gke-accelerator-count gke-spot gke-preemptible gke-os-distribution gke-boot-disk
        gke-provisioning machine-family gke-placement-group gke-tpu-topology gke-tpu-accelerator
    """,
    "topology.gke.io": "zone",
    "topology.gce": "block subblock host",
    "eks.amazonaws.com": "nodegroup capacityType nodegroup-image compute-type",
    "topology.ebs.csi.aws.com": "zone",
    "topology.k8s.aws": "zone-id network-node-layer-1 network-node-layer-2 network-node-layer-3",
    "kubernetes.azure.com": "agentpool mode scalesetpriority os-sku storagetier storageprofile role",
    "topology.disk.csi.azure.com": "zone",
    "karpenter.sh": "nodepool capacity-type provisioner-name initialized registered disrupted unregistered rebooting",
    "topology.kumulus.io": "nvlink-domain rack leaf block spine",
    "run.ai": "simulated-gpu-node-pool",
    "kwok.x-k8s.io": "node",
}
_PROVISIONERS = """
    pd.csi.storage.gke.io filestore.csi.storage.gke.io ebs.csi.aws.com efs.csi.aws.com fsx.csi.aws.com
    disk.csi.azure.com file.csi.azure.com csi.vsphere.vmware.com kubernetes.io/no-provisioner kubernetes.io/gce-pd
    kubernetes.io/aws-ebs rancher.io/local-path
"""
# Public names of DRA drivers, and the names that they and Kubernetes use for a device's attributes and capacities:
# github.com/kubernetes-sigs/dra-driver-nvidia-gpu (deviceinfo.go), github.com/ROCm/k8s-gpu-dra-driver,
# github.com/intel/intel-resource-drivers-for-kubernetes, k8s.io/dynamic-resource-allocation (deviceattribute).
_DRIVERS = """
    gpu.nvidia.com compute-domain.nvidia.com gpu.amd.com gpu.intel.com gaudi.intel.com qat.intel.com dra.net dra.cpu
    tpu.google.com gpu.example.com resource.kubernetes.io
"""
_ATTRIBUTES = """
    type uuid minor index productName brand architecture cudaComputeCapability cudaDriverVersion driverVersion
    addressingMode parentUUID parentIndex parentMinor profile pciBusID pcieRoot numaNode model family serial
    productID vendor vendorID deviceID memory multiprocessors copyEngines decoders encoders jpegEngines ofaEngines
    computeUnits simdUnits millicores id cliqueID
"""
KNOWN_DRIVERS, KNOWN_ATTRIBUTES = frozenset(_DRIVERS.split()), frozenset(_ATTRIBUTES.split())
_DEVICE_TEXT = re.compile(
    r"gpu|mig|vfio|None|HMM|ATS|Nvidia|NVIDIA|Tesla|Volta|Turing|Ampere|Ada Lovelace|Hopper|Blackwell|daemon|channel"
    r"|[0-9]g\.[0-9]{1,3}gb(?:\+me(?:\.all)?)?|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]|pci[0-9a-f]{4}:[0-9a-f]{2}"
)
OF_RESOURCE = ("requests.", "limits.")
"""Before a resource's name, in a quota."""
OF_CLASS = (
    ".storageclass.storage.k8s.io/requests.storage",
    ".storageclass.storage.k8s.io/persistentvolumeclaims",
    ".deviceclass.resource.k8s.io/devices",
)
"""After a class's name, in a quota."""
DEVICES_OF_CLASS = "deviceclass.resource.kubernetes.io/"
"""Before a DeviceClass's name, as an extended resource that asks for its devices."""
VOLUMES_OF_DRIVER = "attachable-volumes-csi-"
"""Before a CSI driver's name: how many of its volumes a node takes."""
_KNOWN = frozenset(
    (
        *_PLAIN.split(),
        *_PROVISIONERS.split(),
        *registry.all_of("known_keys"),
        *(f"{prefix}/{name}" for prefix, names in _BY_PREFIX.items() for name in names.split()),
    )
)
_FORMS = re.compile(
    r"nvidia\.com/gpu\.(?:product|count|memory|family|machine|replicas|mode|sharing-strategy|compute\.(?:major|minor))"
    r"|nvidia\.com/(?:mig\.(?:capable|strategy)|cuda\.(?:driver|runtime)(?:-version)?\.(?:full|major|minor|rev|revision))"
    r"|nvidia\.com/mig-[0-9]g\.[0-9]{1,3}gb|hugepages-[0-9]{1,4}[KMGT]i"
    r"|attachable-volumes-(?:aws-ebs|gce-pd|azure-disk|cinder)"
    r"|count/(?:pods|jobs\.batch|deployments\.apps|statefulsets\.apps|replicasets\.apps|services|secrets|configmaps)"
)


def is_known_key(key: str) -> bool:
    """Whether a key, or a storage driver's name, means the same everywhere."""
    return key in _KNOWN or _FORMS.fullmatch(key) is not None


def is_known_device_text(text: str) -> bool:
    """Whether an attribute's text is a vendor's description of a device, which does not reveal the owner."""
    return _DEVICE_TEXT.fullmatch(text) is not None
