"""Webhooks and policies that take part in the admission of nodes and leases; only posts go through them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from kumulus.kube.errors import tolerating

if TYPE_CHECKING:
    from kumulus.kube import Client

_API = "/apis/admissionregistration.k8s.io"
_WEBHOOKS = ("v1/mutatingwebhookconfigurations", "v1/validatingwebhookconfigurations")
# Those that change objects are served only by some versions, and only if a stack enables them.
_POLICIES = (
    "v1/validatingadmissionpolicies",
    "v1/mutatingadmissionpolicies",
    "v1beta1/mutatingadmissionpolicies",
    "v1alpha1/mutatingadmissionpolicies",
)
# What is written around the API server, by its API group.
_WRITTEN = {"": "nodes", "coordination.k8s.io": "leases"}
# A stack's pools are created at the same moment: they share the answer to one request.
_questions: WeakKeyDictionary[Client, asyncio.Task[str]] = WeakKeyDictionary()


async def concerned_with_nodes(client: Client) -> str:
    """The first webhook or policy that looks at nodes or leases when they are created, in a sentence; or nothing.

    Selectors and conditions that may exempt our objects are ignored.
    """
    question = _questions.get(client)
    if question is None or question.done():
        question = _questions[client] = asyncio.ensure_future(_ask(client))
    return await asyncio.shield(question)


async def _ask(client: Client) -> str:
    for items in await asyncio.gather(*(_listed(client, kind) for kind in _WEBHOOKS)):
        for item in items:
            for webhook in item.get("webhooks") or ():
                if what := _matched(webhook.get("rules") or ()):
                    return f"webhook {webhook.get('name')} of {item['metadata']['name']} is about {what}"
    for items in await asyncio.gather(*(_listed(client, kind) for kind in _POLICIES)):
        for item in items:
            rules = ((item.get("spec") or {}).get("matchConstraints") or {}).get("resourceRules") or ()
            if what := _matched(rules):
                return f"policy {item['metadata']['name']} is about {what}"
    return ""


async def _listed(client: Client, kind: str) -> list[dict[str, Any]]:
    with tolerating(404):
        return list((await client.get(f"{_API}/{kind}")).get("items") or ())
    return []


def _matched(rules: Iterable[Mapping[str, Any]]) -> str:
    """The resource in :data:`_WRITTEN` whose creation a rule covers; empty if no rule covers one."""
    for rule in rules:
        groups, resources, operations = (set(rule.get(key) or ()) for key in ("apiGroups", "resources", "operations"))
        for group, resource in _WRITTEN.items():
            if groups & {group, "*"} and resources & {resource, "*", "*/*"} and operations & {"CREATE", "*"}:
                return resource
    return ""
