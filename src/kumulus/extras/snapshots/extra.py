"""What the extra `snapshots` brings."""

from kumulus.cli.registry import STACK, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "snapshots",
    "everything in a cluster, saved and restored",
    commands={
        "snapshot": Command(
            "kumulus.extras.snapshots.commands.snapshot",
            "save everything in a stack's cluster, and restore it",
            venv=True,
            group=STACK,
        ),
    },
)
