"""Building: what is made, what two processes do to each other, and what an interruption leaves."""

import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.toolchain import build, cache, pins, supply
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.locate import locate
from kumulus.toolchain.progress import ToolLine
from tests.support.mirror import serving
from tests.unit.toolchain.releases import both
from tests.unit.toolchain.sample import Sample, wait_for

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="needs a Go compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Go's own library, compiled once for all tests: what an interrupted build leaves for the next one."""
    sample = Sample(tmp_path_factory.mktemp("library"))
    sample.write()
    (sample.folder / "modules" / "alpha" / "main.go").write_text("package main\n\nfunc main() { broken }\n")
    assert sample.ensure().returncode != 0
    return sample.cache / "scratch" / "caches" / "std"


@pytest.fixture
def sample(tmp_path: Path, library: Path) -> Iterator[Sample]:
    made = Sample(tmp_path, library)
    made.write()
    yield made
    made.close()


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, library: Path) -> tuple[Sample, str]:
    """A sample whose tools were built, and what was said then."""
    made = Sample(tmp_path_factory.mktemp("ready"), library)
    made.write()
    result = made.ensure()
    assert result.returncode == 0, result.stderr
    return made, result.stderr


@pytest.fixture
def built(sample: Sample, ready: tuple[Sample, str]) -> Sample:
    """A sample whose tools are there."""
    shutil.copytree(ready[0].cache, sample.cache)
    return sample


def says(executable: Path) -> str:
    return subprocess.run([executable], capture_output=True, text=True, check=True).stderr.strip()


def test_missing_tools_are_built_at_their_version_and_nothing_of_the_compiler_is_left(
    ready: tuple[Sample, str],
) -> None:
    sample, said = ready
    assert {name: says(file) for name, file in sample.installed().items()} == {
        "alpha": "tool v1.2.3",
        "beta": "tool v2.0.0",
    }
    assert "building 2 tools, about 1 min\n" in said
    assert "[1/2] alpha v1.2.3 … built in" in said
    assert "[2/2] beta v2.0.0 … built in" in said
    assert not (sample.cache / "scratch").exists()


def test_where_nobody_can_be_asked_it_is_said_once_and_everything_is_built(sample: Sample) -> None:
    with serving() as mirror:
        both(sample, mirror)
    result = sample.ensure(KUMULUS_TOOLS="auto", KUMULUS_MIRROR=f"{mirror.url}/mine")
    assert result.returncode == 0, result.stderr
    said = "nothing is downloaded: 127.0.0.1 cannot be reached (Connection refused); building instead"
    assert result.stderr.count("nothing is downloaded") == result.stderr.count(said) == 1
    assert "[2/2] beta v2.0.0 … built in" in result.stderr
    assert says(sample.installed()["beta"]) == "tool v2.0.0"


@pytest.mark.parametrize(
    ("mode", "status", "said", "downloaded", "asked"),
    [
        ("auto", 404, "[1/2] alpha v1.2.3 … not downloaded: HTTP 404 Not Found\n", ["beta"], 2),
        # A server that refuses is not asked again.
        ("auto", 403, "[1/2] alpha v1.2.3 … not downloaded: HTTP 403 Forbidden\n", [], 1),
        ("build", 200, "building 2 tools", [], 0),
    ],
)
def test_what_is_not_downloaded_is_built(
    sample: Sample, mode: str, status: int, said: str, downloaded: list[str], asked: int
) -> None:
    with serving() as mirror:
        alpha, _ = both(sample, mirror)
        alpha.status = status
        result = sample.ensure(KUMULUS_TOOLS=mode, KUMULUS_MIRROR=f"{mirror.url}/mine")
    assert result.returncode == 0, result.stderr
    assert said in result.stderr
    tools = sample.installed()
    assert [name for name, file in tools.items() if file.read_bytes().startswith(b"#!/bin/sh")] == downloaded
    assert {"alpha", "beta"} == tools.keys()
    assert len(mirror.asked) == asked


