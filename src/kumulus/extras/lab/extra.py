"""What the extra `lab` brings."""

from kumulus.cli.registry import MACHINE, STACK, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "lab",
    "experiments: workloads, schedulers, faults, measures and reports",
    needs=(
        "matplotlib",
        "numpy",
        "aiohttp",
    ),
    files=("kumulus.extras.lab.file.schema:EXPERIMENT",),
    commands={
        "experiment": Command(
            "kumulus.extras.lab.commands.experiment",
            "run workloads against a scheduler, measure, and report",
            venv=True,
            group=STACK,
        ),
        "trace": Command(
            "kumulus.extras.lab.commands.trace",
            "import a published trace of a production cluster",
            venv=True,
            group=MACHINE,
        ),
    },
)
