"""What can go wrong when talking to an API server, in words for the user; and how long a request is tried again."""

import random
import time
from types import TracebackType
from typing import Any


class ApiError(Exception):
    """The API server answered with a status that is not a success.

    Args:
        reason: the machine-readable reason of the Kubernetes ``Status`` object, such as ``NotFound``.
        retry_after: seconds the server asked to wait (header ``Retry-After``), if it did.
    """

    def __init__(
        self, status: int, reason: str, message: str, verb: str, path: str, retry_after: float | None = None
    ) -> None:
        remedy = "; the credentials may have expired: renew them" if status == 401 else ""
        super().__init__(f"{verb} {path}: {status} {reason}: {message}{remedy}")
        self.status = status
        self.reason = reason
        self.message = message
        self.verb = verb
        self.path = path
        self.retry_after = retry_after

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later: too many requests, or the server's own trouble."""
        return self.status in (429, 500, 502, 503, 504) and not self.quota_exceeded

    @property
    def quota_exceeded(self) -> bool:
        """Whether etcd refused the write because its database reached its quota.

        etcd answers ``mvcc: database space exceeded`` (``ErrNoSpace``) until it is defragmented and disarmed, so
        asking again cannot help.
        """
        return "database space exceeded" in self.message


class tolerating:  # noqa: N801 - it reads as `contextlib.suppress` does
    """A context that ends at an answer with one of some statuses: `with tolerating(404): await client.delete(path)`.

    Args:
        statuses: of HTTP; any other error is raised as it is.
    """

    def __init__(self, *statuses: int) -> None:
        self._statuses = statuses

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return isinstance(error, ApiError) and error.status in self._statuses


class Unreachable(Exception):
    """The API server gave no answer: it refused the connection, cut it, or was silent for too long."""

    def __init__(self, server: str, detail: str) -> None:
        super().__init__(f"the Kubernetes API server at {server} is not reachable: {detail}")
        self.server = server
        self.detail = detail


class KubeconfigError(Exception):
    """A kubeconfig that cannot be used; the message names its file, or what a text is called, and the remedy."""

    def __init__(self, message: str) -> None:
        # Quoted parts of a path or a kubeconfig must not control a terminal.
        super().__init__("".join(each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in message))


class CredentialsError(Unreachable):
    """No credentials for an API server: the command that gives them failed."""

    def __init__(self, server: str, detail: str) -> None:
        super().__init__(server, detail)
        self.args = (f"no credentials for the Kubernetes API server at {server}: {detail}",)


def api_error(status: int, body: Any, verb: str, path: str, retry_after: float | None) -> ApiError:
    """Make an :class:`ApiError` of a response's status and its body (a ``Status`` object, or any text)."""
    if isinstance(body, dict):
        reason = str(body.get("reason") or "")
        message = str(body.get("message") or "")
    else:
        reason, message = "", str(body or "").strip()[:300]
    return ApiError(status, reason or "Error", message or "no message", verb, path, retry_after)


def no_answer(path: str) -> ApiError:
    """The error for an answer that is not from an API server."""
    message = "this is no answer of an API server; is something else between it and us?"
    return ApiError(502, "BadGateway", message, "GET", path)


_LONGEST_PAUSE_S = 5.0
# An API server ends a request itself after that (kube-apiserver --request-timeout).
_SERVER_TIMEOUT_S = 60.0


class RequestAttempts:
    """The attempts of one request: how long each may take, and when there is none any more.

    Args:
        patience: seconds for which the request is tried again.
        request_timeout: seconds after which one attempt is abandoned.

    Attributes:
        within: seconds that the next attempt may take.
    """

    def __init__(self, patience: float, request_timeout: float) -> None:
        self._ends = time.monotonic() + patience
        # A single silent attempt must not take longer than the patience either.
        self.within = min(request_timeout, max(patience, 1.0))
        # A busy server is waited for once, and not by a caller with less patience than one attempt may take.
        self._may_wait = self.within >= request_timeout
        self._pauses = 0

    def pause(self, seconds: float | None = None) -> float | None:
        """Seconds to wait before the next attempt; None when there is no time for one.

        Args:
            seconds: what the server asks for, if it does.
        """
        # A server that asks for no pause at all (0) would be asked thousands of times a second.
        pause = seconds or backoff(self._pauses)
        self._pauses += 1
        return pause if time.monotonic() + pause <= self._ends else None

    def server_is_busy(self) -> None:
        """Allow one more attempt, for as long as a server may work on it: this one was silent, but answered others."""
        if self._may_wait:
            self._may_wait = False
            self.within = _SERVER_TIMEOUT_S
            self._ends = time.monotonic() + _LONGEST_PAUSE_S + self.within


def backoff(attempt: int) -> float:
    """Seconds to wait before the next attempt: exponential from 50 ms, with jitter so that many are not in step.

    Args:
        attempt: the number of the one that failed, from 0.
    """
    ceiling: float = min(_LONGEST_PAUSE_S, 0.05 * 2 ** min(attempt, 10))
    return ceiling * (0.5 + random.random() / 2)