def test_what_goes_into_an_image_is_built_here_whatever_path_has(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(sample.path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(sample.folder / "cache"))
    sample.program("alpha", "echo tool v1.2.3")
    known = pins.load(sample.pins)
    assert supply.missing(known, [known.tool("alpha")]) == []
    wanted: list[pins.Tool] = []
    monkeypatch.setattr(supply, "_provide", lambda _, tools: wanted.extend(tools))
    made = supply.built(["alpha"], known)
    assert made == {"alpha": sample.cache / known.key / "bin" / "alpha"}
    assert supply.missing(known, wanted) == wanted


def test_a_second_process_waits_for_the_first_and_builds_nothing(sample: Sample) -> None:
    sample.gate("alpha")
    first = sample.start()
    sample.waiting_pid()
    second = sample.start()
    assert second.stderr is not None
    assert second.stderr.readline() == f"waiting for process {first.pid}, which is getting the tools\n"
    sample.open_gate()
    first.communicate(timeout=60)
    assert first.returncode == 0
    _, said = second.communicate(timeout=60)
    assert (second.returncode, said) == (0, "")
    assert (sample.builds("alpha"), sample.builds("beta")) == (1, 1)


def test_after_kill_9_the_next_run_builds_what_is_missing_and_no_compiler_lives_on(sample: Sample) -> None:
    sample.gate("beta")
    killed = sample.start()
    compiler = sample.waiting_pid()
    killed.kill()
    killed.communicate()
    wait_for(lambda: not Path(f"/proc/{compiler}").exists() or _is_zombie(compiler))
    alpha = sample.installed()["alpha"].stat().st_mtime_ns
    sample.open_gate()
    resumed = sample.ensure()
    assert resumed.returncode == 0, resumed.stderr
    assert "[1/1] beta v2.0.0 … built in" in resumed.stderr
    assert sample.installed()["alpha"].stat().st_mtime_ns == alpha
    assert not (sample.cache / "scratch").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_stops_the_compiler_and_says_what_is_left(sample: Sample, number: signal.Signals) -> None:
    sample.gate("beta")
    process = sample.start()
    compiler = sample.waiting_pid()
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "interrupted with 1 of 2 tools to go" in said
    # It is told to stop, and gone once the system has come round to it.
    until = time.monotonic() + 20
    while Path(f"/proc/{compiler}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{compiler}").exists()
    assert (sample.cache / "scratch" / "caches" / "std").exists()


def test_a_failing_build_shows_the_compiler_s_last_words_and_its_log(sample: Sample) -> None:
    (sample.folder / "modules" / "beta" / "main.go").write_text("package main\n\nfunc main() { broken }\n")
    result = sample.ensure()
    assert result.returncode != 0
    assert "beta v2.0.0 could not be built: go ended with exit code 1" in result.stderr
    assert "main.go:3:15: undefined: broken" in result.stderr
    log = sample.cache / "logs" / "beta.log"
    assert str(log) in result.stderr
    assert "undefined: broken" in log.read_text()
    assert list(sample.installed()) == ["alpha"]


def test_a_source_without_a_checksum_is_refused(sample: Sample) -> None:
    module = sample.folder / "modules" / "alpha"
    module.joinpath("go.mod").write_text("module sample/alpha\n\ngo 1.21\n\nrequire example.com/other v1.0.0\n")
    module.joinpath("main.go").write_text('package main\n\nimport _ "example.com/other"\n\nfunc main() {}\n')
    result = sample.ensure(GOPROXY="off", GOFLAGS="-mod=mod")
    assert result.returncode != 0
    assert "missing go.sum entry" in result.stderr


def test_what_the_user_has_set_for_go_does_not_change_the_tools(sample: Sample) -> None:
    result = sample.ensure(GOOS="windows", GOFLAGS="-mod=vendor", GOWORK="/nonexistent/go.work")
    assert result.returncode == 0, result.stderr
    assert says(sample.installed()["alpha"]) == "tool v1.2.3"


def test_other_pins_reuse_the_same_tool_by_a_hard_link(built: Sample) -> None:
    before = built.installed()
    built.write(beta="2.1.0")
    result = built.ensure()
    assert "alpha: unchanged, taken from an earlier run" in result.stderr
    assert "[1/1] beta v2.1.0 … built in" in result.stderr
    after = built.installed()
    assert after["alpha"] != before["alpha"]
    assert after["alpha"].stat().st_ino == before["alpha"].stat().st_ino
    assert says(before["beta"]) == "tool v2.0.0"
    assert says(after["beta"]) == "tool v2.1.0"


def test_where_there_are_no_hard_links_an_unchanged_tool_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(source: Path, link: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(source))

    sample = Sample(tmp_path)
    sample.write()
    monkeypatch.setenv("XDG_CACHE_HOME", sample.environment["XDG_CACHE_HOME"])
    alpha, made = pins.load(sample.pins).tool("alpha"), tmp_path / "made"
    made.write_text("#!/bin/sh\n")
    build.install(made, alpha, sample.cache / "other", alpha.stamp())
    monkeypatch.setattr(os, "link", refused)
    assert build.reuse(alpha, sample.cache / "home", sample.cache / "scratch")
    assert cache.is_current(sample.cache / "home", alpha)


def test_what_go_s_caches_share_by_hard_links_takes_its_space_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 1000)
    (tmp_path / "caches").mkdir()
    os.link(tmp_path / "one", tmp_path / "caches" / "same")
    (tmp_path / "caches" / "other").write_bytes(b"y" * 10)
    assert supply.size(tmp_path) == 1010
    assert supply.size(tmp_path / "one") == 1000


