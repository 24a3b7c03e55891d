"""Names exchanged for words: consistently, with nothing left of them, and back again."""

import json
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.capture.fields import OBJECTS
from kumulus.extras.capture.grammar import renamed
from kumulus.extras.capture.known_keys import is_known_key
from kumulus.extras.capture.words import Words, WrongTable
from kumulus.extras.schedulers.forms import Each, Form, Leaf, Selecting
from kumulus.model.names import is_dns_label
from tests.support import captured as source
from tests.unit.extras.capture.files import written

CANARY = "zqcanary"


class Canaries:
    """Texts that are found again wherever they get to."""

    def __init__(self) -> None:
        self.planted: list[str] = []

    def name(self) -> str:
        self.planted.append(f"{CANARY}{len(self.planted):04d}")
        return self.planted[-1]

    def key(self) -> str:
        return f"{self.name()}.example/{self.name()}"

    def of(self, form: Form) -> Any:
        """A value of a form with canaries in it, and in fields that the form does not have."""
        if isinstance(form, Leaf):
            return self._leaf(form)
        if isinstance(form, list):
            return [self.of(form[0]), self.of(form[0])]
        if isinstance(form, Selecting):
            return self.of(form.fields)
        if isinstance(form, Each):
            return {self.key(): self.of(form.of), self.name(): self.of(form.of), "type": self.of(form.of)}
        assert isinstance(form, dict)
        return {**{key: self.of(each) for key, each in form.items()}, self.name(): self.name()}

    def _leaf(self, form: Leaf) -> Any:
        if form is Leaf.LABELS:
            # Under a prefix that is well known, and under none.
            return {self.key(): self.name(), self.name(): self.name(), f"kubernetes.io/{self.name()}": self.name()}
        if form is Leaf.RESOURCES:
            counted = {f"requests.{self.key()}": "2", f"attachable-volumes-csi-{self.name()}": "3"}
            counted |= {
                f"{self.name()}.storageclass.storage.k8s.io/{each}": "4" for each in ("requests.storage", self.name())
            }
            return {self.key(): "1", **counted, self.name(): self.name()}
        if form is Leaf.EXPRESSION:
            # The second one cannot be renamed.
            of = f'device.driver == "{self.name()}" && device.attributes["{self.name()}"].{self.name()} == "x"'
            return of if len(self.planted) % 8 else f"{of} && device.driver.startsWith('{self.name()}')"
        if form is Leaf.VERSION:
            return f"1.2.3-{self.name()}+{self.name()}"
        return self.key() if form in (Leaf.KEY, Leaf.RESOURCE, Leaf.ATTRIBUTE) else self.name()


def objects(canaries: Canaries) -> list[dict[str, Any]]:
    """Objects of every kind with a canary in every place."""
    found: list[dict[str, Any]] = []
    for kind, form in OBJECTS.items():
        body = canaries.of(form)
        found.append({**body, "kind": kind, "apiVersion": "v1"})
    from kumulus.extras.capture.fields import POD_SPEC
    from kumulus.extras.capture.groups import NODE

    for _ in range(2):
        metadata = {
            "name": canaries.name(),
            "namespace": canaries.name(),
            "labels": canaries.of(Leaf.LABELS),
            "annotations": {
                "scheduling.k8s.io/group-name": canaries.name(),
                "kumulus.io/owner": f"{canaries.name()}/{canaries.name()}",
                canaries.key(): json.dumps({canaries.name(): [canaries.name()]}),
            },
            "finalizers": [canaries.key()],
            "ownerReferences": [{"kind": canaries.name(), "name": canaries.name(), "controller": True}],
            "managedFields": [{"manager": canaries.name()}],
        }
        condition = {"type": "Ready", "status": canaries.name(), "reason": canaries.name(), "message": canaries.name()}
        spec = canaries.of(POD_SPEC)
        for container in spec["containers"]:
            container |= {"image": canaries.name(), "args": [canaries.name()], "env": [{"name": canaries.name()}]}
        status = {"phase": canaries.name(), "conditions": [condition], "nominatedNodeName": canaries.name()}
        found.append(
            {"kind": "Pod", "metadata": metadata, "spec": {**spec, "nodeName": canaries.name()}, "status": status}
        )
        node = canaries.of(NODE)
        node["status"] |= {"conditions": [condition], "nodeInfo": {"architecture": canaries.name()}}
        found.append({"kind": "Node", **node, "metadata": {**metadata, "labels": node["metadata"]["labels"]}})
    return found


def test_of_a_thousand_canaries_none_is_left_in_any_file(tmp_path: Path) -> None:
    canaries = Canaries()
    raws = objects(canaries)
    while len(canaries.planted) < 1000:
        raws += objects(canaries)
    plain = "".join(written(tmp_path / "plain", None, *raws).values())
    # They strike: with names kept, hundreds of them are there.
    assert sum(each in plain for each in canaries.planted) > 300
    words = Words()
    shared = "".join(written(tmp_path / "shared", words, *raws).values())
    assert [each for each in canaries.planted if each in shared] == []
    assert CANARY not in shared
    # What the words stand for is all in the table.
    table = json.dumps(words.by_name)
    assert sum(each in table for each in canaries.planted) > 300


