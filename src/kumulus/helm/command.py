"""Run helm, without a shell and with nothing secret among its arguments."""

import asyncio
from collections.abc import Sequence

from kumulus import toolchain
from kumulus.nodes.errors import ProviderError

_PATIENCE = 120.0


class HelmError(Exception):
    """Helm failed; the message is its output."""


async def run(*arguments: str, stdin: str = "", timeout: float = _PATIENCE) -> str:
    """Run helm and return its standard output; it is killed after `timeout` seconds."""
    try:
        helm = str(toolchain.find("helm"))
    except toolchain.ToolchainError as error:
        raise ProviderError(f"add-ons need helm: {error}") from None
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(helm, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(timeout):
            output, stderr = await process.communicate(stdin.encode())
    except TimeoutError:
        raise HelmError(f"helm {' '.join(arguments[:2])} did not finish within {timeout:.0f} s") from None
    finally:
        # Also if the engine is gone and this call is cancelled.
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise HelmError(_plain(stderr.decode(errors="replace").splitlines()))
    return output.decode(errors="replace")


def _plain(lines: Sequence[str]) -> str:
    """Helm's error output, without empty lines and warnings."""
    kept = [line for line in lines if line.strip() and not line.startswith(("WARNING:", "level=", "time="))]
    return "\n".join(kept).removeprefix("Error: ").strip() or "helm said nothing"
