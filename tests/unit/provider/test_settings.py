"""What the user says to the plugin as a whole."""

from __future__ import annotations

from pathlib import Path

from kumulus.model.pools import Pool
from kumulus.provider.settings import Settings

LABELS = {"node.kubernetes.io/instance-type": "m5.xlarge", "topology.kubernetes.io/region": "us-east-1"}
POOL = Pool("a-z", "a", "z", "us-east-1", 3, LABELS)


def test_nodes_cost_what_the_catalog_says_until_the_user_says_otherwise(tmp_path: Path) -> None:
    settings = Settings()
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


def test_another_file_of_prices_is_another_configuration() -> None:
    # What does not differ, the engine configures the plugin with as it was recorded.
    assert Settings.changed({}, {"prices": "a.yaml"})
    assert not Settings.changed({"prices": "a.yaml"}, {"prices": "a.yaml"})
