"""kind's own configuration in a stack file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from kumulus.fields import checked
from kumulus.model.errors import Problem, Where
from kumulus.runtimes.kind.kind_config import config_problems
from kumulus.stackfile.addons import mapping_of_yaml, mapping_problems


def _kind_config_problems(where: Where, raw: object) -> list[Problem]:
    if wrong := mapping_problems(where, raw):
        return wrong
    value = mapping_of_yaml(raw)
    assert isinstance(value, Mapping)
    return config_problems(where, value)


def _as_mapping(raw: object) -> dict[str, Any]:
    value = mapping_of_yaml(raw)
    assert isinstance(value, Mapping)
    return dict(value)


KindConfig = Annotated[dict[str, Any], checked(_kind_config_problems, _as_mapping, form="kindConfig")]
"""kind's own configuration, a mapping or a YAML text of one."""
