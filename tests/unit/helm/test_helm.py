"""What surrounds a Helm release: charts, their CRDs, and what an interrupted update leaves behind."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kumulus.helm import charts, history
from kumulus.helm.charts import ChartError, ChartSource
from kumulus.helm.command import HelmError
from kumulus.helm.crds import DIGEST, MADE_BY, Maker, obstacle, take_away
from kumulus.helm.history import Revision, decoded, encoded, leftover
from kumulus.kube import ApiError
from kumulus.model.identity import Owner

CRDS = """\
# Source: a/crds/one.yaml
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.18.0
  name: ones.example.com
spec:
  names: {plural: ones}
  group: example.com
---
# nothing
---
{"kind": "CustomResourceDefinition", "metadata": {"name": "twos.example.com"}}
--- # a comment
kind: ConfigMap
metadata:
  name: other
"""


MINE, THEIRS = Owner("1" * 32, "kumulus/dev"), Owner("2" * 32, "kumulus/dev")


def revision(number: int, status: str, recorded: bool = False) -> Revision:
    return Revision(f"sh.helm.release.v1.a.v{number}", f"uid-{number}", number, status, recorded)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([], ""),
        ([revision(1, "deployed", True)], ""),
        ([revision(1, "superseded", True), revision(2, "failed", True)], ""),
        # A failed install is Pulumi's, or replaced by the next one.
        ([revision(1, "failed")], ""),
        ([revision(1, "pending-install")], "revision 1 was left pending-install"),
        ([revision(1, "deployed", True), revision(2, "pending-upgrade", True)], "revision 2 was left pending-upgrade"),
        ([revision(1, "uninstalling", True)], "revision 1 was left uninstalling"),
        # Installed by a plugin that outlived its engine.
        ([revision(1, "deployed")], "revision 1 is deployed and was never recorded"),
        # The label may be on an earlier revision only.
        ([revision(1, "superseded", True), revision(2, "deployed")], ""),
    ],
)
def test_what_is_in_a_releases_way(found: list[Revision], says: str) -> None:
    assert leftover(found, "") == says


def test_somebody_elses_release_is_left_alone_until_it_is_the_stacks() -> None:
    theirs = [revision(1, "deployed"), revision(2, "pending-upgrade")]
    assert leftover(theirs, "uid-1") == ""
    assert leftover(theirs, "uid-7") != ""
    assert leftover([revision(1, "deployed", True), revision(2, "pending-upgrade")], "uid-1") != ""


def test_whose_a_release_is_its_last_marked_revision_says_however_many_there_were() -> None:
    marked = [replace(revision(n, "superseded", True), owner=THEIRS) for n in range(3, 13)]
    assert history.is_anothers(marked, MINE, proven=True)
    assert not history.is_anothers(marked, THEIRS, proven=False)
    # An upgrade under way has the labels too; one by a Helm that hands none on has the earlier ones'.
    later = [*marked, revision(13, "pending-upgrade")]
    assert history.is_anothers(later, MINE, proven=True)
    assert history.owner_of(later) == THEIRS
    assert not history.is_anothers([], MINE, proven=False)
    older = [revision(1, "deployed", True)]
    assert not history.is_anothers(older, MINE, proven=True)
    assert history.is_anothers(older, MINE, proven=False)


def test_a_release_is_read_and_written_as_helm_does() -> None:
    release = {"name": "a", "info": {"status": "pending-install"}, "chart": {"values": {"ü": [1, 2.5, None]}}}
    assert decoded(encoded(release)) == release


@pytest.mark.parametrize(
    ("source", "fixed"),
    [
        (ChartSource("c", "https://e.com", "1.2.3"), True),
        (ChartSource("oci://e.com/c", "", "v1.2.3-rc.1"), True),
        (ChartSource("c", "https://e.com", "1.2"), False),
        (ChartSource("c", "https://e.com"), False),
        (ChartSource("c", "http://e.com", "1.2.3"), False),
        (ChartSource("oci://localhost:5000/c", "", "1.2.3"), False),
        (ChartSource("/srv/c", "", "1.2.3"), False),
    ],
)
def test_a_chart_is_fetched_once_where_it_stays_the_same(source: ChartSource, fixed: bool) -> None:
    assert source.is_fixed is fixed


@pytest.mark.parametrize("stage", ["folder", "scratch", "archive"])
async def test_a_chart_that_there_is_no_room_for_is_told_with_what_to_do(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be made, a disk that is full while helm is let in, and one that is full at the end."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if stage == "folder":
        (tmp_path / "cache").touch()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def run(*arguments: str, **_: object) -> str:
        if arguments[0] == "pull":
            (Path(arguments[arguments.index("--destination") + 1]) / "c-1.2.3.tgz").touch()
        return ""

    monkeypatch.setattr(charts, "run", run)
    if stage != "folder":
        monkeypatch.setattr(*((charts, "_private_file") if stage == "scratch" else (os, "replace")), full)
    with pytest.raises(ChartError) as caught:
        await charts.fetch(ChartSource("c", "https://e.com", "1.2.3", {"password": "hunter2"}))
    assert caught.value.path == "chart"
    assert str(caught.value) == (
        f"the chart c cannot be kept in {tmp_path}/cache/kumulus/charts: "
        f"{'Not a directory' if stage == 'folder' else 'No space left on device'}; make room or set XDG_CACHE_HOME"
    )


def test_crds_are_kept_as_they_are_written() -> None:
    found = charts._by_name(CRDS)
    assert list(found) == ["ones.example.com", "twos.example.com"]
    assert "controller-gen.kubebuilder.io/version: v0.18.0\n" in found["ones.example.com"]


@pytest.mark.parametrize(
    ("about", "crds", "reason"),
    [
        (HelmError("open /srv/c/Chart.yaml: permission denied"), "", "open /srv/c/Chart.yaml: permission denied"),
        ("version: 1.2.3", "kind: CustomResourceDefinition\nmetadata: [\n", "a manifest among its CRDs is no YAML: "),
        ("version: 1.2.3", "kind: CustomResourceDefinition\nmetadata: {}\n", "one of its CRDs has no name"),
    ],
)
async def test_a_chart_that_cannot_be_read_is_to_be_corrected_and_not_fetched_otherwise(
    about: str | HelmError, crds: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(_: str, what: str, __: str) -> str:
        if isinstance(about, HelmError):
            raise about
        return about if what == "chart" else crds

    monkeypatch.setattr(charts, "run", run)
    with pytest.raises(ChartError) as caught:
        await charts.read(ChartSource("/srv/c"))
    assert caught.value.path == "chart"
    assert str(caught.value).startswith(f"the chart /srv/c cannot be read: {reason}")
    assert str(caught.value).endswith("; correct it or name another")


def test_crds_of_files_without_separators_are_told_apart() -> None:
    one, two = (f"apiVersion: v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {each}.e\n" for each in "ab")
    turned = "kind: CustomResourceDefinition\napiVersion: v1\nmetadata:\n  name: c.e\nspec:\n  text: |\n    kind: no\n"
    assert charts._by_name(one + two + turned) == {"a.e": one, "b.e": two, "c.e": turned}


PEM = "-----BEGIN PRIVATE KEY-----\nMIIEhunter2hunter2\n-----END PRIVATE KEY-----\n"


def quoted(value: str) -> str:
    """A text as the schema library writes it (santhosh-tekuri/jsonschema, kind.quote): Go's %q, in single quotes."""
    written = json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "'" + written.replace("'", "\\'") + "'"


