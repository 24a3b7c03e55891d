"""Settings for every unit test."""

from pathlib import Path

import pytest

from tests.support import toy


@pytest.fixture(autouse=True)
def fetching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine fetch plugins, whatever the tester's shell sets: under the mocks there are none."""
    monkeypatch.delenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", raising=False)


@pytest.fixture(scope="session")
def toy_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the extra of a third party is installed."""
    return toy.install(tmp_path_factory.mktemp("toy"))
