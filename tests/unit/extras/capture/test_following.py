"""What has to be done to a clone when its source has changed."""

import copy
import json
from pathlib import Path
from typing import Any

from kumulus.extras.capture.following import CaptureDifference, WorkloadFile, contents, difference, merge_patch
from kumulus.extras.capture.workload import shapes


def pod(name: str, node: str = "", cpu: str = "1") -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}
    return {"namespace": "shop", "name": name, **({"node": node} if node else {}), "spec": spec}


def quota(pods: str, **more: str) -> dict[str, Any]:
    spec = {"hard": {"pods": pods, **more}}
    metadata = {"namespace": "shop", "name": "small"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def queue(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": {}}


def made(*found: dict[str, Any]) -> WorkloadFile:
    result = WorkloadFile()
    for each in found:
        if "kind" not in each:
            result.pods["Pod", each["namespace"], each["name"]] = each
        else:
            metadata = each["metadata"]
            result.objects[each["kind"], metadata.get("namespace", ""), metadata["name"]] = each
    return result


def names(listed: list[dict[str, Any]]) -> list[str]:
    return [each["metadata"]["name"] for each in listed]


def test_nothing_is_done_to_what_is_the_same() -> None:
    one = made(pod("a", "n1"), pod("b"), quota("3"))
    assert difference(one, copy.deepcopy(one)) == CaptureDifference([], [], [])


def test_a_pod_that_moved_or_changed_is_made_again_and_one_that_ended_is_removed() -> None:
    before = made(pod("stays", "n1"), pod("moves", "n1"), pod("waits"), pod("grows", "n1"), pod("ends", "n1"))
    now = made(pod("stays", "n1"), pod("moves", "n2"), pod("waits", "n3"), pod("grows", "n1", cpu="2"), pod("comes"))
    found = difference(before, now)
    assert names(found.gone) == ["moves", "waits", "grows", "ends"]
    assert (found.objects, found.patches) == ([], [])


def test_a_quota_is_patched_in_place() -> None:
    found = difference(made(quota("3", cpu="1")), made(quota("5")))
    ((_, patch),) = found.patches
    assert patch == {"spec": {"hard": {"cpu": None, "pods": "5"}}}
    assert (found.gone, found.objects) == ([], [])


def test_what_others_name_is_made_first_and_removed_last() -> None:
    both = made(queue("LocalQueue", "l"), queue("ClusterQueue", "c"), queue("ResourceFlavor", "f"))
    assert names(difference(WorkloadFile(), both).objects) == ["f", "c", "l"]
    assert names(difference(both, WorkloadFile()).gone) == ["l", "c", "f"]


def test_a_clone_keeps_what_its_source_has_never_had() -> None:
    found = difference(WorkloadFile(), made(pod("a", "n1")))
    assert found == CaptureDifference([], [], []), "what lacks is made when the clone has been looked at"


def test_a_merge_patch_makes_one_of_the_other() -> None:
    old = {"a": {"b": 1, "c": [1]}, "d": 1, "e": {"f": 1}}
    new = {"a": {"b": 2, "c": [1, 2]}, "e": {"f": 1}, "g": {}}
    assert merge_patch(old, new) == {"d": None, "a": {"b": 2, "c": [1, 2]}, "g": {}}


def test_a_workload_file_is_read_as_what_it_has(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    documents = [quota("3"), *shapes([pod("a", "n1"), pod("b")])]
    file.write_text("".join(f"---\n{json.dumps(each)}\n" for each in documents))
    found = contents(file)
    assert list(found.objects) == [("ResourceQuota", "shop", "small")]
    assert {key[2]: each.get("node", "") for key, each in found.pods.items()} == {"a": "n1", "b": ""}
