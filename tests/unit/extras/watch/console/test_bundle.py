"""The page of recorded runs as one file."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kumulus.extras.watch.console import bundle
from kumulus.extras.watch.console.bundle import shown
from kumulus.extras.watch.history.document import Sort, save
from kumulus.extras.watch.history.recorder import Facts, JobKey, Recorder
from tests.support.fleets import node, pod
from tests.support.histories import drawn
from tests.support.pages import answered

HOSTILE = "</script><script>document.title='taken'</script><!--<img src=x onerror=alert(1)>\u2028\u202e"


class Parts(HTMLParser):
    """What a browser finds: elements, and the text of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("", {}, ""))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0]:
            tag, attributes, text = self.found[-1]
            self.found[-1] = tag, attributes, text + data


def parts(page: str) -> list[tuple[str, dict[str, str | None], str]]:
    parser = Parts()
    parser.feed(page)
    parser.close()
    return parser.found


def hash_of(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_its_policy_allows_its_own_script_and_style_and_nothing_else() -> None:
    found = parts(bundle.page([drawn(1), drawn(2)]))
    policy = next(attributes["content"] for tag, attributes, _ in found if attributes.get("http-equiv"))
    scripts = [(attributes.get("type"), text) for tag, attributes, text in found if tag == "script"]
    style = next(text for tag, _, text in found if tag == "style")
    assert [kind for kind, _ in scripts] == ["application/json", "application/json", "module"]
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{hash_of(scripts[-1][1])}'",
        "style-src": f"'sha256-{hash_of(style)}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_it_asks_nobody_for_anything() -> None:
    for tag, attributes, text in parts(bundle.page([drawn(1)])):
        for name in ("src", "href", "action"):
            assert not (attributes.get(name) or "").startswith(("http", "/")), (tag, attributes)
        if attributes.get("type") == "module":
            # fetchNode of the live page is in a module that both use; nobody calls it here.
            assert "https://" not in text
            assert "import " not in text


def test_whatever_names_say_stays_data() -> None:
    recorder = Recorder({"title": HOSTILE, "scheduler": HOSTILE, "run": HOSTILE})
    recorder.node(HOSTILE, node(HOSTILE, HOSTILE), 0)
    recorder.pod(f"default/{HOSTILE}", pod(HOSTILE, HOSTILE), JobKey(HOSTILE, HOSTILE, HOSTILE), 1)
    recorder.job(JobKey(HOSTILE, HOSTILE, HOSTILE), Facts(1, HOSTILE, 0, HOSTILE), 2)
    recorder.happened(HOSTILE, Sort.FAULT, 3)
    page = bundle.page([recorder.history])
    found = parts(page)
    assert [tag for tag, _, _ in found] == [tag for tag, _, _ in parts(bundle.page([drawn(1)]))]
    data = next(text for _, attributes, text in found if attributes.get("type") == "application/json")
    assert json.loads(data) == recorder.history.to_plain()


def test_every_export_of_every_module_is_there_for_those_that_import_it() -> None:
    script = bundle.bundle("run")
    given = dict(
        re.findall(r"const (module\w+) = \(\(\) => \{.*?^return \{ (.*?) \};$", script, re.DOTALL | re.MULTILINE)
    )
    taken = re.findall(r"^const \{ (.+?) \} = (module\w+);$", script, re.MULTILINE)
    assert len(taken) > 10
    for names, module in taken:
        assert {name.strip() for name in names.split(",")} <= set(given[module].split(", ")), module
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)


def test_every_asset_is_in_one_of_the_two_pages() -> None:
    there = {file.name for file in resources.files("kumulus.extras.watch.console").joinpath("assets").iterdir()}
    both = {name for entry in ("app", "run") for name in bundle.ordered(entry)}
    assert there == {f"{name}.js" for name in both} | {"index.html", "run.html", "style.css"}


def test_a_run_of_2550_nodes_and_10000_pods_is_under_five_megabytes(tmp_path: Path) -> None:
    recorder = Recorder({"title": "large"})
    for number in range(2550):
        recorder.node(
            f"a2-ultragpu-8g-use1-{number}", node(f"a2-ultragpu-8g-use1-{number}", rack=f"r{number // 16}"), 0
        )
    for number in range(10_000):
        name, job = (
            f"train-{number // 100}-workers-{number:05d}-x7k2p",
            JobKey(f"train-{number // 100}", "Job", "train"),
        )
        on = f"a2-ultragpu-8g-use1-{number % 2550}"
        for at, each in enumerate((pod(name, "", phase="Pending"), pod(name, on, phase="Pending"), pod(name, on))):
            recorder.pod(f"experiment-large-a1b2c3-1/{name}", each, job, number * 10 + at)
        recorder.pod(f"experiment-large-a1b2c3-1/{name}", pod(name, on, phase="Succeeded"), job, 200_000 + number)
    assert len(bundle.page([recorder.history])) < 5_000_000
    save(recorder.history, tmp_path / "large.json.gz")
    assert (tmp_path / "large.json.gz").stat().st_size < 500_000


async def test_it_is_served_to_who_has_its_token_and_may_not_be_framed() -> None:
    import asyncio

    server = shown([drawn(1)])

    def ask(address: str, path: str) -> tuple[int, str, str | None]:
        with answered(address, path) as answer:
            return answer.status, answer.read().decode(), answer.headers["Content-Security-Policy"]

    async with server.served() as address:
        status, body, policy = await asyncio.to_thread(ask, address, urlsplit(address).path)
        assert (status, body, policy) == (200, bundle.page([drawn(1)]), "frame-ancestors 'none'")
        status, body, _ = await asyncio.to_thread(ask, address, "/")
        assert status == 403
        assert "kumulus experiment show" in body


@pytest.mark.parametrize("entry", ["app", "run"])
def test_a_module_comes_after_those_it_imports(entry: str) -> None:
    names = list(bundle.ordered(entry))
    for name in names:
        source = resources.files("kumulus.extras.watch.console").joinpath("assets", f"{name}.js").read_text()
        wanted = re.findall(r'from "\./(\w+)\.js"', source)
        assert all(names.index(each) < names.index(name) for each in wanted), name
