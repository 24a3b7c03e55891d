"""Downloading tools: from a mirror on this machine that answers well, slowly, wrongly, elsewhere, or not at all."""

import base64
import hashlib
import json
import socket
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kumulus.toolchain import cache, fetch, pins, releases
from kumulus.toolchain import download as download_module
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.fetch import Limits, NotFetched, WrongSum
from kumulus.toolchain.pins import CONTROL_PLANE
from kumulus.toolchain.progress import ToolLine
from kumulus.toolchain.releases import Unpinned
from tests.support.mirror import Answer, Mirror, program, serving, sha256, tar, zipped
from tests.unit.toolchain.releases import ALPHA, BETA, HERE, both, offer
from tests.unit.toolchain.sample import Sample


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with serving() as running:
        yield running


def download(sample: Sample, mirror: Mirror, mode: str = "download") -> subprocess.CompletedProcess[str]:
    """Get the tools, on a machine without a compiler."""
    return sample.ensure(KUMULUS_TOOLS=mode, KUMULUS_MIRROR=f"{mirror.url}/mine", PATH="/usr/bin:/bin")


def test_missing_tools_are_downloaded_at_their_version(sample: Sample, mirror: Mirror) -> None:
    both(sample, mirror)
    result = download(sample, mirror)
    assert result.returncode == 0, result.stderr
    assert "[1/2] alpha v1.2.3 … downloaded 0 MB in " in result.stderr
    assert {name: file.read_bytes() for name, file in sample.installed().items()} == {"alpha": ALPHA, "beta": BETA}
    again = sample.ensure(KUMULUS_TOOLS="download", KUMULUS_MIRROR="http://127.0.0.1:1", PATH="/nonexistent")
    assert (again.returncode, again.stderr) == (0, "")
    assert not list(sample.cache.glob("downloads/*"))


