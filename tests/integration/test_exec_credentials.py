"""A client certificate that a command gives, on a real API server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kumulus.kube import Client, load_kubeconfig
from tests.integration.conftest import Plane

pytestmark = pytest.mark.integration


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
