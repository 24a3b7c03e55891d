"""A pod's volumes as folders, whose files are kept as the ConfigMaps, Secrets and tokens are."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.processes.containers import Manifest, Missing, field
from kumulus.host import files
from kumulus.kube import objects

if TYPE_CHECKING:
    from kumulus.kube import Client

_TOKEN_LASTS = 3607


class Volumes:
    """The volumes of one pod."""

    def __init__(self, client: Client, pod: Manifest, folder: Path, address: str) -> None:
        self._client = client
        self._pod = pod
        self.folder = folder
        self._address = address
        # Each token, with the time from which on there should be another.
        self._tokens: dict[str, tuple[bytes, float]] = {}

    async def write(self) -> None:
        """Make the volumes' files what they are to be now."""
        for volume in self._pod["spec"].get("volumes") or []:
            folder = self.folder / volume["name"]
            folder.mkdir(parents=True, exist_ok=True)
            if "emptyDir" in volume:
                continue
            _keep(folder, await self._content(volume))

    async def referred(self, kind: str, reference: Manifest) -> dict[str, bytes]:
        """What a ``configMap`` or ``secret`` in the pod's namespace has, by key; {} for an optional one not there."""
        name = reference.get("name") or reference["secretName"]
        namespace = self._pod["metadata"]["namespace"]
        found = await objects.find(self._client, f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}")
        if found is None:
            if reference.get("optional"):
                return {}
            raise Missing(f'{kind.lower()} "{name}" not found')
        data, binary = found.get("data") or {}, found.get("binaryData") or {}
        if kind == "secret":
            return {key: base64.b64decode(value) for key, value in data.items()}
        return {key: value.encode() for key, value in data.items()} | {
            key: base64.b64decode(value) for key, value in binary.items()
        }

    async def _content(self, volume: Manifest) -> dict[str, bytes]:
        made: dict[str, bytes] = {}
        sources: Iterable[Manifest] = volume["projected"]["sources"] if "projected" in volume else [volume]
        for source in sources:
            for kind in ("configMap", "secret"):
                if kind in source:
                    made |= _items(source[kind], await self.referred(kind, source[kind]))
            for item in (source.get("downwardAPI") or {}).get("items") or []:
                path = item.get("fieldRef", {}).get("fieldPath", "")
                made[item["path"]] = field(self._pod, path, self._address).encode()
            if token := source.get("serviceAccountToken"):
                made[token["path"]] = await self._token(token)
        return made

    async def _token(self, asked: Manifest) -> bytes:
        audience = asked.get("audience", "")
        token, until = self._tokens.get(audience, (b"", 0.0))
        if time.time() < until:
            return token
        metadata = self._pod["metadata"]
        lasts = asked.get("expirationSeconds", _TOKEN_LASTS)
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        spec: dict[str, Any] = {"expirationSeconds": lasts, "boundObjectRef": bound}
        if audience:
            spec["audiences"] = [audience]
        account = self._pod["spec"].get("serviceAccountName", "default")
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        status = (await self._client.create(path, request))["status"]
        ends = datetime.fromisoformat(status["expirationTimestamp"]).timestamp()
        # As a kubelet does: after four fifths of its time.
        self._tokens[audience] = (status["token"].encode(), time.time() + 0.8 * (ends - time.time()))
        return self._tokens[audience][0]


def _keep(folder: Path, wanted: Mapping[str, bytes]) -> None:
    """Make a folder's files those wanted. The API server refuses paths that would lead out of it."""
    for path, data in wanted.items():
        file = folder / path
        if not file.is_file() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            files.write(file, data, mode=0o600)
    for there in folder.rglob("*"):
        if there.is_file() and str(there.relative_to(folder)) not in wanted:
            there.unlink()


def _items(source: Manifest, data: Mapping[str, bytes]) -> dict[str, bytes]:
    if not source.get("items"):
        return dict(data)
    made = {}
    for item in source["items"]:
        if item["key"] in data:
            made[item["path"]] = data[item["key"]]
        elif not source.get("optional"):
            raise Missing(f"there is no key {item['key']} in {source.get('name') or source.get('secretName')}")
    return made
