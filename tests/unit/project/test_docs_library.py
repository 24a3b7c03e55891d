"""docs/library.md: its tables are the components' own, and its examples are programs that run."""

from __future__ import annotations

import json
import re

import pytest

import kumulus
from benchmarks.pages import DOCS, with_components
from tests.support.program import run

PAGE = DOCS / "library.md"
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))
CONFIG = {"kumulus:kubeconfig": "clusters: []\nusers: []\n", "kumulus:grafana": "hunter2"}


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
