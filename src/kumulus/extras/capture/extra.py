"""What the extra `capture` brings."""

from kumulus.cli.registry import YOURS, Command
from kumulus.host.extras import Extra

_COMMANDS = {
    "capture": "save your own cluster as files: its nodes, its pods, no secrets",
    "clone": "create a stack from a capture, with its pods on the same nodes",
    "fit": "check whether a workload fits, where, and what would make all of it fit",
    "translate": "turn an anonymised capture's words back into names",
    "lifecycle": "learn from a cluster's pods how long emulated ones run, and how they end",
    "replay": "replay a recorded day of a cluster, from its audit log",
}
EXTRA = Extra(
    "capture",
    "your own cluster as files, its clone, and what would fit",
    commands={
        name: Command(f"kumulus.extras.capture.commands.{name}", about, venv=True, group=YOURS)
        for name, about in _COMMANDS.items()
    },
)
