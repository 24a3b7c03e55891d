"""The server: which tools it has, and what they answer when something is wrong."""

import functools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import yaml
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from kumulus.extras.capture.dry import Undecided
from kumulus.extras.capture.dumps import FileRefused
from kumulus.extras.journal.errors import JournalError
from kumulus.host.version import VERSION
from kumulus.kube import ApiError, Client, Unreachable, load_kubeconfig
from kumulus.mcp.changing import Changing
from kumulus.mcp.held import Held
from kumulus.mcp.looking import Looking
from kumulus.model.errors import SpecError
from kumulus.testing import ClusterError

_ABOUT = (
    "Emulated Kubernetes clusters: the API server, the scheduler and the controllers are real, nodes and kubelets are "
    "played by KWOK, and nothing runs in a pod."
)
_READ_ONLY = "This server only looks; started with --write, it makes clusters and changes them."
_EXPECTED = (ApiError, ClusterError, JournalError, FileRefused, SpecError, Undecided, Unreachable, yaml.YAMLError)
_PATIENCE = 10.0

Tool = Callable[..., Awaitable[dict[str, Any]]]


async def serve(seen: Mapping[str, Path], *, write: bool) -> None:
    """Serve on stdin and stdout until they are closed, and take down what was made.

    Args:
        seen: kubeconfigs of clusters to look at, by name.
        write: whether clusters may be made and changed.

    Raises:
        KubeconfigError: a kubeconfig cannot be used.
    """
    async with AsyncExitStack() as stack:
        clients = {name: Client(load_kubeconfig(path), patience=_PATIENCE) for name, path in seen.items()}
        for each in clients.values():
            await stack.enter_async_context(each)
        held = Held(clients)
        stack.push_async_callback(held.close)
        about = _ABOUT if write else f"{_ABOUT} {_READ_ONLY}"
        server: MCPServer[Any] = MCPServer("kumulus", instructions=about, version=VERSION, log_level="WARNING")
        for tool, hints in _tools(held, write=write).items():
            server.add_tool(_explained(tool), annotations=hints)
        await server.run_stdio_async()


def _tools(held: Held, *, write: bool) -> dict[Tool, ToolAnnotations]:
    looking, changing = Looking(held), Changing(held)
    looks = (looking.clusters, looking.nodes, looking.pods, looking.events, looking.why)
    adds = (changing.create, changing.fit, changing.measure) if write else ()
    alters = (changing.apply, changing.inject, changing.clear, changing.reset, changing.destroy) if write else ()
    return {
        **dict.fromkeys(looks, ToolAnnotations(read_only_hint=True)),
        **dict.fromkeys(adds, ToolAnnotations(destructive_hint=False)),
        **dict.fromkeys(alters, ToolAnnotations(destructive_hint=True)),
    }


def _explained(tool: Tool) -> Tool:
    """The tool, whose expected errors are an answer that the agent can read."""

    @functools.wraps(tool)
    async def asked(**arguments: Any) -> dict[str, Any]:
        try:
            return await tool(**arguments)
        except _EXPECTED as error:
            raise ToolError(str(error)) from None

    return asked
