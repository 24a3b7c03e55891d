"""What is shown while an experiment runs."""

import io
from pathlib import Path
from typing import cast

from kumulus.extras.lab.cluster.components import Components
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.sampler import Sampler
from kumulus.extras.lab.measure.views import NodeView, PodView
from kumulus.extras.lab.run.bench import RepetitionOutcome
from kumulus.extras.lab.run.progress import RunProgress, bars
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.node import NOWHERE
from kumulus.kube import Client


class Terminal(io.StringIO):
    """An output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def outcome(tmp_path: Path, bound: int, now: float) -> RepetitionOutcome:
    """Four nodes of 8 GPUs, and pods that want one each."""
    allocation = Allocation()
    for number in range(4):
        allocation.put_node(NodeView(f"n{number}", "a100", f"z{number // 2}", Amounts(gpus=8)))
    records = ExperimentRecords(allocation)
    for number in range(8):
        node = f"n{number % 2}" if number < bound else ""
        records.put(PodView(str(number), "w", "j", node, "Pending", "", "", Amounts(gpus=1)), now)
    sampler = Sampler(records, Components(tmp_path), cast(Client, None), lambda: now)
    sampler.sample()
    return RepetitionOutcome(records, sampler, PlacementRecorder({}, NOWHERE, lambda: 0.0, {}))


def test_bars_show_what_is_allocated_of_each_product_and_zone(tmp_path: Path) -> None:
    assert list(bars(outcome(tmp_path, 8, 1.0))) == [
        f"  a100 z0 {'█' * 15}{'░' * 15} 8/16 GPUs",
        f"  a100 z1 {'░' * 30} 0/16 GPUs",
    ]


def test_a_terminal_is_drawn_over_and_a_file_gets_a_line_now_and_then(tmp_path: Path) -> None:
    terminal, file = Terminal(), io.StringIO()
    for out in (terminal, file):
        progress = RunProgress(out, quiet=False)
        progress.show(outcome(tmp_path, 2, 1.0))
        progress.show(outcome(tmp_path, 6, 2.0))
    assert "pods 6/8 scheduled · 4/s · 0 running · 2 pending" in terminal.getvalue()
    assert terminal.getvalue().count("\x1b[3F\x1b[J") == 1
    assert file.getvalue() == "    1 s  pods 2/8 scheduled · 2/s · 0 running · 6 pending\n"


def test_quiet_is_quiet(tmp_path: Path) -> None:
    terminal = Terminal()
    progress = RunProgress(terminal, quiet=True)
    progress.show(outcome(tmp_path, 2, 1.0))
    progress.say("anything")
    assert terminal.getvalue() == ""
