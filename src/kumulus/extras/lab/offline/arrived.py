"""Measures by how much demand has arrived, noted at each whole per cent, as in the published study."""

from __future__ import annotations

from collections import defaultdict

MEASURES = ("allocated_percent", "fragmented_percent_of_all_gpus", "fragmented_percent_of_idle_gpus")

Curves = dict[str, dict[str, float]]


class ByArrival:
    """Collects the measures after each pod.

    Args:
        gpu_milli: milli-GPU of all GPUs together.
    """

    def __init__(self, gpu_milli: int) -> None:
        self._all = gpu_milli
        self._noted: dict[int, list[tuple[float, ...]]] = defaultdict(list)

    def note(self, arrived: int, allocated: int, fragmented: float) -> None:
        """Record the state after a pod has arrived, placed or not.

        Args:
            arrived: milli-GPU that the pods so far ask for.
            allocated: milli-GPU that is given to pods.
            fragmented: milli-GPU that is free and fragmented.
        """
        if not self._all:
            # A cluster without GPUs has no share of them to measure.
            return
        idle = self._all - allocated
        of_idle = 100 * fragmented / idle if idle else 0.0
        measures = (100 * allocated / self._all, 100 * fragmented / self._all, of_idle)
        self._noted[round(100 * arrived / self._all)].append(measures)

    def curves(self) -> Curves:
        """Each measure by whole per cents of demand arrived, from 1 on.

        A per cent has the mean over the pods after which the rounded demand was that much. If there is none, because
        one pod was larger than a per cent, it has the mean of its neighbours.
        """
        last = max(self._noted, default=0)
        found: Curves = {name: {} for name in MEASURES}
        for percent in range(1, last + 1):
            rows = self._noted.get(percent) or [*self._noted.get(percent - 1, []), *self._noted.get(percent + 1, [])]
            for index, name in enumerate(MEASURES):
                if rows:
                    found[name][str(percent)] = round(sum(row[index] for row in rows) / len(rows), 4)
        return found
