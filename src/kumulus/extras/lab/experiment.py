"""``Experiment``: what ``kumulus experiment run`` does, for use in Python programs."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from kumulus.extras.journal.errors import JournalError
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment, load, loaded_from
from kumulus.extras.lab.report import junit
from kumulus.extras.lab.run.bench import RunOptions
from kumulus.extras.lab.running import run
from kumulus.kube import ApiError, KubeconfigError, Unreachable, safe_yaml
from kumulus.model.errors import SpecError


class Experiment:
    """An experiment: workloads that are created in a cluster, and measured until all of them are scheduled.

    ::

        report = Experiment("experiments/kemu-gang.yaml").run(kubeconfig="~/.kube/config")
        assert report["results"]["status"] == "success"

    Args:
        description: an experiment file's path, or a mapping with the content of one (docs/experiments.md).
        directory: where paths in a mapping start from; the current one when left out. Paths in a file start from it.

    Attributes:
        name: the experiment's.

    Raises:
        ValueError: the description is wrong; the message lists every problem, its path and what to write instead.
    """

    def __init__(self, description: str | Path | Mapping[str, Any], *, directory: str | Path = "") -> None:
        try:
            self._loaded = _loaded(description, Path(directory).resolve())
        except (SpecError, yaml.YAMLError) as error:
            raise ValueError(str(error)) from None
        self.name = self._loaded.experiment.name

    def run(
        self,
        kubeconfig: str | Path,
        *,
        results: str | Path = ".kumulus/experiments",
        stack: str = "",
        say: Callable[[str], None] = lambda line: None,
    ) -> dict[str, Any]:
        """Run it, and leave the cluster as it was; call it by ``asyncio.to_thread`` if an event loop runs.

        Args:
            kubeconfig: path of the cluster's kubeconfig.
            results: the directory of all runs; this one's report, JUnit XML and plots are written below it.
            stack: what the cluster is called in the report; the kubeconfig's name when left out.
            say: takes each line of progress, for people.

        Returns:
            the report, as report.json has it: ``results.status`` is success, failure or partial.

        Raises:
            RuntimeError: it could not be run, or its report could not be written; the message says why and what to do.
        """
        path = Path(kubeconfig).expanduser()
        try:
            options = RunOptions(path, stack or path.stem, Path(results), junit.write_forms, say=say)
            report, _ = asyncio.run(run(self._loaded, options))
        except (ApiError, JournalError, KubeconfigError, LabError, Unreachable) as error:
            raise RuntimeError(str(error)) from None
        return report.model_dump(mode="json")


def _loaded(description: str | Path | Mapping[str, Any], directory: Path) -> LoadedExperiment:
    if isinstance(description, Mapping):
        text = safe_yaml.written(dict(description))
        return loaded_from(dict(description), directory, "the experiment", text)
    return load(Path(description).expanduser())
