"""What the extra `kind_image` brings."""

from kumulus.cli.registry import MACHINE, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "kind_image",
    "a node image for kind, made here",
    findings=("kumulus.extras.kind_image.command:finding",),
    commands={
        "kind-image": Command(
            "kumulus.extras.kind_image.command",
            "build a node image for kind, for use without a registry",
            group=MACHINE,
        ),
    },
)
