"""An extra of a third party, as pip installs it: a command, a scheduler, a runtime and a section of the stack file."""

from kumulus.cli.registry import Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "toy",
    "a toy",
    commands={"play": Command("toy_extra.play", "play with it")},
    schedulers={"toy": "toy_extra.scheduler:SCHEDULER"},
    runtimes={"toy": "toy_extra.runtime:RUNTIME"},
    sections={"games": "toy_extra.games:Games"},
    tools={"games": ("helm",)},
    install="toy-extra",
)
