"""What the runtimes' sections of a stack file have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kumulus.model.fields import Section


class RuntimeSection(Section):
    """The section of a stack file with a runtime's options."""

    def options(self, base: Path = Path()) -> dict[str, Any]:
        """The options that are set, under the file's names and as JSON, for the resource Cluster."""
        return {key: value for key, value in self.model_dump(exclude_defaults=True).items() if value is not None}
