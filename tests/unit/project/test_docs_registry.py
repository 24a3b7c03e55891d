"""The pages for Pulumi's registry: their form, and that their programs are those of examples/languages."""

import json
import re
from pathlib import Path

import pytest
import yaml

import kumulus
from benchmarks.pages import with_components
from kumulus.provider.plugin.package import package
from tests.support.program import run

ROOT = Path(__file__).resolve().parents[3]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples" / "languages"
PAGE = DOCS / "library.md"
FILES = {"typescript": "index.ts", "python": "__main__.py", "go": "main.go", "yaml": "Pulumi.yaml"}
CHOOSABLE = re.compile(
    r"\{\{% choosable language (\w+) %\}\}\n\n```(\w+)\n(.*?)\n```\n\n\{\{% /choosable %\}\}\n", re.DOTALL
)
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))
CONFIG = {"kumulus:kubeconfig": "clusters: []\nusers: []\n", "kumulus:grafana": "hunter2"}


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
    assert project["backend"] == {"url": "file://./.pulumi-state?create_dir=true"}


def example(section: str) -> str:
    found = re.search(r"```python\n(.*?)```", SECTIONS[section], re.DOTALL)
    assert found, f"{section} has no example"
    return found[1]


def test_every_public_name_has_a_section() -> None:
    assert set(SECTIONS) == set(kumulus.__all__)


def test_the_tables_are_the_components_own() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_components(text) == text, "run: python -m benchmarks.pages"
    assert text.count(": begin -->") == len(kumulus.__all__) - 1


@pytest.mark.parametrize("name", [name for name in kumulus.__all__ if name != "Experiment"])
def test_an_example_declares_what_its_section_is_about(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(CONFIG))
    code = compile(example(name), f"{PAGE.name}, {name}", "exec")
    program = run(lambda: exec(code, {}))
    assert program.of_type(f"kumulus:index:{name}")


def test_the_experiment_is_one_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PAGE.parents[1])
    # On a cluster it is run by tests/integration/test_experiments.py.
    declaration, _, rest = example("Experiment").partition("report =")
    found: dict[str, kumulus.Experiment] = {}
    exec(declaration, {}, found)
    assert found["gang"].name
    compile(f"report ={rest}", PAGE.name, "exec")
