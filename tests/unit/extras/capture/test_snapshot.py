"""A snapshot of etcd as a source of a capture: what is in it at its end, and nothing of a file that is not whole."""

import hashlib
import json
import random
import resource
from pathlib import Path
from typing import Any

import pytest

from kumulus.cli.main import main
from kumulus.extras.capture import snapshot
from kumulus.extras.capture.bolt import Bolt, DamagedBolt
from kumulus.extras.capture.dumps import FileRefused
from kumulus.extras.capture.messages import STORED
from kumulus.kube.message_tables import classes_of
from tests.unit.extras.capture import bolt

CLASSES = classes_of(STORED)


def pod(name: str, node: str = "n0", **spec: Any) -> bytes:
    message = CLASSES["Pod"](
        metadata={"name": name, "namespace": "shop", "labels": {"app": "web"}},
        spec={"nodeName": node, "containers": [{"name": "main"}], **spec},
        status={"phase": "Running"},
    )
    message.spec.containers[0].resources.requests["cpu"].string = "100m"
    return bolt.stored("Pod", "v1", message)


def node(name: str) -> bytes:
    message = CLASSES["Node"](
        metadata={"name": name, "labels": {"kubernetes.io/hostname": name}},
        status={"conditions": [{"type": "Ready", "status": "True"}]},
    )
    for key, value in (("cpu", "8"), ("pods", "110")):
        message.status.capacity[key].string = message.status.allocatable[key].string = value
    return bolt.stored("Node", "v1", message)


def namespace(name: str) -> bytes:
    return bolt.stored("Namespace", "v1", CLASSES["Namespace"](metadata={"name": name}))


def queue(name: str) -> bytes:
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name}, "spec": {}}
    return json.dumps(body).encode()


def values(root: str = "/registry") -> list[tuple[str, bytes | None]]:
    """What a small cluster's API server has written."""
    return [
        (f"{root}/namespaces/default", namespace("default")),
        (f"{root}/namespaces/shop", namespace("shop")),
        (f"{root}/minions/n0", node("n0")),
        (f"{root}/minions/n1", node("n1")),
        (f"{root}/pods/shop/web-0", pod("web-0", "n1")),
        (f"{root}/pods/shop/gone", pod("gone")),
        (f"{root}/pods/shop/web-0", pod("web-0", "n0")),
        (f"{root}/pods/shop/gone", None),
        (f"{root}/secrets/shop/pods", b"hunter2"),
        # Its namespace is called as a kind, and it is called default.
        (f"{root}/configmaps/pods/shop", b"hunter3"),
        (f"{root}/configmaps/namespaces/default", b"hunter4"),
        (f"{root}/kueue.x-k8s.io/clusterqueues/all", queue("all")),
        (f"{root}/acme.example/clusterqueues/all", b"hunter5"),
        ("compact_rev_key", b"7"),
    ]


def written(directory: Path, content: bytes) -> Path:
    file = directory / "snapshot.db"
    file.write_bytes(content)
    return file


def read(file: Path) -> dict[str, dict[str, Any]]:
    found = list(snapshot.objects(file, lambda what, count: None))
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


@pytest.mark.parametrize("root", ["/registry", "/kubernetes.io", "/teams/registry"])
@pytest.mark.parametrize("per_page", [1, 3, 100])
def test_what_was_there_at_the_end_is_read_and_nothing_of_other_kinds(tmp_path: Path, root: str, per_page: int) -> None:
    found = read(written(tmp_path, bolt.file(bolt.history(values(root)), per_page)))
    assert sorted(found) == [
        "ClusterQueue/all",
        "Namespace/default",
        "Namespace/shop",
        "Node/n0",
        "Node/n1",
        "Pod/web-0",
    ]
    assert found["Pod/web-0"]["spec"] == {
        "nodeName": "n0",
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}],
    }
    assert "hunter" not in json.dumps(found)


def test_a_stopped_members_database_is_read_as_well(tmp_path: Path) -> None:
    assert len(read(written(tmp_path, bolt.file(bolt.history(values()), summed=False)))) == 6


def test_a_value_larger_than_a_page_is_read_whole(tmp_path: Path) -> None:
    labels = {f"key-{number}": "x" * 60 for number in range(500)}
    large = CLASSES["Namespace"](metadata={"name": "large", "labels": labels})
    history = [*values(), ("/registry/namespaces/large", bolt.stored("Namespace", "v1", large))]
    found = read(written(tmp_path, bolt.file(bolt.history(history))))
    assert found["Namespace/large"]["metadata"]["labels"] == labels


