"""A cluster is replaced only by an update whose own preview has shown it, or by the user's word."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import lifetime
from kumulus.model.contents import contents
from kumulus.nodes.errors import ProviderError
from kumulus.provider.resources.cluster_place import UNSHOWN, RecordedPlaces, Shown
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.provider.settings import PluginSettings
from kumulus.runtimes import registry

OUTPUTS = {"name": "dev", "runtime": "kwok", "directory": "/clusters/dev"}
REPLACED = [PropertyDifference("options.featureGates", "update-replace")]
PREVIEW = {"contents": contents([], [], preview=True)}
UPDATE = {"contents": contents([], [], preview=False)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(UNSHOWN, raising=False)
    return tmp_path / "shown"


def places(folder: Path, command: str = "one", **words: Any) -> RecordedPlaces:
    """What a plugin has that a pulumi command starts: one for the preview, and another one for the update."""
    runtimes = {each.name: each.make() for each in registry.every()}
    return RecordedPlaces(runtimes, PluginSettings(**words), Shown(command, folder))


def test_the_update_of_the_command_whose_preview_has_shown_it_replaces(folder: Path) -> None:
    places(folder).require_consent(OUTPUTS, PREVIEW, REPLACED)
    places(folder).require_consent(OUTPUTS, UPDATE, REPLACED)


@pytest.mark.parametrize(
    ("command", "directory"), [("another", "/clusters/dev"), ("one", "/clusters/other")], ids=["command", "cluster"]
)
def test_a_preview_of_another_command_or_cluster_is_none(folder: Path, command: str, directory: str) -> None:
    places(folder).require_consent({**OUTPUTS, "directory": directory}, PREVIEW, REPLACED)
    with pytest.raises(
        ProviderError, match=r"cluster dev would be replaced \(options.featureGates\), without the pods"
    ):
        places(folder, command).require_consent(OUTPUTS, UPDATE, REPLACED)


def test_without_a_preview_it_takes_the_users_word(folder: Path) -> None:
    with pytest.raises(ProviderError, match="kumulus:allowReplace true"):
        places(folder).require_consent(OUTPUTS, UPDATE, REPLACED)
    places(folder, allow_replace=True).require_consent(OUTPUTS, UPDATE, REPLACED)


def test_what_is_gone_changes_in_place_or_outlives_the_stack_needs_no_word(folder: Path) -> None:
    asked = places(folder)
    asked.require_consent(OUTPUTS, UPDATE, [PropertyDifference("options.etcdQuota", "update")])
    asked.require_consent(OUTPUTS, UPDATE, [*REPLACED, PropertyDifference("status", "update-replace")])
    asked.require_consent({**OUTPUTS, "runtime": "existing"}, UPDATE, REPLACED)


def test_where_a_program_does_not_say_what_is_a_preview_the_command_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places(folder).require_consent(OUTPUTS, {}, REPLACED)
    monkeypatch.setenv(UNSHOWN, "1")
    with pytest.raises(ProviderError, match="would be replaced"):
        places(folder).require_consent(OUTPUTS, {}, REPLACED)


def test_notes_of_commands_that_have_ended_are_forgotten(folder: Path) -> None:
    ended = [sys.executable, "-c", "from kumulus.host import lifetime; print(lifetime.own())"]
    command = subprocess.run(ended, capture_output=True, text=True, check=True).stdout.strip()
    Shown(command, folder).note("/clusters/dev")
    assert Shown(command, folder).has("/clusters/dev")
    mine = Shown(lifetime.own(), folder)
    mine.note("/clusters/dev")
    assert mine.has("/clusters/dev")
    assert not Shown(command, folder).has("/clusters/dev")
    assert [each.stat().st_mode & 0o077 for each in folder.iterdir()] == [0]


def test_the_command_is_the_parent_of_the_plugin() -> None:
    asks = "from kumulus.host import lifetime; print(lifetime.parent())"
    said = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True).stdout.strip()
    assert said == lifetime.own()


def test_where_no_note_can_be_written_the_update_asks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "shown"
    places(folder).require_consent(OUTPUTS, PREVIEW, REPLACED)
    with pytest.raises(ProviderError, match="would be replaced"):
        places(folder).require_consent(OUTPUTS, UPDATE, REPLACED)
