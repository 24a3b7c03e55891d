"""Reading a text by path or http(s) URL, with errors that a user can act on."""

import http.client
import queue
import stat
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit, urlunsplit

from kumulus.kube.safe_yaml import MOST_BYTES
from kumulus.model.errors import Problem, SpecError, shown, shown_path
from kumulus.model.names import suggest

TIMEOUT_S = 2.0
"""The limit for the whole download: name resolution, every redirect, and the last byte."""
_REMEDY = "check the address and the network, or write the path of a copy"


def read_text(location: str, base: Path, setting: str, source: str = "", most: int = MOST_BYTES) -> tuple[str, str]:
    """The text at a location.

    Args:
        location: a file's path, relative to `base` or absolute, or an http(s) URL.
        base: the directory that relative paths start from.
        setting: the place in a file that has the location, for errors.
        source: that file, for errors.
        most: the most bytes of a file; a download may have 4 MiB.

    Returns:
        what to call the location in messages, without credentials, and its text.
    """
    try:
        if "://" in location:
            return _public(location), _decoded(_fetch(location), shown(_public(location)))
        return location, _decoded(_read(location, base, most), shown(location), most)
    except _Unreadable as reason:
        raise SpecError([Problem(setting, *reason.args)], source) from None


def large_file(location: str, base: Path, setting: str, source: str, most: int) -> Path | None:
    """The file at a location, if it is larger than a text that is read at once may be (4 MiB); otherwise None.

    None also for a URL and for a file that cannot be read: :func:`read_text` reports what is wrong with these.

    Args:
        most: the most bytes that it may have.
    """
    if "://" in location:
        return None
    try:
        file = base / Path(location).expanduser()
        status = file.stat()
    except (OSError, ValueError, RuntimeError):
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size <= MOST_BYTES:
        return None
    if status.st_size > most:
        message = f"is larger than {most >> 20} MiB"
        raise SpecError([Problem(setting, message, "write the path of a part of it")], source)
    return file


class _Unreadable(Exception):
    """Its arguments are a problem's message and remedy."""


def _public(url: str) -> str:
    """A URL without the credentials that it may have."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _fetch(url: str) -> bytes:
    name = shown(_public(url))
    if not url.lower().startswith(("http://", "https://")):
        raise _Unreadable(f"{name} is neither http nor https", "write a path, or a URL that starts with https://")
    answers: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
    # In a thread, because no socket timeout stops a server that sends a byte now and then. The thread ends by itself,
    # at the latest with the program.
    threading.Thread(target=_download_into, args=(answers, url, name), daemon=True).start()
    try:
        answer = answers.get(timeout=TIMEOUT_S)
    except queue.Empty:
        answer = TimeoutError()
    if isinstance(answer, TimeoutError):
        raise _Unreadable(f"{name} does not answer completely within {TIMEOUT_S:g} s", _REMEDY)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _download_into(answers: queue.SimpleQueue[bytes | Exception], url: str, name: str) -> None:
    try:
        answers.put(_download(url, name))
    except Exception as reason:  # raised again where the answer is waited for
        answers.put(reason)


class _WebOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirects only to http and https; urllib's own handler also follows those to ftp."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not newurl.lower().startswith(("http://", "https://")):
            raise urllib.error.URLError(f"it redirects to {shown(_public(newurl))}, neither http nor https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _download(url: str, name: str) -> bytes:
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "kumulus"})  # noqa: S310 - checked by the caller
        with urllib.request.build_opener(_WebOnly).open(request, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read(MOST_BYTES + 1)
            status: int = answer.status
    except urllib.error.HTTPError as reason:
        if "infinite loop" in str(reason.reason):
            raise _Unreadable(f"{name} redirects again and again", _REMEDY) from None
        raise _Unreadable(f"{name} answers {reason.code} {_one_line(reason.reason)}", _REMEDY) from None
    except TimeoutError:
        raise
    except urllib.error.URLError as reason:
        if isinstance(reason.reason, TimeoutError):
            raise reason.reason from None
        raise _Unreadable(f"{name} cannot be reached: {_one_line(reason.reason)}", _REMEDY) from None
    except (OSError, http.client.HTTPException, ValueError) as reason:
        raise _Unreadable(f"{name} cannot be read: {_one_line(reason)}", _REMEDY) from None
    if status != http.client.OK:
        raise _Unreadable(f"{name} answers {status}", _REMEDY)
    return body


def _read(location: str, base: Path, most: int) -> bytes:
    path = base / location
    try:
        path = base / Path(location).expanduser()
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            # Reading a pipe would block, and a device has no end.
            raise _Unreadable(f"{shown_path(path)} is not a regular file", "write the path of a file")
        with path.open("rb") as file:
            return file.read(most + 1)
    except FileNotFoundError:
        raise _Unreadable(f"there is no file {shown_path(path)}", other_path(path)) from None
    except IsADirectoryError:
        raise _Unreadable(f"{shown_path(path)} is a directory", "write the path of a file in it") from None
    except (OSError, ValueError, RuntimeError) as reason:
        remedy = "write the path of a file that can be read"
        raise _Unreadable(f"{shown(location)} cannot be read: {_one_line(reason)}", remedy) from None


def other_path(path: Path, is_one: Callable[[Path], bool] = Path.is_file) -> str:
    """What to write instead of a path that is not there: a similar one next to it.

    Args:
        is_one: whether a path is what is looked for.
    """
    try:
        near = suggest(path.name, [each.name for each in path.parent.iterdir() if is_one(each)], 0.8)
    except OSError:
        near = None
    return f"write {path.parent / near}" if near else "write the path of one that is there"


def _decoded(body: bytes, name: str, most: int = MOST_BYTES) -> str:
    if len(body) > most:
        raise _Unreadable(f"{name} is larger than {most >> 20} MiB", "write the place of a smaller file")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        remedy = "write the place of a text file, not of a packed one"
        raise _Unreadable(f"{name} is not a text in UTF-8", remedy) from None


def _one_line(reason: object) -> str:
    text = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
    return " ".join(str(text).split()) or type(reason).__name__
