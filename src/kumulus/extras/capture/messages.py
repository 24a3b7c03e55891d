"""The fields, with their numbers, of the protobuf messages that API servers store and a capture keeps, as data.

Sources: ``generated.proto`` and ``types.go`` of k8s.io/api (core, scheduling, node, storage, policy, resource) and of
k8s.io/apimachinery (meta, resource, intstr); Kubernetes never changes a number. v1beta1 of resource.k8s.io
has a device's fields in a separate message; for all other kinds, the versions that can be stored are the same in these
fields. A test compares the table with `fields.py`. Checked against Kubernetes 1.35 to 1.37.
"""

from kumulus.kube.message_tables import tables_of

STORED = tables_of(
    """
    List: metadata 1 ListMeta, items 2 *bytes
    ListMeta: continue 3 string
    ObjectMeta: name 1 string, namespace 3 string, labels 11 {}string, annotations 12 {}string,
        ownerReferences 13 *OwnerReference
    OwnerReference: kind 1 string, name 3 string, controller 6 bool
    Namespace: metadata 1 ObjectMeta
    PersistentVolume: metadata 1 ObjectMeta, spec 2 PersistentVolumeSpec
    PersistentVolumeSpec: capacity 1 {}Quantity, persistentVolumeSource 2 PersistentVolumeSource, accessModes 3 *string,
        claimRef 4 ObjectReference, persistentVolumeReclaimPolicy 5 string, storageClassName 6 string,
        volumeMode 8 string, nodeAffinity 9 VolumeNodeAffinity
    Quantity: string 1 string
    ObjectReference: namespace 2 string, name 3 string
    VolumeNodeAffinity: required 1 NodeSelector
    NodeSelector: nodeSelectorTerms 1 *NodeSelectorTerm
    NodeSelectorTerm: matchExpressions 1 *NodeSelectorRequirement, matchFields 2 *NodeSelectorRequirement
    NodeSelectorRequirement: key 1 string, operator 2 string, values 3 *string
    CSIPersistentVolumeSource: driver 1 string
    PersistentVolumeSource: csi 22 CSIPersistentVolumeSource
    PersistentVolumeClaim: metadata 1 ObjectMeta, spec 2 PersistentVolumeClaimSpec
    PersistentVolumeClaimSpec: accessModes 1 *string, resources 2 VolumeResourceRequirements, volumeName 3 string,
        selector 4 LabelSelector, storageClassName 5 string, volumeMode 6 string
    VolumeResourceRequirements: requests 2 {}Quantity
    LabelSelector: matchLabels 1 {}string, matchExpressions 2 *LabelSelectorRequirement
    LabelSelectorRequirement: key 1 string, operator 2 string, values 3 *string
    LimitRange: metadata 1 ObjectMeta, spec 2 LimitRangeSpec
    LimitRangeSpec: limits 1 *LimitRangeItem
    LimitRangeItem: type 1 string, max 2 {}Quantity, min 3 {}Quantity, default 4 {}Quantity,
        defaultRequest 5 {}Quantity, maxLimitRequestRatio 6 {}Quantity
    ResourceQuota: metadata 1 ObjectMeta, spec 2 ResourceQuotaSpec
    ResourceQuotaSpec: hard 1 {}Quantity, scopes 2 *string, scopeSelector 3 ScopeSelector
    ScopeSelector: matchExpressions 1 *ScopedResourceSelectorRequirement
    ScopedResourceSelectorRequirement: scopeName 1 string, operator 2 string, values 3 *string
    PriorityClass: metadata 1 ObjectMeta, value 2 int32, globalDefault 3 bool, preemptionPolicy 5 string
    RuntimeClass: metadata 1 ObjectMeta, handler 2 string, overhead 3 Overhead, scheduling 4 Scheduling
    Overhead: podFixed 1 {}Quantity
    Scheduling: nodeSelector 1 {}string, tolerations 2 *Toleration
    Toleration: key 1 string, operator 2 string, value 3 string, effect 4 string, tolerationSeconds 5 int64
    StorageClass: metadata 1 ObjectMeta, provisioner 2 string, reclaimPolicy 4 string, volumeBindingMode 7 string,
        allowedTopologies 8 *TopologySelectorTerm
    TopologySelectorTerm: matchLabelExpressions 1 *TopologySelectorLabelRequirement
    TopologySelectorLabelRequirement: key 1 string, values 2 *string
    CSIDriver: metadata 1 ObjectMeta, spec 2 CSIDriverSpec
    CSIDriverSpec: attachRequired 1 bool, storageCapacity 4 bool
    CSINode: metadata 1 ObjectMeta, spec 2 CSINodeSpec
    CSINodeSpec: drivers 1 *CSINodeDriver
    CSINodeDriver: name 1 string, nodeID 2 string, topologyKeys 3 *string, allocatable 4 VolumeNodeResources
    VolumeNodeResources: count 1 int32
    CSIStorageCapacity: metadata 1 ObjectMeta, nodeTopology 2 LabelSelector, storageClassName 3 string,
        capacity 4 Quantity, maximumVolumeSize 5 Quantity
    DeviceClass: metadata 1 ObjectMeta, spec 2 DeviceClassSpec
    DeviceClassSpec: selectors 1 *DeviceSelector, extendedResourceName 4 string
    DeviceSelector: cel 1 CELDeviceSelector
    CELDeviceSelector: expression 1 string
    ResourceSlice: metadata 1 ObjectMeta, spec 2 ResourceSliceSpec
    ResourceSliceSpec: driver 1 string, pool 2 ResourcePool, nodeName 3 string, nodeSelector 4 NodeSelector,
        allNodes 5 bool, devices 6 *Device, perDeviceNodeSelection 7 bool, sharedCounters 8 *CounterSet
    ResourcePool: name 1 string, generation 2 int64, resourceSliceCount 3 int64
    CounterSet: name 1 string, counters 2 {}Counter
    Counter: value 1 Quantity
    Device: name 1 string, attributes 2 {}DeviceAttribute, capacity 3 {}DeviceCapacity,
        consumesCounters 4 *DeviceCounterConsumption, nodeName 5 string, nodeSelector 6 NodeSelector, allNodes 7 bool,
        taints 8 *DeviceTaint, bindsToNode 9 bool, bindingConditions 10 *string, bindingFailureConditions 11 *string,
        allowMultipleAllocations 12 bool, nodeAllocatableResources 14 {}NodeAllocatableResource
    NodeAllocatableResource: mapping 3 NodeAllocatableMapping, overhead 4 NodeAllocatableOverhead
    NodeAllocatableMapping: capacityKey 1 string, capacityMultiplier 2 Quantity, deviceMultiplier 3 Quantity
    NodeAllocatableOverhead: perPod 1 Quantity, perContainer 2 Quantity
    DeviceAttribute: int 2 int64, bool 3 bool, string 4 string, version 5 string
    DeviceCapacity: value 1 Quantity, requestPolicy 2 CapacityRequestPolicy
    CapacityRequestPolicy: default 1 Quantity, validValues 3 *Quantity, validRange 4 CapacityRequestPolicyRange
    CapacityRequestPolicyRange: min 1 Quantity, max 2 Quantity, step 3 Quantity
    DeviceCounterConsumption: counterSet 1 string, counters 2 {}Counter
    DeviceTaint: key 1 string, value 2 string, effect 3 string
    ResourceClaim: metadata 1 ObjectMeta, spec 2 ResourceClaimSpec, status 3 ResourceClaimStatus
    ResourceClaimSpec: devices 1 DeviceClaim
    DeviceClaim: requests 1 *DeviceRequest, constraints 2 *DeviceConstraint
    DeviceRequest: name 1 string, exactly 2 ExactDeviceRequest, firstAvailable 3 *DeviceSubRequest
    ExactDeviceRequest: deviceClassName 1 string, selectors 2 *DeviceSelector, allocationMode 3 string, count 4 int64,
        adminAccess 5 bool, tolerations 6 *Toleration, capacity 7 CapacityRequirements
    DeviceSubRequest: name 1 string, deviceClassName 2 string, selectors 3 *DeviceSelector, allocationMode 4 string,
        count 5 int64, tolerations 6 *Toleration, capacity 7 CapacityRequirements
    CapacityRequirements: requests 1 {}Quantity
    DeviceConstraint: requests 1 *string, matchAttribute 2 string, distinctAttribute 3 string
    ResourceClaimStatus: allocation 1 AllocationResult
    AllocationResult: devices 1 DeviceAllocationResult, nodeSelector 3 NodeSelector
    DeviceAllocationResult: results 1 *DeviceRequestAllocationResult
    DeviceRequestAllocationResult: request 1 string, driver 2 string, pool 3 string, device 4 string,
        adminAccess 5 bool, tolerations 6 *Toleration, bindingConditions 7 *string,
        bindingFailureConditions 8 *string, consumedCapacity 10 {}Quantity
    ResourceClaimTemplate: metadata 1 ObjectMeta, spec 2 ResourceClaimTemplateSpec
    ResourceClaimTemplateSpec: metadata 1 ObjectMeta, spec 2 ResourceClaimSpec
    PodGroup: metadata 1 ObjectMeta, spec 2 PodGroupSpec
    PodGroupSpec: parentCompositePodGroupName 1 string, workloadRef 2 WorkloadReference,
        schedulingPolicy 3 PodGroupSchedulingPolicy, schedulingConstraints 4 GroupSchedulingConstraints,
        resourceClaims 5 *PodGroupResourceClaim, disruptionMode 6 DisruptionMode, priorityClassName 7 string,
        preemptionPolicy 9 string
    PodGroupResourceClaim: name 1 string, resourceClaimName 2 string, resourceClaimTemplateName 3 string
    WorkloadReference: workloadName 1 string, templateName 2 string
    PodGroupSchedulingPolicy: basic 1 Empty, gang 2 GangSchedulingPolicy
    GangSchedulingPolicy: minCount 1 int32
    GroupSchedulingConstraints: topology 1 *TopologyConstraint
    TopologyConstraint: key 1 string
    DisruptionMode: single 1 Empty, all 2 Empty
    Empty:
    CompositePodGroup: metadata 1 ObjectMeta, spec 2 CompositePodGroupSpec
    CompositePodGroupSpec: parentCompositePodGroupName 1 string, workloadRef 2 WorkloadReference,
        schedulingPolicy 3 CompositePodGroupSchedulingPolicy, schedulingConstraints 4 GroupSchedulingConstraints,
        disruptionMode 5 DisruptionMode, priorityClassName 6 string, preemptionPolicy 8 string
    CompositePodGroupSchedulingPolicy: basic 1 Empty, gang 2 CompositeGangSchedulingPolicy
    CompositeGangSchedulingPolicy: minGroupCount 1 int32
    Workload: metadata 1 ObjectMeta, spec 2 WorkloadSpec
    WorkloadSpec: podGroupTemplates 2 *PodGroupTemplate, compositePodGroupTemplates 3 *CompositePodGroupTemplate
    PodGroupTemplate: name 1 string, schedulingPolicy 2 PodGroupSchedulingPolicy,
        schedulingConstraints 3 GroupSchedulingConstraints, resourceClaims 4 *PodGroupResourceClaim,
        disruptionMode 5 DisruptionMode, priorityClassName 6 string, preemptionPolicy 8 string
    CompositePodGroupTemplate: name 1 string, schedulingPolicy 2 CompositePodGroupSchedulingPolicy,
        schedulingConstraints 3 GroupSchedulingConstraints, disruptionMode 4 DisruptionMode,
        priorityClassName 5 string, preemptionPolicy 7 string, podGroupTemplates 8 *PodGroupTemplate,
        compositePodGroupTemplates 9 *CompositePodGroupTemplate
    PodDisruptionBudget: metadata 1 ObjectMeta, spec 2 PodDisruptionBudgetSpec
    PodDisruptionBudgetSpec: minAvailable 1 IntOrString, selector 2 LabelSelector, maxUnavailable 3 IntOrString,
        unhealthyPodEvictionPolicy 4 string
    IntOrString: type 1 int64, intVal 2 int32, strVal 3 string
    V1beta1ResourceSlice: metadata 1 ObjectMeta, spec 2 V1beta1ResourceSliceSpec
    V1beta1ResourceSliceSpec: driver 1 string, pool 2 ResourcePool, nodeName 3 string, nodeSelector 4 NodeSelector,
        allNodes 5 bool, devices 6 *V1beta1Device, perDeviceNodeSelection 7 bool, sharedCounters 8 *CounterSet
    V1beta1Device: name 1 string, basic 2 V1beta1BasicDevice
    V1beta1BasicDevice: attributes 1 {}DeviceAttribute, capacity 2 {}DeviceCapacity,
        consumesCounters 3 *DeviceCounterConsumption, nodeName 4 string, nodeSelector 5 NodeSelector, allNodes 6 bool,
        taints 7 *DeviceTaint, bindsToNode 8 bool, bindingConditions 9 *string, bindingFailureConditions 10 *string,
        allowMultipleAllocations 11 bool, nodeAllocatableResources 14 {}NodeAllocatableResource
    V1beta1ResourceClaim: metadata 1 ObjectMeta, spec 2 V1beta1ResourceClaimSpec, status 3 ResourceClaimStatus
    V1beta1ResourceClaimSpec: devices 1 V1beta1DeviceClaim
    V1beta1DeviceClaim: requests 1 *V1beta1DeviceRequest, constraints 2 *DeviceConstraint
    V1beta1DeviceRequest: name 1 string, deviceClassName 2 string, selectors 3 *DeviceSelector, allocationMode 4 string,
        count 5 int64, adminAccess 6 bool, firstAvailable 7 *V1beta1DeviceSubRequest, tolerations 8 *Toleration,
        capacity 9 CapacityRequirements
    V1beta1DeviceSubRequest: name 1 string, deviceClassName 2 string, selectors 3 *DeviceSelector,
        allocationMode 4 string, count 5 int64, tolerations 7 *Toleration, capacity 8 CapacityRequirements
    V1beta1ResourceClaimTemplate: metadata 1 ObjectMeta, spec 2 V1beta1ResourceClaimTemplateSpec
    V1beta1ResourceClaimTemplateSpec: metadata 1 ObjectMeta, spec 2 V1beta1ResourceClaimSpec
    NodeSpec: unschedulable 4 bool, taints 5 *Taint
    Taint: key 1 string, value 2 string, effect 3 string
    Node: metadata 1 ObjectMeta, spec 2 NodeSpec, status 3 NodeStatus
    NodeStatus: capacity 1 {}Quantity, allocatable 2 {}Quantity, conditions 4 *NodeCondition,
        nodeInfo 7 NodeSystemInfo, declaredFeatures 14 *string
    NodeCondition: type 1 string, status 2 string
    NodeSystemInfo: kubeletVersion 7 string, operatingSystem 9 string, architecture 10 string
    PodSpec: volumes 1 *Volume, containers 2 *Container, nodeSelector 7 {}string, nodeName 10 string,
        hostNetwork 11 bool, affinity 18 Affinity, schedulerName 19 string, initContainers 20 *Container,
        tolerations 22 *Toleration, priorityClassName 24 string, priority 25 int32, runtimeClassName 29 string,
        preemptionPolicy 31 string, overhead 32 {}Quantity, topologySpreadConstraints 33 *TopologySpreadConstraint,
        schedulingGates 38 *PodSchedulingGate, resourceClaims 39 *PodResourceClaim, resources 40 ResourceRequirements,
        schedulingGroup 43 PodSchedulingGroup
    PodSchedulingGroup: podGroupName 1 string
    Affinity: nodeAffinity 1 NodeAffinity, podAffinity 2 PodAffinity, podAntiAffinity 3 PodAntiAffinity
    NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution 1 NodeSelector,
        preferredDuringSchedulingIgnoredDuringExecution 2 *PreferredSchedulingTerm
    PreferredSchedulingTerm: weight 1 int32, preference 2 NodeSelectorTerm
    PodAffinity: requiredDuringSchedulingIgnoredDuringExecution 1 *PodAffinityTerm,
        preferredDuringSchedulingIgnoredDuringExecution 2 *WeightedPodAffinityTerm
    PodAffinityTerm: labelSelector 1 LabelSelector, namespaces 2 *string, topologyKey 3 string,
        namespaceSelector 4 LabelSelector, matchLabelKeys 5 *string, mismatchLabelKeys 6 *string
    WeightedPodAffinityTerm: weight 1 int32, podAffinityTerm 2 PodAffinityTerm
    PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution 1 *PodAffinityTerm,
        preferredDuringSchedulingIgnoredDuringExecution 2 *WeightedPodAffinityTerm
    TopologySpreadConstraint: maxSkew 1 int32, topologyKey 2 string, whenUnsatisfiable 3 string,
        labelSelector 4 LabelSelector, minDomains 5 int32, nodeAffinityPolicy 6 string, nodeTaintsPolicy 7 string,
        matchLabelKeys 8 *string
    PodSchedulingGate: name 1 string
    ResourceRequirements: limits 1 {}Quantity, requests 2 {}Quantity, claims 3 *ContainerClaim
    PodResourceClaim: name 1 string, resourceClaimName 3 string, resourceClaimTemplateName 4 string
    Container: name 1 string, ports 6 *ContainerPort, resources 8 ResourceRequirements, restartPolicy 24 string
    ContainerClaim: name 1 string, request 2 string
    ContainerPort: hostPort 2 int32, containerPort 3 int32, protocol 4 string
    Volume: name 1 string, volumeSource 2 VolumeSource
    PersistentVolumeClaimVolumeSource: claimName 1 string, readOnly 2 bool
    VolumeSource: persistentVolumeClaim 10 PersistentVolumeClaimVolumeSource, ephemeral 29 Empty
    Pod: metadata 1 ObjectMeta, spec 2 PodSpec, status 3 PodStatus
    PodStatus: phase 1 string
    """
)
"""By message, in the format of `kumulus.kube.protobuf.Tables`."""
