"""What a run writes, and what is read from it again."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kumulus.cli.main import main
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.report import compare, history, plots, spreads
from kumulus.extras.lab.report.files import RunDirectory, find, manifest, report_at
from kumulus.extras.lab.report.junit import junit
from kumulus.extras.lab.report.making import delayed
from kumulus.extras.lab.report.model import ByUser, Machine, Moment, OfUser, PolicyUsed, Report, ReportedCluster
from kumulus.extras.lab.report.text import lines
from kumulus.extras.lab.report.together import together
from kumulus.kube import Unreachable
from tests.support import disk
from tests.support.reports import report

ROOT = Path(__file__).resolve().parents[4]


def written(results: Path, *reports: Report) -> None:
    for each in reports:
        directory = RunDirectory(results, each.metadata.experiment, each.metadata.run_id)
        directory.prepare({"experiment.yaml": "name: fill\n"})
        directory.write(each)


def test_the_published_schema_is_that_of_the_models() -> None:
    published = json.loads((ROOT / "docs" / "experiment-report.schema.json").read_text())
    assert published == Report.model_json_schema()


def test_a_report_is_read_as_it_was_written_and_indexed_once(tmp_path: Path) -> None:
    one, other = report(), report("20261121-160000-def456", status="failure")
    written(tmp_path, other, one)
    RunDirectory(tmp_path, "fill", one.metadata.run_id).write(one)
    runs = manifest(tmp_path)
    assert [(run["run_id"], run["status"]) for run in runs] == [
        (one.metadata.run_id, "success"),
        (other.metadata.run_id, "failure"),
    ]
    assert report_at(tmp_path / runs[0]["path"]) == one
    inputs = tmp_path / "fill" / one.metadata.run_id / "inputs" / "experiment.yaml"
    assert inputs.read_text() == "name: fill\n"


def test_the_runs_of_one_stack_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*arguments: str) -> str:
        assert main(["experiment", "list", "--results", str(tmp_path), *arguments]) == 0
        return capsys.readouterr().out

    one, other = report(stack="one"), report("20261121-160000-def456", stack="other")
    written(tmp_path, one, other)
    assert [line.split()[2] for line in told().splitlines()] == ["STACK", "one", "other"]
    heading, line = told("-s", "other").splitlines()
    assert (line.split()[0], "STACK" in heading) == (other.metadata.run_id, False)
    assert [run["run_id"] for run in json.loads(told("--stack", "one", "--json"))] == [one.metadata.run_id]
    assert told("-s", "none") == f"no runs of none in {tmp_path}; there are runs of one, other\n"


def test_a_run_is_found_by_its_id_its_beginning_its_place_or_as_the_latest(tmp_path: Path) -> None:
    one, other = report(), report("20261121-160000-def456")
    written(tmp_path, one, other)
    place = tmp_path / "fill" / other.metadata.run_id
    names = (other.metadata.run_id, "20261121-16", "latest", str(place), str(place / "report.json"))
    assert {find(name, tmp_path) for name in names} == {place / "report.json"}
    with pytest.raises(LabError, match="several runs begin with 20261121: 20261121-150000-abc123, 2026"):
        find("20261121", tmp_path)
    with pytest.raises(
        LabError, match=r"there is no run 20261121-150000-abc124 .* did you mean 20261121-150000-abc123"
    ):
        find("20261121-150000-abc124", tmp_path)
    with pytest.raises(LabError, match="`kumulus experiment list` shows the runs"):
        find("x", tmp_path)


def test_a_run_is_found_by_its_label_the_latest_of_several(tmp_path: Path) -> None:
    main, mine, again = (
        report(f"20261121-1{hour}0000-abc123", label=label) for hour, label in ((5, "main"), (6, "mine"), (7, "main"))
    )
    written(tmp_path, main, mine)
    assert find("main", tmp_path).parent.name == main.metadata.run_id
    written(tmp_path, again)
    assert find("main", tmp_path).parent.name == again.metadata.run_id
    assert find(main.metadata.run_id, tmp_path).parent.name == main.metadata.run_id
    with pytest.raises(LabError, match=r"there is no run mian .* did you mean .*main"):
        find("mian", tmp_path)
    assert compare.labels([main, mine]) == ["main", "mine"]
    assert compare.table([main, report()])[0] == ["", f"main ({main.metadata.run_id})", report().metadata.run_id]


@pytest.mark.parametrize(
    ("end", "most", "mean", "said"),
    [
        (0.269, 0.688, 0.254, "26.9 % (most 68.8 %, mean 25.4 %)"),
        (1.0, 1.0, 0.5, "100.0 % (mean 50.0 %)"),
        (0.4, 0.4, 0.4, "40.0 %"),
        (0.4, 0.4, None, "40.0 %"),
    ],
)
def test_gpus_of_the_end_have_the_most_and_the_mean_with_them_where_these_differ(
    end: float, most: float, mean: float | None, said: str
) -> None:
    measures = {"duration": 9.0, "allocation.gpuEnd": end, "allocation.gpu": most}
    found = report(measures=[measures if mean is None else {**measures, "allocation.gpuMean": mean}])
    assert f"  allocation.gpuEnd   {said}" in list(lines(found))


@pytest.mark.parametrize(
    ("groups", "jobs", "said"), [(6, 6, "3"), (6, 10, "3 of 6: a PodGroup for each gang, or each slice of one")]
)
def test_groups_that_are_not_as_many_as_the_jobs_are_explained(groups: int, jobs: int, said: str) -> None:
    found = report(measures=[{"duration": 9.0, "groups.admitted": 3, "groups.total": groups, "jobs.total": jobs}])
    assert f"  groups.admitted     {said}" in list(lines(found))


def test_a_run_that_is_under_way_is_running_and_not_the_latest(tmp_path: Path) -> None:
    first, second = report("20261122-1"), report("20261122-2")
    second.metadata.timestamp = "2027-01-01T00:00:00Z"
    directory = RunDirectory(tmp_path, "fill", second.metadata.run_id)
    directory.prepare({})
    directory.write(second, running=True)
    with pytest.raises(LabError, match="is the only one, and under way"):
        find("latest", tmp_path)
    written(tmp_path, first)
    assert [run["status"] for run in manifest(tmp_path)] == ["success", "running"]
    assert find("latest", tmp_path).parent.name == first.metadata.run_id
    directory.write(second)
    assert [run["status"] for run in manifest(tmp_path)] == ["success", "success"]
    assert find("latest", tmp_path).parent.name == second.metadata.run_id


def test_a_run_whose_process_is_gone_runs_no_more(tmp_path: Path) -> None:
    made = report("20261122-1")
    made.results.status = "partial"
    directory = RunDirectory(tmp_path, "fill", made.metadata.run_id)
    directory.prepare({})
    directory.write(made, running=True)
    index = tmp_path / "manifest.json"
    gone = json.loads(index.read_text())
    here = gone["runs"][0]["process"].split(" ")
    gone["runs"][0]["process"] = " ".join([*here[:3], "999999999", "1"])
    index.write_text(json.dumps(gone))
    assert [run["status"] for run in manifest(tmp_path)] == ["partial"]


def test_a_run_whose_directory_was_removed_by_hand_is_none(tmp_path: Path) -> None:
    first, second = report("20261122-1"), report("20261122-2")
    for made in (first, second):
        written(tmp_path, made)
    shutil.rmtree(tmp_path / "fill" / second.metadata.run_id)
    assert find("latest", tmp_path).parent.name == first.metadata.run_id
    with pytest.raises(LabError, match="there is no run 20261122-2"):
        find(second.metadata.run_id, tmp_path)


def test_what_is_no_report_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"metadata": {}, "results": {"status": "success", "tests": []}}')
    with pytest.raises(LabError, match=r"report.json is no report of an experiment: metadata.run_id: Field required"):
        report_at(tmp_path / "report.json")
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(LabError, match=r"no report of an experiment: Invalid JSON: .*; run the experiment again"):
        report_at(tmp_path / "report.json")


def test_a_full_disk_is_told_and_the_report_written_before_is_kept(tmp_path: Path) -> None:
    first = report(status="partial")
    directory = RunDirectory(tmp_path, "fill", first.metadata.run_id)
    with disk.small(tmp_path, 1):
        written(tmp_path, first)
        disk.fill(tmp_path)
        with pytest.raises(LabError) as raised:
            directory.write(report())
        assert report_at(directory.path / "report.json") == first
        assert sorted(path.name for path in directory.path.iterdir()) == ["inputs", "report.json"]
    said = f"{directory.path}/report.json cannot be written: No space left on device; make room, or write --results"
    assert str(raised.value).startswith(said)


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(LabError, match=r"cannot be written: Not a directory; write --results DIRECTORY"):
        RunDirectory(tmp_path / "results", "fill", "x").prepare({})


def test_an_index_that_was_spoiled_is_told(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(LabError, match=r"manifest.json cannot be read: .*; remove it"):
        manifest(tmp_path)


def test_junit_has_a_case_for_each_threshold_and_for_the_end() -> None:
    judged = [("makespan at most 10 s", True, "9 s"), ("allocation.gpu at least 99 %", False, "98 %\x01")]
    heard = {"client.stall": 3.25, "client.interruptions": 2, "pods.untimed": 41, "makespan": 9.0}
    made = report(judged=judged, status="partial", error="interrupted", measures=[heard])
    root = ElementTree.fromstring(junit(made))
    suite = root[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == ["comes to its end", *(what for what, _, _ in judged)]
    assert {each.get("name"): each.get("value") for each in suite.iter("property")} == {
        "client.stall": "3.25", "client.interruptions": "2", "pods.untimed": "41",
    }  # fmt: skip
    failure = cases[2].find("failure")
    assert failure is not None
    assert failure.get("message") == "found 98 %"
    assert root[1][0].get("name") == "comes to its end"


def test_a_threshold_has_the_same_name_in_every_run() -> None:
    judged = [("jobs.admitted exactly 12", True, "12")]
    names = [
        [(case.get("classname"), case.get("name")) for case in ElementTree.fromstring(junit(each)).iter("testcase")]
        for each in (report(judged=judged), report("20261122-150000-def456", judged=judged))
    ]
    assert names[0] == names[1] == [("fill.default.1", "comes to its end"), ("fill.default.1", judged[0][0])]


def test_a_report_in_lines_names_what_was_missed() -> None:
    said = "\n".join(lines(report(judged=[("pods.pending exactly 0", False, "3")], status="failure")))
    assert "fill: failure; all pods are scheduled" in said
    assert "MISSED  pods.pending exactly 0: 3" in said


@pytest.mark.parametrize(
    ("expected", "load", "said"),
    [
        ("makespan at most 1 s", 24.04, "this machine was busy: load 24 on 2 cores"),
        ("scheduling.rate at least 50 a second", 2.46, "this machine was busy: load 2.5 on 2 cores"),
        ("train: no pod on faulted nodes after 10s", 24.0, "this machine was busy: load 24 on 2 cores"),
        ("nodes of rack1 cordoned within 10s", 24.0, "this machine was busy: load 24 on 2 cores"),
        ("makespan at most 1 s", 2.0, ""),
        ("pods.pending exactly 0", 24.0, ""),
        ("train on n0, n1", 24.0, ""),
    ],
)
def test_where_a_time_is_missed_a_busy_machine_is_named(expected: str, load: float, said: str) -> None:
    machine = Machine(cores=2, memory_bytes=1, load=load)
    for holds in (False, True):
        found = report(judged=[(expected, holds, "2 s")], machine=machine)
        assert [line for line in lines(found) if "busy" in line] == ([said] if said and not holds else [])


def test_what_had_no_answer_in_time_has_the_load_of_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    late, refused = Unreachable("https://127.0.0.1", "late"), Unreachable("https://127.0.0.1", "refused")
    late.__cause__, refused.__cause__ = TimeoutError(), ConnectionRefusedError()
    monkeypatch.setattr("os.getloadavg", lambda: (1000.0, 0.0, 0.0))
    assert delayed(late).startswith("this machine was busy: load 1000 on ")
    assert delayed(refused) == ""


def test_what_holds_in_a_run_that_was_cut_off_holds_so_far() -> None:
    judged = [("pods.pending exactly 0", True, "0"), ("makespan at most 1 s", False, "2 s")]
    found = {status: [*lines(report(judged=judged, status=status))][-2:] for status in ("partial", "failure")}
    missed = "  MISSED  makespan at most 1 s: 2 s"
    assert found["partial"] == ["  so far  pods.pending exactly 0: 0", missed]
    assert found["failure"] == ["  reached pods.pending exactly 0: 0", missed]


def test_repetitions_are_compared_by_median_and_range() -> None:
    one = report(measures=[{"timeToSchedule.p99": value} for value in (3.0, 1.0, 2.0)])
    other = report("20261121-160000-def456", scheduler="volcano", measures=[{"timeToSchedule.p99": 4.0}])
    rows = {row[0]: row[1:] for row in compare.table([one, other])}
    assert rows["timeToSchedule.p99"] == ["2.00 s (1.00 s … 3.00 s)", "4.00 s"]
    assert rows["scheduler"] == ["default", "volcano"]
    assert "makespan" not in rows


def test_what_came_of_the_demand_is_compared_with_the_policy_that_placed_it() -> None:
    one, other = report(measures=[{"policy.allocated": 0.95}]), report(measures=[{"policy.allocated": 0.9}])
    assert [row for row in compare.table([one, other]) if row[0] == "policy"] == []
    one.results.tests[0].details.policy = PolicyUsed(
        policy="FGD", allocated_percent={}, fragmented_percent_of_all_gpus={}, fragmented_percent_of_idle_gpus={}
    )
    rows = {row[0]: row[1:] for row in compare.table([one, other])}
    assert rows["policy"] == ["FGD", "-"]
    assert rows["policy.allocated"] == ["95.0 %", "90.0 %"]


def test_a_run_that_was_cut_off_is_incomplete_and_neither_better_nor_worse() -> None:
    """Its waits are of the pods that had one by then; the longest are not among them."""
    whole = report(measures=[{"timeToSchedule.p99": 9.0, "pods.created": 8.0}])
    cut_off = report("20261121-160000-def456", status="partial", error="not over within its timeout, 60 s")
    cut_off.results.tests[0].details.measures |= {"pods.created": 8.0}
    cut_off.results.tests[0].details.users = ByUser(
        of="gpus",
        users={"me": OfUser(pods=1, scheduled=1, waited={"p50": 1.0}, slowdown={}, hours=1, part=1, share=1)},
        shares={},
    )
    for everything in (False, True):
        rows = {row[0]: row[1:] for row in compare.table([whole, cut_off], everything)}
        assert rows["timeToSchedule.p99"] == ["9.00 s", "incomplete"]
        assert rows["me: wait p50"] == ["-", "incomplete"]
        assert rows["pods.created"] == ["8", "8"], "of which neither more nor fewer are better"
        assert rows["status"] == ["success", "partial"]
    [row] = history._runs([("p", cut_off)], Path())
    assert row["measures"] == [], "it is in no trend"


def test_of_a_user_whose_times_were_not_all_heard_those_that_were_are_printed() -> None:
    """On a busy machine the median may be known only between bounds, and the shortest exactly."""
    unheard = report()
    user = OfUser(pods=2, scheduled=2, waited={"min": 1.0}, slowdown={"min": 1.5}, hours=1, part=1, share=1)
    unheard.results.tests[0].details.users = ByUser(of="gpus", users={"me": user}, shares={})
    [line] = (line for line in lines(unheard) if line.split()[:1] == ["me"])
    assert line.split() == ["me", "2", "-", "-", "-", "1.00", "100.0", "%"]


def test_one_repetition_that_was_cut_off_makes_its_group_incomplete() -> None:
    made = report(measures=[{"makespan": 9.0}, {"makespan": 3.0}])
    made.results.status = made.results.tests[1].status = "partial"
    assert dict(row for row in compare.table([made]) if len(row) == 2)["makespan"] == "incomplete"
    assert spreads.by_measure([made]) == {"makespan": {"fill · default · incomplete": [9.0]}}


def test_a_comparison_is_unfair_when_more_than_the_scheduler_differs() -> None:
    one = report()
    second = report("20261121-160000-def456", scheduler="volcano", settings={"clientQPS": "5000.0", "version": "1"})
    assert list(compare.unfair([one, second])) == []
    slow = report("20261121-160000-def456", settings={"kube-api-qps": "50"}, seed=2)
    assert list(compare.unfair([one, slow])) == [
        "seeds differ: 1 in 20261121-150000-abc123, 2 in 20261121-160000-def456",
        "limits of the scheduler's requests differ: qps 5000 in 20261121-150000-abc123, "
        "qps 50 in 20261121-160000-def456",
    ]
    ended = report("20261121-160000-def456", status="partial", error="interrupted")
    assert list(compare.unfair([one, ended])) == ["20261121-160000-def456 did not come to its end: interrupted"]


def test_runs_that_were_made_in_turn_are_compared_as_repetitions_of_one() -> None:
    runs = [
        report(f"2026112{number}-150000-abc123", measures=[{"makespan": each}])
        for number, each in enumerate((9.0, 3.0, 4.0))
    ]
    for number, each in enumerate(runs, 1):
        each.metadata.label, each.metadata.machine.load = f"main-{number}", number * 2.0
    runs[1].results.status = "failure"
    made = together(runs)
    assert (made.metadata.called, made.metadata.machine.load) == ("main (3 runs)", 4.0)
    assert (made.results.status, made.metadata.repetitions) == ("failure", 3)
    assert compare.spread(made, "makespan") == "4.00 s (3.00 s … 9.00 s)"
    assert together(runs[:1]) is runs[0]
    runs[2].metadata.inputs.files["experiment.yaml"] = "another"
    with pytest.raises(LabError, match=r"main-1 \(.*\) and main-3 \(.*\) are not repetitions of one run"):
        together(runs)


def test_what_differs_among_many_is_said_once() -> None:
    runs = [report(f"2026112{number}-150000-abc123", seed=seed) for number, seed in enumerate((1, 2, 1, 2, 3))]
    one, two, three, four, five = (each.metadata.run_id for each in runs)
    assert list(compare.unfair(runs)) == [
        f"seeds differ: 1 in {one} and {three}, 2 in {two} and {four}, 3 in {five}",
    ]


def test_a_comparison_is_unfair_when_only_one_scheduler_logged_how_it_decides() -> None:
    one, slow = report(), report("20261121-160000-def456")
    slow.metadata.scheduler.why = True
    what = "logs of how the scheduler decides, which change placements, differ"
    assert list(compare.unfair([one, slow])) == [
        f"{what}: none in 20261121-150000-abc123, --why in 20261121-160000-def456"
    ]
    one.metadata.scheduler.why = True
    assert list(compare.unfair([one, slow])) == []


def test_only_what_differs_is_named() -> None:
    clusters = [
        ReportedCluster(name="s", version="v1.35.4", nodes=30, gpus={"a100 z1": 64, "h100 z1": 8, **more}, local=True)
        for more in ({}, {"h100 z2": 16})
    ]
    one, two = report(cluster=clusters[0]), report("20261121-160000-def456", cluster=clusters[1])
    two.metadata.machine.load = 7.3
    one.metadata.machine.load = 0.4
    assert list(compare.unfair([one, two])) == [
        "GPUs of h100 z2 differ: none in 20261121-150000-abc123, 16 in 20261121-160000-def456",
        "loads before differ: 0.4 in 20261121-150000-abc123, 7.3 in 20261121-160000-def456",
    ]
    two.metadata.machine.load = 1.2
    assert len(list(compare.unfair([one, two]))) == 1


def test_runs_are_called_by_what_tells_them_apart() -> None:
    def configured(*names: str) -> list[Report]:
        made = [report(f"2026112{number}-150000-abc123", scheduler="kube-scheduler") for number in range(len(names))]
        for number, (each, name) in enumerate(zip(made, names, strict=True)):
            each.metadata.scheduler.config = name
            each.metadata.inputs.files[name] = str(number) * 64
        return made

    assert compare.labels(configured("main.yaml", "mine.yaml")) == ["main.yaml", "mine.yaml"]
    same = configured("mine.yaml", "mine.yaml")
    assert compare.labels(same) == ["mine.yaml 00000000", "mine.yaml 11111111"]
    assert ["configuration", "mine.yaml 00000000", "mine.yaml 11111111"] in compare.table(same)
    assert compare.labels(configured("", "")) == ["20261120-150000-abc123", "20261121-150000-abc123"]
    assert compare.labels([report(), report(scheduler="volcano")]) == ["default", "volcano"]


def test_a_comparison_is_unfair_when_one_scheduler_got_other_workloads() -> None:
    one, edited = report(), report("20261121-160000-def456")
    edited.metadata.inputs.workloads = "1" * 64
    [said] = compare.unfair([one, edited])
    assert said.startswith("workloads differ: ")
    assert said.endswith(", 11111111 in 20261121-160000-def456")
    # The objects of gangs are not the same for every scheduler, and those of another seed never are.
    edited.metadata.scheduler.name = "volcano"
    assert list(compare.unfair([one, edited])) == []
    edited.metadata.scheduler.name, edited.metadata.seed = "default", 2
    [said] = compare.unfair([one, edited])
    assert said.startswith("seeds differ")


def test_where_a_cluster_keeps_its_files_makes_no_comparison_unfair() -> None:
    one, second = report(), report("20261121-160000-def456")
    for each, place in ((one, "a"), (second, "b")):
        each.metadata.client_settings["kwok-controller"] = {"config": f"/work/{place}/kwok.yaml"}
    assert list(compare.unfair([one, second])) == []
    second.metadata.client_settings["kube-controller-manager"] = {"kube-api-qps": "50"}
    [said] = compare.unfair([one, second])
    assert "limits of the control plane's requests differ" in said


def test_the_history_page_holds_every_run_and_needs_nothing_else(tmp_path: Path) -> None:
    odd = report("20261121-160000-def456", status="partial", error="<!-- <script></script><b>\u2028")
    written(tmp_path, report(), odd)
    (tmp_path / "fill" / "gone").mkdir()
    path, unread = history.write(tmp_path)
    text = path.read_text()
    assert unread == []
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert (text.count("<script"), text.count("</script>"), "<!-- <" in text) == (1, 1, False)
    assert report().metadata.run_id in text


def test_a_run_whose_report_is_damaged_is_left_out_of_the_page_and_told(tmp_path: Path) -> None:
    written(tmp_path, report(), report("20261121-160000-def456"))
    (tmp_path / "fill" / "20261121-160000-def456" / "report.json").write_text("{")
    _, unread = history.write(tmp_path)
    assert len(unread) == 1
    assert "report.json is no report of an experiment" in unread[0]
    with pytest.raises(LabError, match="there are no runs in"):
        history.write(tmp_path / "elsewhere")


def test_links_to_runs_in_directories_of_any_name_lead_there(tmp_path: Path) -> None:
    run, page = tmp_path / "a #1 50%" / "fill" / "run", tmp_path / "pages"
    run.mkdir(parents=True)
    page.mkdir()
    (run / "repetition-1.svg").touch()
    path = "../a #1 50%/fill/run/report.json"
    [found, undrawn] = history._runs([(path, report()), ("elsewhere/report.json", report())], page)
    assert found["path"] == "../a%20%231%2050%25/fill/run/report.json"
    assert found["plots"] == ["../a%20%231%2050%25/fill/run/repetition-1.svg"]
    assert undrawn["plots"] == [], "what is not there has no link"


def test_another_cluster_policy_workload_or_configuration_is_another_series() -> None:
    small = ReportedCluster(name="s", version="v1.35.4", nodes=3, gpus={}, local=True)
    made = [report(f"20261121-{number}50000-abc123") for number in range(6)]
    made.append(report("20261121-650000-abc123", cluster=small))
    none: dict[str, float] = {}
    measured = {"fragmented_percent_of_all_gpus": none, "fragmented_percent_of_idle_gpus": none}
    for number, policy in ((0, "FGD"), (1, "FGD"), (2, "BestFit"), (3, "FGD"), (4, "FGD"), (5, "FGD")):
        made[number].results.tests[0].details.policy = PolicyUsed(policy=policy, allocated_percent={}, **measured)
    made[3].metadata.inputs.workloads = "1" * 64
    made[4].metadata.inputs.files["least.yaml"] = "0" * 64
    # The experiment's own file may have changed in what no figure depends on, such as its description.
    made[5].metadata.inputs.files["experiment.yaml"] = "0" * 64
    assert [run["series"] for run in history._runs([("p", each) for each in made], Path())] == [0, 0, 1, 2, 3, 0, 4]


def test_every_repetition_is_drawn_as_svg_and_png(tmp_path: Path) -> None:
    found = plots.write(report(measures=[{"timeToSchedule.p50": 1.0}, {}]), tmp_path)
    assert [path.name for path in found] == [f"repetition-{n}.{kind}" for n in (1, 2) for kind in ("svg", "png")]
    assert "a100 z1" in found[0].read_text()
    assert found[1].read_bytes().startswith(b"\x89PNG")


def test_a_picture_has_letters_and_is_the_same_whenever_it_is_drawn(tmp_path: Path) -> None:
    made = report()
    made.results.tests[0].details.timeline = [Moment(at=1.0, what="from $x_{ to $y")]
    drawn = [plots.write(made, tmp_path)[0].read_text() for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert ">seconds</text>" in drawn[0]
    assert "1 s: from $x_{ to $y</text>" in drawn[0], "dollars are no formula"


def test_nodes_that_come_and_go_are_drawn_by_type_with_their_cost_and_what_happened(tmp_path: Path) -> None:
    made = report()
    [test] = made.results.tests
    there = len(test.details.series["t"])
    test.details.series |= {
        "nodes e2-standard-4 spot": [float(number) for number in range(there)],
        "cost per hour": [1.5] * there,
    }
    test.details.measures |= {"cost.total": 12.5}
    test.details.timeline = [Moment(at=0.0, what="a zone is empty")]
    drawn = plots.write(made, tmp_path)[0].read_text()
    for said in ("nodes by instance type", "e2-standard-4 spot", "an hour, $12.50 in all", "0 s: a zone is empty"):
        assert said in drawn
    # The nodes of a fleet that stays as it is are said in the title.
    test.details.series["nodes e2-standard-4 spot"] = [3.0] * there
    assert "nodes by instance type" not in plots.write(made, tmp_path)[0].read_text()


def test_of_many_types_the_rarest_are_drawn_together() -> None:
    series = {f"nodes t{number}": [float(number), 1.0] for number in range(5)} | {"nodes none": [0.0, 0.0]}
    assert list(plots.by_type(series, 9)) == ["t4", "t3", "t2", "t1", "t0"]
    assert plots.by_type(series, 3) == {"t4": [4.0, 1.0], "t3": [3.0, 1.0], "others": [3.0, 3.0]}
    assert not plots.vary({"nodes a": [3.0, 3.0], "pods": [1.0, 2.0]})
