"""Kubeconfigs are taken at their word: each entry does what kubectl does with it, or is refused by its name."""

import base64
import json
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import certifi
import pytest

from kumulus.kube import Client, KubeconfigError, Unreachable, authentication, load_kubeconfig
from tests.support.apiserver import TokenServer, kubeconfig, taking_tokens

ELSEWHERE = "https://127.0.0.1:1"
DATA = base64.b64encode(b"x").decode()


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "me", "password": "pw"}, "Basic bWU6cHc="),
        ({"username": "me", "password": None}, "Basic bWU6"),
        ({}, None),
    ],
)
def test_users_authenticate(tmp_path: Path, user: dict[str, str | None], header: str | None) -> None:
    found = load_kubeconfig(kubeconfig(tmp_path, ELSEWHERE, user))
    assert (found.server, found.context, found.headers.get("Authorization")) == (ELSEWHERE, "here", header)
    assert "abc" not in repr(found)


def test_another_context_can_be_named(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, ELSEWHERE)
    document = json.loads(file.read_text())
    document["contexts"].append({"name": "there", "context": {"cluster": "d"}})
    document["clusters"].append({"name": "d", "cluster": {"server": "http://127.0.0.1:2/"}})
    file.write_text(json.dumps(document))
    assert load_kubeconfig(file, "there").server == "http://127.0.0.1:2"


def encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


async def ask(file: Path) -> None:
    async with Client(load_kubeconfig(file), patience=1.0) as client:
        await client.get("/api/v1/nodes")


async def test_a_user_acts_as_another_with_groups_uid_and_extra(tmp_path: Path) -> None:
    user = {
        "token": "abc",
        "as": "jane",
        "as-uid": "42",
        "as-groups": ["viewers", "auditors"],
        "as-user-extra": {"example.com/Reason": ["audit", "night"], "a b": ["c"]},
    }
    async with taking_tokens() as server:
        await ask(kubeconfig(tmp_path, server.address, user))
        assert server.last("Impersonate-") == [
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
    async with taking_tokens() as server:
        await ask(kubeconfig(tmp_path, server.address, user))
        assert not server.last("Impersonate-Group")
        assert [name for name, _ in server.last("Impersonate-")] == ["Impersonate-Extra-a%0D%0Ab", "Impersonate-User"]


Make = Callable[[Path], object]


def named(entries: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "-"): each for key, each in entries.items()}


def user(**entries: Any) -> Make:
    return lambda file: kubeconfig(file.parent, ELSEWHERE, named(entries))


def cluster(server: str = ELSEWHERE, **entries: Any) -> Make:
    return lambda file: kubeconfig(file.parent, server, **named(entries))


def top(**entries: Any) -> Make:
    return lambda file: file.write_text(json.dumps(json.loads(file.read_text()) | named(entries)))


def text(written: bytes) -> Make:
    return lambda file: file.write_bytes(written)


