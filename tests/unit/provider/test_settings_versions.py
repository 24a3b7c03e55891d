"""What the plugin is configured with: the state of a later version is refused before anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import version
from kumulus.host.machine import Machine
from kumulus.nodes.errors import ProviderError
from kumulus.provider.settings import LastPlace, Settings
from kumulus.runtimes.whereabouts import Here


def settings() -> Settings:
    return Settings(place=LastPlace(lambda: Here(Machine("an-id", "bigbox"), Path("/p"), None)))


def of_form(form: int) -> dict[str, Any]:
    """The configuration that an update has left in the state."""
    return {**settings().kept({}, {}), "writtenBy": json.dumps({"version": "9.8.7", "form": str(form)})}


def test_a_state_of_a_later_form_is_refused_with_both_versions() -> None:
    for refuse in (settings().take, lambda found: settings().kept(found, {})):
        with pytest.raises(ProviderError) as refused:
            refuse(of_form(version.FORM + 1))
        assert "9.8.7" in str(refused.value)
        assert version.VERSION in str(refused.value)
        assert "nothing was changed" in str(refused.value)


@pytest.mark.parametrize("recorded", [of_form(version.FORM), of_form(0), {}, {"writtenBy": "x"}])
def test_a_state_of_this_form_or_an_earlier_one_is_taken(recorded: dict[str, Any]) -> None:
    settings().take(recorded)
    assert json.loads(settings().kept(recorded, {})["writtenBy"]) == version.stamp()
