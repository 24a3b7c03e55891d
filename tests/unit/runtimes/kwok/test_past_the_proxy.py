"""etcd is asked directly, whatever proxy the user has for the internet."""

import subprocess
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from kumulus.runtimes.kwok.etcd_keys import EtcdKeys
from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.runtimes.kwok.storage import connected


class _Silent(grpc.GenericRpcHandler):
    """Answers each call with a message in which no field is set."""

    def service(self, handler_call_details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    """The files of a cluster whose etcd answers."""
    found = Layout.of(str(tmp_path), "dev")
    pki = found.directory / "pki"
    pki.mkdir(parents=True)
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=etcd", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, "-keyout", pki / "admin.key", "-out", pki / "admin.crt"], check=True, capture_output=True)
    certificate = (pki / "admin.crt").read_bytes()
    (pki / "ca.crt").write_bytes(certificate)
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((_Silent(),))
    credentials = grpc.ssl_server_credentials([((pki / "admin.key").read_bytes(), certificate)])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    found.kwok_file.write_text(dump([{"kind": "KwokctlConfiguration", "options": {"etcdPort": port}}]))
    server.start()
    yield found
    server.stop(0)


@pytest.fixture(autouse=True)
def proxy(monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> None:
    """A proxy for all hosts, which does not answer."""
    for name in ("no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{unused_tcp_port}")


async def test_new_nodes_are_not_written_through_it(layout: Layout) -> None:
    etcd = connected(layout)
    try:
        assert await etcd.full_members() == []
    finally:
        await etcd.close()


def test_snapshots_are_not_read_through_it(layout: Layout) -> None:
    with EtcdKeys(layout) as etcd:
        assert list(etcd.all(b"/registry/")) == []
