"""What the extra `advise` brings."""

from kumulus.cli.registry import MACHINE, STACK, YOURS, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "advise",
    "the cheapest fleet for a workload",
    needs=(
        "highspy",
        "numpy",
    ),
    commands={
        "price": Command(
            "kumulus.extras.advise.commands.price",
            "say what a stack's fleet costs, by node group and zone",
            venv=True,
            core_only=True,
            group=STACK,
        ),
        "plan": Command(
            "kumulus.extras.advise.commands.plan",
            "show what a fleet of a size costs its control plane",
            venv=True,
            core_only=True,
            group=MACHINE,
        ),
        "advise": Command(
            "kumulus.extras.advise.commands.advise",
            "say which machines run a workload for the least, and for how much",
            venv=True,
            group=YOURS,
        ),
    },
)
