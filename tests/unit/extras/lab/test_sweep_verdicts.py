"""Sweeps: what is called a difference. A seed is a workload, and its repetitions say nothing about others."""

import random
from itertools import product
from pathlib import Path

import pytest

from kumulus.cli.main import main
from kumulus.extras.lab.file.measures import MEANINGS
from kumulus.extras.lab.sweep import page
from kumulus.extras.lab.sweep.significance import difference, interval, needed
from kumulus.extras.lab.sweep.store import CellResult
from tests.support.simulated_sweeps import Simulated
from tests.support.sweeps import read, swept, written

MEASURE = "makespan"


def seeds(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


# The whole is `python -m benchmarks sweeps`.
@pytest.mark.parametrize(
    ("seeds", "repetitions", "spread"), [*product((2, 4, 6, 8), (1, 10), (0.0, 1.0, 10.0)), (8, 3, 0.3), (7, 5, 3.0)]
)
def test_noise_is_called_a_difference_in_at_most_five_per_cent_of_sweeps(
    seeds: int, repetitions: int, spread: float
) -> None:
    sweeps = 300
    assert Simulated(seeds, repetitions, spread).called(sweeps) <= 0.05 * sweeps


def test_all_comparisons_of_a_page_share_the_five_per_cent() -> None:
    sweeps = 300
    assert 0 < Simulated(10, 2, 1.0, groups=4, measures=2).called(sweeps) <= 0.05 * sweeps


@pytest.mark.parametrize("repetitions", [1, 10])
@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0])
def test_a_difference_as_large_as_the_seeds_is_found_with_sixteen_of_them(repetitions: int, spread: float) -> None:
    found = Simulated(16, repetitions, spread, effect=1).verdicts(100)
    assert sum(verdicts == ["higher"] for verdicts in found) >= 80


def test_ten_repetitions_of_one_seed_say_nothing_about_other_workloads(tmp_path: Path) -> None:
    sweep = read(tmp_path, matrix={"policy": ["FGD", "BestFit"]}, measures=[MEASURE])
    results = [
        CellResult(policy, {"policy": policy}, 0, "success", [{MEASURE: base + n / 10} for n in range(10)])
        for policy, base in (("FGD", 100.0), ("BestFit", 200.0))
    ]
    found = page.tables(sweep, results)
    assert [list(row.values.values()) for row in found[MEASURE]] == [[100.45], [200.45]]
    said = list(page.lines(sweep, found))[2]
    assert said.endswith("1 seed  +100.00 s: one seed: nothing is known about other workloads")
    page.write(sweep, found, results, 2, tmp_path / "p.html")
    assert "one seed: nothing is known about other workloads" in (tmp_path / "p.html").read_text()


def test_a_difference_past_the_noise_is_called_one_with_its_interval() -> None:
    draw = random.Random(6)
    one, two = ({seed: draw.gauss(mean, 0.2) for seed in range(8)} for mean in (95, 92))
    found = difference(one, two, comparisons=4)
    assert found is not None
    assert found.interval is not None
    assert (found.verdict, found.seeds) == ("higher", 8)
    assert found.interval[0] < 3 < found.interval[1]
    lower = difference(two, one, comparisons=4)
    assert lower is not None
    assert lower.verdict == "lower"


@pytest.mark.parametrize("comparisons", [1, 2, 4, 10, 600, 4000])
def test_as_many_seeds_as_are_needed_are_enough_and_one_less_is_too_few(comparisons: int) -> None:
    many = needed(comparisons)
    one, two = seeds(*(100.0 + n % 3 for n in range(many))), seeds(*[1.0] * many)
    enough, less = difference(one, two, comparisons), difference({n: one[n] for n in range(many - 1)}, two, comparisons)
    assert enough is not None
    assert less is not None
    assert (enough.verdict, less.verdict) == ("higher", "too few seeds")
    assert less.interval is None
    draw = random.Random(7)
    noise = [{n: draw.gauss(95, 0.2) for n in range(many)} for _ in range(2)]
    again = difference(noise[0], noise[1], comparisons)
    assert again is not None
    assert again.verdict == "within noise"


def test_groups_are_compared_by_the_seeds_that_both_have() -> None:
    both = {seed: 10.0 * seed for seed in range(8)}
    found = difference({**{n: value + 1 for n, value in both.items()}, 100: 9e9}, {**both, 200: -9e9}, 1)
    assert found is not None
    assert found.mean == pytest.approx(1.0)
    assert (found.seeds, found.verdict) == (8, "higher")
    assert difference({1: 1.0}, {2: 1.0}, 1) is None


def test_how_floats_are_added_up_is_no_difference() -> None:
    base = seeds(*(0.1 + n for n in range(8)))
    found = difference({n: value * (1 + 1e-13) for n, value in base.items()}, base, 1)
    assert found is not None
    assert found.verdict == "within noise"


@pytest.mark.parametrize("count", [6, 9, 13, 14, 30])
def test_an_interval_holds_the_mean_about_as_often_as_it_says(count: int) -> None:
    draw, held = random.Random(8), 0
    for _ in range(400):
        found = interval([draw.gauss(10, 2) for _ in range(count)])
        assert found is not None
        held += found[0] <= 10 <= found[1]
    assert 0.93 * 400 <= held <= 0.99 * 400


