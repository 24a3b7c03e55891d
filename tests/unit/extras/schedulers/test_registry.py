"""A scheduler is a descriptor that an extra names: whoever needs to know of schedulers asks the registry."""

import json
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.page import PAGE, with_table
from kumulus.toolchain import pins
from tests.support import toy

QUESTIONS = """
import argparse, contextlib, io, json
from pathlib import Path
from kumulus.extras.lab.commands import experiment as command
from kumulus.extras.lab.cluster.creating import _remedy
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
