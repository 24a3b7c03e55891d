"""What a pod requests, against Kubernetes' own helper, compiled: over a thousand drawn pods in one go."""

import json
import random
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.schedulers.pod_requests import lenient, spec_requests
from kumulus.extras.schedulers.templates import requests
from kumulus.extras.watch.live.amounts import of_requests
from kumulus.extras.watch.live.pod import pod_from
from kumulus.kube.messages import message_classes
from kumulus.model.quantity import NANO
from kumulus.toolchain import golang

ORACLE = Path(__file__).resolve().parents[1] / "support" / "pod_requests"
PODS = 1200
AMOUNTS = {
    "cpu": ("100m", "1", "2500m", "333m", "0", "1e1"),
    "memory": ("64Mi", "1Gi", "1500M", "128974848", "0"),
    "ephemeral-storage": ("1Gi", "10G"),
    "hugepages-2Mi": ("4Mi", "128Mi"),
    "nvidia.com/gpu": ("1", "8"),
    "example.com/gpu": ("2",),
}
POD_LEVEL = ("cpu", "memory", "hugepages-2Mi")


def amounts(draw: random.Random, names: tuple[str, ...] = tuple(AMOUNTS)) -> dict[str, str]:
    return {name: draw.choice(AMOUNTS[name]) for name in names if draw.random() < 0.5}


def container(draw: random.Random, name: str, **fields: Any) -> dict[str, Any]:
    resources = {"requests": amounts(draw)} if draw.random() < 0.9 else {}
    return {"name": name, **({"resources": resources} if draw.random() < 0.95 else {}), **fields}


def spec(draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"containers": [container(draw, f"c{n}") for n in range(draw.randint(1, 4))]}
    if draw.random() < 0.7:
        restart: tuple[dict[str, Any], ...] = ({}, {"restartPolicy": "Always"})
        found["initContainers"] = [container(draw, f"i{n}", **draw.choice(restart)) for n in range(draw.randint(1, 5))]
    if draw.random() < 0.4:
        found["overhead"] = amounts(draw, ("cpu", "memory"))
    if draw.random() < 0.4:
        found["resources"] = {"requests": amounts(draw, POD_LEVEL)}
    return found


@pytest.fixture(scope="module")
def pods() -> list[dict[str, Any]]:
    draw = random.Random(20261122)
    return [{"metadata": {"name": f"p{n}"}, "spec": spec(draw)} for n in range(PODS)]


@pytest.fixture(scope="module")
def upstream(pods: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, int]]:
    """What the helper says of each pod, in billionths."""
    go, note = golang.on_path("1.26")
    if go is None:
        pytest.skip(f"Kubernetes' helper is compiled by Go: {note}")
    program = tmp_path_factory.mktemp("oracle") / "pod-requests"
    built = subprocess.run([go, "build", "-o", program, "."], cwd=ORACLE, capture_output=True, text=True, check=False)
    if built.returncode != 0 and "dial tcp" in built.stderr:
        pytest.skip(f"its modules are out of reach: {built.stderr}")
    assert built.returncode == 0, built.stderr
    said = subprocess.run([program], input=json.dumps(pods), capture_output=True, text=True, check=True).stdout
    return [{name: int(Decimal(amount) * NANO) for name, amount in each.items()} for each in json.loads(said)]


def message_of(pod: dict[str, Any]) -> Any:
    """The pod in the form in which watches have it."""
    made = message_classes()["Pod"]()
    made.metadata.name = pod["metadata"]["name"]
    written = pod["spec"]
    for field in ("containers", "initContainers"):
        for each in written.get(field, ()):
            part = getattr(made.spec, field).add(name=each["name"], restartPolicy=each.get("restartPolicy", ""))
            for name, amount in each.get("resources", {}).get("requests", {}).items():
                part.resources.requests[name].string = amount
    for name, amount in written.get("overhead", {}).items():
        made.spec.overhead[name].string = amount
    for name, amount in written.get("resources", {}).get("requests", {}).items():
        made.spec.resources.requests[name].string = amount
    return made


def test_it_is_what_the_scheduler_counts(pods: list[dict[str, Any]], upstream: list[dict[str, int]]) -> None:
    ours = [{name: it.nanos for name, it in spec_requests(pod["spec"], lenient).items()} for pod in pods]
    assert ours == upstream
    # The draw has all that makes a difference in it.
    assert sum("resources" in pod["spec"] and "overhead" in pod["spec"] for pod in pods) > 100


def test_the_views_and_the_schedulers_count_the_same(
    pods: list[dict[str, Any]], upstream: list[dict[str, int]]
) -> None:
    for pod, right in zip(pods, upstream, strict=True):
        gpus = sum(amount for name, amount in right.items() if name.endswith("/gpu")) / NANO
        counted = of_requests(spec_requests(pod["spec"], lenient))
        assert (counted.gpus, counted.memory) == (gpus, -(-right.get("memory", 0) // NANO))
        assert counted.cpu == -(-right.get("cpu", 0) * 1000 // NANO)
        assert pod_from(message_of(pod)).requests == counted._replace(pods=1)
        assert {name: it.nanos for name, it in requests(pod).items()} == right
