"""What a program in another language gives a component: values that may be unknown or secret, whole or in part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi


@dataclass(frozen=True)
class Settled:
    """An argument as it came, and as it is without outputs.

    Args:
        original: the value, in which outputs stand for what is unknown, secret or of other resources.
        plain: the value without them, as far as it is known.
        is_plain: whether all of it is known, and nothing of it is a secret.
    """

    original: Any
    plain: Any
    is_plain: bool

    @classmethod
    async def of(cls, original: Any) -> Settled:
        """Settle a value: outputs of a request are there already, so nothing is waited for.

        All numbers come as floats; whole ones are what a Python program would have written.
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
