"""Converts a KEMU file to a stack file that describes the same cluster, for further editing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from kumulus.kube.yaml_writing import Dumper
from kumulus.model.errors import Notice
from kumulus.stackfile.groups import KEMU_LABELS
from kumulus.stackfile.kemu import KemuFile, Plain

_WIDTH = 120
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/:@+-]*")


def stack_file_of(file: KemuFile) -> str:
    """The text of a stack file.

    Args:
        file: a KEMU file as read; comments list what was corrected in it.
    """
    return "\n".join([*_comments(file.source, file.notices), _dumped({"config": {"kumulus:cluster": _cluster(file)}})])


def _cluster(file: KemuFile) -> Plain:
    plain = dict(file.plain)
    groups = plain.get("nodeGroups")
    if isinstance(groups, list):
        plain["nodeGroups"] = [_group(group) for group in groups]
    return plain


def _group(group: Mapping[str, Any]) -> Plain:
    template = dict(group["nodeTemplate"])
    metadata = dict(template.get("metadata") or {})
    # KEMU's own labels, which a template may override, as in KEMU.
    metadata["labels"] = {**KEMU_LABELS, **(metadata.get("labels") or {})}
    named = {"name": group["name"], "placement": group["placement"]}
    return {**named, "nodeTemplate": {**template, "metadata": metadata}}


def _comments(source: str, notices: tuple[Notice, ...]) -> list[str]:
    lines = [f"From KEMU's {source}, by kumulus convert."]
    if notices:
        lines += ["What KEMU would have taken otherwise, or this format has not:", *(f"  {each}" for each in notices)]
    return [f"# {line}" for text in lines for line in text.splitlines()]


class _Dumper(yaml.SafeDumper):
    """Writes multi-line strings as blocks, and quotes whatever a YAML reader could take for another type."""

    yaml_implicit_resolvers = Dumper.yaml_implicit_resolvers

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None if _PLAIN.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _dumped(document: Plain) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