def test_of_a_cluster_as_companies_have_it_no_name_is_left(tmp_path: Path) -> None:
    made = [*source.objects(), *source.devices(3), *source.with_volumes(200, "eu-acme-1")]
    raws = [{"kind": _kind(path), **body} for path, body in made]
    raws += [{"kind": "Pod", "status": {}, **pod} for pod in source.pods(200, "eu-acme-1")]
    shared = "".join(written(tmp_path / "shared", Words(), *raws).values())
    for name in ("acme", "secret/", "hunter", "shop", "search", "team-", "train-", "infer", "vol-", "data-", "pv-"):
        assert name not in shared, name


def _kind(path: str) -> str:
    from kumulus.extras.capture.kinds import KINDS

    return next(kind.name for kind in KINDS if kind.plural == path.rpartition("/")[2])


def test_keys_are_in_the_order_of_their_words_as_a_capture_of_the_clone_has_them() -> None:
    words, labels = Words(), {f"acme.io/k{index}": "x" for index in range(20)}
    for form in (Leaf.LABELS, Leaf.RESOURCES):
        assert list(found := renamed(form, labels, words)) == sorted(found)


def test_the_same_name_is_the_same_word_wherever_it_stands() -> None:
    words = Words()
    assert words.name("node-7") == words.value("kubernetes.io/hostname", "node-7") == words.value("", "node-7")
    assert words.name("node-7") != words.name("node-8")
    assert Words(words.key).name("node-7") == words.name("node-7")
    assert Words().name("node-7") != words.name("node-7")
    assert is_dns_label(words.name("Node_7"))


@pytest.mark.parametrize("name", ["4711", "true", "1234567", "team-a"])
def test_an_objects_name_is_what_a_label_that_refers_to_it_says(name: str) -> None:
    words = Words()
    assert words.name(name) == words.value("kueue.x-k8s.io/queue-name", name)
    assert words.name(name) == words.value("kubernetes.io/metadata.name", name)


def test_what_says_nothing_of_the_user_stays() -> None:
    words = Words()
    for key in ("kubernetes.io/os", "nvidia.com/gpu", "topology.kubernetes.io/zone", "cpu"):
        assert words.key_of(key) == key
    assert words.value("kubernetes.io/arch", "arm64") == "arm64"
    assert words.value("example.com/generation", "17") == "17"
    assert words.value("topology.kubernetes.io/zone", "acme-1") != "acme-1"
    assert words.value("kubernetes.io/arch", "acme") != "acme"
    assert words.name("kube-system") == "kube-system"


@pytest.mark.parametrize(
    "key", ["kubernetes.io/acme", "acme.k8s.io/x", "node-role.kubernetes.io/acme", "acme", "x/cpu"]
)
def test_a_well_known_domain_alone_makes_no_key_well_known(key: str) -> None:
    assert not is_known_key(key)
    assert "acme" not in Words().key_of(key)


def test_what_a_quota_limits_has_the_words_of_what_is_limited() -> None:
    words = Words()
    acme, fpga = words.key_of("acme.com/fpga"), words.resource("requests.acme.com/fpga")
    assert fpga == f"requests.{acme}"
    gold = words.name("gold")
    for form in (
        "{}.storageclass.storage.k8s.io/requests.storage",
        "{}.storageclass.storage.k8s.io/persistentvolumeclaims",
        "{}.deviceclass.resource.k8s.io/devices",
        # What pods ask for by extended resources of a class that names none of its own.
        "deviceclass.resource.kubernetes.io/{}",
        "requests.deviceclass.resource.kubernetes.io/{}",
    ):
        assert words.resource(form.format("gold")) == form.format(gold)
    for known in ("requests.nvidia.com/gpu", "requests.storage", "requests.hugepages-2Mi", "limits.cpu", "count/pods"):
        assert words.resource(known) == known
    # Anything else after these endings would be a name of the user's.
    assert "acme" not in words.resource("gold.storageclass.storage.k8s.io/acme")


def test_words_are_told_apart_even_where_their_hashes_begin_alike() -> None:
    words = Words(bytes(32))
    made = {words.word(f"pod-{index}") for index in range(20_000)}
    assert len(made) == 20_000


def test_a_report_is_translated_back(tmp_path: Path) -> None:
    words = Words()
    text = f"0/3 nodes are available: {words.name('node-a')} had untolerated taint {{{words.key_of('acme.io/x')}: }}"
    file = tmp_path / "t.json"
    words.save(file)
    assert file.stat().st_mode & 0o777 == 0o600
    again = Words.read(file)
    assert again.back(text) == "0/3 nodes are available: node-a had untolerated taint {acme.io/x: }"
    # Of a word that the table does not have, all of it stays.
    other = Words().key_of("acme.io/x")
    assert again.back(other) == other
    assert again.name("node-b") == words.name("node-b")


def test_a_table_that_others_may_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    Words().save(file)
    file.chmod(0o644)
    with pytest.raises(WrongTable, match="read by others"):
        Words.read(file)
    file.write_text("[]")
    file.chmod(0o600)
    with pytest.raises(WrongTable, match="no translation table"):
        Words.read(file)
