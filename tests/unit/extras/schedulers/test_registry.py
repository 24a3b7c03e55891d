"""A scheduler is a folder and a line: whoever needs to know of schedulers reads the registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.page import PAGE, with_table
from kumulus.toolchain import pins
from tests.support.variants import ask_a_copy

TOY = '''
"""A scheduler for this test."""
from kumulus.extras.schedulers import templates
from kumulus.extras.schedulers.descriptor import Scheduler


def gang(workloads, name, minimum, queue):
    members = templates.copied(workloads)
    group = {"apiVersion": "toy.example.com/v1", "kind": "Band", "metadata": {"name": name}, "spec": {"queue": queue}}
    templates.assign(members, "toy-scheduler")
    return [group, *members]


def queue(name, namespace, quota):
    return [{"apiVersion": "toy.example.com/v1", "kind": "Line", "metadata": {"name": name}, "spec": dict(quota)}]


SCHEDULER = Scheduler(
    name="toy",
    runs="nothing at all",
    scheduler_name="toy-scheduler",
    tools=("kueue",),
    tool_set="kueue",
    plan=None,
    gang=gang,
    queues=True,
    queue=queue,
    needed_queue="waiting",
    gangs_are="a `Band`",
    api_groups=("toy.example.com",),
)
'''
QUESTIONS = """
import argparse, contextlib, io, json
from pathlib import Path
from kumulus.extras.lab.commands import experiment as command
from kumulus.extras.lab.cluster.kinds import _remedy
from kumulus.extras.lab.file.load import Loaded
from kumulus.extras.lab.file.model import Experiment
from kumulus.extras.lab.file.schema import experiment_schema
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.plan.scheduling import has_queue_objects, queues
from kumulus.model.errors import SpecError
from kumulus.extras.schedulers.page import table

def experiment(name):
    workload = {"name": "w", "workers": 2, "requests": {"cpu": "1"}, "gang": True}
    return Experiment.checked({"name": "test", "workloads": [workload], "scheduler": {"name": name}})

try:
    experiment("tpy")
except SpecError as error:
    refused = str(error)
checked = experiment("toy")
parser = argparse.ArgumentParser()
command.add_arguments(parser)
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    parser.parse_args(["run", "-h"])
print(json.dumps({
    "schema": "toy" in json.dumps(experiment_schema()),
    "refused": refused,
    "plan": [each["kind"] for each in make(Loaded(checked, Path()), {}).jobs[0].objects],
    "makes queues": has_queue_objects("toy"),
    "queues": queues("toy", checked.workloads, set(), {"cpu": "9"}),
    "command": shown.getvalue(),
    "docs": table(),
    "unknown kind": _remedy("toy.example.com"),
}))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    copy = tmp_path_factory.mktemp("with-a-toy")
    line = ('    "yunikorn",\n', '    "yunikorn",\n    "toy",\n')
    answer = ask_a_copy(
        copy, {"extras/schedulers/toy/__init__.py": TOY}, {"extras/schedulers/registry.py": line}, QUESTIONS
    )
    found: dict[str, Any] = json.loads(answer)
    return found


def test_the_schema_and_the_checks_know_a_scheduler_by_its_line_in_the_registry(answers: dict[str, Any]) -> None:
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
            assert tool in known.sets["schedulers"], "pins.toml: [sets] schedulers"
