"""Kubeconfigs whose credentials a command gives: what it is asked, when it is asked again, and how it can fail."""

import json
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig
from kumulus.kube.codecs import JsonCodec
from kumulus.kube.watch import watch
from tests.support.apiserver import TokenServer, kubeconfig, taking_tokens

V1, BETA = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"


@pytest.fixture
async def server() -> AsyncIterator[TokenServer]:
    async with taking_tokens() as found:
        found.valid = set()
        yield found


class Login:
    """A command beside a kubeconfig that prints what a file says, and notes each call."""

    def __init__(self, folder: Path, server: str, **entry: Any) -> None:
        self.folder = folder
        script = folder / "login"
        script.write_text(
            "#!/bin/sh\n"
            'echo "$KUBERNETES_EXEC_INFO" >> "$(dirname "$0")/calls"\n'
            'echo "$GREETING $*" > "$(dirname "$0")/said"\n'
            'cat "$(dirname "$0")/answer"\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        wanted = {"apiVersion": V1, "command": "./login", "interactiveMode": "IfAvailable", **entry}
        extension = {"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}
        self.file = kubeconfig(folder, server, {"exec": wanted}, extensions=[extension])

    def gives(self, version: str = V1, **status: Any) -> None:
        (self.folder / "answer").write_text(credential(version, status=status))

    @property
    def calls(self) -> list[dict[str, Any]]:
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def client(self) -> Client:
        return Client(load_kubeconfig(self.file), patience=0.3)


def credential(version: str = V1, **fields: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", **fields})


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_the_command_is_asked_once_and_told_what_client_go_tells(server: TokenServer, tmp_path: Path) -> None:
    env = [{"name": "GREETING", "value": "hello"}]
    login = Login(tmp_path, server.address, args=["get", "token"], env=env, provideClusterInfo=True)
    login.gives(token="a")
    server.valid = {"a"}
    async with login.client() as client:
        assert login.calls == []
        for _ in range(3):
            await client.get("/api/v1/nodes")
    assert server.tokens == ["a", "a", "a"]
    cluster = {"server": server.address, "config": {"a": 1}}
    spec = {"interactive": False, "cluster": cluster}
    assert login.calls == [{"apiVersion": V1, "kind": "ExecCredential", "spec": spec}]
    assert (tmp_path / "said").read_text() == "hello get token\n"


@pytest.mark.parametrize("version", [V1, BETA])
async def test_it_is_told_of_the_cluster_only_when_it_wants_to_know(
    server: TokenServer, tmp_path: Path, version: str
) -> None:
    login = Login(tmp_path, server.address, apiVersion=version)
    login.gives(version, token="a")
    server.valid = {"a"}
    async with login.client() as client:
        await client.get("/api/v1/nodes")
    assert login.calls == [{"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}]


async def test_credentials_are_renewed_when_they_expire(server: TokenServer, tmp_path: Path) -> None:
    login = Login(tmp_path, server.address)
    server.valid = {"first", "second"}
    login.gives(token="first", expirationTimestamp=in_seconds(5))
    async with login.client() as client:
        await client.get("/api/v1/nodes")
        login.gives(token="second", expirationTimestamp=in_seconds(3600))
        for _ in range(2):
            await client.get("/api/v1/nodes")
    assert server.tokens == ["first", "second", "second"]
    assert len(login.calls) == 2


async def test_credentials_that_are_refused_are_renewed_once(server: TokenServer, tmp_path: Path) -> None:
    login = Login(tmp_path, server.address)
    login.gives(token="first")
    server.valid = {"first"}
    async with login.client() as client:
        await client.get("/api/v1/nodes")
        server.valid = {"second"}
        login.gives(token="second")
        assert [page async for page in client.pages("/api/v1/nodes")] == [[]]
        assert server.tokens == ["first", "first", "second"]
        server.valid = set()
        with pytest.raises(ApiError, match="401 Unauthorized"):
            await client.get("/api/v1/nodes")
    assert len(login.calls) == 3


async def test_a_watch_is_signed_too(server: TokenServer, tmp_path: Path) -> None:
    login = Login(tmp_path, server.address)
    login.gives(token="a")
    server.valid = {"a"}
    async with login.client() as client:
        assert [batch async for batch in watch(client, "/api/v1/nodes", codec=JsonCodec())] == [[]]
        server.valid = {"b"}
        with pytest.raises(ApiError, match="401"):
            [batch async for batch in watch(client, "/api/v1/nodes", codec=JsonCodec())]
        login.gives(token="b")
        assert await client.get("/api/v1/nodes") == {"items": []}


UNUSABLE = {"clientCertificateData": "no", "clientKeyData": "no"}


@pytest.mark.parametrize(
    ("entry", "answer", "told"),
    [
        (
            {"command": "no-such-login", "installHint": "get it\nfrom there"},
            "",
            "no-such-login, named in .*kubeconfig.yaml, cannot be run .no such file or directory.; get it from there",
        ),
        ({"command": "./answer"}, "", "cannot be run .permission denied.; install it, or check"),
        ({"command": "sh", "args": ["-c", "echo please sign in >&2; exit 3"]}, "", "exit code 3: please sign in"),
        ({}, "hello", "does not print an ExecCredential with a status"),
        ({}, "[]", "does not print an ExecCredential with a status"),
        ({}, credential(), "does not print an ExecCredential with a status"),
        ({}, credential(status={"token": "a", "expirationTimestamp": "x"}), "does not print an ExecCredential with a"),
        ({}, credential(BETA, status={"token": "a"}), f"prints ExecCredential of {BETA}, not ExecCredential of {V1}"),
        ({}, credential(status={}), "prints neither a token nor"),
        ({}, credential(status=UNUSABLE), "prints a certificate and key that cannot be used"),
    ],
)
async def test_a_command_that_fails_is_named_with_what_it_did(
    server: TokenServer, tmp_path: Path, entry: dict[str, Any], answer: str, told: str
) -> None:
    login = Login(tmp_path, server.address, **entry)
    (tmp_path / "answer").write_text(answer)
    async with login.client() as client:
        # It counts as a cluster that cannot be asked, never as one that is gone.
        with pytest.raises(Unreachable, match=f"no credentials for .*{told}"):
            await client.get("/api/v1/nodes")
    assert server.tokens == []


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"command": ""}, "has no command"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, ".*write client.authentication.k8s.io/v1"),
        ({"interactiveMode": "Always"}, "wants a terminal"),
        ({"env": ["A=b"]}, "has an env that is no list of {name, value}"),
        ({"env": 5}, "has an env that is no list of {name, value}"),
        ({"args": "get-token"}, "has args that are no list; write them as one"),
        ({"args": 5}, "has args that are no list; write them as one"),
    ],
)
def test_a_malformed_entry_is_told_with_its_remedy(tmp_path: Path, entry: dict[str, Any], told: str) -> None:
    login = Login(tmp_path, "http://127.0.0.1:1", **entry)
    with pytest.raises(KubeconfigError, match=f"kubeconfig .*its user's exec {told}"):
        load_kubeconfig(login.file)
