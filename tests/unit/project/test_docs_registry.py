"""The pages for Pulumi's registry: their form, and that their programs are those of examples/languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from kumulus.provider.plugin.package import package

ROOT = Path(__file__).resolve().parents[3]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples" / "languages"
FILES = {"typescript": "index.ts", "python": "__main__.py", "go": "main.go", "yaml": "Pulumi.yaml"}
CHOOSABLE = re.compile(
    r"\{\{% choosable language (\w+) %\}\}\n\n```(\w+)\n(.*?)\n```\n\n\{\{% /choosable %\}\}\n", re.DOTALL
)


@pytest.mark.parametrize("page", ["_index.md", "installation-configuration.md"])
def test_a_page_begins_as_the_registry_wants_it(page: str) -> None:
    _, front, body = (DOCS / page).read_text().split("---\n", 2)
    matter = yaml.safe_load(front)
    assert set(matter) == {"title", "meta_desc", "layout"}
    assert matter["layout"] == "package"
    assert "Kumulus" in matter["title"]
    assert body.strip()


def test_the_programs_are_those_of_the_examples() -> None:
    text = (DOCS / "_index.md").read_text()
    chooser = re.search(r'\{\{< chooser language "([\w,]+)" >\}\}\n(.*?)\{\{< /chooser >\}\}', text, re.DOTALL)
    assert chooser is not None
    shown = {language: (fence, program) for language, fence, program in CHOOSABLE.findall(chooser[2])}
    assert chooser[1].split(",") == list(shown)
    assert set(shown) == set(FILES) == {folder.name for folder in EXAMPLES.iterdir() if folder.is_dir()}
    for language, (fence, program) in shown.items():
        file = (EXAMPLES / language / FILES[language]).read_text().strip()
        assert fence == language
        assert program == (file[file.index("resources:") :] if language == "yaml" else file), language


def test_the_page_names_every_component() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "_index.md").read_text(), re.MULTILINE))
    served = {token for token, each in package()["resources"].items() if each.get("isComponent")}
    assert {f"kumulus:index:{name}" for name in named} == served


@pytest.mark.parametrize("language", FILES)
def test_an_example_finds_the_plugin_and_keeps_its_state_to_itself(language: str) -> None:
    project = yaml.safe_load((EXAMPLES / language / "Pulumi.yaml").read_text())
    assert project["name"] == "fleet"
    (plugin,) = project["plugins"]["providers"]
    assert (EXAMPLES / language / plugin["path"] / "pulumi-resource-kumulus").is_file()
    assert project["backend"] == {"url": "file://./.pulumi-state"}