def test_what_is_zero_is_there_where_json_has_it(tmp_path: Path) -> None:
    spec: dict[str, Any] = {
        "priority": 0,
        "hostNetwork": False,
        "schedulerName": "",
        "tolerations": [{"key": "", "operator": "Exists"}],
    }
    device = {"name": "gpu-0", "attributes": {"index": {"int": 0}, "shared": {"bool": False}}}
    message = CLASSES["ResourceSlice"](metadata={"name": "s"}, spec={"driver": "d", "devices": [device]})
    older = CLASSES["V1beta1ResourceSlice"](
        metadata={"name": "o"},
        spec={
            "driver": "d",
            "allNodes": False,
            "devices": [{"name": "gpu-0", "basic": {"attributes": device["attributes"]}}],
        },
    )
    budget = CLASSES["PodDisruptionBudget"](metadata={"name": "b"}, spec={"selector": {}, "minAvailable": {"type": 0}})
    share = CLASSES["PodDisruptionBudget"](metadata={"name": "p"}, spec={"maxUnavailable": {"type": 1, "strVal": "5%"}})
    volume = CLASSES["PersistentVolume"](
        metadata={"name": "v"}, spec={"persistentVolumeSource": {"csi": {"driver": "csi.example"}}}
    )
    history = [
        *values(),
        ("/registry/pods/shop/zero", pod("zero", **spec)),
        ("/registry/resourceslices/s", bolt.stored("ResourceSlice", "resource.k8s.io/v1", message)),
        ("/registry/resourceslices/o", bolt.stored("ResourceSlice", "resource.k8s.io/v1beta1", older)),
        ("/registry/poddisruptionbudgets/shop/b", bolt.stored("PodDisruptionBudget", "policy/v1", budget)),
        ("/registry/poddisruptionbudgets/shop/p", bolt.stored("PodDisruptionBudget", "policy/v1", share)),
        ("/registry/persistentvolumes/v", bolt.stored("PersistentVolume", "v1", volume)),
    ]
    found = read(written(tmp_path, bolt.file(bolt.history(history))))
    kept = found["Pod/zero"]["spec"]
    assert (kept["priority"], kept["tolerations"]) == (0, [{"operator": "Exists"}])
    assert not {"hostNetwork", "schedulerName"} & kept.keys()
    assert found["ResourceSlice/s"]["spec"]["devices"] == [device]
    assert found["ResourceSlice/o"]["spec"] == {
        "driver": "d",
        "devices": [{"name": "gpu-0", "basic": {"attributes": device["attributes"]}}],
    }
    assert found["PodDisruptionBudget/b"]["spec"] == {"selector": {}, "minAvailable": 0}
    assert found["PodDisruptionBudget/p"]["spec"] == {"maxUnavailable": "5%"}
    assert found["PersistentVolume/v"]["spec"] == {"csi": {"driver": "csi.example"}}


def test_what_is_encrypted_at_rest_is_refused_in_words_unless_it_is_never_read(tmp_path: Path) -> None:
    sealed = b"k8s:enc:aescbc:v1:key1:" + bytes(range(64))
    read(written(tmp_path, bolt.file(bolt.history([*values(), ("/registry/secrets/shop/x", sealed)]))))
    file = written(tmp_path, bolt.file(bolt.history([*values(), ("/registry/pods/shop/x", sealed)])))
    with pytest.raises(
        FileRefused, match=r"snapshot.db: its pods are encrypted at rest \(aescbc\), and only the API server"
    ):
        read(file)


def test_a_file_that_was_changed_or_cut_off_is_refused(tmp_path: Path) -> None:
    whole = bolt.file(bolt.history(values()))
    changed = bytearray(whole)
    changed[-5000] ^= 1
    with pytest.raises(FileRefused, match="checksum"):
        read(written(tmp_path, bytes(changed)))
    for size in (0, 10, 4096, 4097, 8192, len(whole) // 2, len(whole) - 32 - 4096, len(whole) - 4128):
        with pytest.raises(FileRefused, match=r"snapshot.db is no whole snapshot of etcd: "):
            read(written(tmp_path, whole[:size]))


def test_a_database_that_no_api_server_has_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match="no API server has kept"):
        read(written(tmp_path, bolt.file(bolt.history([("/other/key", b"x")]))))


def test_what_is_stored_as_a_pod_and_is_none_is_refused(tmp_path: Path) -> None:
    for value in (b"", b"x", b"[]", namespace("x"), b"k8s\x00\xff\xff\xff", b"[" * 100_000):
        with pytest.raises(FileRefused, match="one of its pods is none"):
            read(written(tmp_path, bolt.file(bolt.history([*values(), ("/registry/pods/shop/x", value)]))))


