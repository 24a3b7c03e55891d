"""A small Helm chart, as a directory, packed, and in a repository on this machine."""

from __future__ import annotations

import hashlib
import http.server
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

NAME = "sample"

_CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-words, namespace: {{ .Release.Namespace }}}
data:
  version: {{ .Chart.Version | quote }}
  greeting: {{ .Values.greeting | quote }}
  deep: {{ .Values.deep.word | quote }}
"""
_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: main, image: none, ports: [{containerPort: 80}]}]}
"""
_SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
"""
_FILES = {
    "values.yaml": "replicas: 1\ngreeting: none\ndeep: {word: none, other: kept}\n",
    "templates/words.yaml": _CONFIG_MAP,
    "templates/deployment.yaml": _DEPLOYMENT,
    "templates/service.yaml": _SERVICE,
}


def write_chart(directory: Path, version: str) -> Path:
    """Write the chart as a directory of that path."""
    (directory / "templates").mkdir(parents=True)
    (directory / "Chart.yaml").write_text(yaml.safe_dump(_about(version)))
    for name, text in _FILES.items():
        (directory / name).write_text(text)
    return directory


def pack_chart(folder: Path, version: str) -> Path:
    """Write the chart as ``sample-<version>.tgz`` into a folder."""
    source = write_chart(folder / f".{version}" / NAME, version)
    archive = folder / f"{NAME}-{version}.tgz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(source, NAME)
    return archive


@contextmanager
def repository(folder: Path, *versions: str) -> Iterator[str]:
    """Serve the chart in some versions as a chart repository of 127.0.0.1; its URL.

    Args:
        folder: an empty folder for its files.
        versions: the chart's versions.
    """
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    url = f"http://127.0.0.1:{server.server_port}"
    entries = []
    for version in versions:
        archive = pack_chart(folder, version)
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        entries.append({**_about(version), "urls": [f"{url}/{archive.name}"], "digest": digest})
    index = {"apiVersion": "v1", "entries": {NAME: entries}, "generated": "2026-01-01T00:00:00Z"}
    (folder / "index.yaml").write_text(yaml.safe_dump(index))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        return


def _about(version: str) -> dict[str, str]:
    return {"apiVersion": "v2", "name": NAME, "version": version, "description": "A chart for tests"}
