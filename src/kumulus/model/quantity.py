"""Kubernetes quantities, exactly: the rules of apimachinery's `resource.Quantity`.

A quantity is stored as a whole number of billionths, the smallest step in Kubernetes, so sums are never rounded.
Source of the grammar and of the canonical form: k8s.io/apimachinery/pkg/api/resource, quantity.go and suffix.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

NANO = 10**9
LARGEST = 2**63 - 1
"""The most the API server and the scheduler can count (int64); binary quantities are capped at it."""

Format = Literal["decimal", "binary", "exponent"]

_PATTERN = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIXES = ("", *_BINARY)
_BYTES = frozenset({"memory", "ephemeral-storage", "storage"})
_MOST_CHARACTERS = 100
_MOST_EXPONENT = 100


class QuantityError(ValueError):
    """The text is not a Kubernetes quantity; the message is what follows the text: "has no digits"."""


@dataclass(frozen=True)
class Quantity:
    """An exact amount of a resource."""

    nanos: int
    """The amount in billionths of the resource's unit (cores, bytes, pieces)."""
    format: Format = "decimal"
    """How it is written: with decimal suffixes, with binary ones, or with an exponent."""

    def is_whole(self) -> bool:
        """Whether the amount has no fraction."""
        return self.nanos % NANO == 0

    def number(self) -> int | float:
        """The amount as a JSON number: an int when it is whole, otherwise the nearest float."""
        return self.nanos // NANO if self.is_whole() else self.nanos / NANO

    def __add__(self, other: Quantity) -> Quantity:
        # Zero has no form of its own: 0 and 1Gi are 1Gi.
        return Quantity(self.nanos + other.nanos, self.format if self.nanos or not other.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + Quantity(-other.nanos, other.format)

    def __mul__(self, count: int) -> Quantity:
        return Quantity(self.nanos * count, self.format)

    def __str__(self) -> str:
        """The canonical form, as the API server writes it."""
        return _canonical(self)


ZERO = Quantity(0)


def parse(written: str | int | float) -> Quantity:
    """Read a quantity as Kubernetes does; numbers are accepted because YAML makes `96` one.

    Stricter than apimachinery in two ways: text without any digit is rejected (apimachinery reads `.` and `+` as 0),
    and so are exponents beyond 100. Like there, fractions of a billionth are rounded away from zero and binary
    quantities are capped at 2^63-1.

    Args:
        written: `"1360Gi"`, `"500m"`, `"1e3"`, `96`, `0.5`; no blanks.

    Raises:
        QuantityError: it is not a quantity.
    """
    return _parsed(_text(written))


def is_quantity(text: str) -> bool:
    """Whether a text is a quantity."""
    try:
        parse(text)
    except QuantityError:
        return False
    return True


# A fleet of thousands of nodes has only a few dozen distinct amounts.
@lru_cache(maxsize=256)
def _parsed(text: str) -> Quantity:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise QuantityError(_why_not(text))
    sign, whole, fraction, suffix = match[1], match[2], match[3] or "", match[4] or ""
    if not whole and not fraction:
        raise QuantityError("has no digits" if text else "is empty")
    digits = int(whole + fraction)
    if suffix in _BINARY:
        return _signed(sign, _binary(digits << _BINARY[suffix], len(fraction)))
    if suffix in _DECIMAL:
        return _signed(sign, Quantity(_nanos(digits, _DECIMAL[suffix] - len(fraction)), "decimal"))
    exponent = int(suffix[1:])
    if abs(exponent) > _MOST_EXPONENT:
        raise QuantityError("has an exponent beyond 100")
    return _signed(sign, Quantity(_nanos(digits, exponent - len(fraction)), "exponent"))


def equal(left: str | int | float, right: str | int | float) -> bool:
    """Whether two quantities are the same amount, however they are written."""
    return parse(left).nanos == parse(right).nanos


def canonical(written: str | int | float) -> str:
    """The form in which the API server writes a quantity: 1000 is 1k, 1024Mi is 1Gi, 0.5 is 500m, 1.5Ti is 1536Gi."""
    return str(parse(written))


def canonical_resources(raw: Mapping[str, str | int | float] | None) -> dict[str, str]:
    """Resources with their quantities in canonical form; the values are already checked."""
    return {name: canonical(written) for name, written in (raw or {}).items()}


def is_bytes(resource: str) -> bool:
    """Whether a resource is counted in bytes: memory, storage, huge pages."""
    return resource in _BYTES or resource.startswith("hugepages-")


def human(resource: str, amount: Quantity) -> str:
    """A readable amount: bytes in the largest binary unit of which there is one, all else with thousands separators."""
    if not is_bytes(resource):
        return f"{amount.nanos // NANO:,}" if amount.is_whole() else f"{amount.number():,.6g}"
    sign, size, unit = ("-" if amount.nanos < 0 else ""), abs(amount.nanos) / NANO, 0
    # 1023.5 KiB would be printed as 1,024 KiB, so the step up comes a little early.
    while size >= 1023.5 and unit < len(_BINARY_SUFFIXES) - 1:
        size, unit = size / 1024, unit + 1
    digits = f"{size:.2f}" if size < 9.995 else f"{size:.1f}" if size < 99.95 else f"{size:,.0f}"
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return f"{sign}{digits} {_BINARY_SUFFIXES[unit]}B"


def _text(written: str | int | float) -> str:
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        raise QuantityError("is not a quantity")
    # Before repr, which refuses an int of thousands of digits; 300 bits are 91 digits.
    if isinstance(written, int) and written.bit_length() > 300:
        raise QuantityError("is too long")
    # repr is the shortest text that reads back as the same float, so 0.1 stays 0.1.
    text = written if isinstance(written, str) else repr(written)
    if len(text) > _MOST_CHARACTERS:
        raise QuantityError("is too long")
    return text


def _why_not(text: str) -> str:
    if text != text.strip() or " " in text:
        return "has a blank in it"
    if re.fullmatch(r"[+-]?[0-9.]+K", text):
        return "has the suffix K, which Kubernetes writes k (thousands) or Ki (1024)"
    if re.fullmatch(r"[+-]?[0-9.]+([kKMGTPE]i?)?[bB]", text):
        return "has a B at its end, which Kubernetes leaves out"
    return "is not a Kubernetes quantity"


def _nanos(digits: int, exponent: int) -> int:
    power = exponent + 9
    scale: int = 10 ** abs(power)
    # Rounded up, as apimachinery does: a request below the smallest amount still gets that amount.
    return digits * scale if power >= 0 else -(-digits // scale)


def _binary(digits: int, decimals: int) -> Quantity:
    nanos = min(_nanos(digits, -decimals), LARGEST * NANO)
    # Below one there is no binary suffix.
    return Quantity(nanos, "decimal" if nanos < NANO else "binary")


def _signed(sign: str, amount: Quantity) -> Quantity:
    return Quantity(-amount.nanos, amount.format) if sign == "-" else amount


def _canonical(amount: Quantity) -> str:
    if amount.nanos == 0:
        return "0"
    if amount.format == "binary" and amount.is_whole() and abs(amount.nanos) >= 1024 * NANO:
        number, power = amount.nanos // NANO, 0
        # Past the largest suffix, apimachinery drops the suffix and thus changes the value; Ei keeps it.
        while number % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
            number, power = number // 1024, power + 1
        return f"{number}{_BINARY_SUFFIXES[power]}"
    number, exponent = amount.nanos, -9
    most = _MOST_EXPONENT * 2 if amount.format == "exponent" else 18
    while number % 1000 == 0 and exponent < most:
        number, exponent = number // 1000, exponent + 3
    if amount.format == "exponent":
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_SUFFIX[exponent]}"
