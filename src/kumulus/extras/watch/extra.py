"""What the extra `watch` brings."""

from kumulus.cli.registry import STACK, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "watch",
    "the fleet live, in the terminal and in the browser",
    needs=(
        "aiohttp",
        "textual",
    ),
    additions=("kumulus.extras.watch.addition:ADDITION",),
    folders=("prometheus",),
    resources=("kumulus.extras.watch.resource:ReleaseReady",),
    sections={
        "observability": "kumulus.extras.watch.section:Measured",
        "prometheusStack": "kumulus.extras.watch.section:PrometheusStackSpec",
    },
    # With the other runtimes, a chart in the cluster does it.
    tools={"observability": ("observability",)},
    commands={
        "topology": Command(
            "kumulus.extras.watch.commands.topology",
            "show where a stack's nodes are, as a tree or a picture",
            venv=True,
            core_only=True,
            group=STACK,
        ),
        "watch": Command(
            "kumulus.extras.watch.commands.watch",
            "watch a stack's fleet in the terminal: allocation, pods, control plane",
            venv=True,
            group=STACK,
        ),
        "ui": Command(
            "kumulus.extras.watch.commands.ui",
            "show a stack's fleet as a live map in the browser",
            venv=True,
            group=STACK,
        ),
    },
)
