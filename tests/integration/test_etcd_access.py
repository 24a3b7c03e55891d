"""etcd on a real control plane: the API server asks it, and nobody else on this machine, nor any web page, can."""

from __future__ import annotations

import http.client
import json
import ssl

import grpc
import pytest

from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import Plane

pytestmark = pytest.mark.integration
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PAGE = "https://page.example"
# A RangeRequest for one key below /registry/, and none of its value.
RANGE = b"\x0a\x0a/registry/\x12\x0a/registry0\x18\x01\x40\x01"


def anybody() -> ssl.SSLContext:
    """Who is on this machine and has no key: whatever the server's certificate is, it is taken."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def insider(layout: Layout) -> ssl.SSLContext:
    context = anybody()
    context.load_cert_chain(layout.directory / "pki" / "admin.crt", layout.directory / "pki" / "admin.key")
    return context


def ask(port: int, tls: ssl.SSLContext | None, verb: str, path: str, body: str = "") -> http.client.HTTPResponse:
    """One request as a page of another origin sends it."""
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, context=tls, timeout=20)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    )
    connection.request(verb, path, body, {"Origin": PAGE, "Content-Type": "application/json"})
    return connection.getresponse()


def keys(layout: Layout, port: int, credentials: grpc.ChannelCredentials | None) -> bytes:
    """The answer of etcd's own protocol to the question for a key."""
    target = f"127.0.0.1:{port}"
    channel = grpc.secure_channel(target, credentials) if credentials else grpc.insecure_channel(target)
    with channel:
        call = channel.unary_unary("/etcdserverpb.KV/Range", lambda raw: raw, lambda raw: raw)
        answer: bytes = call(RANGE, timeout=20)
        return answer


def ports(layout: Layout) -> list[int]:
    return [layout.ports()["etcd"], layout.ports()["etcd (peer)"]]


def test_without_the_clusters_key_nothing_is_answered(plane: Plane) -> None:
    layout = Layout(plane.directory)
    for port in ports(layout):
        for path in ("/health", "/metrics", "/version", "/members", "/raft", "/v3/kv/range"):
            # The port takes TLS only, and ends a connection without the right certificate by an alert, or just so.
            for tls in (None, anybody()):
                with pytest.raises(OSError):  # noqa: PT011 - whichever of the two it is
                    ask(port, tls, "GET", path)
    authority = (layout.directory / "pki" / "ca.crt").read_bytes()
    for credentials in (None, grpc.ssl_channel_credentials(authority)):
        with pytest.raises(grpc.RpcError):
            keys(layout, layout.ports()["etcd"], credentials)


def test_its_own_protocol_answers_who_has_the_key(plane: Plane) -> None:
    layout = Layout(plane.directory)
    pki = layout.directory / "pki"
    authority, key, certificate = ((pki / name).read_bytes() for name in ("ca.crt", "admin.key", "admin.crt"))
    credentials = grpc.ssl_channel_credentials(authority, key, certificate)
    assert b"/registry/" in keys(layout, layout.ports()["etcd"], credentials)


def test_a_page_learns_nothing_even_in_a_browser_that_has_the_key(plane: Plane) -> None:
    layout = Layout(plane.directory)
    port, tls = layout.ports()["etcd"], insider(layout)
    for verb, path in (("OPTIONS", "/v3/kv/range"), ("GET", "/health"), ("GET", "/metrics")):
        assert ask(port, tls, verb, path).getheader("Access-Control-Allow-Origin") is None
    # The gateway that would take JSON is not there.
    assert ask(port, tls, "POST", "/v3/kv/range", json.dumps({"key": "L3JlZ2lzdHJ5Lw=="})).status == 404
    assert json.loads(ask(port, tls, "GET", "/health").read())["health"] == "true"
