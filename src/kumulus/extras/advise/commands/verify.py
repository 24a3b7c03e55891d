"""`kumulus advise --verify`: the fleet brought up, the workload run on it, and everything taken down again."""

import argparse
import secrets
import tempfile
from pathlib import Path
from typing import Any

from kumulus.cli import project, stack
from kumulus.extras.advise.advice import Advice, groups
from kumulus.extras.advise.demand import PodShape, WorkloadDemand, largest_first
from kumulus.extras.capture.commands import clone
from kumulus.extras.lab.commands import experiment
from kumulus.kube import safe_yaml
from kumulus.toolchain.errors import ToolMissing

_LABEL = "kumulus.io/advised"
_WRITTEN = {"cpu": "{}m"}
# Seconds for the scheduler between one kind of pods and the next.
_APART = 2


def verify(advice: Advice, demand: WorkloadDemand) -> int:
    """Bring the fleet up as a separate stack, run the workload, and destroy the stack; 1 if a pod stayed pending."""
    name = f"advise-{secrets.token_hex(3)}"
    current = project.current()
    file = current.stack_file(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(safe_yaml.written({"config": {"kumulus:cluster": {"nodeGroups": groups(advice)}}}), "utf-8")
    try:
        clone.bring_up(name)
        with tempfile.TemporaryDirectory() as folder:
            return _run(name, demand, advice.order, Path(folder))
    finally:
        if _taken_down(name):
            file.unlink(missing_ok=True)


def _taken_down(name: str) -> bool:
    """Destroy the stack, if it was created at all; False if something of it is left."""
    if project.state_exists(name) is False:
        return True
    try:
        if stack.run(["destroy", "-s", name, "--yes", "--skip-preview"]) != 0:
            return False
        stack.run(["stack", "rm", name, "--yes"])
    except ToolMissing:
        # Without pulumi, which cannot be had, nothing was created.
        pass
    return True


def _run(name: str, demand: WorkloadDemand, order: str, folder: Path) -> int:
    workloads = []
    for number, shape in enumerate(largest_first(demand.whole, order)):
        (folder / f"pods-{number}.yaml").write_text(safe_yaml.written(_deployment(f"pods-{number}", shape)), "utf-8")
        workloads.append(
            {
                "name": f"pods-{number}",
                "manifest": f"pods-{number}.yaml",
                "jobs": 1,
                "arrival": {"after": f"{number * _APART}s"},
            }
        )
    made = folder / "experiment.yaml"
    document = {"name": "advised", "workloads": workloads, "expect": [{"measure": "pods.pending", "equals": 0}]}
    made.write_text(safe_yaml.written(document), "utf-8")
    parser = argparse.ArgumentParser()
    experiment.add_arguments(parser)
    return experiment.run(parser.parse_args(["run", str(made), "-s", name]))


def _deployment(name: str, shape: PodShape) -> dict[str, Any]:
    """A Deployment of pods like those of a shape, with everything that a scheduler looks at."""
    asked = {
        resource: _WRITTEN.get(resource, "{}").format(much)
        for resource, much in shape.wants.items()
        if resource != "pods"
    }
    labels = {**shape.labels, _LABEL: name}
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "none", "resources": {"requests": asked, "limits": asked}}],
        **shape.spec,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": shape.count,
            "selector": {"matchLabels": {_LABEL: name}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