@pytest.mark.parametrize(
    "value", ["hunter2", "x", PEM, "it's-hunter2", "DOM\\hunter2", 'a "hunter2"', "hunter2\\", "' is not valid hunter2"]
)
def test_a_schemas_words_do_not_quote_values(value: str) -> None:
    said = f"at '/a': {quoted(value)} does not match pattern '^[a-z]+$'"
    assert charts._without_values(said, {"a": [value]}) == "at '/a': '…' does not match pattern '^[a-z]+$'"
    parsed = f"at '/a': {quoted(value)} is not valid uri: parse {json.dumps(value)}: no scheme"
    assert charts._without_values(parsed, {"a": [value]}) == "at '/a': '…' is not valid uri"


def test_a_schemas_words_do_not_quote_numbers() -> None:
    said = "at '/a': minimum: got 123,456, want 200,000"
    assert charts._without_values(said, {"a": 123456}) == "at '/a': minimum: got …, want 200,000"
    said = "at '/a': got string, want integer"
    assert charts._without_values(said, {"a": "x"}) == said


@pytest.mark.parametrize(
    ("said", "path", "remedy"),
    [
        ('chart "c" version "9" not found in https://e.com repository', "chart", "a version that the repository has"),
        (
            'looks like "https://e.com" is not a valid chart repository or cannot be reached: dial tcp: refused',
            "repository",
            "check repoURL and the network",
        ),
        ("failed to fetch https://e.com/c.tgz : 401 Unauthorized", "access", "username and password"),
        ("tls: failed to verify certificate: x509: unknown authority", "access", "caFile"),
        ("write /home/me/.cache/kumulus/charts/c.tgz: no space left on device", "chart", "make room or set XDG_CACHE"),
        ("something else with hunter2", "chart", "check chart, version and repoURL"),
    ],
)
def test_a_chart_that_cannot_be_had_is_told_with_what_to_do(said: str, path: str, remedy: str) -> None:
    source = ChartSource("c", "https://e.com", "9", {"password": "hunter2"})
    error = charts._fetch_error(source, said)
    assert error.path == path
    assert str(error).startswith("the chart c 9 of https://e.com cannot be fetched: ")
    assert remedy in str(error)
    assert "hunter2" not in str(error)


