"""Kubeconfigs are taken at their word: each entry does what kubectl does with it, or is refused by its name."""

import base64
import json
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import certifi
import pytest
from aiohttp import web

from kumulus.kube import Client, KubeconfigError, Unreachable, authentication, load_kubeconfig


@dataclass
class Server:
    """An API server that remembers the headers it was sent, and takes the tokens of a set."""

    address: str = ""
    seen: list[list[tuple[str, str]]] = field(default_factory=list)
    valid: set[str] | None = None

    async def answer(self, request: web.Request) -> web.Response:
        self.seen.append([(name, value) for name, value in request.headers.items()])
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.valid is not None and token not in self.valid:
            return web.json_response({"kind": "Status", "reason": "Unauthorized", "message": "no"}, status=401)
        return web.json_response({"items": []})

    def last(self, prefix: str) -> list[tuple[str, str]]:
        return [(name, value) for name, value in self.seen[-1] if name.startswith(prefix)]


@asynccontextmanager
async def running(tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    server.address = f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def kubeconfig(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> Path:
    file = folder / "config"
    document = {
        "current-context": "dev",
        "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(json.dumps(document))
    return file


def encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


async def ask(file: Path, times: int = 1) -> None:
    async with Client(load_kubeconfig(file), patience=1.0) as client:
        for _ in range(times):
            await client.get("/api/v1/nodes")


async def test_a_user_acts_as_another_with_groups_uid_and_extra(tmp_path: Path) -> None:
    user = {
        "token": "abc",
        "as": "jane",
        "as-uid": "42",
        "as-groups": ["viewers", "auditors"],
        "as-user-extra": {"example.com/Reason": ["audit", "night"], "a b": ["c"]},
    }
    async with running() as server:
        await ask(kubeconfig(tmp_path, server.address, user))
        assert sorted(server.last("Impersonate-")) == [
            ("Impersonate-Extra-a%20b", "c"),
            ("Impersonate-Extra-example.com%2FReason", "audit"),
            ("Impersonate-Extra-example.com%2FReason", "night"),
            ("Impersonate-Group", "auditors"),
            ("Impersonate-Group", "viewers"),
            ("Impersonate-Uid", "42"),
            ("Impersonate-User", "jane"),
        ]
        assert server.last("Authorization") == [("Authorization", "Bearer abc")]


async def test_line_breaks_in_whom_to_act_as_make_no_header(tmp_path: Path) -> None:
    user = {"as": "jane\r\nImpersonate-Group: system:masters", "as-user-extra": {"a\r\nb": ["c\nd: e"]}}
    async with running() as server:
        await ask(kubeconfig(tmp_path, server.address, user))
        assert not server.last("Impersonate-Group")
        assert sorted(name for name, _ in server.last("Impersonate-")) == [
            "Impersonate-Extra-a%0D%0Ab",
            "Impersonate-User",
        ]


ELSEWHERE = "https://127.0.0.1:1"
DATA = base64.b64encode(b"x").decode()
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "proxy-url": ({}, {"proxy-url": "http://proxy.example:3128"}, "proxy-url"),
    "auth-provider": ({"auth-provider": {"name": "oidc"}}, {}, "auth-provider"),
    "as-groups alone": ({"as-groups": ["system:masters"]}, {}, "as-groups without as"),
    "as-uid alone": ({"as-uid": "1"}, {}, "as-uid without as"),
    "as-user-extra alone": ({"as-user-extra": {"a": ["b"]}}, {}, "as-user-extra without as"),
    "as-groups that is no list": ({"as": "me", "as-groups": "admins"}, {}, "as-groups is no list"),
    "as-user-extra that is no mapping": ({"as": "me", "as-user-extra": {"a": "b"}}, {}, "as-user-extra"),
    "a token and a password": ({"token": "a", "username": "b"}, {}, "token and username"),
    "a token and a command": ({"token": "a", "exec": {"command": "b"}}, {}, "token and exec"),
    "a certificate without a key": ({"client-certificate-data": DATA}, {}, "no client-key"),
    "authorities that are not to be asked": (
        {},
        {"insecure-skip-tls-verify": True, "certificate-authority-data": DATA},
        "certificate-authority-data and insecure-skip-tls-verify",
    ),
    # Nothing is left of these, and nothing used to mean that every authority of the system was trusted.
    "authorities that are no base64": ({}, {"certificate-authority-data": "!!!!"}, "certificate-authority-data"),
    "authorities that are blank": ({}, {"certificate-authority-data": "ICAg"}, "certificate-authority-data"),
    "an empty token file": ({"tokenFile": "/dev/null"}, {}, "tokenFile /dev/null"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_honoured_is_refused_by_name(case: str, tmp_path: Path) -> None:
    user, cluster, words = REFUSED[case]
    file = kubeconfig(tmp_path, ELSEWHERE, user, **cluster)
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(file)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def token_file(folder: Path, server: Server) -> Path:
    return kubeconfig(folder, server.address, {"tokenFile": "token"})


async def test_a_token_file_is_read_again_when_its_token_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with running() as server:
        server.valid = {"first"}
        async with Client(load_kubeconfig(kubeconfig(tmp_path, server.address, {"tokenFile": "token"}))) as client:
            await client.get("/api/v1/nodes")
            token.write_text("second")
            await client.get("/api/v1/nodes")
            assert server.last("Authorization") == [("Authorization", "Bearer first")]
            server.valid = {"second"}
            await client.get("/api/v1/nodes")
            assert server.last("Authorization") == [("Authorization", "Bearer second")]


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    async with running() as server, Client(load_kubeconfig(token_file(tmp_path, server))) as client:
        token.write_text("second")
        monkeypatch.setattr(authentication, "_GOOD_FOR_S", 0.0)
        await client.get("/api/v1/nodes")
        assert server.last("Authorization") == [("Authorization", "Bearer second")]
        token.unlink()
        await client.get("/api/v1/nodes")
        assert server.last("Authorization") == [("Authorization", "Bearer second")]


async def test_the_file_goes_before_the_token_beside_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file")
    async with running() as server:
        await ask(kubeconfig(tmp_path, server.address, {"tokenFile": "token", "token": "written"}))
        assert server.last("Authorization") == [("Authorization", "Bearer from-file")]
        await ask(kubeconfig(tmp_path, server.address, {"tokenFile": "nowhere", "token": "written"}))
        assert server.last("Authorization") == [("Authorization", "Bearer written")]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for api.internal alone, with its key in the same file."""
    made, subject = tmp_path / "server.pem", "/CN=api.internal"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", subject, "-addext", "subjectAltName=DNS:api.internal", "-days", "2"]
    subprocess.run([*command, "-keyout", f"{made}.key", "-out", made], check=True, capture_output=True)
    made.write_text(made.read_text() + Path(f"{made}.key").read_text())
    return made


async def test_the_servers_certificate_may_have_another_name(tmp_path: Path, certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    authority = {"certificate-authority": certificate.name}
    async with running(tls) as server:
        with pytest.raises(Unreachable, match=r"not trusted: .*mismatch") as refused:
            await ask(kubeconfig(tmp_path, server.address, {}, **authority))
        assert "made anew" not in str(refused.value)
        with pytest.raises(Unreachable, match=r"not trusted: .*; a cluster that was made anew has another kubeconfig"):
            await ask(kubeconfig(tmp_path, server.address, {}, **{"certificate-authority": certifi.where()}))
        with pytest.raises(Unreachable, match="not trusted"):
            await ask(kubeconfig(tmp_path, server.address, {}, **authority, **{"tls-server-name": "other.internal"}))
        assert server.seen == []
        await ask(kubeconfig(tmp_path, server.address, {}, **authority, **{"tls-server-name": "api.internal"}))
        assert len(server.seen) == 1


async def test_a_certificate_and_its_key_may_be_one_in_the_file_and_one_beside_it(
    tmp_path: Path, certificate: Path
) -> None:
    # Verified by the server: its own certificate is the only one it knows.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(certificate)
    user = {
        "client-certificate-data": encoded(certificate),
        "client-key": f"{certificate.name}.key",
    }
    entries = {"certificate-authority": certificate.name, "tls-server-name": "api.internal"}
    async with running(tls) as server:
        await ask(kubeconfig(tmp_path, server.address, user, **entries))
        assert len(server.seen) == 1
