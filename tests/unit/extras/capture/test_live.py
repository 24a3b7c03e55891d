"""How fast a live cluster is read: by the rate that is allowed, and by how long the server takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.capture.live import Reader
from kumulus.extras.capture.spool import Spool
from kumulus.kube import ApiError


class Clock:
    """Time that passes when somebody sleeps or a server works."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class Server:
    """Answers a page of nodes after page, each within so many seconds, and has nothing else.

    Attributes:
        asked: when it was asked for each page, and when it had answered.
    """

    def __init__(self, clock: Clock, pages: int, seconds: float) -> None:
        self._clock, self._pages, self._seconds = clock, pages, seconds
        self.asked: list[tuple[float, float]] = []

    async def request(self, verb: str, path: str, *, decode: Callable[[bytes], Any], **rest: Any) -> Any:
        if path != "/api/v1/nodes":
            raise ApiError(404, "NotFound", "no such kind", verb, path)
        began = self._clock.now
        self._clock.now += self._seconds
        self.asked.append((began, self._clock.now))
        following = "more" if len(self.asked) < self._pages else ""
        return decode(json.dumps({"metadata": {"continue": following}, "items": []}).encode())


@pytest.mark.parametrize(
    ("seconds", "rate", "rest"),
    [
        # By the rate, which a fast server does not stretch; nine times as long as it took; half a second at most.
        pytest.param(0.001, 20.0, 0.049, id="fast"),
        pytest.param(0.02, 20.0, 0.18, id="slow"),
        pytest.param(2.0, 20.0, 0.5, id="over-a-slow-network"),
        pytest.param(0.02, 1.0, 0.98, id="at-a-low-rate"),
    ],
)
async def test_a_server_is_left_alone_for_longer_than_it_takes(
    seconds: float, rate: float, rest: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("kumulus.extras.capture.live.time.monotonic", clock.monotonic)
    monkeypatch.setattr("kumulus.extras.capture.live.asyncio.sleep", clock.sleep)
    server = Server(clock, 4, seconds)
    await Reader(server, Spool(tmp_path, "here"), rate, lambda kind, count: None).read()  # type: ignore[arg-type]
    pauses = [after[0] - before[1] for before, after in zip(server.asked, server.asked[1:], strict=False)]
    assert pauses == [pytest.approx(rest)] * 3
