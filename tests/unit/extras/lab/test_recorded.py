"""The fragmentation of a run from the events of its report, and the command that shows it."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kumulus.cli import main
from kumulus.extras.lab.commands.show import history_of
from kumulus.extras.lab.offline.recorded import RunFragmentation, fragmentation
from kumulus.extras.watch.history.document import History, save
from kumulus.extras.watch.history.moment import moment
from kumulus.extras.watch.history.recorder import JobKey, Recorder
from kumulus.extras.watch.live.admission import AdmissionRule, AdmissionShape, Alternative, Nature, Requirement
from tests.support.fleets import WHOLE, node, pod
from tests.support.histories import drawn
from tests.support.reports import report

JOB = JobKey("train", "Job", "tasks")
PRODUCT = "nvidia.com/gpu.product"


def expected(history: History, at: int) -> float:
    """The fragmented GPUs at a moment, node by node, as the paper's definition has them of whole GPUs."""
    asked = Counter((history.requests[row[2]][0], history.requests[row[2]][1]) for row in history.pods)
    typical, taken = [], 0
    for kind, count in sorted(asked.items(), key=lambda item: (item[1], item[0][1], item[0][0]), reverse=True):
        if taken < 0.95 * asked.total():
            typical.append((kind, count))
            taken += count
    found = 0.0
    for each in moment(history, at).nodes.values():
        free, cpu = max(0, each.allocatable.gpus - each.taken.gpus), each.allocatable.cpu - each.taken.cpu
        lost = sum(count for (gpus, asks), count in typical if not gpus or gpus > free or asks > cpu)
        found += free * lost / taken
    return found


def measured(history: History) -> RunFragmentation:
    found = fragmentation(history)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(4))
