"""What can go wrong with journals; each message is for the user. Whatever works with journals may raise these."""

from kumulus.nodes.runs import RunError


class JournalError(RunError):
    """A run cannot begin or continue, or the changes of an earlier one cannot be restored."""


class Busy(JournalError):
    """Another run is under way on the cluster; the message says which, and what to do."""


class Unfinished(JournalError):
    """A run that is gone has left the cluster half changed; the message says which command finishes that."""


class NotPutBack(JournalError):
    """Something that a run has changed is not restored; the message says what, and where to look."""


class NotWritten(JournalError):
    """A journal cannot be written, so that nothing may be changed; the message says which, and what to do."""
