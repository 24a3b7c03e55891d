"""Run kwokctl for one cluster, without a shell and without the user's own KWOK settings."""

from __future__ import annotations

import asyncio
import os

from kumulus import toolchain
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok import pidfiles
from kumulus.runtimes.kwok.layout import Layout

_LOOK_EVERY = 0.25


class ComponentEnded(ProviderError):
    """A component ended while kwokctl waited for it.

    Attributes:
        component: its name.
    """

    def __init__(self, component: str, cluster: str) -> None:
        super().__init__(f"{component} of cluster {cluster} ended")
        self.component = component


async def run(layout: Layout, *arguments: str, timeout: float = 180.0) -> None:
    """Run ``kwokctl --name <cluster> <arguments>`` and wait for it.

    Args:
        arguments: what follows the global flags.
        timeout: seconds after which it is killed.

    Raises:
        ComponentEnded: a component that it started has ended; kwokctl was killed, and what it had begun stays.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KWOK_")}
    # Its own work directory: otherwise kwokctl reads the user's ~/.kwok/kwok.yaml.
    environment["KWOK_WORKDIR"] = str(layout.home)
    # Otherwise what it learns of the API server is kept in ~/.kube/cache.
    environment["KUBECACHEDIR"] = str(layout.directory / "cache")
    try:
        process = await asyncio.create_subprocess_exec(
            str(toolchain.find("kwokctl")),
            "--name",
            layout.name,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            cwd=str(layout.home),
            umask=0o077,
        )
    except toolchain.ToolchainError as error:
        raise ProviderError(str(error)) from None
    communicating = asyncio.create_task(process.communicate())
    try:
        async with asyncio.timeout(timeout):
            await _finished(communicating, layout)
        output, _ = communicating.result()
    except TimeoutError:
        raise ProviderError(f"kwokctl {' '.join(arguments[:2])} did not finish within {timeout:.0f} s") from None
    finally:
        # If the engine is gone and this call is cancelled, kwokctl would continue to start components.
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        tail = "\n".join("    " + line[:300] for line in output.decode(errors="replace").splitlines()[-6:])
        raise ProviderError(f"kwokctl {' '.join(arguments[:2])} failed (exit code {process.returncode}):\n{tail}")


async def _finished(communicating: asyncio.Task[tuple[bytes, bytes]], layout: Layout) -> None:
    """Wait until kwokctl or a component ends: kwokctl waits for an ended component until its timeout."""
    suspect = None
    while not (await asyncio.wait({communicating}, timeout=_LOOK_EVERY))[0]:
        ended = pidfiles.ended(layout.directory)
        # Checked twice: a process that is just being started does not have its name yet.
        if ended is not None and ended == suspect:
            raise ComponentEnded(ended, layout.name)
        suspect = ended
