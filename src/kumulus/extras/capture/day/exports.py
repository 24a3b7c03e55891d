"""The formats of audit logs, each unpacked into events of audit.k8s.io/v1, or into requests.

| form | an entry |
|---|---|
| the API server's file | an Event, a line each |
| its webhook | an EventList: a batch of them |
| EKS, from CloudWatch | `message` or `@message` with an Event as a text; `events` or `logEvents` with several |
| AKS, from its resource logs | `properties.log` or `log_s` with an Event as a text; `records` with several |
| GKE, from Cloud Logging | `protoPayload` with methodName, resourceName, request and response |

Sources: k8s.io/apiserver pkg/apis/audit/v1, the schemas of CloudWatch Logs' subscription filters, of Azure's resource
logs, and of google.cloud.audit.AuditLog.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kumulus.extras.capture.day.requests import CHANGING, ApiRequest, Unusable, seconds

_LISTS = ("items", "events", "logEvents", "records", "Records", "entries")
_TEXTS = ("message", "@message", "log", "log_s", "textPayload")
_MOST_LEVELS = 5


def requests(entry: Any, level: int = 0) -> Iterator[ApiRequest]:
    """The requests in an entry of any format, only those that changed something."""
    if level > _MOST_LEVELS:
        raise Unusable("is nested too deeply")
    if isinstance(entry, str):
        yield from requests(_parsed(entry), level + 1)
    elif isinstance(entry, list):
        for each in entry:
            yield from requests(each, level + 1)
    elif not isinstance(entry, Mapping):
        raise Unusable(f"is {type(entry).__name__}, no entry of an audit log")
    elif "verb" in entry and "auditID" in entry:
        yield from _event(entry)
    elif isinstance(payload := entry.get("protoPayload"), Mapping):
        yield from _of_cloud_logging(entry, payload)
    else:
        yield from _within(entry, level)


def _within(entry: Mapping[str, Any], level: int) -> Iterator[ApiRequest]:
    for key in _LISTS:
        if isinstance(entry.get(key), list):
            yield from requests(entry[key], level + 1)
            return
    properties = entry.get("properties")
    for place in (entry, properties if isinstance(properties, Mapping) else {}):
        for key in _TEXTS:
            if isinstance(place.get(key), str | dict):
                yield from requests(place[key], level + 1)
                return
    raise Unusable(f"is of no form of an audit log that is known: {', '.join(sorted(map(str, entry))[:6]) or 'empty'}")


def _parsed(text: str) -> Any:
    # CloudWatch's export to S3 puts a timestamp before each entry.
    start = text.find("{")
    try:
        return json.loads(text[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        raise Unusable("has a text that is no JSON") from None


def _event(event: Mapping[str, Any]) -> Iterator[ApiRequest]:
    if str(event["verb"]) not in CHANGING or event.get("stage", "ResponseComplete") != "ResponseComplete":
        return
    about, uri = event.get("objectRef"), str(event.get("requestURI") or "")
    if not isinstance(about, Mapping) or not about.get("resource"):
        return
    status = event.get("responseStatus")
    code = status.get("code", 200) if isinstance(status, Mapping) else 200
    query = parse_qs(urlsplit(uri).query)
    if not isinstance(code, int) or code >= 300 or "dryRun" in query:
        return
    answered = event.get("responseObject")
    user = event.get("user")
    yield ApiRequest(
        at=seconds(event.get("requestReceivedTimestamp") or event.get("stageTimestamp")),
        verb=str(event["verb"]),
        group=str(about.get("apiGroup") or ""),
        version=str(about.get("apiVersion") or "v1"),
        resource=str(about["resource"]),
        subresource=str(about.get("subresource") or ""),
        namespace=str(about.get("namespace") or ""),
        name=str(about.get("name") or _name(answered) or _name(event.get("requestObject"))),
        sent=event.get("requestObject"),
        answered=answered if _is_object(answered) else None,
        user=str(user.get("username") or "") if isinstance(user, Mapping) else "",
        program=str(event.get("userAgent") or ""),
        selector=(query.get("labelSelector") or [""])[0],
        created=code == 201,
    )


def _of_cloud_logging(entry: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[ApiRequest]:
    method = str(payload.get("methodName") or "").split(".")
    path = str(payload.get("resourceName") or "").split("/")
    status = payload.get("status")
    failed = isinstance(status, Mapping) and bool(status.get("code"))
    if method[0] != "io" or len(method) < 5 or method[-1] not in CHANGING or failed or len(path) < 3:
        return
    group, version, rest = path[0], path[1], path[2:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    answered, request, who = payload.get("response"), payload.get("request"), payload.get("authenticationInfo")
    metadata = payload.get("requestMetadata")
    name = rest[1] if len(rest) > 1 else _name(answered) or _name(request)
    yield ApiRequest(
        at=seconds(entry.get("timestamp")),
        verb=method[-1],
        group="" if group == "core" else group,
        version=version,
        resource=rest[0],
        subresource=rest[2] if len(rest) > 2 else "",
        namespace=namespace,
        name=name,
        sent=request,
        answered=answered if _is_object(answered) else None,
        user=str(who.get("principalEmail") or "") if isinstance(who, Mapping) else "",
        program=str(metadata.get("callerSuppliedUserAgent") or "") if isinstance(metadata, Mapping) else "",
    )


def _name(body: Any) -> str:
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


def _is_object(body: Any) -> bool:
    """Whether an answer is the object: a deletion may also be answered by a Status."""
    return isinstance(body, Mapping) and isinstance(body.get("metadata"), Mapping) and body.get("kind") != "Status"
