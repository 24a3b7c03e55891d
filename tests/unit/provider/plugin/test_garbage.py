"""The plugin as it is started looks for garbage rarely, with what it loaded set aside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


def test_the_plugin_looks_for_garbage_rarely() -> None:
    # Its main module, run as the engine runs it, but for the serving.
    script = """
import gc, runpy
import kumulus.provider.plugin.serving
async def serve(arguments): print(gc.get_threshold()[0], gc.get_freeze_count() > 1000)
kumulus.provider.plugin.serving.serve = serve
runpy.run_module("kumulus.provider.plugin", run_name="__main__")
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["50000", "True"]
