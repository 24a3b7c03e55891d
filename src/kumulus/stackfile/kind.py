"""kind's own configuration in a stack file."""

from __future__ import annotations

from typing import Annotated, Any

from kumulus.model.errors import Problem, Where
from kumulus.model.fields import checked
from kumulus.runtimes.kind.kind_config import config_problems
from kumulus.stackfile.addons import mapping_of_yaml, mapping_problems


def _kind_config_problems(where: Where, raw: object) -> list[Problem]:
    return mapping_problems(where, raw) or config_problems(where, mapping_of_yaml(raw))


KindConfig = Annotated[dict[str, Any], checked(_kind_config_problems, mapping_of_yaml, form="kindConfig")]
"""kind's own configuration, a mapping or a YAML text of one."""
