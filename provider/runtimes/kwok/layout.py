"""Where the kwok runtime keeps a cluster's files, and the note that says whose it is.

kwokctl lays a cluster out below ``$KWOK_WORKDIR/clusters/<name>``; beside its files stands ours, ``kumulus.json``:
the owner and a fingerprint of the settings that can be changed in place (the spec beside the thing).
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_REMOVAL = "removal"


@dataclass(frozen=True)
class Layout:
    """Paths of one cluster.

    Args:
        directory: ``<home>/clusters/<name>``.
    """

    directory: Path

    @classmethod
    def of(cls, home: str, name: str) -> Layout:
        """Return the layout of the cluster of that name below a home directory."""
        return cls(Path(home) / "clusters" / name)

    @property
    def name(self) -> str:
        """The cluster's name, as kwokctl knows it."""
        return self.directory.name

    @property
    def home(self) -> Path:
        """The ``KWOK_WORKDIR`` of the cluster."""
        return self.directory.parent.parent

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig file; it refers to keys beside it."""
        return self.directory / "kubeconfig.yaml"

    @property
    def kwok_file(self) -> Path:
        """Kwokctl's and kwok-controller's configuration."""
        return self.directory / "kwok.yaml"

    @property
    def note_file(self) -> Path:
        """Our own note."""
        return self.directory / "kumulus.json"

    def note(self) -> dict[str, str]:
        """Return our note, or {} when there is none that can be read."""
        try:
            content = json.loads(self.note_file.read_text())
        except (OSError, ValueError):
            return {}
        return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}

    def write_note(self, note: dict[str, str]) -> None:
        """Write our note, whole or not at all."""
        _replace(self.note_file, json.dumps(note, indent=2) + "\n")

    def mark_removed(self) -> None:
        """Note that the removal has begun: who is killed in the middle of it leaves no cluster that seems whole."""
        if self.directory.exists():
            with suppress(OSError):  # A full disk must not keep anybody from removing things.
                self.write_note({**self.note(), _REMOVAL: "begun"})

    def removed(self) -> bool:
        """Whether a removal was begun, or nothing of the cluster is left."""
        return not self.kwok_file.exists() or not self.note_file.exists() or _REMOVAL in self.note()

    def documents(self) -> list[dict[str, Any]]:
        """Return the documents of ``kwok.yaml``; [] when there is none that can be read."""
        try:
            loaded = list(yaml.load_all(self.kwok_file.read_text(), Loader=_LOADER))
        except (OSError, yaml.YAMLError):
            return []
        return [document for document in loaded if isinstance(document, dict)]

    def write_documents(self, documents: list[dict[str, Any]]) -> None:
        """Write ``kwok.yaml``, whole or not at all."""
        _replace(self.kwok_file, dump(documents))

    def settings(self) -> dict[str, Any]:
        """Return the ``KwokctlConfiguration`` that kwokctl saved, or {}."""
        for document in self.documents():
            if document.get("kind") == "KwokctlConfiguration":
                return document
        return {}

    def components(self) -> list[str]:
        """Names of the components the cluster is made of, in kwokctl's order; [] when it was never set up."""
        return [str(component.get("name")) for component in self.settings().get("components") or []]

    def ports(self) -> dict[str, int]:
        """Ports the components listen on, by component; {} when the cluster was never set up."""
        settings = self.settings()
        options = settings.get("options") or {}
        keys = {
            "etcd": "etcdPort",
            "etcd (peer)": "etcdPeerPort",
            "kube-apiserver": "kubeApiserverPort",
            "kube-controller-manager": "kubeControllerManagerPort",
            "kube-scheduler": "kubeSchedulerPort",
            "kwok-controller": "kwokControllerPort",
            "metrics-server": "metricsServerPort",
        }
        found = {component: int(options[key]) for component, key in keys.items() if options.get(key)}
        others = [each for each in settings.get("components") or [] if each.get("name") not in keys]
        return {**found, **_ports_of(others)}

    def taken_ports(self) -> set[int]:
        """Ports that this and other clusters beside it have, or will want back."""
        return {port for other in self.directory.parent.glob("*") for port in Layout(other).ports().values()}

    def log_tail(self, component: str, lines: int = 6) -> str:
        """Return the last lines of a component's log, cut to a readable width, or ""."""
        try:
            with (self.directory / "logs" / f"{component}.log").open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - 16_384))
                tail = log.read().decode(errors="replace").splitlines()[-lines:]
        except OSError:
            return ""
        return "\n".join(f"    {line[:300]}" for line in tail)


def _ports_of(components: list[dict[str, Any]]) -> dict[str, int]:
    """Ports of components that kwokctl has no option for: ``<component>``, or ``<component> (<port's name>)``."""
    return {
        name if port.get("name") == "http" else f"{name} ({port.get('name')})": int(port["port"])
        for name, ports in ((str(each.get("name")), each.get("ports") or []) for each in components)
        for port in ports
        if port.get("port")
    }


def dump(documents: list[dict[str, Any]]) -> str:
    """Write YAML documents."""
    return yaml.dump_all(documents, Dumper=_DUMPER, sort_keys=False)


def _replace(file: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    temporary = file.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(file)
