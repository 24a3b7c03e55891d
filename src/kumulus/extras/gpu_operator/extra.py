"""What the extra `gpu_operator` brings."""

from kumulus.host.extras import Extra

EXTRA = Extra(
    "gpu_operator",
    "the fake GPU operator alongside a cluster",
    additions=("kumulus.extras.gpu_operator.addition:ADDITION",),
    sections={"gpuOperator": "kumulus.extras.gpu_operator.section:FakeGpuOperator"},
    tools={"gpuOperator": ("fake-gpu-operator",)},
)