def test_a_registry_is_entered_otherwise_than_a_repository() -> None:
    error = charts._fetch_error(ChartSource("oci://e.com/c", "", "9"), "GET https://e.com/v2/: 401 Unauthorized")
    assert str(error).endswith("log in first: helm registry login HOST")


# --- CRDs that go, and those that stay -------------------------------------------------------------------------------

ONE, TWO = "1" * 32, "2" * 32
MAKER = Maker("dev", "a", (ONE,))
OURS, OTHERS = MAKER.name, Maker("dev", "b").name


class Cluster:
    """A client of a cluster with one CRD and some objects of it."""

    def __init__(self, made_by: str | None, appliers: list[str], objects: int = 0, marked: str = "") -> None:
        fields = [{"manager": name, "operation": "Apply"} for name in appliers]
        notes = {} if made_by is None else {DIGEST: "d", **({MADE_BY: made_by} if made_by else {})}
        self.metadata: dict[str, Any] = {
            "name": "ones.e.com",
            "annotations": notes,
            "labels": {"kumulus.io/stack-id": marked} if marked else {},
            "managedFields": [*fields, {"manager": "kumulus", "operation": "Update"}],
            "resourceVersion": "1",
        }
        self.objects = objects
        self.done: list[tuple[str, str]] = []

    async def get(self, path: str, params: object = None, **_: object) -> dict[str, Any]:
        if path.endswith("customresourcedefinitions/ones.e.com"):
            versions = [{"name": "v1alpha1", "served": False}, {"name": "v1", "served": True}]
            spec = {"group": "e.com", "versions": versions, "names": {"plural": "ones"}}
            return {"metadata": self.metadata, "spec": spec}
        assert path == "/apis/e.com/v1/ones"
        return {"items": [{}] * self.objects}

    async def request(self, verb: str, path: str, params: dict[str, str], **_: object) -> dict[str, Any]:
        assert (verb, params["dryRun"]) == ("PATCH", "All")
        return {"spec": "that of the chart"}

    async def delete(self, path: str, options: dict[str, Any], *_: object) -> None:
        if options["preconditions"]["resourceVersion"] != self.metadata["resourceVersion"]:
            raise ApiError(409, "Conflict", "", "DELETE", path)
        self.done.append(("DELETE", path.rpartition("/")[2]))

    async def write(self, verb: str, path: str, body: dict[str, Any], **_: object) -> None:
        change = body["metadata"]
        if change["resourceVersion"] != self.metadata["resourceVersion"]:
            raise ApiError(409, "Conflict", "", verb, path)
        self.metadata["managedFields"] = change["managedFields"]
        self.done.append((verb, (change.get("annotations") or {}).get(MADE_BY, "")))

    def managers(self) -> list[str]:
        return [each["manager"] for each in self.metadata["managedFields"]]


GOES = [("DELETE", "ones.e.com")]


