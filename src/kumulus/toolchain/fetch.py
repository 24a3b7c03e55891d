"""Fetch one file over HTTP: broken downloads are resumed, stalled ones abandoned, and its checksum is verified."""

import hashlib
import http.client
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import urlsplit

from kumulus.toolchain import registry, releases
from kumulus.toolchain.errors import ToolchainError

T = TypeVar("T")
Tick = Callable[[int, int | None], None]
"""Called with the number of bytes so far and, if the server says it, the total."""
_CHUNK = 1 << 16
_PARTIAL, _UNAUTHORIZED, _UNSATISFIABLE, _SERVER_ERROR = 206, 401, 416, 500
_LARGEST_DOCUMENT = 4_000_000
# Answers that the user's network may give for every file, not just this one.
_REFUSED = (_UNAUTHORIZED, 403, 407, 429, 451)
# What says the same of a host, if it still answers so after several attempts.
_HOST_OUT = (*_REFUSED, *range(_SERVER_ERROR, 600))


@dataclass(frozen=True)
class Limits:
    """How long to wait for a server, and how much to take from it."""

    connect: float = 3.0
    """Seconds to look up a host and connect to it."""
    stall: float = 20.0
    """Seconds without an answer, or in which fewer than `least` bytes arrive, after which it is given up."""
    least: int = 200_000
    """See `stall`."""
    most: int = 2_000_000_000
    """The maximum size of a file in bytes, larger than any release file."""
    attempts: int = 5
    """How often a file is asked for at most; each attempt goes on where the last one broke off."""
    pause: float = 0.5
    """Seconds before the second attempt, twice that before the third, and so on."""


_LIMITS = Limits()


class NotFetched(Exception):
    """A file cannot be fetched. The message says why.

    Attributes:
        host_out: whether the reason applies to every file of this host.
    """

    def __init__(self, reason: str, *, host_out: bool) -> None:
        super().__init__(reason)
        self.host_out = host_out


class WrongSum(ToolchainError):
    """A file is complete, but not the expected one."""


def reachable(url: str) -> None:
    """Connect to a URL's host, or to the proxy for it, and hang up again.

    Raises:
        NotFetched: there is no answer within the time limit, or the proxy's port is none.
    """
    host, port = _endpoint(url)
    outcome: list[OSError | None] = []

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=_LIMITS.connect).close()
            outcome.append(None)
        except OSError as error:
            outcome.append(error)

    # Looking up a name has no time limit of its own.
    attempt = threading.Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(_LIMITS.connect)
    if not outcome:
        raise NotFetched(f"{host} cannot be reached within {_LIMITS.connect:g} s", host_out=True)
    if outcome[0] is not None:
        raise NotFetched(f"{host} cannot be reached ({_words(outcome[0])})", host_out=True)


def fetch(urls: tuple[str, ...], to: Path, algorithm: str, wanted: str, tick: Tick) -> None:
    """Fetch a file, continuing an earlier attempt; afterwards it exists only if its checksum is right.

    Args:
        urls: http or https; of several on one host, the first that has the file.
        to: where the file goes; while it is being fetched, that name with `.part`.
        algorithm: of the checksum, as hashlib calls it.
        wanted: the checksum, in hexadecimal digits.

    Raises:
        NotFetched: it cannot be fetched; the part that arrived is kept.
        WrongSum: it is not the expected file; nothing of it is kept.
    """
    _first(urls, lambda url: _fetch(url, to, algorithm, wanted, tick))


def arrived(to: Path) -> int:
    """How many bytes of a file an earlier attempt has left, with which :func:`fetch` goes on."""
    return _size(_part(to))


def document(urls: tuple[str, ...], accept: str) -> bytes:
    """Read a small document of these media types, such as an image's manifest; URLs as for :func:`fetch`."""
    return _first(urls, lambda url: _document(url, accept))


def _first(urls: tuple[str, ...], ask: Callable[[str], T]) -> T:
    for url in urls[:-1]:
        try:
            return ask(url)
        except NotFetched as error:
            if error.host_out:
                raise
    return ask(urls[-1])


def _fetch(url: str, to: Path, algorithm: str, wanted: str, tick: Tick) -> None:
    part = _part(to)
    resumed = _size(part) > 0
    is_whole = resumed and _sum(part, algorithm) == wanted
    if not is_whole:
        _complete(url, part, tick)
    found = _sum(part, algorithm)
    if found != wanted and resumed:
        # The part from an earlier attempt may have been wrong.
        part.unlink()
        _complete(url, part, tick)
        found = _sum(part, algorithm)
    if found != wanted:
        part.unlink()
        raise WrongSum(
            f"{to.name} is not the file that pins.toml asks for; nothing of it is kept"
            f"\n  from:   {url}\n  {algorithm} wanted: {wanted}\n  {algorithm} found:  {found}"
            "\n  Ask who runs that server or the network in between; KUMULUS_TOOLS=build builds the tools instead."
        )
    part.replace(to)


def _document(url: str, accept: str) -> bytes:
    reachable(url)
    try:
        with _open(url, {"Accept": accept}) as answer:
            return answer.read(_LARGEST_DOCUMENT)
    except (OSError, http.client.HTTPException) as error:
        raise _not_fetched(error, _REFUSED) from None


