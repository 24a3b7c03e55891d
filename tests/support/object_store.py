"""An API server in place of a real one that keeps the objects it is sent in memory: for what takes many requests."""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from google.protobuf import json_format

from kumulus.kube import Client, Connection
from kumulus.kube.codecs import PROTOBUF
from kumulus.kube.messages import answered, enveloped, message_classes
from tests.support.apiserver import listening

Object = dict[str, Any]
NODES, MAPS = "/api/v1/nodes", "/api/v1/namespaces/kube-system/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass
class Store:
    """Objects by path, as an API server keeps them."""

    address: str = ""
    objects: dict[str, Object] = field(default_factory=dict)
    """By path."""
    served: set[str] = field(default_factory=lambda: {NODES, MAPS, LEASES, "/api/v1/pods"})
    """The collections that exist, whether or not there are objects in them."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Verb and path of each request, in order."""
    refuse: Callable[[str, str, Object], int | None] = lambda _verb, _path, _body: None
    """Called with verb, path and body before a request is carried out; returns a status to answer instead."""
    react: Callable[[str, Object], None] = lambda _collection, _object: None
    """Called with the collection and each object that is stored, which it may change, as controllers do."""
    applied: dict[tuple[str, str], Object] = field(default_factory=dict)
    """What each field manager has applied last, by path and manager."""
    version: int = 0

    def client(self, patience: float = 0.0) -> Client:
        return Client(Connection(self.address, "test"), patience=patience)

    def put(self, collection: str, body: Object) -> Object:
        """Store an object as if it had been posted."""
        self.version += 1
        body = json.loads(json.dumps(body))
        body["metadata"] |= {"uid": f"uid-{self.version}", "resourceVersion": str(self.version)}
        self.react(collection, body)
        self.objects[f"{collection}/{body['metadata']['name']}"] = body
        return body

    def under(self, collection: str, selector: str = "") -> list[Object]:
        """The objects of a collection that a label selector selects."""
        return [
            each
            for path, each in sorted(self.objects.items())
            if path.rpartition("/")[0] == collection and _selects(selector, each["metadata"].get("labels") or {})
        ]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        verb, path = request.method, request.path
        raw = await request.read() or b"{}"
        # Whatever the type of content is called, what is sent is JSON.
        body = _posted(raw) if request.content_type == PROTOBUF else json.loads(raw)
        self.asked.append((verb, path))
        if (status := self.refuse(verb, path, body)) is not None:
            return _status(status)
        return self._carried_out(request, verb, path.removesuffix("/status"), body)

    def _carried_out(self, request: web.Request, verb: str, path: str, body: Object) -> web.StreamResponse:
        there = self.objects.get(path)
        if verb == "GET" and path in self.served:
            return _listed(self.under(path, request.query.get("labelSelector", "")), request.headers["Accept"])
        if path.endswith("/selfsubjectaccessreviews"):
            return web.json_response({**body, "status": {"allowed": True}})
        if verb == "POST":
            return self._created(path, body)
        applies = "apply-patch" in request.content_type
        if applies and there is None:
            self.applied[path, request.query["fieldManager"]] = body
            return web.json_response(self.put(path.rpartition("/")[0], body))
        if there is None:
            return _status(404)
        wanted = body.get("metadata", {}) if verb != "DELETE" else body.get("preconditions") or {}
        if any(wanted[key] != there["metadata"][key] for key in ("uid", "resourceVersion") if key in wanted):
            return _status(409)
        if verb == "DELETE":
            del self.objects[path]
            if path.startswith(NODES):
                self.objects.pop(path.replace(NODES, LEASES), None)
        elif verb != "GET":
            if applies:
                # What the manager had applied before and applies no more goes.
                before = self.applied.get((path, request.query["fieldManager"]), {})
                there = _without(there, before, body)
                if "dryRun" in request.query:
                    return web.json_response(_merged(there, body))
                self.applied[path, request.query["fieldManager"]] = body
            self.version += 1
            there = body if verb == "PUT" else _merged(there, body)
            there["metadata"] |= {"uid": self.objects[path]["metadata"]["uid"], "resourceVersion": str(self.version)}
            self.react(path.rpartition("/")[0], there)
            self.objects[path] = there
        return web.json_response(there)

    def _created(self, collection: str, body: Object) -> web.StreamResponse:
        """Store an object; a node's lease is made, as KWOK does."""
        name = body["metadata"]["name"]
        if collection not in self.served:
            return _status(404)
        if f"{collection}/{name}" in self.objects:
            return _status(409)
        if collection == NODES and f"{LEASES}/{name}" not in self.objects:
            self.put(LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": "kwok"}})
        return web.json_response(self.put(collection, body))


@asynccontextmanager
async def storing() -> AsyncIterator[Store]:
    """A store that listens."""
    made = Store()
    async with listening(made.answer) as made.address:
        yield made


def _status(code: int) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "reason": str(code), "message": "no"}, status=code)


