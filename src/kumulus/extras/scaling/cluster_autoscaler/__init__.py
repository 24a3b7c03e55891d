"""cluster-autoscaler, a program of the user's own, and the cloud provider that it calls: node groups with bounds."""

from pathlib import Path

from kumulus.extras.scaling.cluster_autoscaler import launch
from kumulus.extras.scaling.descriptor import AutoscalerDescriptor, AutoscalerProgram

AUTOSCALER = AutoscalerDescriptor(
    name="cluster-autoscaler",
    about="Kubernetes' cluster-autoscaler, the user's own program: node groups between their bounds",
    tool="",
    user=launch.USER,
    programs=(
        AutoscalerProgram(
            name="cluster-autoscaler",
            executable=lambda asked: Path(asked["binary"]),
            ports=("http",),
            arguments=launch.arguments,
            after=(launch.PROVIDER,),
        ),
        AutoscalerProgram(
            name=launch.PROVIDER,
            executable=launch.python,
            ports=("http",),
            arguments=launch.provider_arguments,
            environment=launch.provider_environment,
        ),
    ),
    files=launch.files,
    objects=launch.manifests,
    stages=lambda _: [],
    instances=(),
    nodes="",
)
