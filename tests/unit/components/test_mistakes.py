"""Mistakes in several components: a program ends with all of them, and with none that follow from others."""

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from kumulus import EmulatedCluster, Fault, KwokCluster, KwokNodeGroup, Tenant
from kumulus.components import mistakes
from tests.support.program import run
from tests.unit.components.test_library import CAPACITY, POOL

CPU = "\n".join(
    (
        "1 problem in KwokNodeGroup {}",
        '  capacity.cpu: "many" is not a Kubernetes quantity; write a quantity such as "96"',
    )
)
ZONES = {"a": 2}
WRONG: dict[str, Any] = {"zones": ZONES, "capacity": {**CAPACITY, "cpu": "many"}}
RIGHT: dict[str, Any] = {"zones": ZONES, "capacity": CAPACITY}


class Other(pulumi.CustomResource):
    def __init__(self, name: str, properties: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__("other:index:Thing", name, properties, opts)


def said(program: Callable[[], object], *, preview: bool = True, made: str = "dev") -> str:
    """What is said of a program, which has declared no pools and only components of these names."""
    with pytest.raises(pulumi.RunError) as raised:
        run(program, preview=preview)
    declared = vars(raised.value)["declared"]
    assert {each.partition("-")[0] for each in declared} <= {*made.split(), "stack"}
    return str(raised.value)


def three() -> None:
    cluster = KwokCluster("dev")
    KwokNodeGroup("one", cluster=cluster, **WRONG)
    KwokNodeGroup("two", cluster=cluster, **RIGHT)
    KwokNodeGroup("three", cluster=cluster, **WRONG)
    Tenant("research", cluster=cluster, quota={"pods": "many"})
    EmulatedCluster("other", spec={"nodeGroups": [{"name": "g"}]})
    pulumi.export("path", cluster.kubeconfig)


def test_the_mistakes_of_all_components_are_named_at_once() -> None:
    text = said(three)
    assert CPU.format("one") in text
    assert CPU.format("three") in text
    assert [line for line in text.splitlines() if "problem" in line] == [
        "1 problem in KwokNodeGroup one",
        "1 problem in KwokNodeGroup three",
        "1 problem in Tenant research",
        "2 problems in EmulatedCluster other",
    ]
    assert said(three, preview=False) == text


def test_what_follows_a_mistake_is_checked_and_not_declared() -> None:
    known: list[Any] = []

    def program() -> None:
        cluster = KwokCluster("dev", api_server_port=-1)
        group = KwokNodeGroup("gpu", cluster=cluster, **RIGHT)
        tenant = Tenant("research", cluster=cluster, opts=pulumi.ResourceOptions(depends_on=[group]))
        Fault("lost", cluster=cluster, kind="xid-79", target={"nodeGroup": "gpu", "count": 3})
        known.extend([cluster.identity, group.nodes, tenant.namespace])

    text = said(program)
    assert "1 problem in KwokCluster dev\n  api_server_port: is -1, less than 1024" in text
    assert "1 problem in Fault lost\n  target" in text
    assert "problem in KwokNodeGroup" not in text
    assert all(isinstance(each, pulumi.Output) for each in known)


def test_no_mistake_is_one_that_follows_from_another() -> None:
    def program() -> None:
        cluster = KwokCluster("dev")
        group = KwokNodeGroup("gpu", cluster=cluster, **WRONG)
        Fault("one", cluster=cluster, kind="xid-79", target={"nodeGroup": "gpu"})
        Fault("two", cluster=cluster, kind="xid-79", node_groups=[group])

    assert said(program) == CPU.format("gpu")


def test_a_program_that_needs_what_a_wrong_component_has_not_ends_there() -> None:
    def program() -> None:
        group = KwokNodeGroup("gpu", cluster=KwokCluster("dev"), **WRONG)
        KwokNodeGroup("next", cluster=KwokCluster("other"), **WRONG)
        raise AssertionError(group.pools)

    ended = "What follows the first use of KwokNodeGroup gpu in the program has not been looked at."
    assert said(program, made="dev other") == f"{CPU.format('gpu')}\n{CPU.format('next')}\n{ended}"


def test_an_error_of_the_program_that_follows_a_mistake_hides_it_not() -> None:
    def program() -> None:
        KwokNodeGroup("gpu", cluster=KwokCluster("dev"), **WRONG)
        raise TypeError("follows from what is unknown")

    assert said(program) == CPU.format("gpu")


def test_after_a_mistake_nothing_of_another_provider_is_made() -> None:
    def program() -> None:
        cluster = KwokCluster("dev")
        KwokNodeGroup("one", cluster=cluster, **WRONG)
        Other("x", {}, pulumi.ResourceOptions(parent=cluster))
        KwokNodeGroup("two", cluster=cluster, **WRONG)

    both = "\n".join(map(CPU.format, ("one", "two")))
    ended = "What follows other:index:Thing x in the program has not been looked at."
    assert said(program, made="dev x") == both
    assert said(program, preview=False) == f"{CPU.format('one')}\n{ended}"


class Region(pulumi.ComponentResource):
    def __init__(self, name: str) -> None:
        super().__init__("my:index:Region", name)


def test_two_components_of_one_name_are_named_with_their_places() -> None:
    def program() -> None:
        cluster, regions = KwokCluster("dev"), [Region("one"), Region("two")]
        KwokNodeGroup("gpu", cluster=cluster, **RIGHT)
        KwokNodeGroup("gpu", cluster=cluster, **WRONG)
        for each in regions:
            options = pulumi.ResourceOptions(parent=each)
            KwokNodeGroup("cpu", cluster=cluster, opts=options, **RIGHT)
        Tenant("gpu", cluster=cluster)

    line = program.__code__.co_firstlineno
    gpu, cpu = (
        f'1 problem in KwokNodeGroup {name}\n  resource_name: "{name}" at test_mistakes.py:{line + here} is already '
        f"the KwokNodeGroup at test_mistakes.py:{line + there}; write another name"
        for name, here, there in (("gpu", 3, 2), ("cpu", 6, 6))
    )
    assert said(program, made="dev one two gpu cpu") == "\n".join((gpu, CPU.format("gpu"), cpu))


def test_two_groups_whose_nodes_would_have_the_same_names_are_refused() -> None:
    def program() -> None:
        cluster = KwokCluster("dev")
        KwokNodeGroup("gpu", cluster=cluster, zones={"a-b": 1}, capacity=CAPACITY)
        KwokNodeGroup("gpu-a", cluster=cluster, zones={"b": 1}, capacity=CAPACITY)

    text = said(program, made="dev gpu gpu-a")
    message = "zones.b: makes the same node names as the group gpu, such as gpu-a-b-0; rename one of the two groups or"
    assert text == f"1 problem in KwokNodeGroup gpu-a\n  {message} zones"


def test_one_name_may_be_of_several_kinds_and_have_parents_of_several() -> None:
    def program() -> None:
        cluster = KwokCluster("gpu")
        KwokNodeGroup("gpu", cluster=cluster, **RIGHT)
        other = pulumi.ResourceOptions(parent=Region("one"))
        KwokNodeGroup("gpu", cluster=KwokCluster("gpu", opts=other), opts=other, **RIGHT)

    assert list(run(program, preview=True).of_type(POOL)) == ["gpu-a"]


def test_a_program_ends_as_it_should_whichever_component_is_the_first_with_a_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(mistakes, "end_with_engine_if_hosted", lambda: asked.append(True))
    said(lambda: KwokCluster("dev", heartbeat_factor=0))
    assert asked == [True]


def test_each_run_of_a_process_has_its_own_mistakes() -> None:
    assert said(three) == said(three)
    right = run(lambda: KwokNodeGroup("gpu", cluster=KwokCluster("dev"), **RIGHT), preview=True)
    assert list(right.of_type(POOL)) == ["gpu-a"]