def _selects(selector: str, labels: Mapping[str, str]) -> bool:
    for term in filter(None, re.split(r",(?![^(]*\))", selector)):
        key, excluded, values = term.partition(" notin ")
        if excluded:
            if labels.get(key) in values.strip("()").split(","):
                return False
            continue
        key, unequal, value = term.partition("!=")
        if unequal:
            if labels.get(key) == value:
                return False
            continue
        key, equal, value = term.partition("=")
        if term.startswith("!"):
            if term[1:] in labels:
                return False
        elif key not in labels or (equal and labels[key] != value):
            return False
    return True


def _merged(there: Object, patch: Object) -> Object:
    """A merge patch; conditions are merged by their type, as in a strategic one."""
    found = dict(there)
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict):
            found[key] = _merged(found.get(key) or {}, value)
        elif key == "conditions":
            kept = {each["type"]: each for each in found.get(key) or ()}
            kept |= {each["type"]: each for each in value}
            found[key] = [each for each in kept.values() if each.get("$patch") != "delete"]
        else:
            found[key] = value
    return found


def _without(there: Object, before: Object, now: Object) -> Object:
    """An object without what was in `before` and is not in `now`."""
    found = {key: value for key, value in there.items() if key in now or key not in before}
    for key, value in found.items():
        if all(isinstance(each.get(key), dict) for each in (there, before, now)):
            found[key] = _without(value, before[key], now[key])
    return found


def _listed(items: list[Object], accept: str) -> web.Response:
    if not accept.startswith(PROTOBUF):
        return web.json_response({"kind": "List", "metadata": {}, "items": items})
    # Only nodes are listed in protobuf by what is tested here.
    listed = message_classes()["NodeList"]()
    for each in items:
        json_format.ParseDict(_without_types(each), listed.items.add(), ignore_unknown_fields=True)
    return web.Response(body=enveloped("v1", "NodeList", listed.SerializeToString()), content_type=PROTOBUF)


def _without_types(node: Object) -> Object:
    """A node as protobuf's JSON has it: quantities are messages; times are left out."""
    status = node.get("status", {})
    quantities = {
        key: {resource: {"string": quantity} for resource, quantity in status.get(key, {}).items()}
        for key in ("capacity", "allocatable")
    }
    conditions = [{key: each[key] for key in ("type", "status")} for each in status.get("conditions", ())]
    kept = ("name", "uid", "resourceVersion", "labels", "annotations")
    return {
        "metadata": {key: node["metadata"][key] for key in kept if key in node["metadata"]},
        "spec": node.get("spec", {}),
        "status": {**status, **quantities, "conditions": conditions},
    }


def _posted(body: bytes) -> Object:
    """A node that was posted in protobuf, as an object."""
    found = json_format.MessageToDict(answered(message_classes()["Node"], body))
    for key in ("capacity", "allocatable"):
        quantities = found.get("status", {}).get(key, {})
        found["status"][key] = {resource: each["string"] for resource, each in quantities.items()}
    return found
