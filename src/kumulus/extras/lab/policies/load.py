"""Find a policy by the paper's name or in a file, check its answers, and report its errors as those of the policy."""

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.policies.fragmentation import Study
from kumulus.extras.lab.policies.nodes import Flags, Nodes, Pod
from kumulus.model.names import instead

PAPER: Mapping[str, str] = {
    "Random": "random",
    "DotProd": "dot_prod",
    "GpuClustering": "gpu_clustering",
    "GpuPacking": "gpu_packing",
    "BestFit": "best_fit",
    "FGD": "fgd",
}
"""The paper's policies by the names it gives them, with their module in `kumulus.extras.lab.policies.paper`."""

SCHEDULER = "KubeScheduler"
"""The policy that leaves the choice to kube-scheduler, and only accounts for GPUs."""

_MODULES = {
    **{name: f"kumulus.extras.lab.policies.paper.{module}" for name, module in PAPER.items()},
    SCHEDULER: "kumulus.extras.lab.policies.kube_scheduler",
}
# Installed packages are not part of a policy, even if its directory has them.
_OTHERS = ("__pycache__", "site-packages")
Scores = npt.NDArray[np.float64]


class PolicyFailed(LabError):
    """A policy raised, took too long or returned an invalid answer; the message says which, with its traceback."""


class Policy:
    """A policy file, whose functions' answers are checked.

    Args:
        name: what it is called in reports.

    Attributes:
        leaves: whether kube-scheduler's own scores choose among the nodes that are allowed (`SCHEDULER_CHOOSES`).
    """

    def __init__(self, name: str, module: ModuleType, limit: float) -> None:
        self.name, self._module, self._limit = name, module, limit
        self.remember = bool(getattr(module, "REMEMBER", False))
        self.chooses = hasattr(module, "choose")
        self.leaves = bool(getattr(module, "SCHEDULER_CHOOSES", False))
        if self.leaves and (self.chooses or hasattr(module, "score")):
            raise LabError(f"policy {name} has SCHEDULER_CHOOSES and a choice of its own\n  Leave one of them out")
        if not self.leaves and not self.chooses and not hasattr(module, "score"):
            raise LabError(f"policy {name} has neither a function score nor choose\n  Write one: docs/traces.md")

    def allowed(self, pod: Pod, nodes: Nodes, study: Study) -> Flags:
        """Which of the nodes are allowed; all of them where the file does not say."""
        if not hasattr(self._module, "allowed"):
            return np.ones(len(nodes), dtype=np.bool_)
        answer = self._array("allowed", pod, nodes, study)
        if answer.shape != (len(nodes),) or answer.dtype != np.bool_:
            raise PolicyFailed(f"policy {self.name}: allowed answered no flag for each of {len(nodes)} nodes")
        return answer

    def score(self, pod: Pod, nodes: Nodes, study: Study) -> Scores:
        """A number for each node."""
        answer = self._array("score", pod, nodes, study)
        if answer.shape != (len(nodes),) or answer.dtype.kind not in "iufb" or not np.isfinite(answer).all():
            raise PolicyFailed(f"policy {self.name}: score answered no number for each of {len(nodes)} nodes")
        return answer.astype(np.float64)

    def choose(self, pod: Pod, nodes: Nodes, study: Study) -> int:
        """Which of the nodes."""
        return self._one_of(len(nodes), "choose", pod, nodes, study)

    def gpu(self, pod: Pod, node: Nodes, study: Study) -> int:
        """Which GPU of one node a pod gets its share of; the tightest where the file does not say."""
        if not hasattr(self._module, "gpu"):
            return int(node.tightest_gpu(pod)[0])
        chosen = self._one_of(node.gpu_free.shape[1], "gpu", pod, node, study)
        if node.gpu_free[0, chosen] < pod.gpu_milli:
            raise PolicyFailed(f"policy {self.name}: gpu answered {chosen}, which has too little free")
        return chosen

    def _one_of(self, count: int, function: str, pod: Pod, nodes: Nodes, study: Study) -> int:
        answer = self._called(function, pod, nodes, study)
        if isinstance(answer, bool) or not isinstance(answer, int | np.integer) or not 0 <= answer < count:
            raise PolicyFailed(
                f"policy {self.name}: {function} answered {answer!r}, not a number from 0 to {count - 1}"
            )
        return int(answer)

    def _array(self, function: str, pod: Pod, nodes: Nodes, study: Study) -> npt.NDArray[Any]:
        answer = self._called(function, pod, nodes, study)
        try:
            return np.asarray(answer)
        except ValueError as error:
            raise PolicyFailed(f"policy {self.name}: {function} answered no array: {error}") from None

    def _called(self, function: str, pod: Pod, nodes: Nodes, study: Study) -> object:
        call: Callable[[Pod, Nodes, Study], object] = getattr(self._module, function)
        try:
            with _at_most(self._limit):
                return call(pod, nodes, study)
        except PolicyTimeout:
            message = f"policy {self.name}: {function} took longer than {self._limit:g} s for pod {pod.name}"
            raise PolicyFailed(message) from None
        except Exception as error:
            # From the policy's own frame on: its author did not write the caller.
            own = "".join(traceback.format_exception(error.with_traceback(_below(error)))).rstrip()
            raise PolicyFailed(f"policy {self.name}: {function} raised for pod {pod.name}\n{own}") from None


