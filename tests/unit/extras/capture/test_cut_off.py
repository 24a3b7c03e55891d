"""A capture that is cut off on its way says so, goes on by the same command, and comes to the same files."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from kumulus.cli.main import main
from kumulus.extras.capture.live import Reader
from kumulus.extras.capture.spool import Spool
from kumulus.kube import ApiError
from tests.support import disk
from tests.support.apiserver import listening, status

PAGES, EACH = 4, 50
Strike = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


class Source:
    """A cluster of a node and pages of pods; something strikes where the third page of pods is asked for.

    Args:
        strike: what then happens; an answer in place of the page, or None to answer as ever.
    """

    def __init__(self, strike: Strike | None = None) -> None:
        self.strike, self.struck = strike, False
        self.asked: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        token = request.query.get("continue", "")
        plural = request.path.rpartition("/")[2]
        self.asked.append(f"{plural} {token}".strip())
        if (plural, token) == ("pods", "2") and self.strike is not None:
            self.struck = True
            if (answer := await self.strike(request)) is not None:
                return answer
        if plural == "nodes":
            return web.json_response({"items": [_node()]})
        if plural != "pods":
            return await status(404, "NotFound", "none")(request)
        page = int(token or 0)
        following = {"continue": str(page + 1)} if page + 1 < PAGES else {}
        return web.json_response({"metadata": following, "items": [_pod(page * EACH + n) for n in range(EACH)]})


def _node() -> dict[str, Any]:
    status = {"capacity": {"cpu": "64"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": "n0"}, "spec": {}, "status": status}


def _pod(number: int) -> dict[str, Any]:
    # Each of a shape of its own, so that a page takes room on the disk.
    labels = {f"example.com/label-{index}": f"value-{number}" for index in range(20)}
    container = {"name": "main", "resources": {"requests": {"cpu": "1m"}}}
    metadata = {"name": f"p{number:04d}", "namespace": "shop", "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [container], "nodeName": "n0"}, "status": {}}


async def gone(request: web.Request) -> web.StreamResponse:
    """The API server drops the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def expired(request: web.Request) -> web.StreamResponse:
    """The token has expired."""
    return await status(401, "Unauthorized", "Unauthorized")(request)


async def capture(address: str, directory: Path, to: Path) -> int:
    """The command, on the cluster at an address."""
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (directory / "kubeconfig").write_text(yaml.safe_dump(config))
    arguments = ["capture", "--kubeconfig", str(directory / "kubeconfig"), "--to", str(to), "--rate", "1000"]
    return await asyncio.to_thread(main, arguments)


def files(directory: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in directory.iterdir() if each.is_file()}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where a capture is written that the disk may be too small for."""
    (tmp_path / "out").mkdir()
    with ExitStack() as mounted:
        yield mounted.enter_context(disk.small(tmp_path / "out", 4))


async def _goes_on(source: Source, address: str, directory: Path, to: Path) -> None:
    """The same command again asks for nothing that is there, and comes to what an undisturbed one comes to."""
    before, source.strike = len(source.asked), None
    assert await capture(address, directory, to) == 0
    again = source.asked[before:]
    assert again == ["pods 2", "pods 3"]
    assert await capture(address, directory, directory / "whole") == 0
    assert files(to) == files(directory / "whole")
    assert not (to / ".unfinished").exists()


@pytest.mark.parametrize(("strike", "said"), [(gone, "is not reachable"), (expired, "does not take these credentials")])
async def test_it_goes_on_after_the_api_server_was_gone_or_the_token_had_expired(
    strike: Strike, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Source(strike)
    async with listening(source.handle) as address:
        with monkeypatch.context() as sooner:
            # Half a minute otherwise, for as long as there is no answer.
            sooner.setattr("kumulus.extras.capture.commands.capture._PATIENCE", 5.0)
            assert await capture(address, tmp_path, tmp_path / "out") == 1
        assert source.struck
        printed = capsys.readouterr().err
        assert said in printed
        assert "What has been read is kept: the same command continues from there" in printed
        # Nothing half-made stands where a capture is looked for.
        assert files(tmp_path / "out") == {}
        await _goes_on(source, address, tmp_path, tmp_path / "out")


async def test_it_goes_on_after_the_disk_was_full(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def full(request: web.Request) -> None:
        disk.fill(place)

    source = Source(full)
    async with listening(source.handle) as address:
        assert await capture(address, tmp_path, place) == 1
        assert source.struck
        printed = capsys.readouterr().err
        assert "No space left on device" in printed
        assert "What has been read is kept: the same command continues from there" in printed
        (place / "filling").unlink()
        await _goes_on(source, address, tmp_path, place)


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
