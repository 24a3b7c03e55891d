"""What belongs together by its owners, what of it is as it was, and how it is made again."""

from typing import Any

import pytest

from kumulus.extras.snapshots.families import (
    changed_back,
    families,
    is_as_it_was,
    is_remade,
    is_replaced,
    made,
    rank,
    roots,
)

Made = dict[str, dict[str, Any]]


def thing(kind: str, name: str, *owners: tuple[str, str], **fields: Any) -> dict[str, Any]:
    references = [{"kind": of, "uid": f"uid-{owner}", "name": owner, "apiVersion": "v1"} for of, owner in owners]
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "ownerReferences": references}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def web(**fields: Any) -> Made:
    """A Deployment, its ReplicaSet, a pod of that, and a pod by itself."""
    return {
        "d/web": thing("Deployment", "web", spec={"replicas": 1}),
        "r/web-1": thing("ReplicaSet", "web-1", ("Deployment", "web"), spec={"replicas": 1}),
        "p/web-1-a": thing(
            "Pod", "web-1-a", ("ReplicaSet", "web-1"), spec={"nodeName": "n"}, status={"phase": "Running"}, **fields
        ),
        "p/alone": thing("Pod", "alone", spec={"nodeName": "n"}, status={"phase": "Running"}),
    }


def test_owners_and_what_they_own_are_a_family_then_or_now() -> None:
    now = web()
    now["p/web-1-b"] = thing("Pod", "web-1-b", ("ReplicaSet", "web-1"), spec={}, status={})
    found = sorted(map(sorted, families(web(), now)))
    assert found == [["d/web", "p/web-1-a", "p/web-1-b", "r/web-1"], ["p/alone"]]


@pytest.mark.parametrize(
    ("path", "change", "same"),
    [
        pytest.param("p/web-1-a", {"status": {"phase": "Succeeded"}}, False, id="another-phase"),
        pytest.param("p/web-1-a", {"spec": {"nodeName": "m"}}, False, id="another-node"),
        pytest.param("p/web-1-a", {"status": {"phase": "Running", "podIP": "10.0.0.9"}}, True, id="another-address"),
        pytest.param("d/web", {"spec": {"replicas": 2}}, False, id="scaled"),
        pytest.param("d/web", {"status": {"replicas": 1}}, True, id="a-status"),
    ],
)
def test_a_family_is_as_it_was_when_all_of_it_is(path: str, change: dict[str, Any], same: bool) -> None:
    now = web()
    now[path] |= change
    assert is_as_it_was(web(), web(), now) is same


def test_uids_do_not_count_and_what_is_gone_or_goes_does() -> None:
    now = web()
    now["p/alone"]["metadata"] |= {"uid": "another", "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert is_as_it_was(["p/alone"], web(), now)
    now["p/alone"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not is_as_it_was(["p/alone"], web(), now)
    del now["p/alone"]
    assert not is_as_it_was(["p/alone"], web(), now)


def test_a_job_is_taken_as_its_user_s_own_and_counts_by_its_pods() -> None:
    job = thing("Job", "train", spec={"selector": {"matchLabels": {"uid": "1"}}}, status={"succeeded": 1, "active": 2})
    again = {**job, "spec": {**job["spec"], "manualSelector": True}, "status": {"succeeded": 1}}
    assert made(job)["spec"] == {"selector": {"matchLabels": {"uid": "1"}}, "manualSelector": True}
    assert is_as_it_was(["j"], {"j": job}, {"j": again})
    assert not is_as_it_was(["j"], {"j": job}, {"j": {**again, "status": {"succeeded": 2}}})


def test_what_is_posted_has_no_identity_no_owner_and_no_status() -> None:
    posted = made(web()["p/web-1-a"])
    assert posted["metadata"] == {"name": "web-1-a", "namespace": "shop"}
    assert "status" not in posted
    service = thing("Service", "web", spec={"clusterIP": "10.1.1.1", "clusterIPs": ["10.1.1.1"], "ports": []})
    assert made(service)["spec"] == {"ports": []}
    headless = thing("Service", "db", spec={"clusterIP": "None", "clusterIPs": ["None"], "ports": []})
    assert made(headless)["spec"] == headless["spec"], "its user's own choice, not an address"
    assert not is_as_it_was(["s"], {"s": headless}, {"s": service})
    assert is_replaced(headless, service)
    assert not is_replaced(service, thing("Service", "web", spec={"clusterIP": "10.1.1.2", "ports": []}))


def test_what_is_changed_in_its_place_keeps_its_version_its_finalizers_and_the_owners_that_stay() -> None:
    wanted = thing("Database", "db", spec={"replicas": 1}, status={"phase": "Old"})
    found = thing("Database", "db", ("Tenant", "t"), ("Pod", "a"), spec={"replicas": 2}, status={"phase": "New"})
    found["metadata"] |= {"resourceVersion": "7", "finalizers": ["example.com/keep"]}
    body = changed_back(wanted, found, {"uid-a"})
    assert (body["spec"], body["status"]) == ({"replicas": 1}, {"phase": "New"})
    assert (body["metadata"]["resourceVersion"], body["metadata"]["finalizers"]) == ("7", ["example.com/keep"])
    assert [each["name"] for each in body["metadata"]["ownerReferences"]] == ["t"]
    assert "uid" not in body["metadata"]


def test_what_others_controllers_own_is_theirs_to_make() -> None:
    objects = {"s/set": thing("JobSet", "set"), "j/one": thing("Job", "one", ("JobSet", "set"), spec={}, status={})}
    assert is_remade(objects, objects)
    assert roots(objects, objects) == ["s/set"]
    assert not is_remade(web(), web())
    assert sorted(roots(web(), web())) == ["d/web", "p/alone"]


def test_pods_come_before_those_who_adopt_them() -> None:
    kinds = ["CronJob", "ConfigMap", "Job", "Pod", "Deployment", "JobSet", "StatefulSet", "ReplicaSet", "DaemonSet"]
    assert [rank(kind) for kind in kinds] == [3, 0, 2, 1, 3, 0, 2, 2, 2]
