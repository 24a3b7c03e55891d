"""Answers that are no success."""

from __future__ import annotations

import pytest

from kumulus.kube.errors import ApiError, tolerating


def test_an_answer_that_is_tolerated_ends_the_context() -> None:
    begun = []
    with tolerating(404, 409):
        begun.append("this")
        raise ApiError(409, "Conflict", "it is there", "POST", "/api/v1/nodes")
    assert begun == ["this"]


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "no", "GET", "/api/v1/nodes"), ValueError("no")])
def test_any_other_error_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)), tolerating(404):
        raise error


def test_credentials_that_are_not_taken_are_to_be_renewed() -> None:
    error = ApiError(401, "Unauthorized", "Unauthorized", "GET", "/api/v1/nodes")
    assert (
        str(error) == "GET /api/v1/nodes: 401 Unauthorized: Unauthorized; the credentials may have expired: renew them"
    )
