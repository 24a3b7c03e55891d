"""How it is said which fields of an object a capture keeps, and what each of their texts is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Leaf(Enum):
    """What a value is."""

    WORD = "a switch, a number or a word of the API's own, such as NoSchedule"
    QUANTITY = "a quantity"
    NAME = "an object's name"
    KEY = "the key of a label, a taint, a condition"
    VALUE = "a label's value"
    LABELS = "a mapping from keys to values"
    RESOURCE = "a resource's name"
    RESOURCES = "a mapping from resources to quantities"
    DRIVER = "the name of a DRA driver"
    ATTRIBUTE = "the name of a device's attribute or capacity, of its driver's domain where it names none"
    REQUEST = "a claim's request, or with a slash one of its alternatives"
    DEVICE_TEXT = "an attribute's text"
    VERSION = "an attribute's version, as semver.org has it"
    EXPRESSION = "a CEL expression over a device"


@dataclass(frozen=True)
class Each:
    """The form of a mapping whose keys are names."""

    key: Leaf
    of: Form


@dataclass(frozen=True)
class Selecting:
    """The form of a mapping that has a meaning even when empty: a selector that selects everything."""

    fields: Mapping[str, Form]


Form = Leaf | Each | Selecting | Mapping[str, "Form"] | Sequence["Form"]
"""A leaf; the fields of a mapping; names with a value each; or, as a list of one form, a list of such values."""

WORD, QUANTITY, NAME, KEY, VALUE = Leaf.WORD, Leaf.QUANTITY, Leaf.NAME, Leaf.KEY, Leaf.VALUE
LABELS, RESOURCE, RESOURCES = Leaf.LABELS, Leaf.RESOURCE, Leaf.RESOURCES

EXPRESSIONS: Form = [{"key": KEY, "operator": WORD, "values": [VALUE]}]
SELECTOR: Form = Selecting({"matchLabels": LABELS, "matchExpressions": EXPRESSIONS})
TOLERATION: Form = {"key": KEY, "operator": WORD, "value": VALUE, "effect": WORD, "tolerationSeconds": WORD}
TAINTS: Form = [{"key": KEY, "value": VALUE, "effect": WORD}]
CLAIMS: Form = [{"name": NAME, "resourceClaimName": NAME, "resourceClaimTemplateName": NAME}]
BARE: Form = {"name": NAME, "namespace": NAME}
"""Metadata without labels."""
