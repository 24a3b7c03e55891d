"""The schemas and pages of reference in docs/ are those of the models, complete, and made by the command."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kumulus.cli import schema as command
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.model import checks, names
from kumulus.model.durations import duration_problems, of, written
from kumulus.model.quantity import QuantityError, parse
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.schema import patterns
from kumulus.stackfile.schema.document import DEFINITIONS, inner, target
from kumulus.stackfile.schema.published import files, published

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = published()


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.name)
def test_what_is_published_is_what_the_models_say(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PUBLISHED[path], "run: python -m kumulus.stackfile.schema.published"


@pytest.mark.parametrize("file", ["stack", "experiment"])
def test_a_schema_is_one_and_every_field_of_it_is_described_with_a_right_default_and_right_examples(file: str) -> None:
    schema = json.loads(files()[file].text())
    jsonschema.Draft7Validator.check_schema(schema)
    # What only stands for something until a schema is made.
    assert not re.search(r'"\$(?!ref"|schema")', json.dumps(schema))
    # Editors read patterns as ECMAScript does, which refuses escapes and groups of Python's own.
    for pattern in _patterns(schema):
        assert set(re.findall(r"\\(.)", pattern)) <= set(".+[]sSw"), pattern
        assert "(?P" not in pattern
    definitions = schema[DEFINITIONS]
    roots = {"": {key: value for key, value in schema.items() if key != DEFINITIONS}, **definitions}
    count = 0
    for name, root in roots.items():
        for place, field in _fields(root, name):
            count += 1
            assert (place, field.get("description") or target(field, definitions).get("description", "")) > (place, "")
            validator = jsonschema.Draft7Validator({"allOf": [field], DEFINITIONS: definitions})
            for value in [*field.get("examples", []), *([field["default"]] if "default" in field else [])]:
                assert (place, value, [each.message for each in validator.iter_errors(value)]) == (place, value, [])
    assert count > 60


def test_the_page_of_stacks_names_every_section() -> None:
    page = (ROOT / "docs" / "stacks.md").read_text(encoding="utf-8")
    table = page.partition("| Section |")[2].partition("\n\n")[0]
    assert [key for key in ClusterSpec.model_fields if f"`{key}`" not in table] == []


def _patterns(value: object) -> Iterator[str]:
    for key, each in value.items() if isinstance(value, dict) else ():
        if key == "pattern" and isinstance(each, str):
            yield each
        if key == "patternProperties":
            yield from each
        yield from _patterns(each)
    for each in value if isinstance(value, list) else ():
        yield from _patterns(each)


def _fields(schema: Mapping[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for holder, key in inner(dict(schema)):
        # kind's own file is described by kind.
        if holder is schema.get("properties") and not place.startswith("kindConfig"):
            yield f"{place}.{key}", holder[key]
        if isinstance(holder[key], dict):
            yield from _fields(holder[key], f"{place}.{key}")
    for key in ("anyOf", "allOf"):
        for each in schema.get(key, []):
            # Rules repeat the names of fields.
            if "$ref" in each or "type" in each:
                yield from _fields(each, place)


@pytest.mark.parametrize(("file", "model"), [("stack", ClusterSpec), ("experiment", ExperimentSpec)])
def test_the_page_has_every_field_once_with_its_meaning(
    file: str, model: type[ClusterSpec] | type[ExperimentSpec]
) -> None:
    text = (ROOT / "docs" / "reference" / f"{file}-file.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len({row.split("|")[1] for row in rows}) == len(rows)
    for name, field in model.model_fields.items():
        assert any(row.startswith(f"| `{field.alias or name}` |") for row in rows)
    assert all(len(re.split(r"(?<!\\)\|", row)) == 7 for row in rows)
    assert all(re.split(r"(?<!\\)\|", row)[4].strip() for row in rows)
    assert all((ROOT / name).exists() for name in re.findall(r"docs/[a-z-]+\.md", text))
    sigma = "autoscaler.registrationDelay.normal.sigma"
    deep = {"stack": "nodeGroups[].nodeTemplate.taints[].effect", "experiment": sigma}
    assert f"| `{deep[file]}` |" in text


def test_the_command_prints_both() -> None:
    for arguments, path in (
        (("stack",), "schema/stack.schema.json"),
        (("experiment", "--reference"), "reference/experiment-file.md"),
    ):
        ran = subprocess.run(
            [sys.executable, str(ROOT / "kumulus"), "schema", *arguments], capture_output=True, text=True, check=True
        )
        assert ran.stdout == (ROOT / "docs" / path).read_text(encoding="utf-8")
    assert "yaml-language-server" in str(command.__doc__)


def _amount(text: str) -> bool:
    try:
        return parse(text).nanos >= 0
    except QuantityError:
        return False


TEXTS = """
    a a-b -a a- a.b a..b A a_b a/b A/b a/b/c /b a/ kumulus.io/a x.kumulus.io/a kumulus.io topology.kumulus.io/rack
    Example.com/a 0 5s 1h30m .5s 5. 1.5ms 5 s 5d 1µs -5s 1Gi 1GB 500m 1e3 1e101 +1 -1 -0 -0.0 .5 . 1K 1.5k 8.0
"""


LONG = ("x" * 63, "x" * 64, f"{'x' * 253}/a", f"{'x' * 254}/a", f"a/{'x' * 64}")
PATTERNS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "label": (patterns.LABEL, names.is_dns_label),
    "subdomain": (patterns.SUBDOMAIN, names.is_dns_subdomain),
    "label value": (patterns.LABEL_VALUE, lambda text: names.label_value_mistake(text) is None),
    "label key": (patterns.LABEL_KEY, lambda text: names.label_key_mistake(text) is None),
    "own label key": (patterns.FREE_LABEL_KEY, lambda text: not checks.label_problems((), {text: "x"})),
    "own annotation key": (patterns.FREE_ANNOTATION_KEY, lambda text: not checks.annotation_problems((), {text: "x"})),
    "duration": (patterns.DURATION, lambda text: not duration_problems((), text)),
    "quantity": (patterns.QUANTITY, _amount),
}


@pytest.mark.parametrize(("pattern", "accepts"), PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_takes_what_its_check_takes(pattern: str, accepts: Callable[[str], bool]) -> None:
    for text in (*TEXTS.split(), "", " ", "a b", *LONG):
        long = len(text) > 63 and pattern in (patterns.LABEL, patterns.SUBDOMAIN, patterns.LABEL_VALUE)
        # Lengths of whole texts stand beside the patterns.
        assert long or (text, bool(re.search(pattern, text))) == (text, accepts(text))


@pytest.mark.parametrize(("length", "text"), [(5.0, "5s"), (600.0, "10m"), (7200.0, "2h"), (90.0, "90s"), (0.0, "0s")])
def test_a_default_duration_is_shown_as_a_file_has_it(length: float, text: str) -> None:
    assert (written(length), of(text)) == (text, length)
