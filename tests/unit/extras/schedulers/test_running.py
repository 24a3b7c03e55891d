"""What is said of a scheduler's process that has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from kumulus.extras.schedulers.children import log_file
from kumulus.extras.schedulers.launch.plan import Program
from kumulus.extras.schedulers.running import Running


def ended(directory: Path, log: str) -> Running:
    """A Kueue of which nothing runs any more, with its log."""
    file = log_file(directory, "kueue")
    file.parent.mkdir()
    file.write_text(log)
    program = Program("kueue", directory / "kueue", (), {}, "")
    return Running("kueue", "0.19.2", (), {}, directory / "kubeconfig.yaml", directory, (program,))


@pytest.mark.parametrize(
    ("log", "remedies"),
    [("fsnotify: too many open files\n", 1), ("panic: no such flag\n", 0), ("", 0)],
)
def test_an_end_for_want_of_inotify_instances_comes_with_its_remedy(tmp_path: Path, log: str, remedies: int) -> None:
    failure = ended(tmp_path, log).failure()
    assert failure is not None
    assert failure.startswith("kueue has ended")
    assert ("; its last words:\n    " + log.strip() in failure) == bool(log)
    assert failure.count("`sudo sysctl fs.inotify.max_user_instances=") == remedies
