"""Input that means harm: an error in words, soon, and in little memory."""

import gc
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from kumulus.kube import KubeconfigError
from kumulus.kube.config import read_kubeconfig
from kumulus.kube.safe_yaml import MOST_VALUES
from kumulus.model.errors import SpecError
from kumulus.stackfile import location
from kumulus.stackfile.load import load
from kumulus.stackfile.location import read_text
from kumulus.stackfile.yamltext import read_all_yaml, read_yaml
from tests.support import http_server
from tests.unit.stackfile.mistakes import CLUSTER, places, planted

ROOT = Path(__file__).parents[3]
MOST_S = 2
MOST_MEMORY = 200 << 20
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
)
TEXTS = {
    "aliases": (BOMB, "more than 100,000 values"),
    "aliases in a document of the older libyaml's dislike": ("%YAML 1.9\n---\n" + BOMB, ""),
    "merge keys": (MERGES, "more than 100,000 values"),
    "brackets": ("[" * 1_000_000, "too deeply"),
    "braces": ("{a: " * 300_000, "too deeply"),
    "indentation": ("".join(f"{' ' * n}a:\n" for n in range(2000)), "too deeply"),
    "dashes": ("- " * 500_000, "too deeply"),
    "a large file": ("a: 1\n" * 10_000_000, "larger than 4 MiB"),
    "one long line": ("a" * 50_000_000, "larger than 4 MiB"),
    "values up to a mistake at the end": ("- a\n" * 60_000 + "}", "line 60001"),
    "a mistake after many values": ("[" + "1, " * 90_000 + "]\n" + "- b", "line 2"),
    "many values": ("[" + "1," * 1_000_000 + "]", "more than 100,000 values"),
}
# Limits of the process's own: a reader that never ends must not keep the tests.
HARNESS = """
    import resource, sys
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    import time
    from pathlib import Path
    from kumulus.kube import KubeconfigError
    from kumulus.kube.config import read_kubeconfig
    from kumulus.model.errors import SpecError
    from kumulus.stackfile.load import load
    import json
    kind, folder = sys.argv[1], Path(sys.argv[2])
    told = {}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for file in sorted(folder.iterdir()):
        started, said = time.process_time(), ""
        try:
            if kind == "kubeconfig":
                read_kubeconfig(file)
            elif kind == "kemu":
                load({"clusterConfig": str(file)}, "dev", Path())
            else:
                addon = {"name": "a", "chart": "oci://e.x/a", "valuesObject": file.read_text()}
                load({"cluster": {"clusterAddons": [addon]}}, "dev", Path())
        except (SpecError, KubeconfigError) as error:
            said = str(error)
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        told[file.name] = (said, time.process_time() - started, memory)
    print(json.dumps(told))
"""


@pytest.mark.parametrize("kind", ["kubeconfig", "kemu", "values"])
def test_hostile_texts_are_told_soon_and_in_little_memory(kind: str, tmp_path: Path) -> None:
    for name, (text, _) in TEXTS.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-c", textwrap.dedent(HARNESS), kind, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "src", check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert set(told) == set(TEXTS)
    for name, (said, seconds, memory) in told.items():
        assert TEXTS[name][1] in said, name
        assert 0 < len(said) < 1000, name
        assert seconds < MOST_S, name
        assert memory < MOST_MEMORY, name


