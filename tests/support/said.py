"""What is said: a reporter that records its messages, and the problems that an error lists."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kumulus.model.errors import SpecError


@dataclass
class Said:
    """What a resource reported; ``on_status`` is called with every status."""

    statuses: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    on_status: Callable[[str], object] | None = None

    def status(self, message: str, *, last: bool = False) -> None:
        self.statuses.append(message)
        if self.on_status is not None:
            self.on_status(message)

    def info(self, message: str) -> None:
        self.messages.append(message)

    def warn(self, message: str) -> None:
        self.messages.append(message)


def problems_of(read: Callable[..., object], *arguments: Any, under: str = "", **options: Any) -> dict[str, str]:
    """The problems of what is read: path, without the place ``under`` which all are, to "message; remedy"."""
    try:
        read(*arguments, **options)
    except SpecError as error:
        return {each.path.removeprefix(under): f"{each.message}; {each.remedy}" for each in error.problems}
    return {}
