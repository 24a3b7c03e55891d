"""Karpenter, with its own provider for KWOK nodes."""

from kumulus import toolchain
from kumulus.extras.scaling.descriptor import AutoscalerDescriptor, AutoscalerProgram
from kumulus.extras.scaling.karpenter import launch, objects, unfinished

AUTOSCALER = AutoscalerDescriptor(
    name="karpenter",
    about="Karpenter with its provider for KWOK: NodePools, consolidation, disruption budgets",
    tool="karpenter",
    user=objects.USER,
    programs=(
        AutoscalerProgram(
            name="karpenter",
            executable=lambda _: toolchain.find("karpenter"),
            ports=launch.PORTS,
            environment=launch.environment,
        ),
    ),
    files=launch.files,
    objects=objects.manifests,
    stages=objects.stages,
    instances=objects.INSTANCES,
    nodes=objects.NODEPOOL_LABEL,
    deployment=launch.manifests,
    forget=unfinished.forget,
)
