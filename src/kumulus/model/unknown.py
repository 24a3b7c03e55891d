"""What a preview cannot know yet stands in properties as one value of its own."""

from __future__ import annotations

from typing import Final


class Unknown:
    """A value that a preview cannot know yet; there is one, :data:`UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = Unknown()
