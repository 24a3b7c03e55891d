"""The kinds that an API server has, as a group's versions list them."""

from typing import Any, cast

from kumulus.kube import ApiError
from kumulus.kube.discovery import ApiResource, namespaced

ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]


def kind(name: str, plural: str, *, inside: bool = True, verbs: list[str] = ALL) -> dict[str, Any]:
    return {"kind": name, "name": plural, "namespaced": inside, "verbs": verbs}


def group(name: str, *versions: str) -> dict[str, Any]:
    """A group whose first version is the preferred one; servers list them by their age."""
    listed = [{"groupVersion": f"{name}/{version}"} for version in sorted(versions)]
    return {"name": name, "versions": listed, "preferredVersion": {"groupVersion": f"{name}/{versions[0]}"}}


class Server:
    """A client of an API server with these answers; anything else is not found."""

    def __init__(self, answers: dict[str, list[dict[str, Any]]], *groups: dict[str, Any]) -> None:
        self.answers, self.groups = answers, groups

    async def get(self, path: str, **_: object) -> dict[str, Any]:
        if path == "/apis":
            return {"groups": list(self.groups)}
        if path not in self.answers:
            raise ApiError(404, "NotFound", "", "GET", path)
        return {"resources": self.answers[path]}


async def test_each_kind_is_named_once_in_the_version_that_is_preferred_or_in_the_one_that_has_it() -> None:
    answers = {
        "/api/v1": [kind("Pod", "pods"), kind("Pod", "pods/status"), kind("Node", "nodes", inside=False)],
        "/apis/gateway.networking.k8s.io/v1": [kind("HTTPRoute", "httproutes")],
        "/apis/gateway.networking.k8s.io/v1beta1": [kind("HTTPRoute", "httproutes")],
        "/apis/gateway.networking.k8s.io/v1alpha2": [kind("TCPRoute", "tcproutes")],
        "/apis/seen.example.com/v1": [kind("Seen", "seen", verbs=["get", "list"])],
    }
    gateways = group("gateway.networking.k8s.io", "v1", "v1beta1", "v1alpha2")
    # The last kind of the third has just gone.
    server = Server(answers, gateways, group("seen.example.com", "v1"), group("gone.example.com", "v1"))
    assert await namespaced(cast(Any, server)) == [
        ApiResource("v1", "Pod", "pods"),
        ApiResource("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"),
        ApiResource("gateway.networking.k8s.io/v1alpha2", "TCPRoute", "tcproutes"),
    ]


async def test_groups_of_measurements_are_not_asked_for() -> None:
    """They have no objects that somebody creates, and their server is often down."""
    names = ("metrics.k8s.io", "custom.metrics.k8s.io")
    answers = {"/api/v1": [], **{f"/apis/{name}/v1": [kind("Measured", "measured")] for name in names}}
    assert await namespaced(cast(Any, Server(answers, *(group(name, "v1") for name in names)))) == []
