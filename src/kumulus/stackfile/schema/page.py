"""A reference page from a JSON schema: every field with its path, type, default, meaning and an example."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kumulus.model.errors import SpecError
from kumulus.stackfile.schema import patterns
from kumulus.stackfile.schema.document import DEFINITIONS, target
from kumulus.stackfile.yamltext import read_yaml

Schema = dict[str, Any]
_NULL: Schema = {"type": "null"}
_SECRET: Schema = {"$ref": f"#/{DEFINITIONS}/secret"}
_WORDS = {
    "duration": "duration",
    "distribution": "duration or distribution",
    "quantity": "quantity",
    "wholeQuantity": "whole quantity",
    "percent": "per cent",
    "mappingOrYaml": "mapping, or YAML text of one",
    "kindConfig": "mapping, or YAML text of one",
    "usage": "share or quantity, range or curve of them, or load",
    "usageShare": "share, or range or curve of them",
    "labels": "mapping of labels",
    "annotations": "mapping of annotations",
    "capacity": "mapping of resources to quantities",
    "resources": "mapping of resources to quantities",
    "changes": "mapping of resources to quantities",
    "quota": "mapping of resources to quantities",
    "deviceCapacity": "mapping of names to quantities",
    "deviceAttributes": "mapping of names to values",
    "environment": "mapping of texts",
    "switches": "mapping of texts or switches",
    "conditions": "mapping by condition type",
    "nodeNames": "list of node names",
    "namespaces": "list of DNS-1123 labels",
    "conditionTypes": "list of types of conditions",
    "features": "list of names of features",
    "ownerKinds": "list of kinds",
    "texts": "list of texts",
    "place": "place or label key",
    "priority": "whole number or text",
}
_KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "object": "mapping",
    "array": "list",
}
_TEXTS = {
    patterns.LABEL: "DNS-1123 label",
    patterns.SUBDOMAIN: "DNS-1123 name",
    patterns.SUBDOMAIN_OR_EMPTY: "DNS-1123 name or empty",
    patterns.LABEL_VALUE: "label value",
    patterns.LABEL_KEY: "label key",
    patterns.LABEL_KEY_OR_EMPTY: "label key or empty",
    patterns.AMOUNT_SHARE: "share such as `80%`",
    patterns.CHART_REPOSITORY: "URL",
}
_MOST_CHOICES = 10


# Definitions that are described elsewhere: kind's own file by kind, and secrets at the top of the page.
_ELSEWHERE = ("kindConfig", "secret")


def markdown(schema: Schema) -> str:
    """The fields of a schema as tables, one for each mapping, in the order of the file.

    A mapping that occurs in several places has one table, which names all of them.
    """
    definitions = schema[DEFINITIONS]
    found: dict[str, _Section] = {}
    _collect(_Section("", "", schema), definitions, found)
    lines: list[str] = []
    for each in found.values():
        also = f" Also at {', '.join(f'`{path}`' for path in each.also)}." if each.also else ""
        text = f"{each.description}{also}".strip()
        lines += [f"## {f'`{each.path}`' if each.path else 'The file'}", "", *([text, ""] if text else [])]
        lines += ["| Field | Type | Default | Meaning | Example |", "|---|---|---|---|---|"]
        lines += _rows(each.mapping, each.below(""), definitions)
        lines += [""]
    return "\n".join(lines)


@dataclass
class _Section:
    """A mapping of known keys that is a definition, or part of one, with the places where it occurs."""

    name: str
    path: str
    mapping: Schema
    description: str = ""
    also: list[str] = field(default_factory=list)

    def below(self, key: str) -> str:
        # Messages about a cluster name places relative to the cluster.
        if not self.path or self.name in ("config", "ClusterSpec"):
            return key
        return f"{self.path}.{key}"


def _collect(section: _Section, definitions: Mapping[str, Schema], found: dict[str, _Section]) -> None:
    if section.name in found:
        found[section.name].also.append(section.path)
        return
    found[section.name] = section
    for key, each in section.mapping["properties"].items():
        for inside in _sections(each, section.below(key), definitions, ""):
            _collect(inside, definitions, found)


def _sections(schema: Schema, path: str, definitions: Mapping[str, Schema], name: str) -> Iterator[_Section]:
    """The mappings of known keys at a place: the value itself, a list's items, or a mapping's values."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in _ELSEWHERE:
            yield from _sections(definitions[name], path, definitions, name)
    elif _is_closed(schema):
        if name:
            yield _Section(name, path, schema, definitions[name].get("description", ""))
    else:
        for key in ("anyOf", "allOf"):
            for each in schema.get(key, []):
                yield from _sections(each, path, definitions, name)
        for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(schema.get(key), dict):
                yield from _sections(schema[key], f"{path}{suffix}", definitions, name)


