"""A small Helm chart, as a directory, packed, and in a repository on this machine."""

import hashlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import yaml

from tests.support import http_server, kinds

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
_HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  namespace: {{ .Release.Namespace }}
  annotations: {helm.sh/hook: "post-install,post-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
spec:
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: SECONDSs}}
    spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
"""
_FILES = {
    "values.yaml": "replicas: 1\ngreeting: none\ndeep: {word: none, other: kept}\n",
    "templates/words.yaml": _CONFIG_MAP,
    "templates/deployment.yaml": _DEPLOYMENT,
    "templates/service.yaml": _SERVICE,
}


def write_chart(directory: Path, version: str, files: Mapping[str, str] | None = None) -> Path:
    """Write the chart as a directory at that path, with further files by their paths in it."""
    directory.mkdir(parents=True)
    (directory / "Chart.yaml").write_text(yaml.safe_dump(_about(version)))
    for name, text in {**_FILES, **(files or {})}.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def hook(seconds: int) -> dict[str, str]:
    """A further file: a Job that runs so long, which installing and upgrading the chart wait for."""
    return {"templates/hook.yaml": _HOOK.replace("SECONDS", str(seconds))}


def crd(*fields: str) -> dict[str, str]:
    """A further file: the CRD of widgets, with these string fields in their spec."""
    return {"crds/widgets.yaml": yaml.safe_dump(kinds.crd("widgets.kumulus.test", *fields, scope="Namespaced"))}


def schema() -> dict[str, str]:
    """A further file: the schema of the chart's values."""
    properties = {"replicas": {"type": "integer"}, "greeting": {"type": "string", "pattern": "^[a-z0-9 ]+$"}}
    return {"values.schema.json": json.dumps({"type": "object", "properties": properties})}


def pack_chart(folder: Path, version: str, files: Mapping[str, str] | None = None) -> Path:
    """Write the chart as ``sample-<version>.tgz`` into a folder; further files as in :func:`write_chart`."""
    source = write_chart(folder / f".{version}" / NAME, version, files)
    archive = folder / f"{NAME}-{version}.tgz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(source, NAME)
    return archive


@contextmanager
def repository(folder: Path, versions: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Serve some versions of the chart as a chart repository on 127.0.0.1; yields its URL.

    Args:
        folder: an empty folder for its files.
        versions: the chart's versions, each with its further files.
    """
    with http_server.serving(SimpleHTTPRequestHandler, directory=str(folder)) as address:
        entries = []
        for version, files in versions.items():
            archive = pack_chart(folder, version, files)
            digest = hashlib.sha256(archive.read_bytes()).hexdigest()
            entries.append({**_about(version), "urls": [f"http://{address}/{archive.name}"], "digest": digest})
        index = {"apiVersion": "v1", "entries": {NAME: entries}, "generated": "2026-01-01T00:00:00Z"}
        (folder / "index.yaml").write_text(yaml.safe_dump(index))
        yield f"http://{address}"


def _about(version: str) -> dict[str, str]:
    return {"apiVersion": "v2", "name": NAME, "version": version, "description": "A chart for tests"}