def aged(path: Path, days: float) -> None:
    os.utime(path, (time.time() - days * 86_400,) * 2)


def test_tools_of_other_pins_go_when_they_were_not_used_for_a_long_time(sample: Sample) -> None:
    homes = {name: sample.cache / name for name in ("old", "recent", "runs", "kubernetes/v1-old", "no-tools")}
    for name, home in homes.items():
        (home / "bin").mkdir(parents=True)
        shutil.copy2("/bin/sleep", home / "bin" / "tool")
        if name != "no-tools":
            (home / "stamps").mkdir()
            for tool in ("tool", "another"):
                (home / "stamps" / tool).touch()
                aged(home / "stamps" / tool, 91)
    aged(homes["recent"] / "stamps" / "tool", 89)
    with subprocess.Popen([str(homes["runs"] / "bin" / "tool"), "600"]) as process:
        try:
            result = sample.ensure()
        finally:
            process.kill()
    assert result.returncode == 0, result.stderr
    assert {name for name, home in homes.items() if home.exists()} == {"recent", "runs", "no-tools"}
    assert "removed tools of other versions, not used for 90 days: 2 directories" in result.stderr


def test_a_tool_that_is_looked_for_is_used_then(built: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the file system notes of what is read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(built.folder / "cache"))
    known = pins.load(built.pins)
    stamp = cache.stamp_file(cache.tools(known), known.tool("alpha"))
    aged(stamp, 91)
    assert locate(known, known.tool("alpha")).source == "built"
    assert time.time() - stamp.stat().st_mtime < 3600


def test_charts_go_when_they_were_not_used_for_a_long_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "kumulus" / "charts"
    folder.mkdir(parents=True)
    for name, days in (("old.tgz", 91), ("recent.tgz", 89), ("other.txt", 91)):
        (folder / name).touch()
        aged(folder / name, days)
    cache.remove_old_charts()
    assert {file.name for file in folder.iterdir()} == {"recent.tgz", "other.txt"}


def test_a_second_run_needs_no_compiler_and_builds_again_only_what_is_gone(built: Sample) -> None:
    again = built.ensure(PATH="/nonexistent")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    built.installed()["beta"].unlink()
    assert "[1/1] beta" in built.ensure().stderr
    assert says(built.installed()["beta"]) == "tool v2.0.0"


def test_too_little_disk_space_is_said_before_anything_is_built(sample: Sample) -> None:
    sample.write(gigabytes=10**9)
    result = sample.ensure()
    assert result.returncode != 0
    assert "not enough disk space to build the tools" in result.stderr
    assert sample.installed() == {}