def _not_fetched(error: Exception, of_every_file: Container[int]) -> NotFetched:
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return NotFetched(f"HTTP {error.code} {error.reason}", host_out=error.code in of_every_file)
    return NotFetched(_words(_reason(error)), host_out=True)


def _reason(error: Exception) -> object:
    """What urllib has wrapped; an `ssl.SSLError`, too, has a `reason`, which says less than the error."""
    return error.reason if isinstance(error, urllib.error.URLError) else error


def _complete(url: str, part: Path, tick: Tick) -> None:
    for attempt in range(1, _LIMITS.attempts + 1):
        try:
            _append(url, part, tick)
            return
        except urllib.error.HTTPError as error:
            too_long = error.code == _UNSATISFIABLE and _size(part) > 0
            if attempt == _LIMITS.attempts or (error.code < _SERVER_ERROR and not too_long):
                raise _not_fetched(error, _HOST_OUT) from None
            if too_long:
                part.unlink()
            error.close()
        except (OSError, http.client.HTTPException) as error:
            # A server that was silent for so long will be silent next time, too.
            if isinstance(_reason(error), (TimeoutError, ssl.SSLError)) or attempt == _LIMITS.attempts:
                raise _not_fetched(error, _HOST_OUT) from None
        time.sleep(_LIMITS.pause * attempt)


def _append(url: str, part: Path, tick: Tick) -> None:
    have = _size(part)
    with _open(url, {"Range": f"bytes={have}-"} if have else {}) as answer:
        if answer.status != _PARTIAL or not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            have = 0
        length = answer.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else None
        with part.open("ab" if have else "wb") as file:
            size = _copy(answer, file, have, total, tick)
    if total is not None and size < total:
        raise http.client.HTTPException(f"the answer ended after {size:,} of {total:,} bytes")


def _open(url: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
    """Ask for a URL; if an image's registry wants a token for it, ask again with that."""
    try:
        return _ask(url, headers)
    except urllib.error.HTTPError as error:
        # A redirect's own refusal is not the registry's.
        is_registrys = error.code == _UNAUTHORIZED and error.url == url
        if not is_registrys or not _gets_token(url, error):
            raise
    return _ask(url, headers)


def _gets_token(url: str, refusal: urllib.error.HTTPError) -> bool:
    """Get the token that an image's registry asks for; False if it asks for none."""
    try:
        address = registry.token_address(url, refusal.headers.get("WWW-Authenticate", ""))
        if not address:
            return False
        refusal.close()
        with _ask(address, {}) as answer:
            registry.keep_token(url, answer.read(_LARGEST_DOCUMENT))
    except ToolchainError as reason:
        raise NotFetched(str(reason), host_out=True) from None
    return True


def _ask(url: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
    headers = {"User-Agent": "kumulus", "Accept-Encoding": "identity", **headers}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the opener has handlers for http and https only
    answer: http.client.HTTPResponse = _opener().open(_signed(request), timeout=_LIMITS.stall)
    return answer


def _copy(answer: http.client.HTTPResponse, file: IO[bytes], have: int, total: int | None, tick: Tick) -> int:
    """Append an answer to the part of a file that is there, and return the size that it has then."""
    size = size_then = have
    since = time.monotonic()
    while chunk := answer.read1(_CHUNK):
        file.write(chunk)
        size += len(chunk)
        tick(size, total)
        if size > _LIMITS.most:
            raise NotFetched(f"it has more than {_LIMITS.most:,} bytes", host_out=False)
        if time.monotonic() - since > _LIMITS.stall:
            if size - size_then < _LIMITS.least:
                raise TimeoutError(f"only {size - size_then:,} bytes came in {_LIMITS.stall:g} s")
            size_then, since = size, time.monotonic()
    return size


def _signed(request: urllib.request.Request) -> urllib.request.Request:
    if header := registry.authorization(request.full_url) or releases.authorization(request.full_url):
        # Not one of the headers that a redirect would take to another host.
        request.add_unredirected_header("Authorization", header)
    return request


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https, and to http only from http on the same host, as with a mirror."""

    max_redirections = 5

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if new.scheme == "https" or (new.scheme == old.scheme == "http" and new.netloc == old.netloc):
            found = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
            return _signed(found) if found else None
        raise NotFetched(f"it is redirected to {newurl}, which is not https", host_out=False)


def _opener() -> urllib.request.OpenerDirector:
    # Not urllib's default opener: when redirected, that reads local files and FTP, too.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def _endpoint(url: str) -> tuple[str, int]:
    """The host and port to connect to for a URL: the proxy's, if there is one for it."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.netloc):
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    host = parts.hostname or ""
    try:
        return host, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        # The proxy's: KUMULUS_MIRROR has been checked.
        raise NotFetched(f"the port of {host} is no number up to 65535", host_out=True) from None


def _part(to: Path) -> Path:
    return to.with_name(f"{to.name}.part")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _sum(file: Path, algorithm: str) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, algorithm).hexdigest()


def _words(error: object) -> str:
    """An error as the end of a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
