"""A stand-in for what is on the internet: a package index (PyPI's protocols), an npm registry, and a release's files.

It keeps what ordinary clients upload, and hands it to ordinary clients. What it knows nothing of is looked for nowhere
else: clients are told of their usual registries besides.
"""

from __future__ import annotations

import base64
import email
import email.policy
import hashlib
import json
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
    files: dict[str, bytes] = field(default_factory=dict)
    """What can be fetched, by path."""
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

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """What a GET of a path is answered with: its type and text; None if there is no such thing."""
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


@contextmanager
def serving() -> Iterator[Registries]:
    """The stand-in, while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = registries.answer(unquote(self.path.partition("?")[0]))
            self._send(404 if found is None else 200, *(found or ("text/plain", b"")))

        def do_POST(self) -> None:
            registries.take_upload(self.headers["Content-Type"], self._uploaded())
            self._send(200, "text/plain", b"")

        def do_PUT(self) -> None:
            registries.take_npm(json.loads(self._uploaded()))
            self._send(201, "application/json", b"{}")

        def _uploaded(self) -> bytes:
            registries.signed.add(self.headers.get("Authorization", ""))
            return self.rfile.read(int(self.headers["Content-Length"]))

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http_server.serving(Handler) as address:
        registries = Registries(f"http://{address}")
        yield registries
