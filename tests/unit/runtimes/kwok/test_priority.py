"""For how long controllers may stand back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.runtimes.kwok.priority import bearable


@pytest.mark.parametrize(
    ("options", "seconds"),
    [({"nodeLeaseDurationSeconds": 40}, 15), ({"nodeLeaseDurationSeconds": 80}, 30), ({}, 15)],
    ids=["a kubelet's", "twice as long", "nothing said"],
)
def test_controllers_stand_back_for_as_long_as_a_lease_bears(
    tmp_path: Path, options: dict[str, Any], seconds: float
) -> None:
    layout = Layout(tmp_path)
    layout.kwok_file.write_text(dump([{"kind": "KwokctlConfiguration", "options": options}]))
    assert bearable(layout) == seconds


def test_a_long_lease_does_not_keep_pods_waiting_for_longer_than_that(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.kwok_file.write_text(dump([{"kind": "KwokctlConfiguration", "options": {"nodeLeaseDurationSeconds": 200}}]))
    assert bearable(layout) == 45
