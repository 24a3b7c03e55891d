"""The ledger of docs/fidelity.md: comparing is right, and the page says what was recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fidelity import __main__ as recording
from benchmarks.fidelity import gpus, page, places, record
from benchmarks.fidelity.facts import ABSENT, compare, counted, flat, sequence, state
from benchmarks.fidelity.situations import IMAGE, SITUATION, Situation, situations
from kumulus.extras.lab.report import fidelity
from kumulus.testing import wanted
from tests.support import upstream


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.RESULTS.read_text())
    return found


def test_a_value_of_all_runs_is_equal_one_of_some_real_runs_is_within_their_spread() -> None:
    real = [{"phase": "Failed", "reason": "Error"}, {"phase": "Failed", "reason": "OOMKilled"}]
    found = compare(counted(real), counted([{"phase": "Failed", "reason": "Error"}]))
    assert (found.equal, found.within, list(found.differences)) == (1, 1, [])


def test_a_fact_that_only_some_runs_have_is_absent_in_the_others() -> None:
    runs = [{"a": "1"}, {"a": "1", "b": "2"}]
    assert counted(runs) == {"a": {"1": 2}, "b": {ABSENT: 1, "2": 1}}


def test_a_value_that_no_real_run_has_is_a_difference_even_if_only_one_emulated_run_has_it() -> None:
    found = compare(counted([{"phase": "Failed"}] * 3), counted([{"phase": "Failed"}, {"phase": "Running"}]))
    (difference,) = found.differences
    assert (difference.path, difference.real, difference.emulated) == (
        "phase",
        {"Failed": 3},
        {"Failed": 1, "Running": 1},
    )


def test_what_only_one_place_has_is_a_difference_in_both_directions() -> None:
    found = compare(counted([{"a": "1"}]), counted([{"b": "2"}]))
    assert [(each.path, each.real, each.emulated) for each in found.differences] == [
        ("a", {"1": 1}, {ABSENT: 1}),
        ("b", {ABSENT: 1}, {"2": 1}),
    ]


def test_elements_go_by_type_and_name_and_what_is_of_one_run_only_is_masked() -> None:
    status = {
        "conditions": [{"type": "Ready", "status": True, "lastTransitionTime": "2026-01-31T12:00:00Z"}],
        "containerStatuses": [{"name": "main", "containerID": "containerd://0a1b2c3d4e5f", "lastState": {}}],
        "podIP": "10.0.0.7",
        "message": "pod w of run-3 on node-1",
    }
    assert flat(status, {"run-3": "‹namespace›", "node-1": "‹node›"}) == {
        "conditions[Ready].type": "Ready",
        "conditions[Ready].status": "true",
        "conditions[Ready].lastTransitionTime": "‹time›",
        "containerStatuses[main].name": "main",
        "containerStatuses[main].containerID": "‹id›",
        "podIP": "‹address›",
        "message": "pod w of ‹namespace› on ‹node›",
    }


def test_a_sequence_has_each_state_once_until_it_changes() -> None:
    bound = {"metadata": {}, "spec": {"nodeName": "a"}, "status": {"phase": "Pending"}}
    ready = {**bound, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    leaving = {**bound, "metadata": {"deletionTimestamp": "now"}, "status": {"phase": "Running"}}
    seen = [state(each) for each in (bound, bound, ready, leaving, ready)]
    assert sequence(seen) == "Pending → Running Ready → Running leaving → Running Ready"


def test_situations_are_told_apart_and_what_they_declare_is_a_stack(known: dict[str, Any]) -> None:
    assert len({each.slug for each in situations()}) == len(situations())
    spec = wanted.loaded(places.specification(known["about"]["shapes"], {}), None, "", {}).spec
    assert [each.name for each in spec.podLifecycles] == [each.slug for each in situations() if each.lifecycle]


def test_a_template_has_an_image_and_the_label_by_which_lifecycles_find_it() -> None:
    job: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"template": {"spec": {"restartPolicy": "Never"}}},
    }
    (made,) = Situation("controllers", "A Job", [], objects=[job]).wanted("node")
    template = made["spec"]["template"]
    assert template["metadata"]["labels"][SITUATION] == "a-job"
    assert template["spec"]["containers"][0]["image"] == IMAGE
    assert "template" in job["spec"], "the data itself is left as it is"
    assert "containers" not in job["spec"]["template"]["spec"]


def test_each_workload_of_the_scheduler_is_carried_out_once_more_with_volcano() -> None:
    placed = [each for each in situations() if each.group == "schedulers"]
    own, volcano = ([each for each in placed if each.scheduler == name] for name in ("", "volcano"))
    assert [f"Volcano: {each.name}" for each in own] == [each.name for each in volcano]
    for each in placed:
        specs = [made["spec"].get("template", made)["spec"] for made in each.wanted("node")]
        assert {spec.get("schedulerName", "") for spec in specs} == {each.scheduler}, each.name


def test_pods_of_schedulers_start_as_the_real_ones_did_whatever_else_their_lifecycle_says(
    known: dict[str, Any],
) -> None:
    seen: dict[str, Any] = {
        "GPUs by four": {"starts_s": [[2.0, 2.0, 2.0], [2.25, 2.25]]},
        "completed": {"ended_s": [3.0]},
    }
    found = record.starts(seen)
    assert found == {"GPUs by four": "2.1s"}
    lives = {each["name"]: each for each in places.specification(known["about"]["shapes"], found)["podLifecycles"]}
    assert {key: lives["gpus-by-four"][key] for key in ("imagePull", "run")} == {"imagePull": "2.1s", "run": "1h"}
    assert "imagePull" not in lives["completed"]


def test_what_is_recorded_alone_leaves_the_others_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "fidelity.json"
    file.write_text(json.dumps({"kind": {"a": {"n": 1}, "b": {"n": 1}}, "kind recorded": {"date": "then"}}))
    monkeypatch.setattr(recording, "RESULTS", file)
    monkeypatch.setattr(recording, "_recorded", lambda part, times, only: {only[0]: {"n": times}})
    monkeypatch.setattr("sys.argv", ["fidelity", "kind", "--only", "b", "--times", "7"])
    assert recording.main() == 0
    assert json.loads(file.read_text()) == {"kind": {"a": {"n": 1}, "b": {"n": 7}}, "kind recorded": {"date": "then"}}


def test_every_difference_has_a_consequence_and_the_worst_come_first(known: dict[str, Any]) -> None:
    lines = page.ledger(page.compared(known))
    assert lines
    assert [line.rule.name for line in lines if not line.rule.consequence] == []
    assert [line.rule.weight for line in lines] == sorted((line.rule.weight for line in lines), reverse=True)


def test_the_page_has_the_figures_of_the_recording(known: dict[str, Any]) -> None:
    text = page.PAGE.read_text()
    begin, end = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
    measured = text.partition(begin)[2].partition(end)[0]
    assert measured == page.tables(known), "python -m benchmarks.fidelity page writes it again"
    assert json.loads(fidelity.REPLAYS.read_text()) == page.replays(known), "so does it with replay_errors.json"


def test_what_a_line_concerns_can_be_told_of_a_pod_and_such_lines_are_on_the_page(known: dict[str, Any]) -> None:
    assert {rule.concerns for rule in fidelity.rules()} == {"", *fidelity.CONCERNS}
    assert {line.rule.concerns for line in page.ledger(page.compared(known))} == {"", *fidelity.CONCERNS}


def test_upstreams_suites_pass_nearly_whole_and_the_page_has_their_figures() -> None:
    passed, failing = upstream.expected()["passed"], len(upstream.listed("fail"))
    assert set(passed) == set(upstream.SUITES)
    assert sum(passed.values()) / (sum(passed.values()) + failing) >= 0.98
    rows = {each[1].strip(): each for line in page.PAGE.read_text().splitlines() if len(each := line.split("|")) == 10}
    assert {suite: int(rows[suite][4]) for suite in passed} == passed


def test_the_pages_table_of_gpus_is_what_the_sources_and_the_catalog_say() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert gpus.with_gpus(text) == text, "run: python -m benchmarks.pages"
    found = gpus.compared()
    assert len({each.product for each in found}) >= 5
    # What a driver says of the GPU itself is said here, too, but for what old versions of it got otherwise.
    described = {"productName", "brand", "architecture", "cudaComputeCapability", "type", "memory", "gpu.compute.major"}
    assert all(not described.intersection(each.differs) for each in found)


def test_every_field_that_differs_of_a_gpu_has_a_consequence() -> None:
    assert gpus.consequence_of("gpu.deploy.device-plugin") == "gpu.deploy"
    with pytest.raises(LookupError, match=r"says what follows from gpu\.colour"):
        gpus.consequence_of("gpu.colour")