@pytest.mark.parametrize(
    ("cluster", "says", "done"),
    [
        (Cluster(OURS, [OURS]), "", GOES),
        (Cluster(OURS, [OURS, "helm", "kubectl"]), "", GOES),
        (Cluster(OURS, [OURS], 1), "ones.e.com is kept: there are objects of it; kubectl delete crd", []),
        # It was there before, or another add-on made it, which is to find nobody else that applies it.
        (Cluster("", [OTHERS]), "", []),
        (Cluster("", [OURS]), "", [("PATCH", "")]),
        (Cluster(OTHERS, [OURS, OTHERS]), "", [("PATCH", "")]),
        (Cluster(OTHERS, [OTHERS]), "", []),
        # The last one that applies it is to remove it.
        (Cluster(OURS, [OURS, OTHERS]), "ones.e.com is kept: dev-b uses it too", [("PATCH", OTHERS)]),
        # A killed run had just made it, and not annotated it.
        (Cluster(None, [OURS]), "", GOES),
        (Cluster(None, [OTHERS]), "", []),
        # Another stack's is given up; that of another checkout stays, though its names are ours.
        (Cluster(OTHERS, [OURS], marked=TWO), "", [("PATCH", "")]),
        (Cluster(OURS, [OURS], marked=TWO), "", []),
        (Cluster(OURS, [OURS], marked=ONE), "", GOES),
    ],
)
async def test_a_crd_goes_only_if_it_is_the_add_ons_alone(cluster: Any, says: str, done: list[tuple[str, str]]) -> None:
    before = cluster.managers()
    assert (await take_away(cluster, "ones.e.com", MAKER)).startswith(says)
    assert cluster.done == done
    given_up = done and done != GOES
    assert cluster.managers() == [name for name in before if name != OURS or not given_up]


async def test_a_crd_that_another_add_on_applies_before_it_is_removed_stays() -> None:
    cluster: Any = Cluster(OURS, [OURS])
    delete = cluster.delete

    async def interfered(*arguments: Any) -> None:
        if cluster.metadata["resourceVersion"] == "1":
            cluster.metadata["resourceVersion"] = "2"
            cluster.metadata["managedFields"].append({"manager": OTHERS, "operation": "Apply"})
        await delete(*arguments)

    cluster.delete = interfered
    assert await take_away(cluster, "ones.e.com", MAKER) == "ones.e.com is kept: dev-b uses it too"
    assert cluster.done == [("PATCH", OTHERS)]


async def test_a_crd_that_others_change_at_the_same_time_is_looked_at_again() -> None:
    """Two add-ons of a stack go at once: the other one gives it up while this one is about to hand it over."""
    cluster: Any = Cluster(OURS, [OURS, OTHERS])
    write = cluster.write

    async def interfered(*arguments: Any, **named: Any) -> None:
        if cluster.metadata["resourceVersion"] == "1":
            cluster.metadata["resourceVersion"] = "2"
            cluster.metadata["managedFields"] = cluster.metadata["managedFields"][:1]
        await write(*arguments, **named)

    cluster.write = interfered
    assert await take_away(cluster, "ones.e.com", MAKER) == ""
    assert cluster.done == GOES


@pytest.mark.parametrize(
    ("maker", "cluster", "is_free"),
    [
        (MAKER, Cluster(OURS, []), True),
        (MAKER, Cluster(OTHERS, [], marked=ONE), True),
        (MAKER, Cluster(OTHERS, [], marked=TWO), False),
        # Without a mark: the add-on b-queue of the cluster dev has the same name as the add-on queue of dev-b.
        (MAKER, Cluster(OTHERS, []), False),
        (MAKER, Cluster(Maker("dev-b", "queue").name, []), False),
        (Maker("dev", "a"), Cluster(OTHERS, []), True),
    ],
)
async def test_a_crd_of_another_add_on_is_written_if_it_is_marked_as_the_stacks(
    maker: Maker, cluster: Any, is_free: bool
) -> None:
    assert (await obstacle(cluster, "ones.e.com", "{}", "another", maker) == "") == is_free


async def test_a_crd_whose_maker_is_empty_was_made_by_others_and_is_handed_over_with_overwrite() -> None:
    cluster: Any = Cluster("", [])
    cluster.metadata["annotations"][MADE_BY] = ""
    said = await obstacle(cluster, "ones.e.com", "{}", "another", MAKER)
    assert "differs from the chart's (made by others, since" in said
    assert said.endswith(f"kubectl annotate crd ones.e.com {MADE_BY}={OURS} --overwrite")
