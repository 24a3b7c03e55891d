"""A stand-in for what is on the internet: registries of packages (PyPI's, npm's) and images, and a release's files.

It keeps what ordinary clients upload, and hands it to ordinary clients. What it knows nothing of is looked for nowhere
else: clients are told of their usual registries besides.
"""

import base64
import email
import email.policy
import hashlib
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

from tests.support import http_server


@dataclass
class Registries:
    """Where it is, and what it has."""

    url: str
    """Its address."""
    files: dict[str, bytes] = field(default_factory=lambda: {"/v2/": b"{}"})
    """What can be fetched, by path."""
    begun: dict[str, bytes] = field(default_factory=dict)
    """What has arrived of each upload to the registry of images."""
    npm: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The npm registry's packages, as clients ask for them."""
    signed: set[str] = field(default_factory=set)
    """The credentials that uploads came with."""

    @property
    def simple(self) -> str:
        """The package index, for pip and uv."""
        return f"{self.url}/simple/"

    def take_upload(self, kind: str, body: bytes) -> None:
        """An upload to the package index: a form, as Warehouse's legacy API wants it."""
        message = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body, policy=email.policy.HTTP)
        parts = {str(each.get_param("name", header="content-disposition")): each for each in message.iter_parts()}
        name, archive = parts["name"].get_content().strip(), parts["content"]
        content = archive.get_payload(decode=True)
        assert isinstance(content, bytes)
        assert parts["sha256_digest"].get_content().strip() == hashlib.sha256(content).hexdigest()
        self.files[f"/files/{name}/{archive.get_filename()}"] = content

    def take_npm(self, document: dict[str, Any]) -> None:
        """An upload to the npm registry: the package's document with its archive inside."""
        (attached,) = document.pop("_attachments").values()
        (version,) = document["versions"].values()
        path = f"/npm-files/{document['name']}-{version['version']}.tgz"
        self.files[path] = base64.b64decode(attached["data"])
        version["dist"]["tarball"] = self.url + path
        self.npm[document["name"]] = document

    def take_image(self, path: str, digest: str, content: bytes) -> str:
        """The end of an upload to the registry of images: a blob, or a manifest by its tag; returns its digest."""
        place, _, _ = path.partition("/uploads/")
        found = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if path in self.begun:
            assert found == digest
            del self.begun[path]
        else:
            place = place.rpartition("/")[0]
            self.files[path] = content
        self.files[f"{place}/{found}"] = content
        return found

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """What a GET of a path is answered with: its type and text; None if there is no such thing."""
        if "/manifests/" in path and path in self.files:
            return json.loads(self.files[path])["mediaType"], self.files[path]
        if path in self.files:
            return "application/octet-stream", self.files[path]
        if (name := path.removeprefix("/npm/")) in self.npm:
            return "application/json", json.dumps(self.npm[name]).encode()
        if path.startswith("/simple/"):
            folder = f"/files/{path.split('/')[2]}/"
            links = [
                f'<a href="{each}#sha256={hashlib.sha256(content).hexdigest()}">{each.removeprefix(folder)}</a>'
                for each, content in self.files.items()
                if each.startswith(folder)
            ]
            return ("text/html", "\n".join(links).encode()) if links else None
        return None


class _Handler(BaseHTTPRequestHandler):
    there: Registries

    def do_GET(self) -> None:
        found = self.there.answer(unquote(self.path.partition("?")[0]))
        self._send(404 if found is None else 200, *(found or ("text/plain", b"")))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        if self.path.startswith("/v2/"):
            place = f"{self.path.partition('?')[0]}{uuid.uuid4().hex}"
            self.there.begun[place] = b""
            self._send(202, "text/plain", b"", Location=place)
            return
        self.there.take_upload(self.headers["Content-Type"], self._uploaded())
        self._send(200, "text/plain", b"")

    def do_PATCH(self) -> None:
        self.there.begun[self.path] += self._uploaded()
        end = len(self.there.begun[self.path]) - 1
        self._send(202, "text/plain", b"", Location=self.path, Range=f"0-{end}")

    def do_PUT(self) -> None:
        path, _, digest = unquote(self.path).partition("?digest=")
        if not path.startswith("/v2/"):
            self.there.take_npm(json.loads(self._uploaded()))
            self._send(201, "application/json", b"{}")
            return
        found = self.there.take_image(path, digest, self.there.begun.get(path, b"") + self._uploaded())
        self._send(201, "text/plain", b"", **{"Docker-Content-Digest": found})

    def _uploaded(self) -> bytes:
        self.there.signed.add(self.headers.get("Authorization", ""))
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        return b"".join(chunks)

    def _send(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving() -> Iterator[Registries]:
    """The stand-in, while the block lasts."""

    class Handler(_Handler):
        pass

    with http_server.serving(Handler) as address:
        Handler.there = registries = Registries(f"http://{address}")
        yield registries
