"""Manifests from files, folders, texts and mappings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kumulus.testing import ClusterError
from kumulus.testing.manifests import read

A, B = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "ab")
TEXT = "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


@pytest.mark.parametrize(
    "given",
    [[A, B], {"apiVersion": "v1", "kind": "List", "items": [A, B]}, f"---{TEXT % 'a'}---{TEXT % 'b'}---\n"],
    ids=["mappings", "a list", "a text"],
)
def test_documents_come_in_their_order(given: Any) -> None:
    assert list(read(given)) == [A, B]


def test_a_folders_files_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "2.yaml").write_text(TEXT % "b")
    (tmp_path / "1.yml").write_text(TEXT % "a")
    (tmp_path / "notes.txt").write_text("none")
    assert list(read(tmp_path)) == list(read(str(tmp_path))) == [A, B]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("absent.yaml", r"absent\.yaml cannot be read"),
        ("a: [\n", "the text is not YAML"),
        ("a: b\n", "without apiVersion, kind or metadata.name; write all three"),
        ({"kind": "ConfigMap", "metadata": {"name": "a"}}, "without apiVersion"),
        (["text"], "without apiVersion"),
    ],
)
def test_what_is_no_manifest_is_named(given: Any, message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        list(read(given))
