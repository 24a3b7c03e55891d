"""What the extra `scaling` brings."""

from kumulus.cli.registry import Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "scaling",
    "autoscalers of nodes",
    commands={
        "image": Command(
            "kumulus.extras.scaling.commands.image",
            "make an image of an autoscaler, for clusters whose nodes run containers",
        ),
    },
)
