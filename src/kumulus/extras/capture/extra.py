"""What the extra `capture` brings."""

from kumulus.cli.registry import YOURS, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "capture",
    "your own cluster as files, its clone, and what would fit",
    commands={
        "capture": Command(
            "kumulus.extras.capture.commands.capture",
            "save your own cluster as files: its nodes, its pods, no secrets",
            venv=True,
            group=YOURS,
        ),
        "clone": Command(
            "kumulus.extras.capture.commands.clone",
            "create a stack from a capture, with its pods on the same nodes",
            venv=True,
            group=YOURS,
        ),
        "fit": Command(
            "kumulus.extras.capture.commands.fit",
            "check whether a workload fits, where, and what would make all of it fit",
            venv=True,
            group=YOURS,
        ),
        "translate": Command(
            "kumulus.extras.capture.commands.translate",
            "turn an anonymised capture's words back into names",
            venv=True,
            group=YOURS,
        ),
        "lifecycle": Command(
            "kumulus.extras.capture.commands.lifecycle",
            "learn from a cluster's pods how long emulated ones run, and how they end",
            venv=True,
            group=YOURS,
        ),
        "replay": Command(
            "kumulus.extras.capture.commands.replay",
            "replay a recorded day of a cluster, from its audit log",
            venv=True,
            group=YOURS,
        ),
    },
)
