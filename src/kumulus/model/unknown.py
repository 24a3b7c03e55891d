"""The placeholder in properties for values that a preview cannot know yet."""

from typing import Final


class Unknown:
    """A value that a preview cannot know yet; its only instance is :data:`UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = Unknown()
