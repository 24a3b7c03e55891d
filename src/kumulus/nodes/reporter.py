"""Where long operations report how far they are; the provider passes it on to Pulumi's engine."""

from typing import Protocol


class Reporter(Protocol):
    """Where a resource's progress and messages go."""

    def status(self, message: str, *, last: bool = False) -> None:
        """Show a transient status, such as ``nodes 1,250/2,550 · 910/s``.

        When they come too fast some are dropped, but never the ``last``.
        """

    def info(self, message: str) -> None:
        """Show a message that stays."""

    def warn(self, message: str) -> None:
        """Show a warning that stays."""


class Silent:
    """A reporter that discards everything."""

    def status(self, message: str, *, last: bool = False) -> None:
        """See :meth:`Reporter.status`."""

    def info(self, message: str) -> None:
        """See :meth:`Reporter.info`."""

    def warn(self, message: str) -> None:
        """See :meth:`Reporter.warn`."""
