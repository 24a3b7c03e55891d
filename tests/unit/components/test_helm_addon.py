"""Add-ons under Pulumi's mocks: what Helm is told, and what is kept secret."""

from typing import Any

import pulumi
import pytest

from kumulus import EmulatedCluster, HelmAddon, KwokCluster
from kumulus.model.errors import SpecError
from kumulus.stackfile.addons import ReleaseOptions
from kumulus.stackfile.load import load
from kumulus.stackfile.secrets import Secrets
from tests.support.program import Program, Registered, run
from tests.support.project import ROOT

RELEASE, CRDS = "kubernetes:helm.sh/v3:Release", "kumulus:index:ChartCrds"
PREPARATION, MARK = "kumulus:index:ReleasePreparation", "kumulus:index:ReleaseMark"
ADDON = {"name": "queue", "chart": "queue", "repoURL": "https://charts.example.com"}


def declared(addon: dict[str, Any], *secrets: tuple[str | int, ...]) -> Program:
    places = Secrets(tuple(("clusterAddons", 0, *place) for place in secrets))
    loaded = load({"cluster": {"clusterAddons": [{**ADDON, **addon}]}}, "dev", ROOT, secrets=places)
    return run(lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT))


def release(addon: dict[str, Any], *secrets: tuple[str | int, ...]) -> Registered:
    return declared(addon, *secrets).only(RELEASE)


def test_whatever_else_a_release_knows_is_handed_on() -> None:
    given: dict[str, Any] = dict.fromkeys(ReleaseOptions.model_fields, True)
    given |= {"keyring": "./keys", "maxHistory": 5}
    inputs = release(given).inputs
    assert {key: inputs.get(key) for key in given} == given
    # And nothing that the stack file does not say: it would be a change of every release that is there.
    assert not set(given) & set(release({}).inputs)


def test_a_private_repository_is_entered_with_what_the_file_says() -> None:
    access = {"username": "reader", "password": "hunter2", "caFile": "./ca.pem", "certFile": "/c", "keyFile": "/k"}
    made = release({"repositoryOpts": access}, ("repositoryOpts", "password"))
    # All of a mapping that has a secret in it is one for Pulumi's SDK.
    assert made.inputs["repositoryOpts"]["value"] == {
        "repo": "https://charts.example.com",
        "username": "reader",
        "password": "hunter2",
        "caFile": str(ROOT / "ca.pem"),
        "certFile": "/c",
        "keyFile": "/k",
    }
    assert made.secret_inputs == {"repositoryOpts"}


VALUES = {"valuesObject": {"auth": {"words": ["open", "hunter2"]}, "replicas": 1}}


@pytest.mark.parametrize(
    ("addon", "places", "hidden"),
    [
        (VALUES, [], set()),
        (VALUES, [("valuesObject", "auth", "words", 1)], {"values"}),
        (VALUES, [("valuesObject", "auth")], {"values"}),
        (VALUES, [("valuesObject",)], {"values"}),
        (VALUES, [()], {"values"}),
        # A password is secret however the file has it.
        ({"repositoryOpts": {"username": "u", "password": "x"}}, [], {"repositoryOpts"}),
        ({"repositoryOpts": {"caFile": "./ca.pem"}}, [], set()),
        # A secret next to the values leaves them open.
        ({**VALUES, "repositoryOpts": {"password": "x"}}, [("repositoryOpts",)], {"repositoryOpts"}),
        ({**VALUES, "repositoryOpts": {"password": "x"}}, [("valuesObject", "auth")], {"values", "repositoryOpts"}),
    ],
)
def test_what_is_secret_is_marked_for_helm_and_for_who_looks_at_the_chart(
    addon: dict[str, Any], places: list[tuple[str | int, ...]], hidden: set[str]
) -> None:
    program = declared(addon, *places)
    assert program.only(RELEASE).secret_inputs == hidden
    assert program.only(CRDS).secret_inputs == {"access" if each == "repositoryOpts" else each for each in hidden}


def test_a_null_among_the_values_is_told_as_pulumi_leaves_it_out() -> None:
    values = {"auth": {"a/b": None, "c": 0}, "words": ["x", None], "gone": None}
    for secrets in ((), (("valuesObject", "auth"),)):
        said = [each.partition(" is null")[0] for each in declared({"valuesObject": values}, *secrets).said]
        assert {'values.auth["a/b"]', "values.words[1]", "values.gone"} <= set(said)
        assert not any("values.auth.c" in each for each in said)


@pytest.mark.parametrize(
    ("crds", "skipped", "applied"), [("CreateReplace", True, 1), ("Create", False, 0), ("Skip", True, 0)]
)
def test_crds_are_applied_made_by_helm_or_left_out(crds: str, skipped: bool, applied: int) -> None:
    program = declared({"crds": crds})
    assert program.only(RELEASE).inputs["skipCrds"] is skipped
    assert len(program.of_type(CRDS)) == applied


def test_what_surrounds_a_release_comes_before_and_after_it() -> None:
    program = declared({"namespace": "in-queue", "version": "1.2.3", "valuesObject": {"a": 1}})
    made = program.only(RELEASE)
    assert {f"{CRDS}::queue-crds", f"{PREPARATION}::queue-preparation"} <= made.depends_on
    mark = program.only(MARK)
    assert f"{RELEASE}::queue-release" in mark.depends_on
    place = {"namespace": "in-queue", "name": "queue"}
    for each in (program.only(PREPARATION), mark):
        assert place.items() <= each.inputs.items()
        assert each.deleted_with == made.deleted_with
    source = {"chart": "queue", "repository": "https://charts.example.com", "version": "1.2.3", "values": {"a": 1}}
    assert source.items() <= program.only(CRDS).inputs.items()
    # What an interrupted update left is replaced, and a repair is a change of the release.
    assert made.inputs["replace"] is True
    assert f"{PREPARATION}::queue-preparation" in made.depends_on


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"crds": "skip"}, "crds", "write Skip"),
        ({"maxHistory": -1}, "maxHistory", "less than 0"),
        ({"waitForJobs": 1}, "waitForJobs", "not true or false"),
        ({"repositoryOpts": {"token": "x"}}, "repositoryOpts.token", "username, password, caFile"),
        ({"repositoryOpts": "reader:x"}, "repositoryOpts", "not a mapping"),
    ],
)
def test_mistakes_are_told(change: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(SpecError) as raised:
        release(change)
    (problem,) = raised.value.problems
    assert problem.path == f"clusterAddons[0].{path}"
    assert words in f"{problem.message}; {problem.remedy}"


def test_an_empty_file_that_is_an_output_is_none_and_not_the_project() -> None:
    def program() -> None:
        access = {"password": "x", "caFile": pulumi.Output.from_input("")}
        HelmAddon("queue", cluster=KwokCluster("dev"), chart="queue", repo_url=ADDON["repoURL"], repository_opts=access)

    known = run(program).only(RELEASE).inputs["repositoryOpts"]["value"]
    assert {key for key, value in known.items() if value} == {"repo", "password"}


def test_an_empty_file_of_a_repository_that_is_known_later_is_none_and_not_the_project() -> None:
    made = release({"repositoryOpts": {"password": "x", "caFile": ""}}, ("repositoryOpts",))
    known = made.inputs["repositoryOpts"]["value"]
    assert {key for key, value in known.items() if value} == {"repo", "password"}
