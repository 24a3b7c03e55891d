"""A program has its plugin started before it imports what is slow to import."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest

from kumulus.components import engine
from kumulus.provider.resources.registry import FUNCTIONS

_IMPORTING = """
import gc, signal, sys
from kumulus import program
from kumulus.components import engine
sys.orig_argv = sys.argv
program.under_engine = lambda: True
program.start_plugin = lambda: None
engine._watch = lambda *_: None
def stop():
    ours = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    sys.exit(f"{len(collections) > 0} {gc.isenabled()} {gc.get_freeze_count() > 10_000} {ours}")
program._load = lambda _: stop()
collections = []
gc.callbacks.append(lambda phase, _: collections.append(phase))
program._run()
"""
ROOT = Path(__file__).resolve().parents[4]


def asked(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> str:
    """The token of the function that the engine was asked for, from another thread."""
    tokens: list[str] = []
    caller = threading.get_ident()
    heard = threading.Event()

    def invoke(request: object) -> None:
        assert threading.get_ident() != caller
        tokens.append(request.tok)  # type: ignore[attr-defined]
        heard.set()
        if error is not None:
            raise error

    monkeypatch.setattr(engine, "get_monitor", lambda: SimpleNamespace(Invoke=invoke))
    engine.start_plugin()
    assert heard.wait(10)
    return tokens[0]


def test_the_engine_is_asked_for_what_the_plugin_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch) in FUNCTIONS


def test_a_plugin_that_cannot_be_started_is_left_to_the_first_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    before = set(threading.enumerate())
    asked(monkeypatch, grpc.RpcError("no plugin"))
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert raised == []


@pytest.mark.parametrize(
    ("imported", "spared"),
    [
        ("kumulus.components.engine", ("pydantic", "kumulus.stackfile.load")),
        ("kumulus.provider.plugin.serving", ("pulumi", "pydantic")),
        ("kumulus.components.emulated_cluster, kumulus.components.kwok_cluster", ("pulumi_kubernetes",)),
        ("kumulus.components.emulated_cluster, kumulus.components.helm_addon", ("pulumi_command",)),
    ],
)
def test_what_is_slow_to_import_is_left_to_who_needs_it(imported: str, spared: tuple[str, ...]) -> None:
    code = f"import sys, {imported}; print([name for name in sys.modules if name.startswith({spared})])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("host", "state"),
    [("/tools/pulumi-language-python-exec", "False True True True"), ("user.py", "True True False False")],
)
def test_only_a_program_of_the_language_host_is_changed_as_a_process(host: str, state: str) -> None:
    """Nothing looks for garbage among its modules, and it ends with the engine; a user's own process stays as it is."""
    answer = subprocess.run([sys.executable, "-c", _IMPORTING, host], capture_output=True, text=True, check=False)
    assert answer.stderr.strip() == state


def plugin(says: str, **variables: str) -> list[str]:
    """What an expression is in the plugin's main module, run as the engine runs it, but for the serving."""
    script = f"""
import gc, os, runpy
import kumulus.provider.plugin.serving
async def serve(arguments): print({says})
kumulus.provider.plugin.serving.serve = serve
runpy.run_module("kumulus.provider.plugin", run_name="__main__")
"""
    command, variables = [sys.executable, "-c", script], {**os.environ, **variables}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()


def test_the_plugin_looks_for_garbage_rarely() -> None:
    assert plugin("gc.get_threshold()[0], gc.get_freeze_count() > 1000") == ["50000", "True"]


def test_what_the_plugin_starts_gets_no_token_of_pulumis() -> None:
    command = """os.popen('echo "$PULUMI_ACCESS_TOKEN,$OTHER"').read()"""
    assert plugin(command, PULUMI_ACCESS_TOKEN="pul-1", OTHER="there") == [",there"]
