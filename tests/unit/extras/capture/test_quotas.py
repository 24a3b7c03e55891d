"""What is read of a quota's refusal, and what would have to be moved."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.extras.capture.raising import exceeded, lender

SAID = (
    'pods "fit-1-3" is forbidden: exceeded quota: small, requested: pods=1,requests.memory=1Gi, '
    "used: pods=3,requests.memory=3Gi, limited: pods=3,requests.memory=3500Mi"
)


def quota(namespace: str, hard: dict[str, str], used: dict[str, str], **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": "quota"}
    return {"metadata": metadata, "spec": {"hard": hard, **spec}, "status": {"hard": hard, "used": used}}


def test_the_raised_amounts_are_what_all_pods_need() -> None:
    said = exceeded(SAID)
    assert said is not None
    assert said.needed(2) == {"pods": "5", "requests.memory": "5Gi"}
    assert said.missing(2) == {"pods": "2", "requests.memory": "1620Mi"}
    assert said.change(2) == "raising the quota small (pods from 3 to 5, requests.memory from 3500Mi to 5Gi)"


@pytest.mark.parametrize(
    "message",
    [
        'pods "x" is forbidden: failed quota: small: must specify requests.cpu for: main',
        'admission webhook "x" denied the request',
        'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: cpu=3, limited: pods=3',
        'pods "x" is forbidden: exceeded quota: small, requested: pods=one, used: pods=3, limited: pods=3',
    ],
)
def test_a_refusal_that_no_amount_would_change_is_no_quota_to_be_raised(message: str) -> None:
    assert exceeded(message) is None


def test_the_quota_with_the_most_to_spare_lends() -> None:
    wanted = {"pods": "2"}
    quotas = [
        quota("a", {"pods": "4"}, {"pods": "3"}),
        quota("b", {"pods": "9"}, {"pods": "4"}),
        quota("c", {"pods": "99"}, {}, scopes=["Terminating"]),
        quota("d", {"requests.cpu": "99"}, {}),
        quota("e", {"pods": "7"}, {"pods": "4"}),
    ]
    assert lender(quotas, wanted) == "the quota quota of b"
    assert lender(quotas, {"pods": "6"}) is None
    assert lender(quotas, {"pods": "1", "requests.cpu": "1"}) is None
