"""A reporter that records its messages."""

from collections.abc import Callable
from dataclasses import dataclass, field


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
