"""Who stands beside kube-scheduler as an extender: what it answers and notes, whatever the metrics are like."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from kumulus.extras.schedulers.decisions.asked import FilterCounts, ListenerSettings, serve
from kumulus.extras.schedulers.extender import address
from kumulus.host.ports import Claims

SAMPLE = 'scheduler_plugin_evaluation_total{{extension_point="Filter",plugin="NodeName",profile="one"}} {}\n# HELP x\n'
POD = {"metadata": {"name": "a", "namespace": "n", "uid": "u"}, "spec": {"schedulerName": "one"}}


class Beside:
    """The extender, and the metrics that it reads."""

    def __init__(self, settings: ListenerSettings, commands: asyncio.StreamReader, notes: int) -> None:
        self.settings, self.commands, self._notes = settings, commands, notes
        self.runs, self.broken = 0, False

    async def metrics(self, _: web.Request) -> web.Response:
        if self.broken:
            raise web.HTTPInternalServerError
        self.runs += 10
        return web.Response(text=SAMPLE.format(self.runs))

    async def ask(self, path: str = "filter", **arguments: Any) -> tuple[int, Any]:
        url = f"{address(self.settings.port, self.settings.secret)}/{path}"
        async with aiohttp.ClientSession() as session, session.post(url, json=arguments) as answer:
            return answer.status, await answer.json() if answer.status == 200 else None

    def notes(self) -> list[FilterCounts]:
        try:
            text = os.read(self._notes, 1 << 16).decode()
        except BlockingIOError:
            return []
        return [FilterCounts(**json.loads(line)) for line in text.splitlines()]


@asynccontextmanager
async def beside() -> AsyncIterator[Beside]:
    commands, (reading, writing) = asyncio.StreamReader(), os.pipe()
    os.set_blocking(reading, False)
    with Claims() as claims:
        port, metrics = claims.take(), claims.take()
        made = Beside(
            ListenerSettings(port, "secret", f"http://127.0.0.1:{metrics}/metrics", ("one",)), commands, reading
        )
        app = web.Application()
        app.router.add_get("/metrics", made.metrics)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", metrics).start()
        serving = asyncio.create_task(serve(made.settings, commands, writing))
        async with aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(made.settings.ready) as answer:
                        assert answer.status == 200
                        break
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.01)
        yield made
        commands.feed_eof()
        await asyncio.wait_for(serving, 10)
        await runner.cleanup()
    os.close(reading)
    os.close(writing)


async def test_it_refuses_nothing_and_notes_the_counts_before_it_answers() -> None:
    async with beside() as made:
        status, answer = await made.ask(Pod=POD, NodeNames=["x", "y"])
        (note,) = made.notes()
    assert (status, answer) == (200, {"NodeNames": ["x", "y"], "FailedNodes": {}, "Error": ""})
    assert (note.pod, note.profile, note.passed, note.counts) == ("n/a", "one", 2, {"one": {"NodeName": 10}})
    assert note.begin < note.end
    assert len(note.begin) == len("1125 02:28:11.117237")


async def test_metrics_that_cannot_be_read_keep_no_pod_waiting() -> None:
    async with beside() as made:
        made.broken = True
        _, answer = await made.ask(Pod=POD, NodeNames=["x"])
        assert answer["NodeNames"] == ["x"]
        assert [each.counts for each in made.notes()] == [{}]
        made.broken = False
        await made.ask(Pod=POD, NodeNames=["x"])
        assert [each.counts for each in made.notes()] == [{"one": {"NodeName": 10}}]


async def test_it_notes_out_of_turn_once_for_all_that_asked_meanwhile() -> None:
    async with beside() as made:
        made.commands.feed_data(b"\n\n\n")
        found: list[FilterCounts] = []
        while not found:
            await asyncio.sleep(0.01)
            found = made.notes()
        await asyncio.sleep(0.05)
        assert made.notes() == []
    assert [(each.pod, each.counts) for each in found] == [("", {"one": {"NodeName": 10}})]


async def test_who_does_not_know_the_address_is_not_answered() -> None:
    async with beside() as made:
        known, made.settings = made.settings, ListenerSettings(made.settings.port, "other", "", ())
        assert (await made.ask(Pod=POD, NodeNames=["x"]))[0] == 404
        made.settings = known
        assert (await made.ask(Pod={}, NodeNames=["x"]))[0] == 400
        assert made.notes() == []


@pytest.mark.parametrize("alone", [True, False])
def test_pods_are_scheduled_without_it_where_it_is_alone(alone: bool, tmp_path: Path) -> None:
    settings = ListenerSettings(7, "secret", "https://127.0.0.1:8/metrics", ("one", "two"), 4)
    (tmp_path / "asked.json").write_text(settings.text())
    assert ListenerSettings.read(tmp_path / "asked.json") == settings
    entry = settings.extender(alone=alone)
    assert (entry["urlPrefix"], entry["ignorable"]) == ("http://127.0.0.1:7/secret", alone)
