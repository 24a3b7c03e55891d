"""What clusters for tests bring to the command."""

from kumulus.cli.registry import MACHINE, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "testing",
    "clusters for tests, without a stack",
    commands={
        "cluster": Command(
            "kumulus.testing.commands.cluster",
            "start a cluster without a stack, for tests in any language; take it down",
            group=MACHINE,
            venv=True,
        ),
    },
)
