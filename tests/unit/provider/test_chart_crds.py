"""A chart's CRDs as a resource: what is recorded of an update that was done in part, and what a preview knows."""

from pathlib import Path
from typing import Any

import pytest

from kumulus.helm import charts, crds
from kumulus.helm.charts import Chart, ChartSource
from kumulus.model.identity import STACK_ID
from kumulus.model.plain import UNKNOWN
from kumulus.nodes.errors import PartialFailure
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.chart_crds import ChartCrds
from kumulus.provider.resources.diffing import PropertyDifference
from tests.unit.provider.stored import messages, operation, stored

PLACE = {"kubeconfig": "/k", "clusterIdentity": "uid", "clusterName": "dev"}
BASE: Properties = {**PLACE, "name": "queue", "chart": "/srv/queue"}
ONE, TWO = "ones.e.com", "twos.e.com"
DIGESTS = {ONE: "d1", TWO: "d2"}


class Connected(Connections):
    """Connections to no cluster."""

    async def client(self, *_: object) -> Any:
        return None


async def test_a_crd_that_could_not_be_finished_is_recorded_and_so_removed_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[str] = []

    async def obstacle(*_: object) -> str:
        return ""

    async def apply(client: object, name: str, *_: object) -> None:
        if name == TWO:
            raise TimeoutError

    async def take_away(client: object, name: str, maker: object) -> str:
        taken.append(name)
        return ""

    for function in (obstacle, apply, take_away):
        monkeypatch.setattr(crds, function.__name__, function)
    resource, inputs = ChartCrds(Connected()), {**BASE, "version": "1", "crds": DIGESTS}
    resource._charts[("/srv/queue", "", "1")] = Chart(Path("/"), "1", dict.fromkeys(DIGESTS, ""))
    with pytest.raises(PartialFailure, match=r"the CRD twos\.e\.com: it was not established within 15 s") as caught:
        await resource.create(operation(), inputs)
    outputs = dict(caught.value.outputs)
    assert resource.diff(outputs, inputs) == [PropertyDifference(f'crds["{TWO}"]', "update")]
    await resource.delete(operation(), "id", outputs)
    assert taken == [ONE, TWO]


@pytest.mark.parametrize(("identity", "seen"), [("a" * 32, True), ("b" * 32, True), ("a" * 32, False)])
async def test_the_crds_of_an_addon_that_stays_installed_stay(
    identity: str, seen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    async def take_away(client: object, name: str, maker: object) -> str:
        taken.append(name)
        return ""

    monkeypatch.setattr(crds, "take_away", take_away)
    op, secrets = operation(), "/api/v1/secrets"
    async with stored(tmp_path, stackId=identity, clusterOutlivesStack=False) as cluster:
        cluster.store.served.add(secrets)
        cluster.store.refuse = lambda _verb, path, _: 403 if path == secrets and not seen else None
        labels = {"owner": "helm", "name": "queue", STACK_ID: "a" * 32}
        cluster.store.put(secrets, {"metadata": {"name": "sh.helm.release.v1.queue.v1", "labels": labels}})
        await ChartCrds(cluster.connections).delete(op, "id", {**BASE, **cluster.place, "crds": DIGESTS})
    kept = seen and identity == "a" * 32
    assert taken == ([] if kept else [ONE, TWO])
    assert any("are kept: it is installed" in each for each in messages(op)) == kept


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The values that the chart's schema was asked about; every chart has the two CRDs."""
    asked: list[Any] = []

    async def read(source: ChartSource) -> Chart:
        return Chart(Path("/"), "1.0.0", dict.fromkeys(DIGESTS, "kind: CustomResourceDefinition"))

    async def check_values(chart: Chart, values: object) -> None:
        asked.append(values)

    monkeypatch.setattr(charts, "read", read)
    monkeypatch.setattr(charts, "check_values", check_values)
    return asked


async def test_a_value_that_a_preview_does_not_know_keeps_it_from_the_schema_only(fetched: list[Any]) -> None:
    resource = ChartCrds(Connected())
    known = (await resource.examine({}, {**BASE, "values": {"host": "a"}}, "/")).inputs
    unknown = (await resource.examine({}, {**BASE, "values": {"host": UNKNOWN}}, "/")).inputs
    assert fetched == [{"host": "a"}]
    assert unknown == known
    assert known["crds"].keys() == {ONE, TWO}
    assert resource.diff(known, unknown) == []


@pytest.mark.parametrize("what", ["chart", "repository", "version", "access"])
async def test_a_chart_that_a_preview_does_not_know_drops_no_crds(fetched: list[Any], what: str) -> None:
    resource, op = ChartCrds(Connected()), operation(preview=True)
    known = (await resource.examine({}, BASE, "/")).inputs
    fetched.clear()
    unknown = (await resource.examine({}, {**BASE, what: UNKNOWN}, "/")).inputs
    assert fetched == []
    assert (unknown["crds"], unknown["version"]) == (UNKNOWN, UNKNOWN)
    assert not [each for each in resource.diff(known, unknown) if each.path.startswith("crds")]
    for old in (known, None):
        assert (await resource.previewed(op, unknown, old))["crds"] is UNKNOWN
    assert messages(op) == []


@pytest.mark.usefixtures("fetched")
async def test_a_preview_goes_on_if_the_cluster_cannot_be_asked_for_others_crds(tmp_path: Path) -> None:
    resource = ChartCrds(Connections())
    wanted = (await resource.examine({}, {**BASE, "kubeconfig": str(tmp_path / "none")}, "/")).inputs
    assert await resource.previewed(operation(preview=True), wanted, None) == wanted
