"""What the extra `advise` brings."""

from kumulus.cli.registry import YOURS, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "advise",
    "the cheapest fleet for a workload",
    needs=(
        "highspy",
        "numpy",
    ),
    commands={
        "advise": Command(
            "kumulus.extras.advise.commands.advise",
            "say which machines run a workload for the least, and for how much",
            venv=True,
            group=YOURS,
        ),
    },
)
