"""A small synchronous Kubernetes API client for tests: not the one under test, and with a watch instead of sleeps."""

import base64
import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

MERGE_PATCH = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

# A limit for conditions that never hold. While images are loaded or other control planes start, etcd's fsync alone
# takes seconds.
PATIENCE_S = 120.0
_SHOWN = 5

Object = dict[str, Any]
Objects = list[Object]


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """The API server that a kubeconfig names, with files for its certificates, or with data and a token.

    Args:
        kubeconfig: path of the kubeconfig, or its content.
    """

    def __init__(self, kubeconfig: Path | str) -> None:
        document = yaml.safe_load(kubeconfig.read_text() if isinstance(kubeconfig, Path) else kubeconfig)
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self.server: str = cluster["server"]
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        if isinstance(kubeconfig, Path) and "certificate-authority" in cluster:
            self._tls = ssl.create_default_context(cafile=kubeconfig.parent / cluster["certificate-authority"])
        else:
            authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
            self._tls = ssl.create_default_context(cadata=authority)
        if isinstance(kubeconfig, Path) and "token" not in user:
            with tempfile.TemporaryDirectory() as folder:
                files = partial(_file, kubeconfig.parent, Path(folder))
                self._tls.load_cert_chain(files(user, "client-certificate"), files(user, "client-key"))
        self._connection: http.client.HTTPSConnection | None = None

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        parts = urlsplit(self.server)
        return http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=timeout, context=self._tls)

    def request(
        self, verb: str, path: str, body: Object | list[Object] | None = None, content: str = "application/json"
    ) -> Any:
        """Send one request and return its decoded answer."""
        accept = _METADATA_ONLY if content == _METADATA_ONLY else "application/json"
        headers = {**self._headers, "Accept": accept, **({"Content-Type": content} if body is not None else {})}
        data = None if body is None else json.dumps(body).encode()
        try:
            answer, raw = self._send(verb, path, data, headers)
        except (ConnectionError, ssl.SSLError, http.client.RemoteDisconnected):
            # The connection was from before a restart of the server: the second attempt opens a new one.
            answer, raw = self._send(verb, path, data, headers)
        if answer.status >= 300:
            raise Refused(answer.status, raw.decode(errors="replace")[:500])
        return json.loads(raw)

    def _send(
        self, verb: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        if self._connection is None:
            self._connection = self._connect(30)
        try:
            self._connection.request(verb, path, body=data, headers=headers)
            answer = self._connection.getresponse()
            return answer, answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def get(self, path: str) -> Object:
        """GET an object."""
        found: Object = self.request("GET", path)
        return found

    def create(self, path: str, body: Object) -> Object:
        """POST an object."""
        made: Object = self.request("POST", path, body)
        return made

    def delete(self, path: str) -> None:
        """DELETE an object."""
        self.request("DELETE", path)

    def merge(self, path: str, body: Object) -> Object:
        """Apply a JSON merge patch."""
        changed: Object = self.request("PATCH", path, body, MERGE_PATCH)
        return changed

    def list(self, path: str, **selectors: str) -> Objects:
        """The items of a list; ``labelSelector`` and ``fieldSelector`` narrow it."""
        items: Objects = self.request("GET", _with(path, selectors))["items"] or []
        return items

    def metadata(self, path: str, **selectors: str) -> Objects:
        """The metadata of a list's items, which is quicker to get than the items."""
        items = self.request("GET", _with(path, selectors), content=_METADATA_ONLY)["items"] or []
        return [item["metadata"] for item in items]

    def until(
        self,
        path: str,
        reached: Callable[[Mapping[str, Object]], bool],
        timeout: float = PATIENCE_S,
        **selectors: str,
    ) -> Mapping[str, Object]:
        """Watch a collection until a condition holds and return its objects by name.

        Args:
            selectors: ``labelSelector`` and ``fieldSelector``.

        Raises:
            AssertionError: the condition did not hold in time; the message shows the objects.
        """
        give_up = time.monotonic() + timeout
        while True:
            page = self.request("GET", _with(path, selectors))
            state = {item["metadata"]["name"]: item for item in page["items"] or []}
            if reached(state):
                return state
            if time.monotonic() > give_up:
                raise AssertionError(f"{path} {selectors}: not as awaited after {timeout:.0f} s:\n{_shown(state)}")
            # A server may end a watch early; the collection is then listed again.
            version = page["metadata"]["resourceVersion"]
            for event in self.events(path, version, give_up - time.monotonic(), **selectors):
                if event["type"] == "ERROR":
                    break
                name = event["object"]["metadata"]["name"]
                if event["type"] == "DELETED":
                    state.pop(name, None)
                else:
                    state[name] = event["object"]
                if reached(state):
                    return state

    def version(self, path: str) -> str:
        """The resourceVersion of a collection as it is now."""
        found: str = self.request("GET", _with(path, {"limit": "1"}))["metadata"]["resourceVersion"]
        return found

    def events(
        self, path: str, version: str, seconds: float, accept: str = "application/json", **selectors: str
    ) -> Iterator[Object]:
        """The events of a collection after a resourceVersion, over a separate connection, so that a thread may use it.

        Args:
            accept: the representation; :data:`METADATA` is quicker to get than whole objects.
        """
        seconds = max(1, int(seconds))
        connection = self._connect(seconds + 5)
        query = {**selectors, "resourceVersion": version, "watch": "1", "timeoutSeconds": str(seconds)}
        try:
            connection.request("GET", _with(path, query), headers={**self._headers, "Accept": accept})
            answer = connection.getresponse()
            if answer.status >= 300:
                raise Refused(answer.status, answer.read().decode(errors="replace")[:500])
            for line in answer:
                if line.strip():
                    yield json.loads(line)
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _file(beside: Path, folder: Path, holder: Mapping[str, str], name: str) -> Path:
    """The file that holds a certificate or key: the named one, or one written from inline data."""
    if f"{name}-data" not in holder:
        return beside / holder[name]
    file = folder / name
    file.write_bytes(base64.b64decode(holder[f"{name}-data"]))
    return file


def _shown(state: Mapping[str, Object]) -> str:
    """The first objects, without the owners of their fields."""
    shown = []
    for item in list(state.values())[:_SHOWN]:
        metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
        shown.append(json.dumps({**item, "metadata": metadata}))
    return "\n".join([*shown, f"{len(state)} objects there"])


def _with(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
