"""Which of a kube-scheduler's filters refused how many nodes, from how often each of them was run.

kube-scheduler logs why a pod fits nowhere, and does not log which filters refused nodes while others fitted. It counts
each run of a filter on a node, though, in its metric `scheduler_plugin_evaluation_total`; filters are run in a fixed
order, which it logs at its start, and the first that refuses a node is the last that is run on it. So what a filter
refused is the difference between its count and that of the next one.

Source: RunFilterPlugins in pkg/scheduler/framework/runtime/framework.go of Kubernetes 1.34 and 1.35, and
findNodesThatPassFilters in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

Counts = Mapping[str, int]
"""How often each filter was run, by its name."""

PARALLELISM = 16
"""On how many nodes kube-scheduler runs filters at once, unless its configuration says something else."""
_FEWEST_SOUGHT = 100
_METRIC = b"scheduler_plugin_evaluation_total{"
_SAMPLE = re.compile(rb'extension_point="(Filter|PreFilter)",plugin="([^"]*)",profile="([^"]*)"} (\S+)')
_PLUGINS = b'"the scheduler starts to work with those plugins" Plugins='


def counts(metrics: bytes) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """How often each filter was run, by profile; and for how many pods each had something to say, as it was prepared.

    Args:
        metrics: the text of kube-scheduler's metrics; of some hundred kilobytes, only the part in question is read.
    """
    found: dict[bytes, dict[str, dict[str, int]]] = {b"Filter": {}, b"PreFilter": {}}
    begin = metrics.find(_METRIC)
    if begin >= 0:
        # The samples of a metric stand together, and a comment is before those of the next one.
        end = metrics.find(b"\n#", begin)
        for point, plugin, profile, value in _SAMPLE.findall(metrics, begin, end if end >= 0 else len(metrics)):
            found[point].setdefault(profile.decode(), {})[plugin.decode()] = int(float(value))
    return found[b"Filter"], found[b"PreFilter"]


def order(line: bytes) -> tuple[str, ...] | None:
    """The filters of a profile in the order in which they are run, if a line of the log says so; None otherwise."""
    at = line.find(_PLUGINS)
    if at < 0:
        return None
    try:
        enabled = json.loads(line[at + len(_PLUGINS) :])["Filter"]["Enabled"] or ()
        return tuple(each["Name"] for each in enabled)
    except (ValueError, KeyError, TypeError):
        # Another version says it in another form: then their order is not known, and no filter is named.
        return ()


def refused(
    filters: Sequence[str],
    run: Counts,
    *,
    passed: int,
    evaluated: int,
    feasible: int,
    parallelism: int = PARALLELISM,
) -> dict[str, int] | None:
    """How many nodes each filter refused in one attempt; None where the counts do not add up.

    Args:
        filters: in their order.
        run: how often each was run in this attempt.
        passed: how many nodes passed all of them, as an extender is asked.
        evaluated: how many nodes were looked at, as the log has it at the binding.
        feasible: how many of them were left, likewise; fewer than passed where an extender refused some.
        parallelism: on how many nodes filters are run at once.
    """
    counted = [(name, run[name]) for name in filters if run.get(name)]
    if sum(count for _, count in counted) != sum(run.values()):
        return None
    if not counted:
        return {} if evaluated in (feasible, passed) else None
    # An extender may say which nodes it refused, and then they count as looked at, or leave them out.
    each = {_drops(counted, evaluated - left, passed, parallelism) for left in {feasible, passed}} - {None}
    return dict(each.pop() or ()) if len(each) == 1 else None


def _drops(
    counted: Sequence[tuple[str, int]], missing: int, passed: int, parallelism: int
) -> tuple[tuple[str, int], ...] | None:
    """As :func:`refused`, for a number of nodes that the filters refused.

    Some nodes are looked at and not used, as enough were found at the same moment: as many as are looked at at once,
    where not all are sought. A node for which another pod is nominated passes all filters twice.
    """
    through = counted[0][1] - missing
    unused = through - passed
    if not 0 <= unused <= (parallelism if passed >= _FEWEST_SOUGHT else 0):
        return None
    following = [*(count for _, count in counted[1:]), through]
    found = tuple((name, count - after) for (name, count), after in zip(counted, following, strict=True))
    if any(drop < 0 for _, drop in found):
        return None
    return tuple((name, drop) for name, drop in found if drop)