def test_fewer_than_six_seeds_have_a_range_and_no_interval(tmp_path: Path) -> None:
    assert interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    sweep = read(tmp_path, matrix={"policy": ["FGD"], "seed": "1-5"}, measures=[MEASURE])
    results = [
        CellResult(f"{n}", {"policy": "FGD", "seed": n}, n, "success", [{MEASURE: float(n)}]) for n in range(1, 6)
    ]
    line = list(page.lines(sweep, page.tables(sweep, results)))[1]
    assert line.split("  ")[2] == "3.00 s (1.00 s to 5.00 s)"


def partial(*cut_off: str) -> list[CellResult]:
    """Two policies by eight seeds, of which BestFit is by far the better one where it comes to its end."""
    found = []
    for policy, seed in product(("FGD", "BestFit"), range(1, 9)):
        status = "partial" if f"{policy}{seed}" in cut_off else "success"
        run = {MEASURE: 100.0 + seed - 50 * (policy == "BestFit")}
        found.append(
            CellResult(f"{policy}{seed}", {"policy": policy, "seed": seed}, seed, status, [run], error="a timeout")
        )
    return found


@pytest.mark.parametrize("cut_off", [(), ("BestFit8",), ("FGD1",), ("FGD1", "BestFit8")])
def test_a_group_whose_runs_were_cut_off_is_incomplete_and_never_better(
    tmp_path: Path, cut_off: tuple[str, ...]
) -> None:
    sweep = read(tmp_path, matrix={"policy": ["FGD", "BestFit"], "seed": "1-8"}, measures=[MEASURE])
    found = page.tables(sweep, partial(*cut_off))
    against = found[MEASURE][1].against
    assert against is not None
    assert (against.verdict, against.seeds) == (("incomplete" if cut_off else "lower"), 8 - len(cut_off))
    assert against.mean == pytest.approx(-50)
    if cut_off:
        said = f"incomplete: compared by {8 - len(cut_off)} seeds that both have"
        assert list(page.lines(sweep, found))[2].endswith(said)


def test_a_group_of_which_no_run_came_to_its_end_is_on_the_page(tmp_path: Path) -> None:
    sweep = read(tmp_path, matrix={"policy": ["FGD", "BestFit"], "seed": "1-8"}, measures=[MEASURE])
    results = partial(*(f"BestFit{n}" for n in range(1, 9)))
    found = page.tables(sweep, results)
    assert list(page.lines(sweep, found))[2].split("  ")[2:] == [
        "–",
        "0 of 8 seeds",
        "incomplete: no seed of it and of the baseline has this measure",
    ]
    page.write(sweep, found, results, 16, tmp_path / "p.html")
    assert "0 of 8 seeds" in (tmp_path / "p.html").read_text()


@pytest.mark.parametrize(("live", "why"), [(True, ""), (False, ", each without a cluster")])
def test_a_measure_that_the_file_asks_for_and_no_run_has_is_on_the_page(tmp_path: Path, live: bool, why: str) -> None:
    asked = ["timeToSchedule.p50", MEASURE]
    sweep = read(tmp_path, live=live, matrix={"policy": ["FGD", "BestFit"], "seed": "1-8"}, measures=asked)
    found = page.tables(sweep, partial())
    line = f"not measured in 16 of 16 runs{why}"
    assert list(page.lines(sweep, found))[:2] == [f"timeToSchedule.p50: {line}", f"{MEASURE}: {MEANINGS[MEASURE]}"]
    page.write(sweep, found, partial(), 16, tmp_path / "p.html")
    assert f"<p>{line}</p>" in (tmp_path / "p.html").read_text()


def test_a_seed_one_of_whose_repetitions_lacks_a_measure_is_left_out(tmp_path: Path) -> None:
    sweep = read(tmp_path, matrix={"policy": ["FGD", "BestFit"], "seed": "1-8"}, measures=[MEASURE])
    results = partial()
    results[-1].runs.append({"pods.pending": 5.0})
    against = page.tables(sweep, results)[MEASURE][1].against
    assert against is not None
    assert (against.seeds, against.verdict) == (7, "incomplete")


def test_a_sweep_of_too_few_seeds_says_so_before_its_first_run(tmp_path: Path) -> None:
    said: list[str] = []
    swept(tmp_path, said)
    assert said[0] == "2 seeds: no difference can be distinguished from noise, as 3 comparisons take 8"
    (tmp_path / "one").mkdir()
    said.clear()
    swept(tmp_path / "one", said, matrix={"policy": ["FGD"], "seed": "1-2"})
    assert "comparison" not in "".join(said), "one group is compared with none"


def test_the_page_says_how_many_runs_missed_a_threshold(tmp_path: Path) -> None:
    sweep = read(tmp_path, measures=[MEASURE])
    results = partial()
    results[0].status = "failure"
    page.write(sweep, page.tables(sweep, results), results, 16, tmp_path / "p.html")
    assert "0 not complete; 1 missed a threshold" in (tmp_path / "p.html").read_text()


def test_a_sweep_file_is_checked_without_running_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path)
    assert main(["experiment", "check", str(file)]) == 0
    few = "2 seeds: no difference can be distinguished from noise, as 3 comparisons take 8"
    assert capsys.readouterr().out == f"{file}: small: 4 runs ({few}); no mistakes\n"
    written(tmp_path, matrix={"policy": ["FGD"], "sed": [1]})
    assert main(["experiment", "check", str(file)]) == 1
    assert "sed: is not a known key; write seed" in capsys.readouterr().err
