"""How a run went over time: a sample each second, fewer if it lasts long."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_SAMPLES = 1200


@dataclass
class Series:
    """Samples by column, all columns of one length.

    Args:
        columns: the samples; `t` are seconds from the start.
        every: seconds between two samples.
    """

    columns: dict[str, list[float]] = field(default_factory=dict)
    every: float = 1.0

    def __len__(self) -> int:
        return len(self.columns.get("t", ()))

    def add(self, sample: dict[str, float]) -> None:
        """Add a sample; a new column was 0 before, a missing one keeps its last value."""
        before = len(self)
        for name, value in sample.items():
            self.columns.setdefault(name, [0.0] * before).append(round(value, 4))
        for values in self.columns.values():
            if len(values) == before:
                values.append(values[-1] if values else 0.0)
        if len(self) > MOST_SAMPLES:
            self._thin()

    def _thin(self) -> None:
        """Keep every other sample: a run of hours would make a report of megabytes."""
        self.columns = {name: values[::2] for name, values in self.columns.items()}
        self.every *= 2
