"""What the extra `scaling` brings."""

from kumulus.cli.registry import MACHINE, Command
from kumulus.extras.scaling import BUILT, NAMES
from kumulus.host.extras import Extra

EXTRA = Extra(
    "scaling",
    "autoscalers of nodes",
    additions=("kumulus.extras.scaling.addition:ADDITION",),
    folders=NAMES,
    resources=("kumulus.extras.scaling.resource:AutoscalerResource",),
    sections={"autoscaler": "kumulus.extras.scaling.section:AutoscalerSpec"},
    tools={f"autoscaler: {{name: {name}}}": (name,) for name in BUILT},
    commands={
        "image": Command(
            "kumulus.extras.scaling.commands.image",
            "make an image of an autoscaler, for clusters whose nodes run containers",
            group=MACHINE,
        ),
    },
)