def test_after_each_event_of_a_drawn_run_it_is_what_the_nodes_come_to(seed: int) -> None:
    history = drawn(seed)
    history.about["namespace"] = "default"
    found = measured(history)
    assert len(found.moments) > 500
    for each in found.moments[:: len(found.moments) // 60]:
        assert each.fragmented == pytest.approx(expected(history, each.at)), each
        assert each.gpus == moment(history, each.at).allocatable.gpus
    assert found.peak.fragmented / found.peak.gpus == max(each.fragmented / each.gpus for each in found.moments)


def two_products(gpus: int = 4, wanted: str = "A100") -> History:
    history = recorded(gpus, wanted).history
    history.end = 10_000
    return history


def recorded(gpus: int = 4, wanted: str = "A100") -> Recorder:
    """Two nodes with eight GPUs each; four pods ask for some of a product, of which one node has none."""
    recorder = Recorder({"title": "small", "namespace": "run-1"})
    for name, product in (("a", "A100"), ("b", "T4")):
        recorder.node(name, node(name, "use1", product=product, nature=Nature(((PRODUCT, product),))), 0)
    rule = AdmissionRule((Alternative(AdmissionShape((Requirement(PRODUCT, "In", (wanted,)),))),))
    for number in range(4):
        waits = replace(pod(f"p-{number}", "", gpus), phase="Pending", rule=rule)
        recorder.pod(f"run-1/p-{number}", waits, JOB, 1000 + number)
    recorder.pod("run-1/p-0", replace(pod("p-0", "", gpus), node="a", phase="Running", rule=rule), JOB, 3000)
    # Another's, which takes room and is no pod to be expected.
    recorder.pod("other/x", replace(pod("x", "", 1), node="a", phase="Running"), JOB, 5000)
    return recorder


def test_gpus_of_a_product_that_no_pod_may_have_are_fragmented_and_so_are_too_few_on_a_node() -> None:
    found = measured(two_products())
    assert found.kinds == 1
    assert [(each.at, each.arrived, each.allocated, each.fragmented) for each in found.moments] == [
        # All eight of the other product.
        *((at, arrived, 0, 8.0) for at, arrived in ((0, 0), (1000, 4), (1001, 8), (1002, 12), (1003, 16))),
        (3000, 16, 4, 8.0),
        # Three are left on the first node, of four that a pod asks for.
        (5000, 16, 5, 11.0),
    ]
    assert found.mean == pytest.approx((5 * 8 + 5 * 11) / 10 / 16)
    # With the last pod all sixteen GPUs were asked for; then none, four, and five were given.
    assert found.curves["allocated_percent"]["100"] == pytest.approx(100 * (0 + 4 + 5) / 3 / 16)


def test_a_fault_that_takes_gpus_away_takes_them_from_those_that_are_free() -> None:
    recorder = recorded()
    ill = node("b", "use1", product="T4", allocatable=WHOLE._replace(gpus=6), nature=Nature(((PRODUCT, "T4"),)))
    recorder.node("b", ill, 7000)
    recorder.node("a", None, 8000)
    last = measured(recorder.history).moments[-2:]
    assert [(each.gpus, each.fragmented) for each in last] == [(14, 9.0), (6, 6.0)]


def test_what_may_go_nowhere_can_use_nothing() -> None:
    assert measured(two_products(wanted="H100")).moments[0].fragmented == 16.0


def test_without_gpus_there_is_nothing_to_measure() -> None:
    assert fragmentation(two_products(0)) is None


def test_the_command_shows_a_run_over_time_or_every_moment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(two_products(), tmp_path / "history-1.json.gz")
    assert main.main(["experiment", "fragmentation", str(tmp_path / "history-1.json.gz")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "small: one typical kind of pods, 16 GPUs"
    assert [line.split() for line in lines[1:4]] == [
        ["AT", "ARRIVED", "ALLOCATED", "FRAGMENTED", "OF", "ALL", "OF", "IDLE"],
        ["0", "s", "0.0", "%", "0.00", "%", "50.00", "%", "50.00", "%"],
        ["1", "s", "25.0", "%", "0.00", "%", "50.00", "%", "50.00", "%"],
    ]
    assert lines[-1] == "mean over time 59.38 % of all GPUs; most 68.75 % after 5 s"
    assert main.main(["experiment", "fragmentation", str(tmp_path / "history-1.json.gz"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [each["at_ms"] for each in answer["moments"]] == [0, 1000, 1001, 1002, 1003, 3000, 5000]
    assert answer["mean_percent_of_all_gpus"] == 59.375


def test_a_run_without_gpus_or_without_a_history_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "history-1.json.gz"
    save(two_products(0), file)
    assert main.main(["experiment", "fragmentation", str(file)]) == 1
    assert "has no GPUs to be fragmented" in capsys.readouterr().err
    (tmp_path / "report.json").write_text('{"metadata": {}, "results": {}}')
    assert main.main(["experiment", "fragmentation", str(tmp_path), "--repetition", "2"]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_moment_of_a_run_is_drawn_with_what_came_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "history-1.json.gz")
    save(recorded().history, Path(file))
    target = tmp_path / "run.png"
    assert main.main(["experiment", "show", file, file, "--picture", str(target), "--at", "2s"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"wrote {target}: 31 % of the GPUs allocated at 5.0 s, 2 of 5 pods had a node, 0 of 1 job")
    assert target.read_bytes().startswith(b"\x89PNG")
    history = recorded().history
    history.about["unheard"] = [
        "the client stood still for 0.13 s",
        "its watches were interrupted 7 times",
        "a time is not known of 9 pods",
    ]
    save(history, Path(file))
    target = target.with_suffix(".svg")
    assert main.main(["experiment", "show", file, file, "--picture", str(target)]) == 0
    texts = re.findall("<text[^>]*>([^<]*)</text>", target.read_text(encoding="utf-8"))
    at = texts.index(
        "not all was heard in time: the client stood still for 0.13 s; its watches were interrupted 7 times; a"
    )
    assert texts[at + 1] == "time is not known of 9 pods"
    for wrong, words in (
        (["--picture", "run.jpg"], "run.jpg does not say what picture"),
        (["--picture", str(target), "--at", "x"], "--at is x; write a time"),
    ):
        assert main.main(["experiment", "show", file, *wrong]) == 1
        assert words in capsys.readouterr().err


def test_two_runs_of_an_experiment_are_headed_by_their_labels(tmp_path: Path) -> None:
    made = report()
    for label in ("even", "skewed", ""):
        directory = tmp_path / (label or "plain")
        directory.mkdir()
        save(recorded().history, directory / "history-1.json.gz")
        made.metadata.label = label
        (directory / "report.json").write_text(made.model_dump_json(by_alias=True))
    runs = [str(tmp_path / "even"), str(tmp_path / "skewed" / "history-1.json.gz")]
    page, picture = tmp_path / "show.html", tmp_path / "show.svg"
    assert main.main(["experiment", "show", *runs, "--html", str(page), "--picture", str(picture)]) == 0
    assert "<title>even and skewed · Kumulus</title>" in page.read_text(encoding="utf-8")
    texts = re.findall("<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    assert {"even", "skewed"} <= set(texts)
    assert history_of(str(tmp_path / "plain"), tmp_path, 1).about["title"] == "small"
