"""An extra of a third party, as pip installs it: a command, a scheduler, a runtime and what stack files may have."""

from kumulus.cli.registry import Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "toy",
    "a toy",
    commands={"play": Command("toy_extra.play", "play with it")},
    schedulers={"toy": "toy_extra.scheduler:SCHEDULER"},
    runtimes={"toy": "toy_extra.runtime:RUNTIME"},
    sections={"games": "toy_extra.games:Games"},
    stack_sections={"league": "toy_extra.games:League"},
    tools={"games": ("helm",), "league": ("kueue",)},
    install="toy-extra",
)
