"""What TLS between the API server and etcd costs: the same fleet with and without TLS, alternately."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from benchmarks.control_plane import control_plane
from benchmarks.creation import FLEET
from benchmarks.fleet import Fleet
from benchmarks.report import Row
from benchmarks.usage import usage
from kumulus.runtimes.kwok import etcd

_COMPONENTS = ("etcd", "kube-apiserver")


async def of_etcd(rounds: int = 5) -> list[Row]:
    """2,550 nodes until all are Ready, with TLS between API server and etcd and, as in kwokctl, without."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    spent: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(rounds):
        # The first one may profit from the machine's warm caches, or suffer from its other work.
        for secured in (True, False) if turn % 2 else (False, True):
            with _as_kwokctl_has_it(plain=not secured):
                took, cpu = await _created()
            seconds[secured].append(took)
            spent[secured].append(cpu)
    ratio, cpu_ratio = (
        statistics.median(a / b for a, b in zip(each[True], each[False], strict=True)) for each in (seconds, spent)
    )
    mine, plain = statistics.median(seconds[True]), statistics.median(seconds[False])
    names = {True: "tls", False: "plain"}
    figures = {f"{names[key]}_{turn}_s": took for key, each in seconds.items() for turn, took in enumerate(each)}
    figures |= {f"{names[key]}_{turn}_cpu_s": took for key, each in spent.items() for turn, took in enumerate(each)}
    return [
        Row(
            "2,550 nodes until all are Ready, with TLS between API server and etcd over without",
            "",
            f"{ratio:.2f} times ({mine:.1f} s against {plain:.1f} s, median of {rounds}; CPU time of the two "
            f"{cpu_ratio:.2f} times)",
            None,
            figures,
        )
    ]


@contextmanager
def _as_kwokctl_has_it(plain: bool) -> Iterator[None]:
    def none(*_: Any, **__: Any) -> list[dict[str, Any]]:
        return []

    if not plain:
        yield
        return
    with mock.patch.object(etcd, "patches", none):
        yield


async def _created() -> tuple[float, float]:
    """Seconds until all are Ready, and the CPU time that etcd and the API server have spent on it."""
    # The plugin's own writes to etcd are not part of the comparison.
    async with control_plane(options={"createThrough": "api"}) as plane:
        fleet, before = Fleet(plane), usage(plane.observed.directory)
        started = time.monotonic()
        await fleet.become(FLEET)
        ready = await fleet.until_ready(FLEET) - started
        spent = usage(plane.observed.directory).cpu_since(before)
        await fleet.close()
    return ready, sum(spent[name] for name in _COMPONENTS)