def policy(name: str, directory: Path, limit: float) -> Policy:
    """A policy of the paper, `KubeScheduler`, or one in a file.

    Args:
        name: one of these names, or a path of a Python file.
        directory: where a relative path starts from.
    """
    if name in _MODULES:
        return Policy(name, importlib.import_module(_MODULES[name]), limit)
    path = directory / name
    if not name.endswith(".py"):
        raise LabError(f"{name} is no policy\n  {instead(name, _MODULES, also=', or the path of a Python file')}")
    if not path.is_file():
        raise LabError(f"the policy {path} is not there")
    spec = importlib.util.spec_from_file_location(f"kumulus_policy_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise LabError(f"the policy {path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        own = "".join(traceback.format_exception_only(error)).rstrip()
        raise LabError(f"the policy {path} cannot be imported:\n{own}") from None
    return Policy(path.stem, module, limit)


class PolicyTimeout(BaseException):
    """Raised inside a policy that takes too long; not an Exception, as policies may catch those."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Interrupt a body that runs for longer; works only in the main thread, and does nothing in others."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise PolicyTimeout

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _below(error: Exception) -> TracebackType | None:
    return error.__traceback__.tb_next if error.__traceback__ else None


@dataclass(frozen=True)
class FittingNodes:
    """Nodes on which a pod fits, and their scores."""

    nodes: npt.NDArray[np.int64]
    """Their places among all nodes."""
    scores: Scores | None
    """Of each of them; None where the policy chooses without scores."""

    def best(self) -> npt.NDArray[np.int64]:
        """The nodes with the highest score; all of them where there are no scores."""
        if self.scores is None or not len(self.nodes):
            return self.nodes
        found: npt.NDArray[np.int64] = self.nodes[self.scores == self.scores.max()]
        return found

    def about(self, node: int, name: Callable[[int], str]) -> dict[str, Any]:
        """How one of the nodes ranks among the others.

        Args:
            node: which; one on which the pod does not fit has no score.
            name: of a node by its place.
        """
        at = np.flatnonzero(self.nodes == node)
        if self.scores is None or not len(self.nodes):
            return {}
        score = float(self.scores[at[0]]) if len(at) else -np.inf
        higher = int((self.scores > score).sum())
        equal = int((self.scores == score).sum())
        if higher:
            other = int(self.scores.argmax())
        else:
            lower = np.where(self.scores < score, self.scores, -np.inf)
            other = int(lower.argmax()) if np.isfinite(lower).any() else -1
        found: dict[str, Any] = {"score": score if len(at) else None, "higher": higher, "equal": equal}
        if other >= 0:
            found |= {"other": name(int(self.nodes[other])), "other_score": float(self.scores[other])}
        return found


def files(file: Path) -> list[Path]:
    """The files below a policy's directory that it reads while it is imported, without itself.

    It is imported in a process of its own: modules that another policy has imported are not read again in this one. A
    policy that cannot be imported has none; its run says why it cannot. The process imports this module alone, which
    takes a quarter of the time of what reads sweeps.
    """
    line = [sys.executable, "-P", "-m", __name__, str(file)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(line, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"the policy {file} cannot be looked through:\n{done.stderr.strip()}")
    # Before it there is what the policy prints.
    return [Path(each) for each in json.loads(done.stdout.splitlines()[-1])]


def _read_by(file: Path) -> list[str]:
    root, opened, before = file.resolve().parent, set[str](), set(sys.modules)

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and str(arguments[1] or "r").startswith("r"):
            opened.add(arguments[0])

    sys.addaudithook(note)
    try:
        policy(str(file), Path(), 0)
    except (LabError, SystemExit):
        return []
    # A module that has been compiled before is not opened.
    gained = {getattr(sys.modules[name], "__file__", None) or "" for name in set(sys.modules) - before}
    found = {Path(each).resolve() for each in opened | gained if each}
    return sorted(
        str(each)
        for each in found - {file.resolve()}
        if each.is_relative_to(root) and each.is_file() and not set(_OTHERS) & set(each.relative_to(root).parts)
    )


if __name__ == "__main__":
    print(json.dumps(_read_by(Path(sys.argv[1]))))