def _is_closed(schema: Schema) -> bool:
    """Whether a schema is a mapping of known keys, as are the whole file and its config."""
    return "properties" in schema and not isinstance(schema.get("additionalProperties"), dict) and "type" in schema


def _rows(mapping: Schema, path: str, definitions: Mapping[str, Schema]) -> Iterator[str]:
    """A row for each field, and for the fields of inner mappings without their own section."""
    for key, each in mapping["properties"].items():
        yield _row(f"{path}{key}", key, each, key in mapping.get("required", []), definitions)
        if _is_closed(each):
            yield from _rows(each, f"{path}{key}.", definitions)
        elif _is_closed(each.get("items", {})):
            yield from _rows(each["items"], f"{path}{key}[].", definitions)


def _row(path: str, key: str, schema: Schema, needed: bool, definitions: Mapping[str, Schema]) -> str:
    default = "needed" if needed else f"`{_written(schema['default'])}`" if "default" in schema else ""
    examples = [f"`{key}: {_written(example)}`" for example in schema.get("examples", [])[:1]]
    text = schema.get("description") or target(schema, definitions).get("description", "")
    cells = [f"`{path}`", kind(schema, definitions), default, text, *(examples or [""])]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def kind(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    """A field's type in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _WORDS.get(name) or kind(definitions[name], definitions)
    for key in () if "properties" in schema else ("anyOf", "allOf"):
        if key in schema:
            parts = [each for each in schema[key] if each not in (_NULL, _SECRET)]
            kinds = dict.fromkeys(kind(each, definitions) for each in (parts if key == "anyOf" else parts[:1]))
            return " or ".join(kinds)
    if "enum" in schema:
        return _choices([each for each in schema["enum"] if each is not None])
    types = schema.get("type", [])
    named = [each for each in ([types] if isinstance(types, str) else types) if each != "null"]
    if named == ["array"] and schema.get("items"):
        return f"list of {_many(kind(schema['items'], definitions))}"
    words = " or ".join(_KINDS[each] for each in named) or "anything"
    if named in (["integer"], ["number"]):
        return words + _bounds(schema)
    return _named(schema, words)


def _many(words: str) -> str:
    """The plural of a type, for a list's items."""
    return words if words == "anything" or words.startswith("`") else f"{words}s"


def _named(schema: Schema, words: str) -> str:
    """A string's type, by its pattern and length."""
    words = _TEXTS.get(schema.get("pattern", ""), words)
    return f"{words}, at most {schema['maxLength']} characters" if "maxLength" in schema else words


def _choices(choices: list[Any]) -> str:
    if len(choices) > _MOST_CHOICES:
        return f"one of {len(choices)}, such as `{choices[0]}`"
    return ", ".join(f"`{_written(each)}`" for each in choices)


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if low is None or high is None:
        return ""
    beyond = " (not 0 itself)" if "exclusiveMinimum" in schema else ""
    return f", {low:,} to {high:,}{beyond}"


def _written(value: object) -> str:
    """A value in YAML's flow style, with quotes only around strings that YAML would read as something else."""
    if isinstance(value, str):
        return value if _plain(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    return json.dumps(value)


def _plain(text: str) -> bool:
    try:
        return read_yaml(f"[{text}]") == [text]
    except SpecError:
        return False