def test_an_unusable_cache_directory_is_named(sample: Sample) -> None:
    blocked = sample.folder / "blocked"
    blocked.write_text("a file where a directory should be")
    result = sample.ensure(XDG_CACHE_HOME=str(blocked))
    assert f"cannot write {blocked}/kumulus/toolchain/lock: Not a directory" in result.stderr


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_files_of_a_module_are_kept_beside_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Sample(tmp_path)
    made.write()
    made.pins.write_text(made.pins.read_text() + 'optional = true\nkeep = [{module = "m", path = "crds/*.yaml"}]\n')
    source, home, work = tmp_path / "m" / "crds", tmp_path / "home", tmp_path / "work"
    for folder in (source, work):
        folder.mkdir(parents=True)
    for name in ("a.yaml", "b.yaml", "c.txt"):
        (source / name).write_text(name)
    (beta,) = (tool for tool in pins.load(made.pins).tools if tool.name == "beta")
    builder = build.Builder(tmp_path / "go", tmp_path / "scratch", tmp_path / "logs")
    monkeypatch.setattr(builder.__class__, "_module_directory", lambda *_: tmp_path / "m")
    builder._keep(beta, work, home, ToolLine("beta"))
    assert {file.name for file in cache.kept(home, beta).iterdir()} == {"a.yaml", "b.yaml"}
    build.install(made.program("made", "true"), beta, home, beta.stamp())
    assert cache.is_current(home, beta)
    shutil.rmtree(cache.kept(home, beta))
    assert not cache.is_current(home, beta)
    source.rename(tmp_path / "m" / "elsewhere")
    with pytest.raises(ToolchainError, match=r"beta: module m has no file crds/\*\.yaml"):
        builder._keep(beta, work, home, ToolLine("beta"))


def test_a_tool_is_on_the_disk_before_its_stamp_vouches_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power loss could leave an empty program with a stamp, which no later run would get again."""
    made = Sample(tmp_path)
    made.write()
    home, synced = tmp_path / "home", []
    beta = next(tool for tool in pins.load(made.pins).tools if tool.name == "beta")

    def noted(handle: int) -> None:
        assert not cache.stamp_file(home, beta).exists() or not Path(f"/proc/self/fd/{handle}").resolve().is_file()
        synced.append(os.fstat(handle).st_ino)

    monkeypatch.setattr(os, "fsync", noted)
    build.install(made.program("made", "true"), beta, home, beta.stamp())
    files = (cache.executable(home, beta), cache.stamp_file(home, beta))
    assert {file.stat().st_ino for file in files} <= set(synced)
    assert cache.is_current(home, beta)


def test_a_tool_of_files_only_is_the_directory_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Sample(tmp_path)
    made.write()
    gamma = 'name = "gamma"\nversion = "1.0.0"\npurpose = "charts"\nmodule = "beta"\noptional = true\n'
    places = (("charts/*.yaml", "a/b"), ("crds/*.yaml", "a"))
    kept = "keep = [" + ", ".join(f'{{module = "m", path = "{path}", to = "{to}"}}' for path, to in places) + "]\n"
    made.pins.write_text(f"{made.pins.read_text()}\n[[tool]]\n{gamma}{kept}")
    for name in ("charts/one.yaml", "crds/two.yaml"):
        file = tmp_path / "m" / name
        file.parent.mkdir(parents=True)
        file.write_text(name)
    (tool,) = (each for each in pins.load(made.pins).tools if each.name == "gamma")
    builder = build.Builder(tmp_path / "go", tmp_path / "scratch", tmp_path / "logs")
    monkeypatch.setattr(builder.__class__, "_module_directory", lambda *_: tmp_path / "m")
    home = tmp_path / "home"
    assert not cache.is_current(home, tool)
    builder.build(tool, home, ToolLine("gamma"))
    assert cache.is_current(home, tool)
    found = cache.executable(home, tool)
    assert sorted(str(file.relative_to(found)) for file in found.rglob("*.yaml")) == ["a/b/one.yaml", "a/two.yaml"]


def test_a_set_names_several_tools(tmp_path: Path) -> None:
    made = Sample(tmp_path)
    made.write()
    made.pins.write_text(made.pins.read_text() + '[sets]\nboth = ["beta", "alpha"]\n')
    known = pins.load(made.pins)
    assert [tool.name for tool in known.named("both")] == ["beta", "alpha"]
    assert [tool.name for tool in known.named("alpha")] == ["alpha"]
    with pytest.raises(ToolchainError, match="there is no tool 'gamma'; there are both, alpha, beta"):
        known.named("gamma")
    with pytest.raises(ToolchainError, match=r"there is no tool 'alpa'; did you mean alpha\?"):
        known.named("alpa")


def test_every_set_of_the_project_names_optional_tools() -> None:
    known = pins.load()
    assert known.sets
    assert all(tool.optional for name in known.sets for tool in known.named(name))