def test_a_file_spoilt_anywhere_ends_in_words_and_in_little_memory(tmp_path: Path) -> None:
    whole, drawn, refused = bolt.file(bolt.history(values()), summed=False), random.Random(7), 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(drawn.randint(1, 4)):
            at = drawn.randrange(len(content))
            # Of a page's end nothing is read: most strike its head and its first entries.
            at -= at % bolt.PAGE - drawn.randrange(120)
            content[at % len(content)] = drawn.choice((0, 1, 0x7F, 0xFF, drawn.randrange(256)))
        try:
            read(written(tmp_path, bytes(content)))
        except FileRefused:
            refused += 1
    assert refused > 50
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_a_page_that_is_to_be_huge_is_refused_before_it_is_read(tmp_path: Path) -> None:
    content = bytearray(bolt.file(bolt.history(values()), summed=False))
    content[3 * bolt.PAGE + 12 : 3 * bolt.PAGE + 16] = b"\xff\xff\xff\x7f"
    with Bolt(written(tmp_path, bytes(content))) as opened, pytest.raises(DamagedBolt, match="is to have"):
        list(opened.bucket(b"key"))


def test_pages_that_are_within_each_other_are_refused(tmp_path: Path) -> None:
    content = bytearray(bolt.file(bolt.history(values()), 1, summed=False))
    # The first leaf is to go on over the second, which its branch names as well.
    content[4 * bolt.PAGE + 12] = 1
    assert content[5 * bolt.PAGE] == 5
    with pytest.raises(FileRefused, match="page 5 is in two places"):
        read(written(tmp_path, bytes(content)))
    content[4 * bolt.PAGE + 12] = 0
    # The second is to go on over what has been read before it: the other way round, by the order of the branch.
    root = next(at for at in range(0, len(content), bolt.PAGE) if content[at + 8] == 1)
    content[root + 24], content[root + 40] = 5, 4
    content[4 * bolt.PAGE + 12] = 1
    with pytest.raises(FileRefused, match="page 4 goes on into another one"):
        read(written(tmp_path, bytes(content)))


def test_entries_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    large = [("/registry/namespaces/large", b"x" * 2 * bolt.PAGE)]
    content = bytearray(bolt.file(bolt.history([*values(), *large]), len(values()) + 1, summed=False))
    page, last = 4 * bolt.PAGE, len(values())
    assert content[page + 10] == last + 1
    of_first, of_last = page + 16, page + 16 + 16 * last
    # The first entry is where the last one is: positions count from where each is named.
    position = int.from_bytes(content[of_last + 4 : of_last + 8], "little") + 16 * last
    content[of_first + 4 : of_first + 8] = position.to_bytes(4, "little")
    content[of_first + 8 : of_first + 16] = content[of_last + 8 : of_last + 16]
    with Bolt(written(tmp_path, bytes(content))) as opened, pytest.raises(DamagedBolt, match="have the same bytes"):
        list(opened.bucket(b"key"))


def test_revisions_that_are_not_in_order_are_refused(tmp_path: Path) -> None:
    revisions = bolt.history(values())
    revisions[4], revisions[6] = revisions[6], revisions[4]
    with pytest.raises(FileRefused, match="not in order"):
        read(written(tmp_path, bolt.file(revisions)))


def test_a_key_longer_than_any_of_kubernetes_is_refused(tmp_path: Path) -> None:
    history = [*values(), ("/registry/pods/shop/" + "x" * 5000, pod("x"))]
    with pytest.raises(FileRefused, match="a key of 5,020 bytes"):
        read(written(tmp_path, bolt.file(bolt.history(history))))


def test_a_file_of_holes_is_refused_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, bolt.file(bolt.history(values()), summed=False))
    with file.open("r+b") as opened:
        opened.truncate(snapshot.MOST_BYTES + 1)
    monkeypatch.setattr(snapshot, "Bolt", lambda file: pytest.fail("it was opened"))
    with pytest.raises(FileRefused, match="has 17,179,869,185 bytes; at most 17,179,869,184 are read"):
        read(file)


def test_the_later_of_the_two_heads_counts_if_it_is_whole(tmp_path: Path) -> None:
    content = bytearray(bolt.file(bolt.history(values()), summed=False))
    # The later one names another root; by its sum it is not whole.
    content[bolt.PAGE + 32] = 9
    assert len(read(written(tmp_path, bytes(content)))) == 6
    content[32] = 9
    with pytest.raises(FileRefused, match="does not begin"):
        read(written(tmp_path, bytes(content)))


def test_the_command_captures_from_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, bolt.file(bolt.history(values())))
    sum_ = hashlib.sha256(file.read_bytes()).digest()
    assert main(["capture", "--from", str(file), "--to", str(tmp_path / "out")]) == 0
    assert "captured 2 nodes in 1 group and 1 pod of 1 shape into" in capsys.readouterr().out
    assert "ClusterQueue" in (tmp_path / "out" / "workload.yaml").read_text()
    assert hashlib.sha256(file.read_bytes()).digest() == sum_
    file.write_bytes(file.read_bytes()[:9000])
    assert main(["capture", "--from", str(file), "--to", str(tmp_path / "cut")]) == 1
    printed = capsys.readouterr().err
    assert "snapshot.db is no whole snapshot of etcd" in printed
    assert "Traceback" not in printed
