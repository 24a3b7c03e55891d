"""What a component's log says last, in an error about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kumulus.host import inotify
from kumulus.runtimes.kwok import logs
from kumulus.runtimes.kwok.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "clusters" / "dev")
    (made.directory / "logs").mkdir(parents=True)
    return made


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
