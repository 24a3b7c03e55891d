"""A scheduler is a descriptor that an extra names: whoever needs to know of schedulers asks the registry."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.page import PAGE, with_table
from kumulus.toolchain import pins
from tests.support import toy

API = "toy.example.com/v1"
QUESTIONS = """
import argparse, contextlib, io, json
from pathlib import Path
from kumulus.extras.lab.commands import experiment as command
from kumulus.extras.lab.cluster.creating import _remedy
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.file.schema import experiment_schema
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.plan.scheduling import has_queue_objects, queues
from kumulus.model.errors import SpecError
from kumulus.extras.schedulers.page import table

from kumulus.extras.capture import fields, kinds, putting
from kumulus.extras.capture.commands import replay
from kumulus.extras.capture.day import kept, requests
from kumulus.extras.capture.known_keys import is_known_key
from kumulus.extras.capture.reading import captured, captured_pod
from kumulus.extras.lab.file import recording
from kumulus.extras.lab.measure import placement
from kumulus.extras.schedulers import objects
from kumulus.extras.snapshots import kwok_workloads
from kumulus.extras.watch.live import reports
from kumulus.extras.watch.live.pod import pod_from
from tests.support.messages import pod_message

def experiment(name):
    workload = {"name": "w", "workers": 2, "requests": {"cpu": "1"}, "gang": True}
    return ExperimentSpec.checked({"name": "test", "workloads": [workload], "scheduler": {"name": name}})

try:
    experiment("tpy")
except SpecError as error:
    refused = str(error)
checked = experiment("toy")
parser = argparse.ArgumentParser()
command.add_arguments(parser)
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    parser.parse_args(["run", "-h"])
API, BAND = "toy.example.com/v1", {"name": "b", "namespace": "n"}
ours = {"toy.example.com/band": "b", "toy.example.com/line": "l", "toy.example.com/queue": "q"}
metadata = {"name": "p", "labels": {"toy.example.com/line": "l"}, "annotations": ours}
pod = captured_pod({"metadata": metadata, "spec": {"containers": [{"name": "c"}]}})
seen = pod_from(pod_message(metadata=metadata))
band = {"apiVersion": API, "kind": "Band", "metadata": BAND, "spec": {"queue": "l", "more": 1}, "status": {"mood": "m"}}
posted = putting.posted({"apiVersion": API, "kind": "Band", "metadata": BAND})
request = requests.ApiRequest(0.0, "delete", "", "v1", "pods", "", "n", "p", user="a:toy-scheduler-1")
print(json.dumps({
    "captured": captured("Band", band, API),
    "annotations": pod["annotations"],
    "role": "resources: [bands]" in kinds.cluster_role(),
    "put": [posted["spec"], putting.path_of("Band", band)],
    "known": is_known_key("toy.example.com/line"),
    "replayed": [
        kept.GROUPS["toy.example.com", "bands"], (API, "Band") in recording.recorded_kinds(), kept.queue_of(band)
    ],
    "policy": "{group: toy.example.com}" in replay.policy(),
    "preempts": requests.by_scheduler(request),
    "seen": [seen.queue, seen.job],
    "job": reports.JOBS["/apis/toy.example.com/v1/bands"](band)[:7],
    "queue": reports.QUEUES["/apis/toy.example.com/v1/lines"](band)[0][:3],
    "run": "/apis/toy.example.com/v1/bands" in placement._WAITING_ROOMS,
    "removed": "/apis/toy.example.com/v1/lines" in objects._removed(),
    "stays": kwok_workloads.place_of(b"/registry/toy.example.com/lines/l", frozenset({"toy.example.com/lines"})),
    "schema": "toy" in json.dumps(experiment_schema()),
    "refused": refused,
    "plan": [each["kind"] for each in make(LoadedExperiment(checked, Path()), {}).jobs[0].objects],
    "makes queues": has_queue_objects("toy"),
    "queues": queues("toy", checked.workloads, set(), {"cpu": "9"}),
    "command": shown.getvalue(),
    "docs": table(),
    "unknown kind": _remedy("toy.example.com"),
}))
"""


@pytest.fixture(scope="module")
def answers(toy_site: Path) -> dict[str, Any]:
    answer = toy.ask(toy_site, "-c", QUESTIONS)
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_the_schema_and_the_checks_know_a_third_partys_scheduler(answers: dict[str, Any]) -> None:
    assert answers["schema"]
    assert "write toy" in answers["refused"]


def test_the_plan_of_an_experiment_has_its_gangs_and_queues(answers: dict[str, Any]) -> None:
    assert answers["plan"] == ["Band", "Job"]
    assert answers["makes queues"]
    (queue,) = answers["queues"]
    assert (queue["metadata"]["name"], queue["spec"]) == ("waiting", {"cpu": "9"})


def test_the_command_the_docs_and_a_remedy_name_it(answers: dict[str, Any]) -> None:
    assert "toy" in answers["command"]
    assert "| `toy` | nothing at all |" in answers["docs"]
    assert answers["unknown kind"] == "write scheduler: {name: toy}"


def test_its_objects_are_captured_replayed_and_seen_by_what_its_folder_says(answers: dict[str, Any]) -> None:
    named = {"name": "b", "namespace": "n"}
    assert answers["captured"] == {"apiVersion": API, "kind": "Band", "metadata": named, "spec": {"queue": "l"}}
    assert answers["annotations"] == {"toy.example.com/queue": "q"}
    assert answers["put"] == [{}, "/apis/toy.example.com/v1/namespaces/n/bands"]
    assert answers["replayed"] == ["Band", True, "n"]
    assert answers["seen"] == ["l", "PodGroup/b"]
    assert answers["job"] == ["PodGroup", "b", "n", 0, "", 0, "m"]
    assert answers["queue"] == ["Line", "b", {"queue": "l", "more": "1"}]
    assert answers["stays"] is None
    for where in ("role", "known", "policy", "preempts", "run", "removed"):
        assert answers[where], where


def test_without_the_packages_of_other_extras_all_schedulers_are_known() -> None:
    # A capture asks each for its kinds, and needs no package itself.
    asks = "import sys; sys.modules['aiohttp'] = None; from kumulus.extras.schedulers import registry; registry.every()"
    answer = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_the_page_has_the_table_of_the_registry() -> None:
    text = Path(PAGE).read_text()
    assert with_table(text) == text, "run: python -m kumulus.extras.schedulers.page"


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_schedulers_tools_are_pinned_and_had_by_its_set_and_the_set_of_all(name: str) -> None:
    scheduler, known = registry.get(name), pins.load()
    assert scheduler.name == name
    for tool in scheduler.tools:
        assert toolchain.version(tool)
        if scheduler.tool_set:
            assert tool in known.sets.get(scheduler.tool_set, (scheduler.tool_set,)), "pins.toml: [sets]"
            # A set of all that waits for a digest to be accepted would be of use to nobody.
            assert (tool in known.sets["schedulers"]) == known.tool(tool).buildable, "pins.toml: [sets] schedulers"