def test_a_downloaded_tool_is_told_from_a_built_one_until_its_pin_changes(
    sample: Sample, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    both(sample, mirror)
    download(sample, mirror)
    monkeypatch.setenv("XDG_CACHE_HOME", str(sample.folder / "cache"))
    known = pins.load(sample.pins)
    home = cache.tools(known)
    assert [cache.origin(home, tool) for tool in known.tools] == ["downloaded", "downloaded"]
    cache.stamp_file(home, known.tool("beta")).write_text(known.tool("beta").stamp())
    assert cache.origin(home, known.tool("beta")) == "built"
    sample.pins.write_text(sample.pins.read_text().replace("release/alpha.tar.gz", "release/other.tar.gz"))
    pins.load.cache_clear()
    changed = pins.load(sample.pins)
    assert [cache.origin(cache.tools(changed), tool) for tool in changed.tools] == [None, "built"]


def test_other_pins_take_over_what_was_downloaded_by_itself(sample: Sample, mirror: Mirror) -> None:
    both(sample, mirror)
    sample.pins.write_text(sample.pins.read_text().replace('others = "alpha/alpha-*"\n', ""))
    download(sample, mirror)
    (sample.folder / "modules" / "alpha" / "main.go").write_text("package main\n\nfunc main() {}\n")
    mirror.asked.clear()
    result = download(sample, mirror)
    assert result.stderr == "alpha, beta: unchanged, taken from an earlier run\n"
    assert mirror.asked == []


def test_one_archive_has_several_tools_and_what_belongs_beside_them(sample: Sample, mirror: Mirror) -> None:
    files = {"alpha/alpha": program("1.2.3"), "alpha/beta": program("1.2.3"), "alpha/alpha-host": b"#!/bin/sh\n"}
    sample.write(beta="1.2.3")
    links = {"alpha/alpha-link": "/etc/passwd"}
    members = {"alpha": "alpha/alpha", "beta": "alpha/beta"}
    packed = tar({**files, "alpha/other": b"", "../../alpha-evil": b""}, links)
    offer(sample, mirror, "all.tar.gz", packed, members, "1.2.3")
    result = download(sample, mirror)
    assert "[1/1] alpha, beta v1.2.3 … downloaded" in result.stderr
    assert set(sample.installed()) == {"alpha", "beta", "alpha-host"}
    assert len(mirror.asked) == 1


def test_an_answer_that_breaks_off_is_gone_on_with(sample: Sample, mirror: Mirror) -> None:
    _, beta = both(sample, mirror)
    beta.truncate = [30_000, 20_000]
    result = download(sample, mirror)
    assert result.returncode == 0, result.stderr
    asked = [part for path, part in mirror.asked if path.endswith("/beta")]
    assert asked == ["", "bytes=30000-", "bytes=50000-"]
    assert sample.installed()["beta"].read_bytes() == BETA


def test_the_next_run_goes_on_with_what_a_failed_one_left(sample: Sample, mirror: Mirror) -> None:
    _, beta = both(sample, mirror)
    beta.truncate = [40_000, 0, 0, 0, 0]
    failed = download(sample, mirror)
    assert "the answer ended after 40,000 of" in failed.stderr
    assert "beta cannot be downloaded" in failed.stderr
    assert set(sample.installed()) == {"alpha"}
    mirror.asked.clear()
    assert download(sample, mirror).returncode == 0
    assert mirror.asked == [("/mine/files.example/release/beta", "bytes=40000-")]


def test_a_server_that_cannot_give_parts_gives_the_whole(sample: Sample, mirror: Mirror) -> None:
    _, beta = both(sample, mirror)
    beta.truncate, beta.ranges = [30_000], False
    assert download(sample, mirror).returncode == 0
    assert sample.installed()["beta"].read_bytes() == BETA


@pytest.mark.parametrize("mode", ["auto", "download"])
def test_a_wrong_sum_is_an_error_that_names_both_and_nothing_is_kept(sample: Sample, mirror: Mirror, mode: str) -> None:
    _, beta = both(sample, mirror)
    beta.body = program("2.0.0") + b"echo wrong"
    result = download(sample, mirror, mode)
    assert result.returncode != 0
    for said in (
        "beta is not the file that pins.toml asks for; nothing of it is kept",
        f"{mirror.url}/mine/files.example/release/beta",
        f"sha256 wanted: {sha256(BETA)}",
        f"sha256 found:  {sha256(beta.body)}",
    ):
        assert said in result.stderr
    assert set(sample.installed()) == {"alpha"}
    assert not list(sample.cache.glob("downloads/*"))


def test_a_rest_that_fits_nothing_is_fetched_anew(sample: Sample, mirror: Mirror) -> None:
    both(sample, mirror)
    folder = sample.cache / "downloads"
    folder.mkdir(parents=True)
    (folder / f"{sha256(BETA)[:12]}-beta.part").write_bytes(b"x" * 5_000)
    result = download(sample, mirror)
    assert result.returncode == 0, result.stderr
    assert sample.installed()["beta"].read_bytes() == BETA


@pytest.mark.parametrize(("resumes", "rate"), [(True, "0.1 MB/s"), (False, "0.2 MB/s")])
def test_what_an_earlier_run_had_fetched_does_not_count_as_fast(
    resumes: bool, rate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    def fetched(urls: tuple[str, ...], to: Path, algorithm: str, wanted: str, tick: fetch.Tick) -> None:
        for have in (31_000_000, 32_000_000) if resumes else (0, 2_000_000):
            tick(have, 84_000_000)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(fetch, "arrived", lambda to: 31_000_000)
    monkeypatch.setattr(fetch, "fetch", fetched)
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    step = ToolLine("etcd", begun=100.0)
    monkeypatch.setattr(step, "tick", shown.append)
    download_module.fetched("https://files.example/etcd", "etcd", "sha256", "0" * 64, step)
    assert shown[-1].endswith(f", {rate}")


def test_redirects_within_the_mirror_are_followed_and_others_are_not(sample: Sample, mirror: Mirror) -> None:
    _, beta = both(sample, mirror)
    mirror.files["/elsewhere"] = Answer(BETA)
    beta.location = "/elsewhere"
    assert download(sample, mirror).returncode == 0
    with serving() as other:
        other.files["/beta"] = Answer(BETA)
        beta.location = f"{other.url}/beta"
        sample.installed()["beta"].unlink()
        result = download(sample, mirror)
        assert f"it is redirected to {other.url}/beta, which is not https" in result.stderr
        beta.location = f"file://{sample.pins}"
        assert "not downloaded: HTTP 302 Found - Redirection to url 'file:" in download(sample, mirror).stderr
        assert other.asked == []


def test_what_is_not_there_is_an_error_when_downloads_are_asked_for(sample: Sample, mirror: Mirror) -> None:
    _, beta = both(sample, mirror)
    beta.status = 404
    result = download(sample, mirror)
    assert result.returncode != 0
    assert "[2/2] beta v2.0.0 … not downloaded: HTTP 404 Not Found" in result.stderr
    assert f"beta cannot be downloaded: HTTP 404 Not Found\n  from: {mirror.url}/mine/" in result.stderr
    assert "KUMULUS_TOOLS=auto builds what cannot be downloaded" in result.stderr


def test_a_tool_without_a_release_file_cannot_be_had_by_downloads_alone(sample: Sample, mirror: Mirror) -> None:
    offer(sample, mirror, "beta", BETA, {"beta": ""}, "2.0.0")
    result = download(sample, mirror)
    assert f"no release file is known for {HERE} of: alpha v1.2.3" in result.stderr
    assert mirror.asked == []


def test_a_program_that_does_not_run_here_is_not_taken(sample: Sample, mirror: Mirror) -> None:
    offer(sample, mirror, "alpha", b"\x7fELF of another machine", {"alpha": ""}, "1.2.3")
    offer(sample, mirror, "beta", BETA, {"beta": ""}, "2.0.0")
    result = download(sample, mirror)
    assert "alpha of it does not run here as v1.2.3" in result.stderr
    assert "alpha" not in sample.installed()


def test_a_host_that_cannot_be_reached_does_not_keep_the_others_from_it(
    sample: Sample, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both(sample, mirror)
    monkeypatch.setenv("XDG_CACHE_HOME", str(sample.folder / "cache"))
    text = sample.pins.read_text().replace("https://files.example/release/beta", "http://127.0.0.1:1/beta")
    sample.pins.write_text(text.replace("https://files.example", f"{mirror.url}/mine/files.example"))
    known = pins.load(sample.pins)
    monkeypatch.setattr(fetch, "_LIMITS", QUICK)
    got = download_module.Downloads(known).get(known.tools)
    assert [tool.name for tool in got] == ["alpha"]
    assert "beta v2.0.0 … not downloaded: 127.0.0.1 cannot be reached (Connection refused)" in capsys.readouterr().err


def test_a_mirrors_user_and_password_are_sent_to_it_and_nobody_else_and_never_printed(
    sample: Sample, mirror: Mirror
) -> None:
    alpha, beta = both(sample, mirror)
    with serving() as other:
        for name, answer, at in (("/one", alpha, mirror), ("/two", beta, other)):
            at.files[name] = Answer(answer.body)
            answer.location = f"{at.url}{name}"
        # As a redirect to https would go to another host.
        result = sample.ensure(
            KUMULUS_TOOLS="download", KUMULUS_MIRROR=f"{mirror.url.replace('//', '//ci:s3%2Fcret@')}/mine"
        )
        assert other.signed == []
    basic = f"Basic {base64.b64encode(b'ci:s3/cret').decode()}"
    assert mirror.signed == [basic] * 3
    assert "beta cannot be downloaded: it is redirected to" in result.stderr
    assert f"from: {mirror.url}/mine/files.example/release/beta" in result.stderr
    assert "cret" not in result.stderr + result.stdout


def test_a_password_is_not_for_another_host_nor_for_another_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUMULUS_MIRROR", "https://ci:x@mirror.example:8443/mine")
    assert releases.mirror() == "https://mirror.example:8443/mine"
    assert releases.authorization("https://mirror.example:8443/other") == "Basic Y2k6eA=="
    for url in ("https://mirror.example/mine", "http://mirror.example:8443/mine", "https://files.example/mine"):
        assert releases.authorization(url) == ""


@pytest.mark.parametrize(
    ("setting", "written", "said"),
    [
        (releases.mode, "yes", "KUMULUS_TOOLS is 'yes'\n  Write one of: auto, download, build"),
        (releases.mirror, "ftp://mirror", "KUMULUS_MIRROR is 'ftp://mirror'\n  Write a URL such as https://"),
        (releases.mirror, "mirror.example", "KUMULUS_MIRROR is 'mirror.example'\n  Write a URL "),
        (releases.mirror, "ftp://ci:s3cret@mirror", "KUMULUS_MIRROR is '…@mirror'\n  Write a URL "),
        (releases.mirror, "ci:s3cret@mirror", "KUMULUS_MIRROR is '…@mirror'\n  Write a URL "),
        (releases.mirror, "https://ci:s3/cret@mirror", "KUMULUS_MIRROR is '…@mirror'\n  Write a URL "),
    ],
)
def test_settings_that_mean_nothing_are_refused_without_a_password(
    monkeypatch: pytest.MonkeyPatch, setting: Callable[[], str], written: str, said: str
) -> None:
    monkeypatch.setenv("KUMULUS_TOOLS", written)
    monkeypatch.setenv("KUMULUS_MIRROR", written)
    with pytest.raises(ToolchainError) as raised:
        setting()
    assert str(raised.value).startswith(said)
    assert "cret" not in str(raised.value)


def test_a_proxy_whose_port_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:secret@proxy.example:80a")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(NotFetched, match=r"^the port of proxy\.example is no number up to 65535$"):
        fetch.reachable("http://files.example/release")


def test_a_proxy_of_the_environment_is_used(sample: Sample, mirror: Mirror) -> None:
    both(sample, mirror)
    mirror.files = {f"http://mirror.example{path}": answer for path, answer in mirror.files.items()}
    result = sample.ensure(
        KUMULUS_TOOLS="download", KUMULUS_MIRROR="http://mirror.example/mine", http_proxy=mirror.url, no_proxy=""
    )
    assert result.returncode == 0, result.stderr
    assert len(mirror.asked) == 2


# --- one file ------------------------------------------------------------------------------------------------------

QUICK = Limits(connect=5, stall=0.5, least=100_000, attempts=2, pause=0)


def fetched(mirror: Mirror, to: Path, answer: Answer) -> None:
    mirror.files["/file"] = answer
    fetch.fetch((f"{mirror.url}/file",), to, "sha256", sha256(BETA), lambda *_: None)


@pytest.mark.parametrize(
    ("answer", "limits", "said"),
    [
        (Answer(BETA, drip=0.05), QUICK, r"only [\d,]+ bytes came in 0.5 s"),
        (Answer(BETA, silent=60), QUICK, "timed out"),
        (Answer(BETA), Limits(most=1000), "more than 1,000 bytes"),
    ],
    ids=["drips", "says nothing", "does not end"],
)
def test_a_server_of_which_there_is_no_end_is_given_up(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, answer: Answer, limits: Limits, said: str
) -> None:
    monkeypatch.setattr(fetch, "_LIMITS", limits)
    with pytest.raises(NotFetched, match=said) as raised:
        fetched(mirror, tmp_path / "f", answer)
    assert raised.value.host_out == (limits is QUICK)
    assert len(mirror.asked) == 1


def test_a_slow_server_that_goes_on_is_waited_for(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_LIMITS", Limits(stall=0.3, least=1))
    fetched(mirror, tmp_path / "f", Answer(BETA, drip=0.01))
    assert (tmp_path / "f").read_bytes() == BETA


def test_a_part_that_is_too_long_at_the_last_attempt_is_told(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_LIMITS", Limits(attempts=1))
    (tmp_path / "f.part").write_bytes(BETA + b"more")
    with pytest.raises(NotFetched, match="HTTP 416"):
        fetched(mirror, tmp_path / "f", Answer(BETA))


def test_a_sha512_does_as_well(tmp_path: Path, mirror: Mirror) -> None:
    mirror.files["/file"] = Answer(BETA)
    wanted = hashlib.sha512(BETA).hexdigest()
    fetch.fetch((f"{mirror.url}/file",), tmp_path / "f", "sha512", wanted, lambda *_: None)
    with pytest.raises(WrongSum, match="sha512 wanted: abc"):
        fetch.fetch((f"{mirror.url}/file",), tmp_path / "g", "sha512", "abc", lambda *_: None)
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


def test_a_dead_host_is_told_of_within_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_LIMITS", Limits(connect=0.3))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(NotFetched, match=r"127.0.0.1 cannot be reached \(Connection refused\)"):
        fetch.reachable(f"http://127.0.0.1:{port}/x")
    with socket.socket() as deaf:
        # Nobody accepts, and what waits to be accepted is full.
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        with socket.create_connection(deaf.getsockname()), pytest.raises(NotFetched, match="cannot be reached"):
            fetch.reachable(f"http://127.0.0.1:{deaf.getsockname()[1]}/x")


# --- archives ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "pack"), [("a.tar.gz", tar), ("a.zip", zipped)])
def test_only_the_named_member_is_taken(tmp_path: Path, name: str, pack: object) -> None:
    assert callable(pack)
    (tmp_path / name).write_bytes(pack({"x/etcd": b"program", "../outside": b"", "x/etcdctl": b"", "/abs": b""}))
    taken = download_module.take(tmp_path / name, {"etcd": "x/etcd"}, "", tmp_path / "into")
    assert taken == {"etcd": tmp_path / "into" / "etcd"}
    assert taken["etcd"].read_bytes() == b"program"
    assert sorted(file.name for file in tmp_path.rglob("*")) == sorted([name, "into", "etcd"])


def test_what_an_archive_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(tar({"b": b""}, links={"x/link": "b"}))
    with pytest.raises(ToolchainError, match=r"a.tar.gz has no x/etcd"):
        download_module.take(tmp_path / "a.tar.gz", {"etcd": "x/etcd"}, "", tmp_path / "into")
    with pytest.raises(ToolchainError, match=r"x/link is a link\n  Name the file that it points to"):
        download_module.take(tmp_path / "a.tar.gz", {"etcd": "x/link"}, "", tmp_path / "into")
    for name in ("broken.tar.gz", "broken.zip"):
        (tmp_path / name).write_bytes(b"no archive")
        with pytest.raises(ToolchainError, match=f"{name} is no archive that can be read"):
            download_module.take(tmp_path / name, {"etcd": "x/etcd"}, "", tmp_path / "into")


# --- the project's pins --------------------------------------------------------------------------------------------

PLATFORMS = ("linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64")


def test_every_release_file_of_the_project_has_a_sum_with_its_source_and_belongs_to_a_tool() -> None:
    known = pins.load()
    entries = tomllib.loads((pins.HERE / "pins.toml").read_text())["download"]
    versions = {(tool.name, tool.version) for tool in known.tools}
    others = [tool for version in known.other_kubernetes for tool in known.control_plane(version)]
    versions |= {(tool.name, tool.version) for tool in others}
    for platform in PLATFORMS:
        for (tool, version), release in releases.read(entries, platform).items():
            if isinstance(release, Unpinned):
                assert (tool, version) in versions
                continue
            assert release.url.startswith("https://"), release
            assert release.source, release
            assert version in release.url, release
            assert (tool, version) in versions or known.tool(tool).beside == "pulumi", release
    tables = [entry[platform] for entry in entries for platform in PLATFORMS if platform in entry]
    sums = [table["sha256"] for table in tables if not table.get("unpinned")]
    assert len(sums) == len(set(sums))


def test_on_linux_all_that_a_stack_of_the_kwok_runtime_needs_can_be_downloaded_but_what_has_no_published_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for platform in PLATFORMS[:2]:
        monkeypatch.setattr(releases, "platform", lambda platform=platform: platform)
        pins.load.cache_clear()
        known = pins.load()
        lacking = {tool.name for tool in known.shared if tool.release is None}
        # docs/decisions/toolchain.md, 2026-11-27.
        assert lacking == {"etcd", *CONTROL_PLANE, "kubectl"}
        assert all(tool.release for version in known.other_kubernetes for tool in known.control_plane(version))
    pins.load.cache_clear()


def test_a_sum_that_is_none_is_refused(sample: Sample) -> None:
    entry = {"url": "https://x.example/a", "sha256": "abc"}
    with pytest.raises(TypeError, match="has no sum"):
        releases.read([{"tools": {}, "version": "1", "megabytes": 1, "source": "", HERE: entry}], HERE)
    text = json.dumps(entry).replace(":", " =")
    table = f'[[download]]\ntools = {{}}\nversion = "1"\nmegabytes = 1\nsource = ""\n{HERE} = {text}\n'
    sample.pins.write_text(sample.pins.read_text() + table)
    with pytest.raises(ToolchainError, match="has no sum"):
        pins.load(sample.pins)
