"""Components' logs: what is kept of long ones, also on a full disk, and their last lines in an error."""

import stat
from pathlib import Path

import pytest

from kumulus import toolchain
from kumulus.host import inotify
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok import kwokctl, logs
from kumulus.runtimes.kwok.layout import Layout


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr(logs, "MOST_BYTES", 64 << 10)
    made = Layout(tmp_path / "clusters" / "dev")
    (made.directory / "logs").mkdir(parents=True)
    return made


def line(number: int) -> bytes:
    return f"line {number:09}\n".encode()


def taken(file: Path) -> int:
    return file.stat().st_blocks * 512


def test_a_component_that_writes_on_for_ever_takes_no_more_than_twice_the_limit(layout: Layout) -> None:
    log, before = layout.directory / "logs" / "etcd.log", layout.directory / "logs" / "etcd.log.1"
    # As kwokctl opens it: whoever writes goes on at their own place.
    with log.open("wb", buffering=0) as writer:
        for turn in range(20):
            writer.write(b"".join(line(turn * 3000 + number) for number in range(3000)))
            logs.rotate(layout)
            assert taken(log) <= 64 << 10
            assert not before.exists() or taken(before) <= 128 << 10
        assert before.exists()
        assert stat.S_IMODE(before.stat().st_mode) == 0o600
        writer.write(line(999_999))
    assert layout.log_tail("etcd").splitlines()[-1].strip() == "line 000999999"
    assert "\0" not in layout.log_tail("etcd")


def test_the_end_of_what_is_cut_off_is_kept(layout: Layout) -> None:
    log = layout.directory / "logs" / "etcd.log"
    log.write_bytes(b"".join(line(number) for number in range(10_000)))
    logs.rotate(layout)
    kept = (layout.directory / "logs" / "etcd.log.1").read_bytes()
    assert kept.endswith(line(9_999))
    assert len(kept) == 64 << 10
    assert log.stat().st_size == 0


def test_a_short_log_stays_as_it_is(layout: Layout) -> None:
    log = layout.directory / "logs" / "etcd.log"
    log.write_bytes(line(1))
    logs.rotate(layout)
    assert log.read_bytes() == line(1)


def test_where_the_predecessor_cannot_be_kept_the_log_is_cut_off_all_the_same(layout: Layout) -> None:
    log = layout.directory / "logs" / "etcd.log"
    log.write_bytes(line(1) * 10_000)
    (layout.directory / "logs" / "etcd.log.1").mkdir()
    logs.rotate(layout)
    assert log.stat().st_size == 0


def write(layout: Layout, *lines: str) -> None:
    (layout.directory / "logs" / "kueue.log").write_text("".join(f"{line}\n" for line in lines))


def test_the_last_lines_follow_the_message(layout: Layout) -> None:
    assert logs.with_log("kueue ended", layout, "kueue") == "kueue ended"
    write(layout, "panic: no memory")
    assert logs.with_log("kueue ended", layout, "kueue") == (
        "kueue ended\n  last lines of the log of kueue:\n    panic: no memory"
    )


def test_what_to_do_without_inotify_instances_comes_before_them(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(layout, "starting", "couldn't initialize inotify: too many open files")
    monkeypatch.setattr(inotify, "limit", lambda: 128)
    first, remedy, title, *_ = logs.with_log("kueue ended", layout, "kueue").splitlines()
    assert (first, title) == ("kueue ended", "  last lines of the log of kueue:")
    assert "the limit of 128 is for all of a user's programs together" in remedy
    assert "`sudo sysctl fs.inotify.max_user_instances=1024`" in remedy
    monkeypatch.setattr(inotify, "limit", lambda: 2000)
    assert "fs.inotify.max_user_instances=4000`" in logs.with_log("kueue ended", layout, "kueue")


async def test_an_error_of_kwokctl_has_the_words_of_its_log(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    source = f'"time":"2026-11-29T00:58:48Z","source":{{"function":"{"f" * 300}"}}'
    program = layout.home / "kwokctl"
    program.write_text(f"""#!/bin/sh
        echo '{{{source},"level":"INFO","msg":"Cluster is starting"}}'
        echo '{{{source},"level":"ERROR","msg":"Execute exit","err":"no such thing"}}'
        echo 'a panic'
        exit 1
    """)
    program.chmod(0o755)
    monkeypatch.setattr(toolchain, "find", lambda name: program)
    with pytest.raises(ProviderError) as failed:
        await kwokctl.run(layout, "start", "cluster")
    told = (
        "kwokctl start cluster failed (exit code 1):",
        "Cluster is starting",
        "Execute exit: no such thing",
        "a panic",
    )
    assert [each.strip() for each in str(failed.value).splitlines()] == list(told)
