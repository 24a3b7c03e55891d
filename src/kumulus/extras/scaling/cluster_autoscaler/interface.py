"""The interface by which cluster-autoscaler calls an external cloud provider: its messages and calls.

Source: cluster-autoscaler/cloudprovider/externalgrpc/protos/externalgrpc.proto of kubernetes/autoscaler, whose numbers
of fields never change.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from kumulus.kube.message_tables import classes_of, tables_of

SERVICE = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"

TABLES = tables_of(
    """
    Any: type_url 1 string, value 2 bytes
    Timestamp: seconds 1 int64, nanos 2 int32
    Duration: seconds 1 int64, nanos 2 int32
    NodeGroup: id 1 string, minSize 2 int32, maxSize 3 int32, debug 4 string
    ExternalGrpcNode: providerID 1 string, name 2 string, labels 3 {}string, annotations 4 {}string
    InstanceErrorInfo: errorCode 1 string, errorMessage 2 string, instanceErrorClass 3 int32
    InstanceStatus: instanceState 1 int32, errorInfo 2 InstanceErrorInfo
    Instance: id 1 string, status 2 InstanceStatus
    NodeGroupAutoscalingOptions: scaleDownUtilizationThreshold 1 double, scaleDownGpuUtilizationThreshold 2 double,
        zeroOrMaxNodeScaling 6 bool, ignoreDaemonSetsUtilization 7 bool, scaleDownUnneededDuration 8 Duration,
        scaleDownUnreadyDuration 9 Duration, MaxNodeProvisionDuration 10 Duration
    NodeGroupsRequest:
    NodeGroupsResponse: nodeGroups 1 *NodeGroup
    NodeGroupForNodeRequest: node 1 ExternalGrpcNode
    NodeGroupForNodeResponse: nodeGroup 1 NodeGroup
    PricingNodePriceRequest: node 1 ExternalGrpcNode, startTimestamp 4 Timestamp, endTimestamp 5 Timestamp
    PricingNodePriceResponse: price 1 double
    PricingPodPriceRequest: pod_bytes 4 bytes, startTimestamp 5 Timestamp, endTimestamp 6 Timestamp
    PricingPodPriceResponse: price 1 double
    GPULabelRequest:
    GPULabelResponse: label 1 string
    GetAvailableGPUTypesRequest:
    GetAvailableGPUTypesResponse: gpuTypes 1 {}Any
    CleanupRequest:
    CleanupResponse:
    RefreshRequest:
    RefreshResponse:
    NodeGroupTargetSizeRequest: id 1 string
    NodeGroupTargetSizeResponse: targetSize 1 int32
    NodeGroupIncreaseSizeRequest: delta 1 int32, id 2 string
    NodeGroupIncreaseSizeResponse:
    NodeGroupDeleteNodesRequest: nodes 1 *ExternalGrpcNode, id 2 string
    NodeGroupDeleteNodesResponse:
    NodeGroupDecreaseTargetSizeRequest: delta 1 int32, id 2 string
    NodeGroupDecreaseTargetSizeResponse:
    NodeGroupNodesRequest: id 1 string
    NodeGroupNodesResponse: instances 1 *Instance
    NodeGroupTemplateNodeInfoRequest: id 1 string
    NodeGroupTemplateNodeInfoResponse: nodeBytes 2 bytes
    NodeGroupAutoscalingOptionsRequest: id 1 string, defaults 2 NodeGroupAutoscalingOptions
    NodeGroupAutoscalingOptionsResponse: nodeGroupAutoscalingOptions 1 NodeGroupAutoscalingOptions
    """
)

# The prefix of a call's messages, if it is not the call's name.
_CALLED = {"NodeGroupGetOptions": "NodeGroupAutoscalingOptions"}


@cache
def messages() -> Mapping[str, Any]:
    """The classes of the messages, by their names."""
    return classes_of(TABLES)


def of_call(call: str) -> tuple[Any, Any]:
    """The classes of a call's request and response."""
    found, name = messages(), _CALLED.get(call, call)
    return found[f"{name}Request"], found[f"{name}Response"]
