"""What the user says to the plugin as a whole."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import version
from kumulus.host.machine import HostMachine
from kumulus.model.pools import Pool
from kumulus.nodes.errors import ProviderError
from kumulus.provider.settings import LastPlace, PluginSettings
from kumulus.runtimes.whereabouts import Here

LABELS = {"node.kubernetes.io/instance-type": "m5.xlarge", "topology.kubernetes.io/region": "us-east-1"}
POOL = Pool("a-z", "a", "z", "us-east-1", 3, LABELS)


def test_nodes_cost_what_the_catalog_says_until_the_user_says_otherwise(tmp_path: Path) -> None:
    settings = PluginSettings()
    assert settings.hourly(POOL) == 0.192
    own = tmp_path / "own.yaml"
    own.write_text("regions: {us-east-1: {onDemand: {m5.xlarge: 0.1}}}")
    settings.take({"prices": str(own)})
    assert settings.hourly(POOL) == 0.1
    # The program reports its mistakes; a preview of what is taken away needs no price.
    own.write_text("regions: 5")
    assert settings.hourly(POOL) == 0.192
    settings.take({})
    assert settings.hourly(Pool("a-z", "a", "z", "", 3, {})) is None
    # A machine that is sold has a price, which may not be known here; one of nobody's has none.
    elsewhere = {**LABELS, "topology.kubernetes.io/region": "europe-west4"}
    assert math.isnan(settings.hourly(Pool("a-z", "a", "z", "europe-west4", 3, elsewhere)) or 0.0)
    made_up = {**LABELS, "node.kubernetes.io/instance-type": "mine"}
    assert settings.hourly(Pool("a-z", "a", "z", "us-east-1", 3, made_up)) is None


def test_another_file_of_prices_is_another_configuration() -> None:
    # What does not differ, the engine configures the plugin with as it was recorded.
    assert PluginSettings.changed({}, {"prices": "a.yaml"})
    assert not PluginSettings.changed({"prices": "a.yaml"}, {"prices": "a.yaml"})


def settings() -> PluginSettings:
    return PluginSettings(place=LastPlace(lambda: Here(HostMachine("an-id", "bigbox"), Path("/p"), None)))


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
