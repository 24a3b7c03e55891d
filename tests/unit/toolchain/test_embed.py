"""Files of a module that are put into ours before it is built."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from kumulus.toolchain import build, pins
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.pins import Embed, Tool
from kumulus.toolchain.progress import ToolLine

FILES = {
    "cmd/tool/main.go": 'package main\n\nimport _ "example.com/everything"\n',
    "cmd/tool/query.go": "package main\n",
    "cmd/tool/query_test.go": "package main\n",
    "schema.json": '{"version": "0", "name": "x"}',
}


class Offline(build.Builder):
    """A builder that has the module already."""

    def _module_directory(self, *_: Any) -> Path:
        return self.scratch / "upstream"


def put(tmp_path: Path, embed: Embed) -> dict[str, str]:
    """What is in our module afterwards, by path."""
    for name, content in FILES.items():
        file = tmp_path / "upstream" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    ours = tmp_path / "ours"
    ours.mkdir()
    builder = Offline(Path("go"), tmp_path, tmp_path / "logs")
    builder._embed(tool(embed), embed, ours, ToolLine("test"))
    return {str(file.relative_to(ours)): file.read_text() for file in ours.rglob("*") if file.is_file()}


def tool(*embeds: Embed) -> Tool:
    return dataclasses.replace(pins.load().tool("pulumi-resource-kubernetes"), embed=embeds)


def test_a_file_is_taken_as_it_is_or_with_keys_of_its_json_set(tmp_path: Path) -> None:
    assert put(tmp_path, Embed("m", "schema.json", "s.json", {"version": "4.2"}, {})) == {
        "s.json": '{"version": "4.2", "name": "x"}'
    }


def test_a_package_is_taken_without_its_tests_and_edited(tmp_path: Path) -> None:
    edit = {"example.com/everything": "example.com/little"}
    assert put(tmp_path, Embed("m", "cmd/tool/*.go", "tool", {}, edit)) == {
        "tool/main.go": 'package main\n\nimport _ "example.com/little"\n',
        "tool/query.go": "package main\n",
    }


def test_an_edit_that_finds_nothing_is_an_error_and_not_another_program(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"nothing in cmd/tool/\*\.go of m to edit: 'example\.com/gone'"):
        put(tmp_path, Embed("m", "cmd/tool/*.go", "tool", {}, {"example.com/gone": ""}))


def test_a_tool_with_another_edit_is_another_tool() -> None:
    plain, edited = Embed("m", "a", "b", {}, {}), Embed("m", "a", "b", {}, {"old": "new"})
    assert tool(plain).stamp() != tool(edited).stamp()
