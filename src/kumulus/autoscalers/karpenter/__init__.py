"""Karpenter, with its own provider of KWOK's nodes."""

from kumulus.autoscalers.descriptor import Autoscaler
from kumulus.autoscalers.karpenter import launch, objects, stages

AUTOSCALER = Autoscaler(
    name="karpenter",
    about="Karpenter with its provider for KWOK: NodePools, consolidation, disruption budgets",
    tool="karpenter",
    user=objects.USER,
    ports=launch.PORTS,
    files=launch.files,
    environment=launch.environment,
    objects=objects.manifests,
    stages=stages.stages,
    instances=objects.INSTANCES,
    nodes=objects.NODEPOOL_LABEL,
)
