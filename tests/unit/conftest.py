"""Settings for every unit test."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fetching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine fetch plugins, whatever the tester's shell sets: under the mocks there are none."""
    monkeypatch.delenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", raising=False)
