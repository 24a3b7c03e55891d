"""What goes wrong with a cluster for tests; whatever is asked of one may raise ClusterError."""


class ClusterError(Exception):
    """A cluster could not be made, changed or reset; the message's first line says what is wrong, and the remedy."""


class NotInTime(ClusterError, TimeoutError):
    """What was waited for did not come about; the message has the cluster's last events."""


class ProgramEnded(ClusterError):
    """A program that was to run alongside a test ended by itself with an error; the message has its last lines."""


NOT_UP = "the cluster is not up; use it in a `with` block, or call start() first"
