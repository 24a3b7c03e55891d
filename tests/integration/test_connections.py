"""Many connections to a real API server: each after the first resumes its TLS session."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.kube import Client, load_kubeconfig
from tests.integration.conftest import Plane
from tests.support import processes

pytestmark = pytest.mark.integration
VERSION = "/version"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


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
