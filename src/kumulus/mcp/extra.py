"""What the server for agents brings to the command."""

from kumulus.cli.registry import MACHINE, Command
from kumulus.host.extras import Extra

EXTRA = Extra(
    "mcp",
    "clusters for agents, by the Model Context Protocol",
    needs=("mcp", "numpy"),
    commands={
        "mcp": Command(
            "kumulus.mcp.command",
            "serve clusters to agents, by the Model Context Protocol",
            venv=True,
            group=MACHINE,
        ),
    },
)
