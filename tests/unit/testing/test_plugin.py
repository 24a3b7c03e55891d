"""What the pytest plugin costs everybody who has Kumulus installed and does not use it: next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kumulus.testing.plugin import _nodes

IMPORTED = (
    "import sys; import kumulus.testing.plugin; print(*(name for name in sys.modules if name.startswith('kumulus')))"
)


def test_nothing_of_kumulus_is_imported_before_a_fixture_is_used() -> None:
    found = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == ["kumulus", "kumulus.testing", "kumulus.testing.plugin"]


@pytest.mark.parametrize(
    ("written", "nodes"),
    [([], 3), (["30"], 30), (["h100=100"], {"h100": 100}), (["h100=1,", "l4=2"], {"h100": 1, "l4": 2})],
)
def test_nodes_in_pytests_configuration_are_a_number_or_numbers_by_machine(written: list[str], nodes: object) -> None:
    assert _nodes(written) == nodes


def test_other_nodes_in_pytests_configuration_are_refused_with_an_example() -> None:
    with pytest.raises(pytest.UsageError, match="kumulus_nodes is 'many'; write 30, or h100=100"):
        _nodes(["many"])
