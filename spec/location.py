"""Reading a text by path or http(s) URL, with errors a user can act on."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from spec.errors import Problem, SpecError, shown, shown_path
from spec.names import suggest

TIMEOUT_SECONDS = 10.0
MOST_BYTES = 4 * 1024 * 1024


def read_text(location: str, base: Path, path: str, source: str = "") -> tuple[str, str]:
    """The text at a location.

    Args:
        location: a file's path, relative to `base` or absolute, or an http(s) URL.
        base: the directory that relative paths start from.
        path: the setting that holds the location, for errors.
        source: the file that holds the setting, for errors.

    Returns:
        How to call the location in messages, without credentials, and its text.

    Raises:
        SpecError: it cannot be reached or read within ten seconds, is larger than 4 MiB, or is not UTF-8.
    """
    try:
        if "://" in location:
            return _public(location), _decoded(_fetch(location))
        return location, _decoded(_read(location, base))
    except _Unreadable as reason:
        raise SpecError([Problem(path, *reason.told)], source) from None


class _Unreadable(Exception):
    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.told = (message, remedy)


def _public(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _fetch(url: str) -> bytes:
    name = shown(_public(url))
    if not url.lower().startswith(("http://", "https://")):
        raise _Unreadable(f"{name} is neither http nor https", "write a path, or a URL that starts with https://")
    remedy = "check the address and the network, or write the path of a copy"
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "kumulus"})  # noqa: S310 - checked above
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - likewise
            body: bytes = answer.read(MOST_BYTES + 1)
            status: int = answer.status
    except urllib.error.HTTPError as reason:
        raise _Unreadable(f"{name} answers {reason.code} {reason.reason}", remedy) from None
    except TimeoutError:
        raise _Unreadable(f"{name} does not answer within {TIMEOUT_SECONDS:.0f} s", remedy) from None
    except urllib.error.URLError as reason:
        if isinstance(reason.reason, TimeoutError):
            raise _Unreadable(f"{name} does not answer within {TIMEOUT_SECONDS:.0f} s", remedy) from None
        raise _Unreadable(f"{name} cannot be reached: {_one_line(reason.reason)}", remedy) from None
    except (OSError, http.client.HTTPException, ValueError) as reason:
        raise _Unreadable(f"{name} cannot be read: {_one_line(reason)}", remedy) from None
    if status != http.client.OK:
        raise _Unreadable(f"{name} answers {status}", remedy)
    return body


def _read(location: str, base: Path) -> bytes:
    path = base / location
    try:
        path = base / Path(location).expanduser()
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise _Unreadable(f"there is no file {shown_path(path)}", _other_file(path)) from None
    except IsADirectoryError:
        raise _Unreadable(f"{shown_path(path)} is a directory", "write the path of a file in it") from None
    except (OSError, ValueError, RuntimeError) as reason:
        remedy = "write the path of a file that can be read"
        raise _Unreadable(f"{shown(location)} cannot be read: {_one_line(reason)}", remedy) from None


def _other_file(path: Path) -> str:
    try:
        near = suggest(path.name, [each.name for each in path.parent.iterdir() if each.is_file()], 0.8)
    except OSError:
        near = None
    return f"write {path.parent / near}" if near else "write a path from the project's directory"


def _decoded(body: bytes) -> str:
    if len(body) > MOST_BYTES:
        raise _Unreadable("is larger than 4 MiB", "write the address of a cluster configuration")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _Unreadable("is not a text in UTF-8", "write the address of a cluster configuration") from None


def _one_line(reason: object) -> str:
    said = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
    return " ".join(str(said).split()) or type(reason).__name__
