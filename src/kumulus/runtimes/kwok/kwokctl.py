"""Run kwokctl for one cluster, without a shell and without the user's own KWOK settings."""

import asyncio
import json
import os
from pathlib import Path

import psutil

from kumulus import toolchain
from kumulus.host import files
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok.layout import Layout


def missing_component(directory: Path) -> str | None:
    """Name a component that kwokctl has started, by its pid file, but that does not run; None when all do."""
    prefix = str(directory / "bin") + "/"
    for file in sorted((directory / "pids").glob("*.pid")):
        try:
            process = psutil.Process(int(file.read_text()))
            # Without a command line it is just being loaded, which takes a while from a busy disk.
            if process.status() != psutil.STATUS_ZOMBIE and process.cmdline()[:1] in ([], [prefix + file.stem]):
                continue
        except (psutil.Error, OSError, ValueError):
            pass
        return file.stem
    return None


def setting_up(home: Path, name: str) -> list[int]:
    """The pids of kwokctl's runs for a cluster that outlived their plugin; the home is their ``KWOK_WORKDIR``."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"]
        if not command or Path(command[0]).name != "kwokctl" or command[1:3] != ["--name", name]:
            continue
        try:
            if process.environ().get("KWOK_WORKDIR") == str(home):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def correct_pid_files(directory: Path, components: dict[str, list[int]]) -> None:
    """Make kwokctl's pid files agree with the process table, so that kwokctl starts only the dead components.

    Args:
        components: the pids of each component that runs.
    """
    folder = directory / "pids"
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.pid"):
        if file.stem not in components:
            file.unlink()
    for name, pids in components.items():
        files.write(folder / f"{name}.pid", str(pids[0]))


_LOOK_EVERY_S = 0.25


class ComponentEnded(ProviderError):
    """A component ended while kwokctl waited for it."""

    def __init__(self, component: str, cluster: str) -> None:
        super().__init__(f"{component} of cluster {cluster} ended")
        self.component = component


async def run(layout: Layout, *arguments: str, timeout: float = 180.0) -> None:
    """Run ``kwokctl --name <cluster> <arguments>`` for so many seconds at most.

    Raises:
        ComponentEnded: a component that it started has ended; kwokctl was killed, and what it had begun stays.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KWOK_")}
    # Its own work directory: otherwise kwokctl reads the user's ~/.kwok/kwok.yaml.
    environment["KWOK_WORKDIR"] = str(layout.home)
    # Otherwise what it learns of the API server is kept in ~/.kube/cache.
    environment["KUBECACHEDIR"] = str(layout.directory / "cache")
    try:
        if arguments[0] == "create":
            # It would be downloaded, unchecked.
            environment["KWOK_KUBECTL_BINARY"] = str(toolchain.find("kubectl"))
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
        tail = "\n".join("    " + _said(line)[:300] for line in output.decode(errors="replace").splitlines()[-6:])
        raise ProviderError(f"kwokctl {' '.join(arguments[:2])} failed (exit code {process.returncode}):\n{tail}")


def _said(line: str) -> str:
    """What a line of kwokctl's log says, without the time and the place in its source that it begins with."""
    try:
        found = json.loads(line)
    except ValueError:
        return line
    return ": ".join(str(found[key]) for key in ("msg", "err") if key in found) if isinstance(found, dict) else line


async def _finished(communicating: asyncio.Task[tuple[bytes, bytes]], layout: Layout) -> None:
    """Wait until kwokctl or a component ends: kwokctl waits for an ended component until its timeout."""
    suspect = None
    while not (await asyncio.wait({communicating}, timeout=_LOOK_EVERY_S))[0]:
        ended = missing_component(layout.directory)
        # Checked twice: a process that is just being started does not have its name yet.
        if ended is not None and ended == suspect:
            raise ComponentEnded(ended, layout.name)
        suspect = ended
