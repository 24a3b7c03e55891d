"""How a Pulumi program has the engine start its plugin, and ends after an error without messages that say nothing."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
import psutil
import pulumi
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc
from pulumi.runtime.settings import get_monitor

from kumulus.host import installation
from kumulus.host.installation import has_plugin, pulumi_home
from kumulus.host.version import VERSION
from kumulus.model.errors import SpecError

# This exit code tells Pulumi's language host that the error has been reported.
_REPORTED = 32
_LANGUAGE_HOST = "pulumi-language-python-exec"
_LOOK_EVERY = 1.0
_READY = "kumulus:index:ready"
_ends_with_engine = threading.Event()


def end_with_engine() -> None:
    """Have this program end silently when the engine interrupts it or was killed.

    When a resource fails, the engine interrupts the program. By default that prints a traceback of its event loop and
    then waits seconds for its threads, though the failure is already reported under its resource.

    If the engine was killed, the program would wait for its answers for ever, and Pulumi's language host, which checks
    for the engine only every five minutes, would wait for the program.

    Call it at the start of a program, in its main thread; a second call does nothing.
    """
    if _ends_with_engine.is_set():
        return
    _ends_with_engine.set()
    signal.signal(signal.SIGINT, lambda *_: os._exit(_REPORTED))
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def end_with_engine_if_hosted() -> None:
    """Call :func:`end_with_engine` in a program that Pulumi's language host runs, unless it takes interrupts itself.

    A program within the user's own process, by the Automation API, is not ended: what that does afterwards is its own.
    """
    if is_hosted() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        end_with_engine()


def is_hosted() -> bool:
    """Whether this process is a program that Pulumi's language host runs, and this its main thread."""
    hosted = _LANGUAGE_HOST in (Path(each).name for each in sys.orig_argv)
    return hosted and threading.current_thread() is threading.main_thread()


def start_plugin() -> None:
    """Have the engine start Kumulus' plugin now, while the program still imports modules and reads its stack.

    Otherwise the engine starts it when the plugin's first resource is declared, and a preview waits for that. If the
    plugin cannot be started, that resource says so.
    """
    monitor = get_monitor()
    if monitor is not None:
        make_known()
        request = resource_pb2.ResourceInvokeRequest(tok=_READY, version=VERSION)
        threading.Thread(target=_ask, args=(monitor, request), daemon=True).start()


class UserMistake(pulumi.RunError):
    """A mistake of the user, known problem by problem."""

    def __init__(self, error: SpecError) -> None:
        super().__init__(str(error))
        self.problems = error.problems
        self.source = error.source


def user_error(message: str | SpecError) -> pulumi.RunError:
    """An error to raise for a mistake of the user: its message is all that is reported.

    Making the error already decides how the process ends. After :func:`end_with_engine`, it exits with 32, even if the
    error is caught: for Pulumi's own exit code 1, the language host would report a second error.
    """
    if _ends_with_engine.is_set():
        atexit.register(os._exit, _REPORTED)
    return UserMistake(message) if isinstance(message, SpecError) else pulumi.RunError(message)


def _ask(monitor: Any, request: object) -> None:
    with suppress(grpc.RpcError):
        monitor.Invoke(request)


def _watch(host: int) -> None:
    """End this program when the language host has lost its parent, which is the engine, or is gone itself."""
    try:
        process = psutil.Process(host)
        engine = process.ppid()
        while process.ppid() == engine:
            time.sleep(_LOOK_EVERY)
    except psutil.NoSuchProcess:
        pass
    os._exit(_REPORTED)


# Pulumi's own five frames, and the two nearest of ours.
_FRAMES = 7


@contextmanager
def short_stack_traces() -> Iterator[None]:
    """Resources declared in the block record only the nearest frames, not the whole stack down to asyncio.

    Pulumi keeps that stack in the state: 1.5 KB for every resource, a third of the state of 10,000 nodes, with paths of
    this machine; and collecting it reads source files. Pulumi has no option for it, but takes as many frames as
    Python's ``sys.tracebacklimit`` allows (``traceback.extract_stack``).
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = _FRAMES
    try:
        yield
    finally:
        if before is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = before


def resource_options(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """Options for a resource of the plugin, with our version unless they name one."""
    end_with_engine_if_hosted()
    make_known()
    return pulumi.ResourceOptions.merge(pulumi.ResourceOptions(version=VERSION), opts)


def invoke_options() -> pulumi.InvokeOptions:
    """Options for invoking a function of the plugin."""
    make_known()
    return pulumi.InvokeOptions(version=VERSION)


def under_engine() -> bool:
    """Whether Pulumi's engine runs this program, rather than a test with mocks."""
    return isinstance(get_monitor(), resource_pb2_grpc.ResourceMonitorStub)


@functools.cache
def make_known() -> None:
    """Let the engine find the plugin of an installed Kumulus; in a checkout Pulumi.yaml names it.

    If the launcher cannot be written, the engine reports that there is no such plugin.
    """
    if installation.checkout() is None and under_engine():
        with suppress(OSError):
            installation.install_plugin(pulumi_home(), Path(sys.executable))


_ENGINE_FETCHES_NONE = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
_NO = ("", "0", "false")


def require_command_plugin() -> None:
    """Refuse to go on without the plugin of `hostCommands` and `loadImages`, where the engine does not fetch it.

    The message says how to get it. The engine itself would report that it is missing only after the cluster has been
    created.
    """
    install = f"pulumi plugin install resource command {version('pulumi-command')}"
    _require(
        "command",
        "hostCommands and loadImages are run by",
        f"{install}\n  From a machine that can fetch it: {install} --file ARCHIVE",
    )


def require_kubernetes_plugin() -> None:
    """Refuse likewise if the plugin that makes charts and objects of the user's own is missing."""
    _require(
        "kubernetes",
        "charts and objects of your own in the cluster are made by",
        f"{installation.command()} tools --with pulumi-resource-kubernetes  "
        "(where it cannot be downloaded, it is built: about eleven CPU minutes)",
    )


def _require(name: str, what: str, remedy: str) -> None:
    engine_fetches = os.environ.get(_ENGINE_FETCHES_NONE, "").lower() in _NO
    if engine_fetches or shutil.which(f"pulumi-resource-{name}"):
        return
    if not has_plugin(pulumi_home(), name):
        folder = pulumi_home() / "plugins"
        raise user_error(f"{what} Pulumi's plugin {name}, which is not in {folder}\n  To get it: {remedy}")
