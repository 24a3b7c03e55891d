"""kube-scheduler's log of its decisions, line by line.

The scheduler schedules one pod at a time and binds many at once: scores belong to the pod that is being scheduled, but
the line about a binding may come later, among another pod's scores.

Source: pkg/scheduler/schedule_one.go and pkg/scheduler/framework/runtime/batch.go of k8s.io/kubernetes.
Checked against Kubernetes 1.35 to 1.37.
"""

import re
from collections.abc import Callable

from kumulus.extras.schedulers.decisions.attempts import Filtered, SchedulingAttempts
from kumulus.extras.schedulers.decisions.document import Decision, DecisionTotals, ScoredNode

ARGUMENTS = ("--vmodule=schedule_one=10,batch=3,framework=2",)
"""Arguments that make kube-scheduler log its decisions and the order of its filters, and nothing else: `-v=10` would
also log each request with its body."""

REFUSED = b'"Unable to schedule pod; no fit; waiting"'
"""In the line about an attempt that failed."""
_SCORE = b'"Plugin scored node for pod" pod="'
_TOTAL = b'"Calculated node\'s final score for pod" pod="'
_EXTENDER = b'"Extender scored node for pod" pod="'
_HINT = b'"OpportunisticBatch provided node hint"'
_BOUND = b'"Successfully bound pod to node"'
_ATTEMPT = b'"Attempting to schedule pod"'
_BINDING = b'"Attempting to bind pod to node"'
# Month, day and time of day, after the level's letter.
_STAMP = slice(1, 21)
_FIELD = re.compile(rb'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')


class _Scores:
    """The scores of one pod's nodes, as they are collected from the log."""

    def __init__(self, pod: str) -> None:
        self.pod = pod
        self.plugins: dict[bytes, dict[bytes, int]] = {}
        self.totals: dict[bytes, int] = {}

    def scored(self, node: bytes) -> ScoredNode | None:
        """A node's scores; None if it was not scored."""
        total = self.totals.get(node)
        if total is None:
            return None
        scores = {plugin.decode(): nodes[node] for plugin, nodes in self.plugins.items() if node in nodes}
        return ScoredNode(node.decode(), total, scores)

    def equal(self) -> int:
        """How many nodes have the highest score."""
        best = max(self.totals.values(), default=0)
        return sum(total == best for total in self.totals.values())

    def below(self, total: int) -> ScoredNode | None:
        """The best of the nodes with a lower score than this."""
        lower = {node: each for node, each in self.totals.items() if each < total}
        return self.scored(max(lower, key=lambda node: lower[node])) if lower else None


class Decisions:
    """Takes the log's lines, and passes on each decision once it is complete.

    Without ``attempts``, it is unknown what filters did in each attempt.
    """

    def __init__(self, take: Callable[[Decision], None], attempts: SchedulingAttempts | None = None) -> None:
        self._take = take
        self._attempts = attempts if attempts is not None else SchedulingAttempts((), tuple)
        self._now = _Scores("")
        self._made: dict[str, tuple[_Scores, str]] = {}
        self._refused: dict[str, tuple[int, str]] = {}
        self._bound = self._explained = 0

    def line(self, line: bytes) -> bool:
        """Take a line; returns whether it was about a decision, so that the caller need not log it."""
        if (at := line.find(_SCORE)) >= 0:
            part = line[at + len(_SCORE) :].split(b'"')
            self._of(part[0].decode()).plugins.setdefault(part[2], {})[part[4]] = int(part[5][7:])
            return True
        if (at := line.find(_TOTAL)) >= 0:
            part = line[at + len(_TOTAL) :].split(b'"')
            self._of(part[0].decode()).totals[part[2]] = int(part[3][7:])
            return True
        if _HINT in line:
            fields = _fields(line)
            self._made[fields["pod"]] = (self._now, fields["hint"])
        elif _ATTEMPT in line:
            # A pod that is tried again gets new scores, or none.
            pod = _fields(line)["pod"]
            self._made.pop(pod, None)
            self._attempts.attempt(pod, line[_STAMP].decode())
        elif _BOUND in line:
            self._bind(_fields(line))
        elif REFUSED in line:
            fields = _fields(line)
            times, _ = self._refused.get(fields["pod"], (0, ""))
            self._refused[fields["pod"]] = (times + 1, fields.get("err", ""))
            self._attempts.failed(fields["pod"], line[_STAMP].decode(), fields.get("err", ""))
        else:
            return _BINDING in line or _EXTENDER in line or self._attempts.begins(line)
        return True

    def totals(self, dropped: int = 0) -> DecisionTotals:
        """The totals of all lines, with how many decisions were not kept."""
        waiting = {pod: reason for pod, (_, reason) in self._refused.items()}
        return DecisionTotals(self._bound, self._explained, dropped, waiting)

    def _of(self, pod: str) -> _Scores:
        if self._now.pod != pod or pod not in self._made:
            self._now = _Scores(pod)
            self._made[pod] = (self._now, "")
        return self._now

    def _bind(self, fields: dict[str, str]) -> None:
        pod, node = fields["pod"], fields["node"]
        scores, hint = self._made.pop(pod, (None, ""))
        times, reason = self._refused.pop(pod, (0, ""))
        chosen = scores.scored(node.encode()) if scores is not None else None
        again = scores is not None and hint == node
        evaluated, feasible = int(fields.get("evaluatedNodes", 0)), int(fields.get("feasibleNodes", 0))
        filtered = self._attempts.bound(pod, evaluated, feasible) or Filtered(0)
        decision = Decision(
            pod=pod,
            node=node,
            evaluated=evaluated,
            feasible=feasible,
            chosen=chosen,
            equal=scores.equal() if scores is not None and chosen is not None and not again else 0,
            next=scores.below(chosen.total) if scores is not None and chosen is not None else None,
            like=scores.pod if again and scores is not None else "",
            refused=times,
            reason=reason,
            passed=filtered.passed,
            filters=filtered.refused,
            unknown=filtered.unknown,
        )
        self._bound += 1
        self._explained += decision.explained
        self._take(decision)


def _fields(line: bytes) -> dict[str, str]:
    """The named values of a line of klog's text format."""
    found = {}
    for name, quoted, plain in _FIELD.findall(line):
        text = (plain or quoted).decode(errors="replace")
        found[name.decode()] = text.replace('\\"', '"').replace("\\\\", "\\")
    return found