def made_a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.unlink, "does not exist; check its path"),
        (made_a_directory, "cannot be read: [Errno 21] Is a directory"),
        (text(b"\xff\xfe"), "cannot be read: 'utf-8'"),
        (text(b"a: [b\nc: }"), "is not YAML: did not find expected ',' or ']' in line 2"),
        (text(b"[]"), "is not a kubeconfig: expected a mapping"),
        (text(b""), "is not a kubeconfig: expected a mapping"),
        # What is read of it has fewer characters than bytes.
        (text("# é".encode() + b"#" * (4 << 20)), "is larger than 4 MiB; write less"),
        (text(b"expiry: 2026-02-30\n"), "a date or a number in it cannot be read"),
        (top(current_context=""), "has no current-context; name one of its contexts: here"),
        (top(current_context="prod"), "has no context 'prod'; it has: here"),
        (top(contexts=5), "has no context 'here'; it has: none"),
        (top(clusters=[]), "has no cluster 'c'; it has: none"),
        (top(users=[{"name": "other"}]), "has no user 'u'; it has: other"),
        (cluster(""), "context 'here': it has no server; write it like https://"),
        (cluster("localhost:6443"), "the server 'localhost:6443' has no scheme; write it like https://"),
        (cluster("https://h:99999"), "'https://h:99999' has no port from 0 to 65535; write it like https://"),
        (cluster("https://h:abc"), "'https://h:abc' has no port from 0 to 65535; write it like https://"),
        (cluster("https://[::1"), "'https://[::1' has no closing bracket; write it like https://"),
        (cluster("https://:6443"), "'https://:6443' has no host; write it like https://"),
        (cluster("https://a..b:6443"), "'https://a..b:6443' has a host that is no name: part of it is empty"),
        (cluster(proxy_url="http://proxy.example:3128"), "proxy-url"),
        (cluster(certificate_authority="pki/ca.crt"), "/pki/ca.crt cannot be used: No such file"),
        (cluster(certificate_authority="kubeconfig.yaml"), "/kubeconfig.yaml cannot be used"),
        (
            cluster(insecure_skip_tls_verify=True, certificate_authority_data=DATA),
            "certificate-authority-data and insecure-skip-tls-verify",
        ),
        # Nothing is left of these, and nothing used to mean that every authority of the system was trusted.
        (cluster(certificate_authority_data="!!!!"), "certificate-authority-data cannot be used"),
        (cluster(certificate_authority_data="ICAg"), "certificate-authority-data cannot be used"),
        (user(auth_provider={"name": "oidc"}), "auth-provider"),
        (user(as_groups=["system:masters"]), "as-groups without as"),
        (user(as_uid="1"), "as-uid without as"),
        (user(as_user_extra={"a": ["b"]}), "as-user-extra without as"),
        (user(**{"as": "me", "as-groups": "admins"}), "as-groups is no list"),
        (user(**{"as": "me", "as-user-extra": {"a": "b"}}), "as-user-extra is no mapping of lists"),
        (user(token="a", username="b"), "token and username"),
        (user(token="a", exec={"command": "b"}), "token and exec"),
        (user(client_certificate_data=DATA), "no client-key"),
        (user(client_certificate="admin.crt", client_key="admin.key"), "/admin.crt cannot be used: No such file"),
        (user(tokenFile="token"), "/token cannot be used: No such file"),
        (user(tokenFile="/dev/null"), "tokenFile /dev/null"),
    ],
)
def test_what_is_wrong_or_not_honoured_is_refused_by_name_with_its_file(make: Make, words: str, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, ELSEWHERE)
    make(file)
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(file)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def by_file(folder: Path, server: TokenServer) -> Client:
    return Client(load_kubeconfig(kubeconfig(folder, server.address, {"tokenFile": "token"})))


async def test_a_token_file_is_read_again_when_its_token_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with taking_tokens() as server:
        server.valid = {"first"}
        async with by_file(tmp_path, server) as client:
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
    async with taking_tokens() as server, by_file(tmp_path, server) as client:
        token.write_text("second")
        monkeypatch.setattr(authentication, "_GOOD_FOR_S", 0.0)
        await client.get("/api/v1/nodes")
        assert server.last("Authorization") == [("Authorization", "Bearer second")]
        token.unlink()
        await client.get("/api/v1/nodes")
        assert server.last("Authorization") == [("Authorization", "Bearer second")]


async def test_the_file_goes_before_the_token_beside_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file")
    async with taking_tokens() as server:
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
    async with taking_tokens(tls) as server:
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


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it(tmp_path: Path, certificate: Path) -> None:
    key = f"{certificate}.key"
    locked = ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", f"{key}.locked"]
    subprocess.run(locked, check=True, capture_output=True)
    user = {"client-certificate": str(certificate), "client-key": f"{key}.locked"}
    # Otherwise it is the certificate's file that has a key, which is taken.
    certificate.write_text(certificate.read_text().partition("-----BEGIN PRIVATE")[0])
    with pytest.raises(KubeconfigError, match="client-key cannot be used: the key has a passphrase, and has to"):
        load_kubeconfig(kubeconfig(tmp_path, ELSEWHERE, user))


async def test_a_certificate_may_be_in_the_kubeconfig_and_its_key_in_a_file(tmp_path: Path, certificate: Path) -> None:
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
    async with taking_tokens(tls) as server:
        await ask(kubeconfig(tmp_path, server.address, user, **entries))
        assert len(server.seen) == 1