def test_the_limit_is_on_what_aliases_stand_for() -> None:
    # A list of 1,001 values, a key and what is around it, 99 times; then once more.
    once = "a: &a [" + "1," * 1000 + "]\n"
    within = once + "b: [" + "*a, " * (MOST_VALUES // 1001 - 2) + "]"
    assert read_yaml(within)
    with pytest.raises(SpecError, match=r"line 2, column \d+: more than 100,000 values"):
        read_yaml(within[:-1] + "*a, *a, *a]")


def test_as_many_values_as_may_be_are_read_soon() -> None:
    def seconds(text: str) -> float:
        # Collecting garbage takes as long as this process is large: what other tests have left would count.
        gc.disable()
        try:
            began = time.process_time()
            assert read_yaml(text)
            return time.process_time() - began
        finally:
            gc.enable()

    few, many = (
        "".join(f"a{number}: b\n" for number in range(keys)) for keys in (MOST_VALUES // 20, MOST_VALUES // 2 - 10)
    )
    # In proportion to how many there are: with the square of it, ten times as many would take a hundred times as long.
    # The best of three of each, as two processes on one core take turns with its caches.
    assert min(seconds(many) for _ in range(3)) < 30 * min(seconds(few) for _ in range(3))


def test_each_document_counts_towards_the_limit() -> None:
    with pytest.raises(SpecError, match="more than 100,000 values"):
        read_all_yaml("\n---\n".join(["[" + "1," * 10_000 + "]"] * 11))


REDIRECTS = {"chain": "/chain", "slow-chain": "/slow-chain"}
REDIRECTS |= {"elsewhere": "ftp://127.0.0.1/x", "file": "file:///etc/hostname"}


class Answer(BaseHTTPRequestHandler):
    """Serves what never ends, what ends late, and what sends one elsewhere and back."""

    over: threading.Event

    def do_GET(self) -> None:
        what = self.path.strip("/").partition("?")[0]
        with suppress(OSError):
            if what not in REDIRECTS:
                getattr(self, what.replace("-", "_"))()
                return
            self.over.wait(0.3 if what == "slow-chain" else 0)
            self.send_response(302)
            self.send_header("Location", f"{REDIRECTS[what]}?{time.monotonic_ns()}")
            self.end_headers()

    def drips(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not self.over.wait(0.05):
            self.wfile.write(b"#")

    def slow_headers(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while not self.over.wait(0.05):
            self.wfile.write(b"x")

    def endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not self.over.is_set():
            self.wfile.write(b"#" * 65536)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    over = threading.Event()
    monkeypatch.setattr(Answer, "over", over, raising=False)
    with http_server.serving(Answer) as address:
        yield f"http://{address}"
        over.set()


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("drips", "does not answer completely within 2 s"),
        ("slow-headers", "does not answer completely within 2 s"),
        ("slow-chain", "does not answer completely within 2 s"),
        ("endless", "larger than 4 MiB"),
        ("chain", "redirects again and again"),
        ("elsewhere", "neither http nor https"),
        ("file", "302"),
    ],
)
def test_hostile_servers_are_told_at_the_latest_after_the_deadline(server: str, what: str, words: str) -> None:
    assert location.TIMEOUT_S == MOST_S
    started = time.monotonic()
    with pytest.raises(SpecError) as caught:
        read_text(f"{server}/{what}", Path(), "clusterConfig")
    # Twice the deadline is room for a busy machine; without one, the dripping servers never end.
    assert time.monotonic() - started < 2 * MOST_S
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(SpecError, match="is not a regular file"):
            read_text(str(path), Path(), "clusterConfig")


FREE_TEXT = ("annotations", "valuesObject", "chart", "labels")
MEANT_TO_DECEIVE = ["a\x00b", "a\u202eb", "\u2066a\u2069", "a\u200bb", "a\x1b[2Jb", "a\x7fb", "a\ud800b"]


@pytest.mark.parametrize("character", MEANT_TO_DECEIVE)
def test_control_and_bidirectional_characters_are_in_no_name(character: str) -> None:
    for where in places(CLUSTER):
        told(planted(CLUSTER, where, character), may_pass=any(part in FREE_TEXT for part in where))


@pytest.mark.parametrize("character", MEANT_TO_DECEIVE)
def test_nor_in_the_key_of_a_switch(character: str) -> None:
    told({"kwok": {"runtimeConfig": {f"api{character}/all": True}}})


def told(raw: dict[str, Any], may_pass: bool = False) -> None:
    try:
        load({"cluster": raw}, "dev", Path("/nonexistent"))
    except SpecError as refused:
        error = refused
    else:
        assert may_pass, json.dumps(raw)
        return
    # On one line each, and nothing of it does anything to a terminal.
    assert all(each.isprintable() for each in str(error).splitlines())
    assert len(str(error).splitlines()) == 1 + len(error.problems)


@pytest.mark.parametrize("character", ["\x00", "\u202e", "\x1b"])
def test_a_path_with_such_characters_is_told(character: str) -> None:
    for config in (
        {"clusterConfig": f"a{character}b.yaml"},
        {"clusterConfig": f"http://a{character}b.example/x"},
        {"cluster": {"clusterAddons": [{"name": "a", "chart": f"./a{character}b"}]}},
    ):
        with pytest.raises(SpecError) as caught:
            load(config, "dev", Path("/nonexistent"))
        assert all(each.isprintable() for each in str(caught.value).splitlines())
    with pytest.raises(KubeconfigError) as refused:
        read_kubeconfig(Path(f"/nonexistent/a{character}b"))
    assert str(refused.value).isprintable()
