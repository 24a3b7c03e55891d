"""What the runtimes' sections of a stack file have in common."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kumulus.model.fields import Section
from kumulus.model.fields.validation import problems_of


class RuntimeSection(Section):
    """The section of a stack file with a runtime's options."""

    def options(self, base: Path = Path()) -> dict[str, Any]:
        """The options that are set, under the file's names and as JSON, for the resource Cluster.

        Args:
            base: the project's directory, to which paths among the options are relative.
        """
        return {key: value for key, value in self.model_dump(exclude_defaults=True).items() if value is not None}


def option_problems(model: type[Section], options: dict[str, Any]) -> dict[str, str]:
    """What is wrong with a cluster's options, as :meth:`kumulus.runtimes.base.Runtime.problems` gives it."""
    try:
        model.model_validate(options)
    except ValidationError as error:
        return {each.path: f"{each.message}; {each.remedy}" for each in problems_of(error, model)}
    return {}
