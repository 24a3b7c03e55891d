"""What a resource raises when it cannot do what was asked. Messages are for the user: one line first."""

from typing import Any


class ProviderError(Exception):
    """The operation failed and left nothing to record. The message says what is wrong, where, and what to do.

    Whatever works on a cluster for a resource may raise it; docstrings name it only where there is more to say.
    """


class InvalidInputs(Exception):
    """A component's inputs are wrong.

    Args:
        message: one line.
        problems: each place in the inputs, as Pulumi writes it, and what is wrong there and what to write instead.
    """

    def __init__(self, message: str, problems: list[tuple[str, str]]) -> None:
        super().__init__(message)
        self.problems = problems


class PartialFailure(Exception):
    """The operation got part of the way: the stack's state records what exists, and the next ``up`` continues.

    Args:
        message: what is left to do, and why.
        resource_id, outputs: the resource as the state records it.
        reasons: further messages.
    """

    def __init__(
        self, message: str, resource_id: str, outputs: dict[str, Any], reasons: list[str] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.resource_id = resource_id
        self.outputs = outputs
        self.reasons = [message, *(reasons or [])]
