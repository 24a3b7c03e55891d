"""An imported benchmark, and the files that it becomes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kumulus.cli.errors import refuse_others
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.fields import NAME_LENGTH
from kumulus.extras.lab.file.manifest import Object
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.traces.writing import refuse_invalid, yaml_text
from kumulus.host import files
from kumulus.model.names import dns_safe
from kumulus.stackfile.location import read_text
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.yamltext import read_all_yaml

BEGINS = "# Imported by `kumulus experiment import`"
NODES: dict[str, Any] = {"nodeTemplate": {"capacity": {"cpu": "4", "memory": "32Gi", "pods": "110"}, "taints": []}}
"""The nodes of a benchmark that says nothing of them: as scheduler_perf has them. Its pods tolerate no taint."""


@dataclass
class ImportedBenchmark:
    """A benchmark as an experiment."""

    name: str
    source: str
    workloads: list[dict[str, Any]] = field(default_factory=list)
    """As the experiment has them; those with a manifest name it by the workload."""
    manifests: dict[str, str] = field(default_factory=dict)
    """The objects of these, as texts, by workload."""
    setup: list[Object] = field(default_factory=list)
    expect: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    kwok: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """What an experiment cannot express."""

    def nodes(self, replicas: int, more: Mapping[str, Any]) -> None:
        """Add a node group."""
        placement = [{"availabilityZone": "zone1", "replicas": replicas}]
        self.groups.append({"name": f"nodes-{len(self.groups) + 1}", "placement": placement, **more})

    def written(self, folder: Path) -> list[Path]:
        """Write its files, over those of an earlier import; returns their paths, the experiment's first.

        Raises:
            LabError: what would be written could not be read again.
            UserError: a file of another origin is there.
        """
        pods = sum(each.get("jobs", 1) * each.get("workers", 1) for each in self.workloads)
        stack = f"Pulumi.{self.name}.yaml"
        texts = {f"{self.name}.{workload}.yaml": text for workload, text in self.manifests.items()}
        if self.setup:
            texts[f"{self.name}.setup.yaml"] = "---\n".join(map(yaml_text, self.setup))
        workloads = [
            {**each, **({"manifest": f"{self.name}.{each['name']}.yaml"} if each["name"] in self.manifests else {})}
            for each in self.workloads
        ]
        experiment = {
            "name": self.name,
            "about": {"source": self.source, **({"emulation": "; ".join(self.missing)} if self.missing else {})},
            "stack": self.name,
            "stackFile": stack,
            **({"setup": [f"{self.name}.setup.yaml"]} if self.setup else {}),
            # As many pods a second as a busy control plane of two cores accepts, and half an hour.
            "timeout": f"{math.ceil(pods / 5) + 1800}s",
            **self.more,
            "workloads": workloads,
            **({"expect": self.expect} if self.expect else {}),
        }
        cluster = {"runtime": "kwok", **({"kwok": self.kwok} if self.kwok else {}), "nodeGroups": self.groups}
        refuse_invalid(ExperimentSpec, experiment, self.name)
        refuse_invalid(ClusterSpec, cluster, stack)
        texts = {
            f"{self.name}.yaml": yaml_text(experiment),
            stack: yaml_text({"config": {"kumulus:cluster": cluster}}),
            **texts,
        }
        paths = {folder / name: f"{BEGINS}, from {self.source}\n{text}" for name, text in texts.items()}
        refuse_others(dict.fromkeys(paths, BEGINS))
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            files.write(path, text)
        return list(paths)


def named(*parts: str) -> str:
    """The name of an experiment, a workload or a queue, of several words."""
    return dns_safe("-".join(parts).lower(), NAME_LENGTH) or "imported"


def document(file: Path, text: str | None = None) -> Any:
    """A YAML file."""
    documents = read_all_yaml(text if text is not None else text_of(file), str(file))
    return documents[0] if documents else None


def text_of(file: Path) -> str:
    """A file's text."""
    return read_text(str(file), Path(), "")[1]


def chosen(names: Sequence[str], wanted: str, what: str) -> None:
    """Refuse a case or workload that the file does not have."""
    if wanted and wanted not in names:
        raise LabError(f"there is no {what} {wanted}\n  Write one of {', '.join(names)}")
