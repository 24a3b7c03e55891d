"""A policy's scores of one pod's nodes, as `kumulus experiment why` shows them: a line of JSON for each pod."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from kumulus.extras.lab.errors import LabError
from kumulus.extras.schedulers.decisions.document import rows

NAME = "policy.jsonl"
"""The file, in the directory of the scheduler."""
LIMIT = 256 << 20
"""The most bytes of a file; pods after that are counted but not kept."""


@dataclass(frozen=True)
class PolicyColumn:
    """A policy's scores of one pod's nodes."""

    pod: str
    """Namespace/name."""
    policy: str
    decides: bool
    offered: int
    """How many nodes kube-scheduler's filters left."""
    fitting: int = 0
    """On how many of them the pod fits by the policy's account."""
    node: str = ""
    """The node in question; empty for the one in the binding, if the policy found several equally good."""
    score: float | None = None
    """Its score; None if the pod does not fit there by that account, or the policy gives no scores."""
    higher: int = 0
    equal: int = 0
    other: str = ""
    """The best other node: the best of all, or if none is better, the best with a lower score."""
    other_score: float | None = None
    failure: str = ""
    """The policy's error instead of scores."""


class PolicyColumns:
    """Keeps columns in a file; those that do not fit there are counted.

    Args:
        file: takes them; those of an earlier start stay in it.
        limit: the most bytes that the file may have.
    """

    def __init__(self, file: Path, limit: int = LIMIT) -> None:
        self._file: TextIO = file.open("a", encoding="utf-8", buffering=1)
        self._size, self._limit = self._file.tell(), limit
        self.dropped = 0

    def keep(self, column: PolicyColumn) -> None:
        """Keep one column."""
        fields = {name: value for name, value in asdict(column).items() if value not in (None, "", 0)}
        if column.score is not None:
            fields["score"] = column.score
        line = json.dumps(fields, separators=(",", ":")) + "\n"
        try:
            if self._size + len(line) > self._limit:
                self.dropped += 1
                return
            self._file.write(line)
        except OSError:
            # The disk is full, but the run matters more.
            self.dropped += 1
            return
        self._size += len(line)

    def close(self) -> None:
        """Say how many were dropped, and close the file."""
        with self._file:
            if self.dropped:
                self._file.write(json.dumps({"dropped": self.dropped}) + "\n")


@contextmanager
def kept(directory: Path) -> Iterator[PolicyColumns]:
    """Keep columns in the directory of a scheduler until the context ends."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = PolicyColumns(directory / NAME)
    except OSError as error:
        raise LabError(f"{directory / NAME} cannot be written: {error.strerror}") from None
    try:
        yield made
    finally:
        made.close()


def columns(file: Path) -> Iterator[PolicyColumn]:
    """The columns in a file; a truncated last line is left out."""
    for found in rows(file):
        if "pod" in found:
            yield PolicyColumn(**{"policy": "", "decides": False, "offered": 0, **found})
