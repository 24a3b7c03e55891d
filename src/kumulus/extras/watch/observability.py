"""A stack's section `observability`: its checks and values, shared by the stack file and the plugin.

Plain Python: the provider plugin imports this file.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kumulus.model.checks import mapping_problems, problem, quantity_problems, unknown_key_problems, whole_problems
from kumulus.model.durations import duration_problems, seconds
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.names import label_key_mistake
from kumulus.model.quantity import NANO, human, parse

LOWEST_PORT, HIGHEST_PORT = 1024, 65_535
# Prometheus' memory per series, including its index and garbage not yet collected (docs/observability.md).
_BYTES_PER_SERIES = 4096
_SERIES_PER_NODE = 100


def _described(default: Any, description: str) -> Any:
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True)
class Observability:
    """What is measured, how often, and with how much memory and disk."""

    prometheusPort: int | None = _described(None, "Prometheus' port on 127.0.0.1; by default a free one.")
    retention: str = _described("24h", "How long samples are kept, from 2h to 8760h.")
    retentionSize: str = _described("2Gi", "How much disk samples may take, 512Mi or more; the oldest go first.")
    memory: str = _described("1Gi", "How much memory Prometheus' garbage collector keeps to, 256Mi or more.")
    scrapeInterval: str = _described(
        "15s", "How often the control plane and kube-state-metrics are scraped, from 1s to 30s."
    )
    nodeScrapeInterval: str = _described("1m", "How often each emulated node's own endpoint is scraped, from 5s to 2m.")
    nodeLabels: tuple[str, ...] = _described(
        (), "Keys of node labels that kube-state-metrics exports in addition to those of the dashboards."
    )

    @property
    def most_series(self) -> int:
        """The number of series that `memory` is enough for."""
        return as_bytes(self.memory) // _BYTES_PER_SERIES

    @property
    def most_nodes(self) -> int:
        """The number of nodes whose endpoints `memory` is enough for."""
        return self.most_series // _SERIES_PER_NODE

    def options(self) -> dict[str, Any]:
        """All settings under the file's names, JSON-able: the option `observability` of the resource Cluster."""
        found = {key: value for key, value in asdict(self).items() if value is not None}
        return {**found, "nodeLabels": list(self.nodeLabels)}


def observability_from(raw: Mapping[str, Any]) -> Observability:
    """The settings in a checked mapping; a key that is missing or empty gets its default."""
    values = {key: value for key, value in raw.items() if value is not None}
    # YAML makes 4294967296 a number, and JSON has only one number type.
    kinds: Mapping[str, Callable[[Any], Any]] = {"prometheusPort": int, "nodeLabels": tuple}
    return Observability(**{key: kinds.get(key, str)(value) for key, value in values.items()})


def observability_problems(where: Where, raw: object) -> list[Problem]:
    """Every problem of the section."""
    if not isinstance(raw, Mapping):
        return [problem(where, f"is {shown(raw)}", "write {} to measure with all defaults, or leave it out")]
    if wrong := mapping_problems(where, raw):
        return wrong
    found = unknown_key_problems(where, raw, _CHECKS)
    for key, value in raw.items():
        if key in _CHECKS and value is not None:
            found += _CHECKS[key]((*where, key), value)
    return found


def room_problems(where: Where, raw: object, nodes: int) -> list[Problem]:
    """Whether a fleet is too large for the memory that its metrics may take; empty if the section is malformed."""
    if not isinstance(raw, Mapping) or observability_problems(where, raw):
        return []
    asked = observability_from(raw)
    if nodes <= asked.most_nodes:
        return []
    enough = -(-nodes * _SERIES_PER_NODE * _BYTES_PER_SERIES // (1 << 30))
    message = f"is {asked.memory}, enough for {asked.most_nodes:,} nodes, and these are {nodes:,}"
    return [problem((*where, "memory"), message, f"write memory: {enough}Gi")]


def _port(where: Where, raw: object) -> list[Problem]:
    return whole_problems(where, raw, LOWEST_PORT, HIGHEST_PORT, "a port")


def _duration(least: str, most: str, why: str) -> Callable[[Where, object], list[Problem]]:
    def check(where: Where, raw: object) -> list[Problem]:
        if wrong := duration_problems(where, raw):
            return wrong
        length = seconds(raw) if isinstance(raw, str) else 0.0
        if seconds(least) <= length <= seconds(most):
            return []
        return [problem(where, f"is {shown(raw)}, not between {least} and {most}: {why}", f"write {least} to {most}")]

    return check


def _size(least: str, why: str) -> Callable[[Where, object], list[Problem]]:
    def check(where: Where, raw: object) -> list[Problem]:
        if wrong := quantity_problems(where, raw, example=least):
            return wrong
        assert isinstance(raw, str | int | float)
        if parse(raw).nanos >= parse(least).nanos:
            return []
        return [problem(where, f"is {human('memory', parse(raw))}: {why}", f"write {least} or more")]

    return check


def _labels(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, list | tuple):
        return [problem(where, f"is {shown(raw)}", "write a list of label keys such as [example.com/team]")]
    found = []
    for index, key in enumerate(raw):
        mistake = label_key_mistake(key) if isinstance(key, str) else None
        if not isinstance(key, str):
            found.append(problem((*where, index), f"is {shown(key)}", "write a label key such as example.com/team"))
        elif mistake:
            found.append(problem((*where, index), f"{shown(key)} {mistake.message}", mistake.remedy))
    return found


_CHECKS: Mapping[str, Callable[[Where, object], list[Problem]]] = {
    "prometheusPort": _port,
    "retention": _duration("2h", "8760h", "Prometheus keeps two hours in memory whatever it is set to"),
    "retentionSize": _size("512Mi", "Prometheus' write-ahead log alone may be larger"),
    "memory": _size("256Mi", "less is not enough for a control plane's own series"),
    "scrapeInterval": _duration("1s", "30s", "the dashboards' rates look at one minute"),
    "nodeScrapeInterval": _duration("5s", "2m", "a series is taken for gone after five"),
    "nodeLabels": _labels,
}


def as_bytes(quantity: str) -> int:
    """A checked quantity as a number of bytes."""
    return parse(quantity).nanos // NANO
