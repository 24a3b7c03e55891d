"""What problems for agents bring to the command."""

from kumulus.cli.registry import MACHINE, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "gym",
    "problems for agents, with a verdict",
    commands={
        "gym": Command(
            "kumulus.gym.commands.gym",
            "list the problems for agents; check one, and that its solution solves it",
            group=MACHINE,
            venv=True,
        ),
    },
)
