"""A CertificateSigningRequest that was approved is signed, and its user is known to the cluster."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.conftest import Plane
from tests.support.api import Api, Object

pytestmark = pytest.mark.integration
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


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
    user = Api(_kubeconfig(plane, key, signed["jane"]["status"]["certificate"]))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    who = user.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert who["status"]["userInfo"]["username"] == "jane"


def _kubeconfig(plane: Plane, key: Path, certificate: str) -> Path:
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
