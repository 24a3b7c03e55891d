"""Replaces the names in a DeviceClass's CEL expression, if it is certain which of its string literals are names.

Expressions compare a device's driver, attributes and capacities with constants; every name in them is found by its
position. An expression that looks into a string (`startsWith`, `matches`, an order of strings) would give other results
with words, and one with variables or escapes is not understood here. Neither is renamed, and the capture reports that.

Source: kubernetes.io/docs/reference/using-api/cel, and k8s.io/dynamic-resource-allocation/cel (what `device` has).
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from kumulus.extras.capture.words import Words
from kumulus.model.quantity import is_quantity

_TOKENS = re.compile(
    r"""(?P<space>\s+)|(?P<text>"[^"\\\n]*"|'[^'\\\n]*')|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"""
    r"""|(?P<number>[0-9]+(?:\.[0-9]+)?u?)|(?P<sign>&&|\|\||==|!=|<=|>=|\.\?|[][().,!?:<>*%/+-])"""
)
_DOMAINS = ("attributes", "capacity")
_WORDS = frozenset(("device", "in", "true", "false", "null", "has", "semver", "quantity", "isSemver", "isQuantity"))
_MEMBERS = """
    driver attributes capacity allowMultipleAllocations compareTo isGreaterThan isLessThan asInteger asApproximateFloat
    orValue hasValue value major minor patch isInteger sign add sub
"""
_MEMBER_NAMES = frozenset(_MEMBERS.split())
_ORDER = frozenset(("<", ">", "<=", ">=", "+"))
# Of a quantity: a longer row of digits may be something else.
_LONGEST = 36


def is_plain_quantity(text: str) -> bool:
    """Whether a text is a quantity, which says nothing else."""
    return len(text) <= _LONGEST and is_quantity(text)


class CannotRename(Exception):
    """An expression whose string literals cannot be determined."""


class _Token(NamedTuple):
    kind: str
    text: str


def renamed(expression: str, names: Words) -> str:
    """An expression with every name in it replaced; spaces as they were, string literals in double quotes.

    Raises:
        CannotRename: it is not certain what is a name.
    """
    found, at = list[_Token](), 0
    while at < len(expression):
        match = _TOKENS.match(expression, at)
        if match is None or match.lastgroup is None:
            raise CannotRename
        found.append(_Token(match.lastgroup, match[0]))
        at = match.end()
    tokens = [each for each in found if each.kind != "space"]
    exchanged = iter([_exchanged(tokens, index, names) for index in range(len(tokens))])
    return "".join(" " * len(each.text) if each.kind == "space" else next(exchanged) for each in found)


def _exchanged(tokens: Sequence[_Token], index: int, names: Words) -> str:
    token = tokens[index]
    if token.kind == "name":
        return _name(tokens, index, names)
    if token.kind == "text":
        return json.dumps(_text(tokens, index, names), ensure_ascii=False)
    return token.text


def _name(tokens: Sequence[_Token], index: int, names: Words) -> str:
    text = tokens[index].text
    if _at(tokens, index - 1) in (".", ".?"):
        if _is_domain(tokens, index - 2):
            return names.attribute(text)
        if text in _MEMBER_NAMES:
            return text
    elif text in _WORDS:
        return text
    raise CannotRename


def _text(tokens: Sequence[_Token], index: int, names: Words) -> str:
    text, before, after = tokens[index].text[1:-1], _at(tokens, index - 1), _at(tokens, index + 1)
    if _kind(tokens, index - 1) in ("text", "name") or _kind(tokens, index + 1) == "text":
        # A prefix of a string literal, or triple quotes.
        raise CannotRename
    if before in _ORDER or after in _ORDER or after in (".", ".?", "["):
        raise CannotRename
    if before == "[" and after == "]":
        if _at(tokens, index - 2) in _DOMAINS:
            return names.driver(text)
        if _is_domain(tokens, index - 2):
            return names.attribute(text)
    if after == "in":
        return _sought(tokens, index + 2, text, names)
    if before == "(" and (call := _at(tokens, index - 2)) in ("semver", "quantity", "isSemver", "isQuantity"):
        if "emver" in call:
            return names.version(text)
        if is_plain_quantity(text):
            return text
        raise CannotRename
    return names.device_text(text)


def _sought(tokens: Sequence[_Token], index: int, text: str, names: Words) -> str:
    """The left operand of `in`, whose right operand begins at an index: `device.attributes`, or one of its domains."""
    if [_at(tokens, index + each) for each in (0, 1)] != ["device", "."] or _at(tokens, index + 2) not in _DOMAINS:
        raise CannotRename
    if _at(tokens, index + 3) != "[":
        return names.driver(text)
    end = next((at for at in range(index + 4, len(tokens)) if tokens[at].text == "]"), len(tokens))
    if _at(tokens, end + 1) in (".", ".?", "["):
        raise CannotRename
    return names.attribute(text)


def _is_domain(tokens: Sequence[_Token], end: int) -> bool:
    """Whether the tokens up to an index end with `attributes[…]` or `capacity[…]`: the attributes of a domain."""
    if _at(tokens, end) != "]":
        return False
    depth = 0
    for index in range(end, -1, -1):
        if tokens[index].kind == "sign":
            depth += {"]": 1, "[": -1}.get(tokens[index].text, 0)
        if depth == 0:
            return _kind(tokens, index - 1) == "name" and _at(tokens, index - 1) in _DOMAINS
    return False


def _at(tokens: Sequence[_Token], index: int) -> str:
    """A token's text; empty for a string literal, so that none is mistaken for a sign or a name."""
    return tokens[index].text if 0 <= index < len(tokens) and tokens[index].kind != "text" else ""


def _kind(tokens: Sequence[_Token], index: int) -> str:
    return tokens[index].kind if 0 <= index < len(tokens) else ""
