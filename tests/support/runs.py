"""A run of an experiment on a cluster, as the command makes it; a test names only what it wants to see of it."""

from pathlib import Path
from typing import Any

from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.run.bench import RunOptions
from kumulus.extras.lab.running import Run
from kumulus.kube import Client, load_kubeconfig


async def run(
    kubeconfig: str | Path, file: Path, *, through: Path | None = None, patience: float = 60.0, **seen: Any
) -> tuple[Report, Path]:
    """Run an experiment file; returns the report, and the run's directory, which is below `results` beside the file.

    Args:
        through: another kubeconfig by which the cluster's API is reached.
        patience: seconds that a silent API server is waited for.
        seen: fields of :class:`RunOptions`, such as `say`, instead of those that tell nobody.
    """
    told = {"on_report": _ignored, **seen}
    options = RunOptions(kubeconfig=Path(kubeconfig), stack="test", results=file.parent / "results", **told)
    async with Client(load_kubeconfig(through or options.kubeconfig), patience=patience) as client:
        made = Run(client, load(file), options)
        return await made.run(), made.directory.path


def _ignored(*_: object) -> None:
    """Hear and forget."""
