"""Many connections to a real API server: each after the first resumes its TLS session."""

import asyncio
import base64
import http.client
import json
import os
import signal
import ssl
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from kumulus.kube import Client, load_kubeconfig
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import Plane
from tests.support import processes
from tests.support.api import Api, Object

pytestmark = pytest.mark.integration
VERSION = "/version"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
PAGE = "https://page.example"
# A RangeRequest for one key below /registry/, and none of its value.
RANGE = b"\x0a\x0a/registry/\x12\x0a/registry0\x18\x01\x40\x01"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def watched(tls: ssl.SSLContext | None, monkeypatch: pytest.MonkeyPatch) -> list[ssl.SSLObject]:
    """The connections that are made with a context from now on."""
    assert tls is not None
    made: list[ssl.SSLObject] = []
    wrap = tls.wrap_bio

    def wrap_bio(*args: Any, **options: Any) -> ssl.SSLObject:
        made.append(wrap(*args, **options))
        return made[-1]

    monkeypatch.setattr(tls, "wrap_bio", wrap_bio)
    return made


async def test_connections_after_the_first_resume_its_session(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = load_kubeconfig(plane.observed.kubeconfig)
    made = watched(connection.tls, monkeypatch)
    async with Client(connection) as client:
        await client.get(VERSION)
        await asyncio.gather(*(client.get(VERSION) for _ in range(8)))
        # Who asks is known of a resumed connection, too: the certificate stands in the session.
        users = await asyncio.gather(*(client.create(REVIEWS, REVIEW) for _ in range(8)))
    assert len(made) == 8
    assert [each.session_reused for each in made] == [False, *[True] * 7]
    assert {user["status"]["userInfo"]["username"] for user in users} == {"kwok-admin"}


async def test_a_server_that_says_nothing_at_first_has_no_session_to_resume(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = load_kubeconfig(plane.observed.kubeconfig)
    made = watched(connection.tls, monkeypatch)
    (pid,) = plane.processes()["kube-apiserver"]
    async with Client(connection, patience=30, request_timeout=1) as client:
        os.kill(pid, signal.SIGSTOP)
        asked = [asyncio.ensure_future(client.get(VERSION)) for _ in range(3)]
        try:
            # Until one has been given up and is asked again.
            await asyncio.to_thread(processes.await_that, lambda: len(made) > 3, 60, "a fourth connection is made")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert {version["major"] for version in await asyncio.gather(*asked)} == {"1"}


def _kubeconfig(plane: Plane, folder: Path) -> Path:
    """The control plane's kubeconfig, its certificate and key printed by a command."""
    origin = Path(plane.observed.kubeconfig)
    document = yaml.safe_load(origin.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    cluster["certificate-authority"] = str(origin.parent / cluster["certificate-authority"])
    status = {
        "clientCertificateData": (origin.parent / user["client-certificate"]).read_text(),
        "clientKeyData": (origin.parent / user["client-key"]).read_text(),
    }
    version = "client.authentication.k8s.io/v1"
    answer = folder / "answer"
    answer.write_text(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}))
    document["users"][0]["user"] = {"exec": {"apiVersion": version, "command": "cat", "args": [str(answer)]}}
    file = folder / "kubeconfig.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


async def test_a_client_certificate_from_a_command_is_presented(plane: Plane, tmp_path: Path) -> None:
    async with Client(load_kubeconfig(_kubeconfig(plane, tmp_path))) as client:
        namespace = await client.get("/api/v1/namespaces/kube-system")
    assert namespace["metadata"]["uid"] == plane.identity


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


def test_a_user_gets_a_certificate(plane: Plane, tmp_path: Path) -> None:
    key, asked = tmp_path / "key", tmp_path / "csr"
    command = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*command, "-keyout", key, "-out", asked, "-subj", "/CN=jane"], check=True, capture_output=True)
    spec = {
        "request": base64.b64encode(asked.read_bytes()).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    made = plane.api.create(REQUESTS, {"metadata": {"name": "jane"}, "spec": spec})
    approved = {"type": "Approved", "status": "True", "reason": "Test", "message": "by a test"}
    plane.api.request("PUT", f"{REQUESTS}/jane/approval", {**made, "status": {"conditions": [approved]}})
    try:
        signed = plane.api.until(REQUESTS, lambda found: "certificate" in found["jane"].get("status", {}))
    finally:
        plane.api.delete(f"{REQUESTS}/jane")
    user = Api(kubeconfig_of(plane, key, signed["jane"]["status"]["certificate"]))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    who = user.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert who["status"]["userInfo"]["username"] == "jane"


def kubeconfig_of(plane: Plane, key: Path, certificate: str) -> Path:
    authority = base64.b64encode((plane.directory / "pki" / "ca.crt").read_bytes()).decode()
    user = {"client-certificate-data": certificate, "client-key-data": base64.b64encode(key.read_bytes()).decode()}
    document: Object = {
        "clusters": [
            {"name": "a", "cluster": {"server": plane.observed.server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": "a", "user": user}],
    }
    file = key.with_name("kubeconfig")
    file.write_text(json.dumps(document))
    return file
