"""YAML texts: with the types Go programs would see, or as written; errors with line and column."""

import random
from pathlib import Path
from typing import Any

import pytest

from kumulus.model.errors import SpecError
from kumulus.stackfile import yamltext
from kumulus.stackfile.yamltext import json_problem, read_stack_file, read_yaml, read_yaml_texts
from tests.support import fuzz


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("12:30", "12:30"),
        ("2026-01-31", "2026-01-31"),
        ("1e3", 1000.0),
        ("1.10", 1.1),
        ("0o17", 15),
        ("017", 15),
        ("-0_17", -15),
        ("08", 8.0),
        ("0x1F", 31),
        ("0X_1f", 31),
        ("0B1_0", 2),
        ("0b_", "0b_"),
        ("0o8", "0o8"),
        ("1_000", 1000),
        ("1_0.5", 10.5),
        ("yes", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ("75.16.1", "75.16.1"),
    ],
)
def test_scalars_have_the_types_go_gives_them(written: str, value: object) -> None:
    read: Any = read_yaml(f"a: {written}")
    assert read["a"] == value
    assert type(read["a"]) is type(value)


# What `pulumi config --json` of Pulumi 3.246 shows of a plain scalar.
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("OFF", "OFF"),
        ("y", "y"),
        ("True", True),
        ("false", False),
        ("1e3", 1000.0),
    ],
)
def test_a_stack_file_is_read_as_pulumi_reads_it(written: str, value: object, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(f"a: {written}")
    assert read_stack_file(tmp_path / "Pulumi.dev.yaml") == {"a": value}
    # PyYAML's own parser, for a text that libyaml refuses.
    slow: Any = yamltext._read(f"a: {written}", "", (yamltext._PULUMI[1],) * 2)
    assert slow == {"a": value}


def test_texts_stay_as_they_are_written_and_nothing_is_nothing() -> None:
    texts = ["1.10", "true", "2026-01-31", "0x10", "96", ".5"]
    found = read_yaml_texts(f"a: [{', '.join(texts)}]\nb:\nc: ~\nd: ''")
    assert found == {"a": texts, "b": None, "c": None, "d": ""}


def test_merge_keys_may_bring_in_what_is_written_again() -> None:
    found = read_yaml("base: &b {x: 1, y: 2}\nmore: {<<: *b, x: 3}\nagain: [*b, *b]")
    base = {"x": 1, "y": 2}
    assert found == {"base": base, "more": {"x": 3, "y": 2}, "again": [base, base]}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [1", "line 1, column 6"),
        ("a: 1\nb: c: d", "line 2, column 5"),
        ("a: 1\n\tb: 2", "line 2, column 1"),
        ("a: 1\nb: 2\na: 3", 'line 3, column 1: the key "a" is there twice'),
        ("a: *missing", "line 1, column 4"),
        ("a: &b\n  c: *b", "line 2, column 6: *b stands for what it is in"),
        ("&a [1, {b: *a}]", "line 1, column 12: *a stands for what it is in"),
        ("a: 1\n---\nb: 2", "line 2, column 1"),
        ("a: !!python/object:os.system x", "line 1, column 4"),
        ("a: \x00", "special characters"),
        ("? [1]\n: 2", "line 1, column 3"),
        ("a: !!int x", ""),
        ("[" * 700, "too deeply"),
    ],
)
def test_what_does_not_parse_is_told_with_its_place(text: str, place: str) -> None:
    for read in (read_yaml, read_yaml_texts):
        with pytest.raises(SpecError) as caught:
            read(text, "values.yaml")
        told = str(caught.value)
        assert told.startswith("1 problem in values.yaml\n")
        assert place in told
        assert len(told.splitlines()) == 2


def test_only_json_can_be_handed_on() -> None:
    circle: list[object] = []
    circle.append(circle)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert json_problem({"a": [1, "b", None, True]}) is None
    assert "itself" in str(json_problem(circle))
    assert "deeply" in str(json_problem(deep))
    assert "JSON" in str(json_problem(float("nan")))
    assert "JSON" in str(json_problem({"a": {1, 2}}))


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_libyaml_and_pyyamls_own_parser_read_the_same_of_what_both_take(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = fuzz.sources(kind)
    texts = good + [fuzz.damaged(random.Random(f"{kind}:{number}"), good) for number in range(150)]

    def values() -> list[str | None]:
        found: list[str | None] = []
        for text in texts:
            try:
                found.append(repr(read_yaml(text[:20_000])))
            except SpecError:
                found.append(None)
        return found

    fast = values()
    monkeypatch.setattr(yamltext, "_TYPED", (yamltext._TYPED[1],) * 2)
    both = [(one, other) for one, other in zip(fast, values(), strict=True) if one and other]
    assert len(both) > 12
    assert [pair for pair in both if pair[0] != pair[1]] == []
