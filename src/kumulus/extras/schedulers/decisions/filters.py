"""How many nodes each of kube-scheduler's filters refused, computed from how often each filter was run.

kube-scheduler logs why a pod fits nowhere, but not which filters refused nodes when other nodes fitted. It counts each
run of a filter on a node, though, in its metric `scheduler_plugin_evaluation_total`. Filters are run in a fixed order,
which it logs at its start, and the first that refuses a node is the last that is run on it. So the number of nodes
that a filter refused is the difference between its count and that of the next filter.

Source: RunFilterPlugins in pkg/scheduler/framework/runtime/framework.go of k8s.io/kubernetes, and
findNodesThatPassFilters in pkg/scheduler/schedule_one.go. Checked against Kubernetes 1.35 to 1.37.
"""

import json
import re
from collections.abc import Mapping, Sequence

Counts = Mapping[str, int]
"""How often each filter was run, by its name."""

PARALLELISM = 16
"""On how many nodes kube-scheduler runs filters at once by default."""
_FEWEST_SOUGHT = 100
_METRIC = b"scheduler_plugin_evaluation_total{"
_SAMPLE = re.compile(rb'extension_point="(Filter|PreFilter)",plugin="([^"]*)",profile="([^"]*)"} (\S+)')
_PLUGINS = b'"the scheduler starts to work with those plugins" Plugins='


def counts(metrics: bytes) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """How often each filter was run, by profile; and for how many pods its PreFilter did not skip it.

    Kube-scheduler's metrics are some hundred kilobytes of text; only the relevant part is parsed.
    """
    found: dict[bytes, dict[str, dict[str, int]]] = {b"Filter": {}, b"PreFilter": {}}
    begin = metrics.find(_METRIC)
    if begin >= 0:
        # The samples of a metric are contiguous, and a comment precedes those of the next metric.
        end = metrics.find(b"\n#", begin)
        for point, plugin, profile, value in _SAMPLE.findall(metrics, begin, end if end >= 0 else len(metrics)):
            found[point].setdefault(profile.decode(), {})[plugin.decode()] = int(float(value))
    return found[b"Filter"], found[b"PreFilter"]


def order(line: bytes) -> tuple[str, ...] | None:
    """A profile's filters in the order of their runs, if this line of the log lists them; None otherwise."""
    at = line.find(_PLUGINS)
    if at < 0:
        return None
    try:
        enabled = json.loads(line[at + len(_PLUGINS) :])["Filter"]["Enabled"] or ()
        return tuple(each["Name"] for each in enabled)
    except (ValueError, KeyError, TypeError):
        # Another version uses another format: then the order is not known, and no filter is named.
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
    """How many nodes each filter refused in one attempt; None if the counts do not add up.

    Args:
        filters: in their order.
        run: how often each was run in this attempt.
        passed: how many nodes passed all of them, from the call of an extender.
        evaluated: how many nodes were evaluated, from the log of the binding.
        feasible: how many of them were left, likewise; fewer than passed if an extender refused some.
        parallelism: on how many nodes filters are run at once.
    """
    counted = [(name, run[name]) for name in filters if run.get(name)]
    if sum(count for _, count in counted) != sum(run.values()):
        return None
    if not counted:
        return {} if evaluated in (feasible, passed) else None
    # Nodes that an extender refused count as evaluated only if the extender reports them.
    each = {_drops(counted, evaluated - left, passed, parallelism) for left in {feasible, passed}} - {None}
    return dict(each.pop() or ()) if len(each) == 1 else None


def _drops(
    counted: Sequence[tuple[str, int]], missing: int, passed: int, parallelism: int
) -> tuple[tuple[str, int], ...] | None:
    """Like :func:`refused`, for a given number of nodes that the filters refused (`missing`).

    Some nodes are evaluated but not used, because enough were found at the same moment: at most `parallelism` nodes, if
    kube-scheduler does not seek all nodes. A node for which another pod is nominated passes all filters twice.
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
