"""How long one request is tried, and the pauses between its attempts."""

import random
import time

_LONGEST_PAUSE = 5.0
# Seconds after which an API server ends a request itself (kube-apiserver --request-timeout).
_ITS_OWN_TIMEOUT_S = 60.0


class RequestAttempts:
    """The attempts of one request.

    Args:
        patience: seconds for which it is tried again.
        request_timeout: seconds after which one attempt is abandoned.

    Attributes:
        within: seconds that the next attempt may take.
    """

    def __init__(self, patience: float, request_timeout: float) -> None:
        self._ends = time.monotonic() + patience
        # A single silent attempt must not take longer than the patience either.
        self.within = min(request_timeout, max(patience, 1.0))
        self._may_be_busy = self.within >= request_timeout
        self._made = 0

    def pause(self, seconds: float | None = None) -> float | None:
        """Seconds to wait before the next attempt; None when there is no time for one.

        Args:
            seconds: as the server asked.
        """
        # A server that asks for no pause at all would be asked thousands of times a second.
        pause = seconds or backoff(self._made)
        self._made += 1
        return pause if time.monotonic() + pause <= self._ends else None

    def busy(self) -> None:
        """Wait once more, for as long as a server may work on a request, as it has answered others in the meantime."""
        if self._may_be_busy:
            self._may_be_busy, self.within = False, _ITS_OWN_TIMEOUT_S
            self._ends = time.monotonic() + _LONGEST_PAUSE + self.within


def backoff(attempt: int) -> float:
    """Seconds to wait before the next attempt: exponential from 50 ms, with jitter so that many are not in step."""
    ceiling: float = min(_LONGEST_PAUSE, 0.05 * 2 ** min(attempt, 10))
    return ceiling * (0.5 + random.random() / 2)
