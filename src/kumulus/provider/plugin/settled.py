"""The inputs of a component from a program in another language: they, or parts of them, may be unknown or secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi


@dataclass(frozen=True)
class Settled:
    """An argument as it came, and its value without outputs.

    Args:
        original: the value, with outputs for parts that are unknown, secret or from other resources.
        plain: the value without them, as far as it is known.
        is_plain: whether all of it is known and none of it is secret.
    """

    original: Any
    plain: Any
    is_plain: bool

    @classmethod
    async def of(cls, original: Any) -> Settled:
        """Settle a value; outputs in a request are resolved already, so this does not wait.

        All numbers arrive as floats; whole ones become ints, as a Python program would have written them.
        """
        if isinstance(original, pulumi.Output):
            found = await cls.of(await original.future())
            known = await original.is_known() and not await original.is_secret()
            return cls(original, found.plain, known and found.is_plain)
        if isinstance(original, Mapping):
            inner = {key: await cls.of(value) for key, value in original.items()}
            plain = {key: value.plain for key, value in inner.items()}
            fields = {key: value.original for key, value in inner.items()}
            return cls(fields, plain, all(value.is_plain for value in inner.values()))
        if isinstance(original, Sequence) and not isinstance(original, str):
            within = [await cls.of(value) for value in original]
            came = [value.original for value in within]
            return cls(came, [value.plain for value in within], all(value.is_plain for value in within))
        if isinstance(original, float) and original.is_integer():
            return cls(int(original), int(original), True)
        return cls(original, original, True)

    def items(self) -> list[Any]:
        """The items of a list."""
        return list(self.plain or ())
