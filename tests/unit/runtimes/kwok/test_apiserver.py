"""A cluster's identity, asked of an API server that has only just started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kumulus.kube import ApiError
from kumulus.runtimes import apiserver
from tests.support.apiserver import Server, ok, serving, status, text

FORBIDDEN = status(403, "Forbidden", 'User "kubernetes-admin" cannot get path "/readyz"')
MISSING = status(404, "NotFound", 'namespaces "kube-system" not found')
NAMESPACE = ok({"metadata": {"name": "kube-system", "uid": "u-1"}})
READY = text(200, "ok")


def kubeconfig(server: Server, folder: Path) -> Path:
    named = {
        "clusters": [{"name": "c", "cluster": {"server": server.address}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig.yaml"
    file.write_text(json.dumps(named))
    return file


async def test_roles_not_read_yet_and_a_namespace_not_made_yet_are_waited_for(tmp_path: Path) -> None:
    async with serving() as server:
        server.answers = [FORBIDDEN, READY, FORBIDDEN, READY, MISSING, READY, NAMESPACE]
        assert await apiserver.identity(kubeconfig(server, tmp_path), patience=20.0) == "u-1"


async def test_a_user_without_rights_is_told_once_patience_ends(tmp_path: Path) -> None:
    async with serving() as server:
        server.answers = [FORBIDDEN]
        with pytest.raises(ApiError, match="cannot get path"):
            await apiserver.identity(kubeconfig(server, tmp_path), patience=0.3)
        assert len(server.seen) > 1
