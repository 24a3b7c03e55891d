"""What a federation of clusters is called and waits for, by default."""

from typing import Final

NAMESPACE = "kueue-system"
"""Where Kueue keeps what is its own."""
LOST_AFTER = "15m"
"""After how long a worker that does not answer is lost, unless a file says otherwise."""
ALL_AT_ONCE: Final = "allAtOnce"
"""The dispatcher that offers a Job to all workers at once."""
