"""What the extra `policy` brings."""

from kumulus.cli.registry import PROJECT, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "policy",
    "a policy pack: limits on nodes, GPUs and chart repositories",
    commands={
        "policy": Command(
            "kumulus.extras.policy.command",
            "create a policy pack: limits on nodes, GPUs and chart repositories",
            group=PROJECT,
        ),
    },
)
