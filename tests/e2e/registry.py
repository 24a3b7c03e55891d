"""A registry of charts on this machine: OCI's distribution protocol as far as pulling needs it, with a password."""

import base64
import hashlib
import json
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from tests.support import charts, http_server

USER, PASSWORD = "reader", "open sesame"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.cncf.helm.config.v1+json"
_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


@dataclass(frozen=True)
class Registry:
    """Where it is."""

    chart: str
    """Reference of the chart in it."""
    certificate: Path
    """Of itself, which is also its authority's."""

    def login(self, folder: Path) -> dict[str, str]:
        """The variables by which Helm and Go trust it and know its password, as after `helm registry login`."""
        config = folder / "registry" / "config.json"
        config.parent.mkdir()
        credentials = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        config.write_text(json.dumps({"auths": {urlsplit(self.chart).netloc: {"auth": credentials}}}))
        return {"HELM_CONFIG_HOME": str(folder), "SSL_CERT_FILE": str(self.certificate)}


@contextmanager
def registry(folder: Path, versions: Mapping[str, Mapping[str, str]]) -> Iterator[Registry]:
    """Serve the chart in some versions.

    Args:
        folder: an empty folder for its files.
        versions: the chart's versions, each with its further files.
    """
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    name = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    blobs: dict[str, bytes] = {}
    tags = {version: _image(blobs, charts.pack_chart(folder, version, files)) for version, files in versions.items()}
    handler = type("Handler", (_Handler,), {"blobs": blobs, "tags": tags})
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with http_server.serving(handler, tls) as address:
        yield Registry(f"oci://{address}/charts/{charts.NAME}", certificate)


def _image(blobs: dict[str, bytes], archive: Path) -> str:
    """Put a chart into the blobs; the digest of its manifest."""

    def described(media: str, content: bytes) -> dict[str, object]:
        return {"mediaType": media, "digest": _put(blobs, content), "size": len(content)}

    about = {"apiVersion": "v2", "name": charts.NAME, "version": archive.stem.removeprefix(f"{charts.NAME}-")}
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": described(_CONFIG, json.dumps(about).encode()),
        "layers": [described(_LAYER, archive.read_bytes())],
    }
    return _put(blobs, json.dumps(manifest).encode())


def _put(blobs: dict[str, bytes], content: bytes) -> str:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    blobs[digest] = content
    return digest


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    blobs: Mapping[str, bytes]
    tags: Mapping[str, str]

    def do_GET(self) -> None:
        wanted = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {wanted}":
            self._answer(401, b"{}", "application/json", ("WWW-Authenticate", 'Basic realm="charts"'))
            return
        what = self.path.removeprefix(f"/v2/charts/{charts.NAME}/")
        if self.path == "/v2/":
            self._answer(200, b"{}", "application/json")
        elif what == "tags/list":
            body = json.dumps({"name": f"charts/{charts.NAME}", "tags": sorted(self.tags)}).encode()
            self._answer(200, body, "application/json")
        else:
            kind, _, name = what.partition("/")
            digest = self.tags.get(name, name)
            content = self.blobs.get(digest)
            media = _MANIFEST if kind == "manifests" else "application/octet-stream"
            if content is None:
                self._answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}', "application/json")
            else:
                self._answer(200, content, media, ("Docker-Content-Digest", digest))

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, body: bytes, media: str, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", media), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
