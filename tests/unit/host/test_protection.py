"""When a stack's secrets are protected by nothing, and what is said of it."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kumulus.host.protection import Unprotected, unprotected
from kumulus.host.pulumi_project import PulumiProject

EMPTY = {"PULUMI_CONFIG_PASSPHRASE": ""}
SALTED = {"encryptionsalt": "v1:…", "config": {}}
SIG = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"}


def project(root: Path, backend: str = "file://./state") -> PulumiProject:
    return PulumiProject(root / "Pulumi.yaml", "fleet", root, backend, None)


def found(root: Path, backend: str, environment: dict[str, str] = EMPTY, document: Any = SALTED) -> Unprotected | None:
    return unprotected(project(root, backend), "dev", document, environment, root / "pulumi")


@pytest.mark.parametrize(
    "url", ["s3://b?region=x", "gs://b", "azblob://c", "postgres://me:hunter2@db:5432/kumulus?x=y"]
)
def test_a_backend_that_others_have_is_shared(tmp_path: Path, url: str) -> None:
    for where in (found(tmp_path, url), found(tmp_path, "", {**EMPTY, "PULUMI_BACKEND_URL": url})):
        assert where is not None
        assert where.backend == "shared"
        message = where.message("dev", "secrets")
        assert "pulumi stack change-secrets-provider passphrase -s dev" in message
        assert "hunter2" not in message


def test_the_backend_one_is_logged_in_to_counts_where_none_is_named(tmp_path: Path) -> None:
    assert found(tmp_path, "") is None
    (tmp_path / "pulumi").mkdir()
    (tmp_path / "pulumi" / "credentials.json").write_text(json.dumps({"current": "s3://b"}))
    where = found(tmp_path, "")
    assert where is not None
    assert where.backend == "shared"


@pytest.mark.parametrize("url", ["file://./state", "s3://b"])
def test_a_passphrase_of_ones_own_or_a_key_service_protects(tmp_path: Path, url: str) -> None:
    assert found(tmp_path, url, {"PULUMI_CONFIG_PASSPHRASE": "x"}) is None
    assert found(tmp_path, url, document={"secretsprovider": "awskms://alias/x", "encryptedkey": "…"}) is None
    file = tmp_path / "passphrase"
    by_file = {"PULUMI_CONFIG_PASSPHRASE_FILE": str(file)}
    assert found(tmp_path, url, by_file) is None  # Pulumi itself says that there is no such file.
    file.write_text("x\n")
    assert found(tmp_path, url, by_file) is None
    file.write_text("\n")
    assert found(tmp_path, url, by_file) is not None
    # Where neither is set, Pulumi asks; the variable for the text goes first.
    assert found(tmp_path, url, {}) is None
    file.write_text("x\n")
    assert found(tmp_path, url, {**EMPTY, **by_file}) is not None


def test_pulumi_cloud_keeps_the_key_itself(tmp_path: Path) -> None:
    assert found(tmp_path, "https://api.pulumi.com") is None


@pytest.mark.parametrize("packed", [False, True])
def test_on_this_machine_it_is_told_until_the_state_has_a_secret(tmp_path: Path, packed: bool) -> None:
    folder = tmp_path / "state" / ".pulumi" / "stacks" / "fleet"
    folder.mkdir(parents=True)

    def with_state(text: str) -> Unprotected:
        content = text.encode()
        (folder / f"dev.json{'.gz' if packed else ''}").write_bytes(gzip.compress(content) if packed else content)
        where = found(tmp_path, "file://./state")
        assert where is not None
        return where

    first = found(tmp_path, "file://./state")
    assert first is not None
    assert (first.backend, first.known) == ("local", False)
    assert not with_state(json.dumps({"resources": []})).known
    assert with_state(json.dumps({"resources": [{"outputs": {"data": SIG}}]}, indent=4)).known
    assert with_state(json.dumps({"resources": [{"outputs": {"data": SIG}}]}, separators=(",", ":"))).known
    assert "PULUMI_CONFIG_PASSPHRASE_FILE" in first.message("dev", "tenants")
