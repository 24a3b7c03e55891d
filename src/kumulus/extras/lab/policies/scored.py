"""The scores that a policy gave nodes for one pod."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kumulus.extras.lab.policies.load import Scores


@dataclass(frozen=True)
class Scored:
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
