"""Where the kwok runtime keeps a cluster's files, and the note that names its owner.

kwokctl writes a cluster's files to ``$KWOK_WORKDIR/clusters/<name>``. Our note next to them, ``kumulus.json``, has the
owner and a fingerprint of the settings that can be changed in place.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import yaml

from kumulus.host import extras, files
from kumulus.host.files import last_lines
from kumulus.kube.safe_yaml import FAST_LOADER, Dumper, check_limits
from kumulus.runtimes.place import Place, unfinished


@dataclass(frozen=True)
class Layout(Place):
    """Paths of one cluster; its kubeconfig refers to keys next to it, and its home is its ``KWOK_WORKDIR``."""

    POD_LOG: ClassVar[str] = "emulated-pod.log"
    FILES: ClassVar[frozenset[str]] = Place.FILES | {
        *("kwok.yaml", "kwok-kept.yaml", "kubeconfig-kept.yaml", "create.yaml", POD_LOG),
        *("bin", "cache", "etcd", "logs", "pids", "pki"),
        *(folder for extra in extras.every() for folder in extra.folders),
    }
    OURS_WITHOUT_NOTE: ClassVar[frozenset[str]] = frozenset({unfinished("kumulus.json"), "create.yaml"})

    @property
    def kwok_file(self) -> Path:
        """Kwokctl's and kwok-controller's configuration."""
        return self.directory / "kwok.yaml"

    @property
    def kept_file(self) -> Path:
        """Our copy of ``kwok.yaml``, see :mod:`.kept`."""
        return self.directory / "kwok-kept.yaml"

    @property
    def kept_kubeconfig(self) -> Path:
        """Our copy of the kubeconfig, see :mod:`.kept`."""
        return self.directory / "kubeconfig-kept.yaml"

    def of_copy(self) -> Layout:
        """The same cluster, read from the copies of ``kwok.yaml`` and the kubeconfig."""
        return _OfCopy(self.directory)

    def text(self, file: Path) -> str:
        """The text of a file; empty when it cannot be read."""
        try:
            return file.read_text()
        except (OSError, ValueError):
            return ""

    def private_files(self) -> list[Path]:
        """Files with keys or credentials."""
        return [
            self.kubeconfig,
            self.kwok_file,
            *(file for file in (self.kept_file, self.kept_kubeconfig) if file.exists()),
            *(self.directory / "pki").glob("*"),
        ]

    def removed(self) -> bool:
        """Whether a removal was begun, or nothing of the cluster is left."""
        return not (self.kwok_file.exists() or self.kept_file.exists()) or super().removed()

    def documents(self) -> list[dict[str, Any]]:
        """Return the documents of ``kwok.yaml``; [] when it cannot be read."""
        return copy.deepcopy(list(_parsed(self.text(self.kwok_file))))

    def write_documents(self, documents: list[dict[str, Any]]) -> None:
        """Write ``kwok.yaml`` atomically, and its copy: with a longer copy, the file may count as cut off."""
        text = dump(documents)
        for file in (self.kept_file, self.kwok_file):
            files.write(file, text, mode=0o600)

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Write the ``KwokctlConfiguration`` anew, and leave the other documents of ``kwok.yaml`` as they are."""
        others = [document for document in self.documents() if document.get("kind") != settings["kind"]]
        self.write_documents([settings, *others])

    def settings(self) -> dict[str, Any]:
        """Return the ``KwokctlConfiguration`` that kwokctl saved, or {} when there is no well-formed one."""
        for document in self.documents():
            if document.get("kind") == "KwokctlConfiguration" and _is_well_formed(document):
                return document
        return {}

    def components(self) -> list[str]:
        """Names of the cluster's components, in kwokctl's order; [] when it was never set up."""
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
        named = {name: options.get(key) for name, key in keys.items()}
        found = {name: port for name, port in named.items() if isinstance(port, int) and port}
        others = [each for each in settings.get("components") or [] if each.get("name") not in keys]
        return {**found, **_ports_of(others)}

    def taken_ports(self) -> set[int]:
        """Ports that this cluster and others next to it use, or will want back."""
        return {port for other in self.directory.parent.glob("*") for port in Layout(other).ports().values()}

    def log_tail(self, component: str, lines: int = 6) -> str:
        """Return the last lines of a component's log, cut to a readable width, or ""."""
        return last_lines(self.directory / "logs" / f"{component}.log", lines)


class _OfCopy(Layout):
    """A cluster that is read from the copies of its files."""

    @property
    def kwok_file(self) -> Path:
        return self.kept_file

    @property
    def kubeconfig(self) -> Path:
        return self.kept_kubeconfig


# One look at a cluster asks nine times for the same documents; copying them takes a tenth of the time of parsing.
@lru_cache(maxsize=4)
def _parsed(text: str) -> tuple[dict[str, Any], ...]:
    try:
        # Any folder next to ours may have a file of that name, with any content.
        check_limits(text)
        loaded = list(yaml.load_all(text, Loader=FAST_LOADER))
    except (ValueError, yaml.YAMLError):
        return ()
    return tuple(document for document in loaded if isinstance(document, dict))


def _is_well_formed(document: Mapping[str, Any]) -> bool:
    listed = document.get("components") or []
    return (
        isinstance(document.get("options") or {}, Mapping)
        and isinstance(listed, list)
        and all(isinstance(each, Mapping) and isinstance(each.get("ports") or [], list) for each in listed)
    )


def _ports_of(components: list[dict[str, Any]]) -> dict[str, int]:
    """Ports of components that kwokctl has no option for: ``<component>``, or ``<component> (<port's name>)``."""
    found = {}
    for each in components:
        component = str(each.get("name"))
        for port in each.get("ports") or []:
            if isinstance(port, Mapping) and isinstance(port.get("port"), int):
                name = component if port.get("name") == "http" else f"{component} ({port.get('name')})"
                found[name] = int(port["port"])
    return found


def dump(documents: list[dict[str, Any]]) -> str:
    """Write YAML documents."""
    return yaml.dump_all(documents, Dumper=Dumper, sort_keys=False)
