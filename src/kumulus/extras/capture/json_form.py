"""How the JSON form of stored objects differs from `messages`: what it inlines, and what it never omits."""

from __future__ import annotations

INLINE = frozenset(("PersistentVolumeSpec.persistentVolumeSource", "Volume.volumeSource"))
"""Fields that JSON replaces by their own fields."""

_ALWAYS = """
    CELDeviceSelector.expression CSIDriverSpec.attachRequired CSIDriverSpec.storageCapacity CSINodeDriver.name
    CSINodeDriver.nodeID CSINodeDriver.topologyKeys CSIPersistentVolumeSource.driver
    CSIStorageCapacity.storageClassName Container.name Container.restartPolicy ContainerPort.containerPort
    CounterSet.name Device.allNodes Device.allowMultipleAllocations Device.bindsToNode Device.name Device.nodeName
    DeviceAttribute.bool DeviceAttribute.int DeviceAttribute.string DeviceAttribute.version
    DeviceClassSpec.extendedResourceName DeviceCounterConsumption.counterSet DeviceTaint.effect DeviceTaint.key
    LabelSelectorRequirement.key LabelSelectorRequirement.operator LimitRangeItem.type NodeCondition.status
    NodeCondition.type NodeSelectorRequirement.key NodeSelectorRequirement.operator NodeSystemInfo.architecture
    NodeSystemInfo.operatingSystem OwnerReference.controller OwnerReference.kind OwnerReference.name
    PersistentVolumeClaimSpec.storageClassName PersistentVolumeClaimSpec.volumeMode
    PersistentVolumeClaimVolumeSource.claimName PersistentVolumeSpec.volumeMode PodAffinityTerm.topologyKey
    PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy PodResourceClaim.name PodResourceClaim.resourceClaimName
    PodResourceClaim.resourceClaimTemplateName PodSchedulingGate.name PodSpec.preemptionPolicy PodSpec.priority
    PodSpec.runtimeClassName PreferredSchedulingTerm.weight PriorityClass.preemptionPolicy PriorityClass.value
    ResourceClaim.name ResourcePool.generation ResourcePool.name ResourcePool.resourceSliceCount
    ResourceSliceSpec.allNodes ResourceSliceSpec.driver ResourceSliceSpec.nodeName
    ResourceSliceSpec.perDeviceNodeSelection RuntimeClass.handler ScopedResourceSelectorRequirement.operator
    ScopedResourceSelectorRequirement.scopeName StorageClass.provisioner StorageClass.reclaimPolicy
    StorageClass.volumeBindingMode Taint.effect Taint.key Toleration.tolerationSeconds
    TopologySelectorLabelRequirement.key TopologySelectorLabelRequirement.values TopologySpreadConstraint.maxSkew
    TopologySpreadConstraint.minDomains TopologySpreadConstraint.nodeAffinityPolicy
    TopologySpreadConstraint.nodeTaintsPolicy TopologySpreadConstraint.topologyKey
    TopologySpreadConstraint.whenUnsatisfiable V1beta1BasicDevice.allNodes
    V1beta1BasicDevice.allowMultipleAllocations V1beta1BasicDevice.bindsToNode V1beta1BasicDevice.nodeName
    V1beta1Device.name V1beta1ResourceSliceSpec.driver V1beta1ResourceSliceSpec.perDeviceNodeSelection Volume.name
    VolumeNodeResources.count WeightedPodAffinityTerm.weight
"""
ALWAYS = frozenset(_ALWAYS.split())
"""Fields that JSON includes even when they are zero or empty, by `omitempty` and pointers in ``types.go``. JSON omits
the others when they are zero, though the stored message has them."""
