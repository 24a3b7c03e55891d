"""A local mirror of release files, which answers correctly or with faults as a test asks."""

import hashlib
import io
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.support import http_server


@dataclass
class Answer:
    """The answer for a path."""

    body: bytes = b""
    """The whole file."""
    status: int = 200
    """The body is sent only with 200."""
    location: str = ""
    """Where it redirects to."""
    truncate: list[int] = field(default_factory=list)
    """Number of bytes after which the connection breaks, for each of the first answers."""
    ranges: bool = True
    """Whether range requests are supported."""
    drip: float = 0
    """Seconds to wait after each kilobyte."""
    silent: float = 0
    """Seconds to wait before answering."""
    token: str = ""
    """What a registry wants to be shown; without it, it says where to get that."""


@dataclass
class Mirror:
    """The server: its URL, its files, and the requests it received as (path, Range header); who asked is beside.

    `realm` is where a registry says its tokens are: this server if it is empty.
    """

    url: str
    files: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    realm: str = ""


@contextmanager
def serving() -> Iterator[Mirror]:
    """A mirror while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            mirror.asked.append((self.path, wanted))
            mirror.signed.append(self.headers.get("Authorization", ""))
            answer = mirror.files.get(self.path)
            refusal = _refusal(answer, self.headers.get("Authorization", ""), mirror)
            if refusal or answer is None:
                self._head(*(refusal or (404, {})))
                return
            mirror.gate.wait(answer.silent)
            begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and answer.ranges else 0
            if begin >= len(answer.body) > 0 and begin:
                self._head(416, {"Content-Length": "0"})
                return
            body = answer.body[begin:]
            whole = {"Content-Range": f"bytes {begin}-{len(answer.body) - 1}/{len(answer.body)}"} if begin else {}
            self._head(206 if begin else 200, {"Content-Length": str(len(body)), **whole})
            self._send(body[: answer.truncate.pop(0)] if answer.truncate else body, answer.drip)
            if len(body) and self.wfile.closed:
                return
            # The client notices a truncated answer only when the connection ends.
            self.close_connection = True

        def _head(self, status: int, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _send(self, body: bytes, drip: float) -> None:
            try:
                for start in range(0, len(body), 1024 if drip else max(len(body), 1)):
                    self.wfile.write(body[start : start + 1024] if drip else body)
                    self.wfile.flush()
                    time.sleep(drip)
            except OSError:
                self.close_connection = True

    with http_server.serving(Handler) as address:
        mirror = Mirror(f"http://{address}")
        try:
            yield mirror
        finally:
            mirror.gate.set()


def _refusal(answer: Answer | None, shown: str, mirror: Mirror) -> tuple[int, dict[str, str]] | None:
    """The status and headers of an answer without a body; None for one with it."""
    empty = {"Content-Length": "0"}
    if answer is None or answer.status != 200:
        return (404 if answer is None else answer.status), empty
    if answer.token and shown != f"Bearer {answer.token}":
        challenge = f'Bearer realm="{mirror.realm or mirror.url}/token",service="registry.example"'
        return 401, {"WWW-Authenticate": challenge, **empty}
    return (302, {"Location": answer.location, **empty}) if answer.location else None


def program(version: str, padding: int = 0) -> bytes:
    """A program that prints its version as the sample's tools do, padded by this many bytes."""
    return f"#!/bin/sh\necho tool v{version}\nexit 0\n".encode() + b"#" * padding


def tar(members: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    """A .tar.gz with these files, and links to these targets."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, content in members.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for path, target in (links or {}).items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return packed.getvalue()


def zipped(members: Mapping[str, bytes]) -> bytes:
    """A .zip with these files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, content in members.items():
            archive.writestr(path, content)
    return packed.getvalue()


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
