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
        given: the value, in which outputs stand for what is unknown, secret or of other resources.
        plain: the value without them, as far as it is known.
        is_plain: whether all of it is known, and nothing of it is a secret.
    """

    given: Any
    plain: Any
    is_plain: bool

    @classmethod
    async def of(cls, given: Any) -> Settled:
        """Settle a value: outputs of a request are there already, so nothing is waited for.

        All numbers come as floats; whole ones are what a Python program would have written.
        """
        if isinstance(given, pulumi.Output):
            found = await cls.of(await given.future())
            known = await given.is_known() and not await given.is_secret()
            return cls(given, found.plain, known and found.is_plain)
        if isinstance(given, Mapping):
            inner = {key: await cls.of(value) for key, value in given.items()}
            plain = {key: value.plain for key, value in inner.items()}
            fields = {key: value.given for key, value in inner.items()}
            return cls(fields, plain, all(value.is_plain for value in inner.values()))
        if isinstance(given, Sequence) and not isinstance(given, str):
            within = [await cls.of(value) for value in given]
            came = [value.given for value in within]
            return cls(came, [value.plain for value in within], all(value.is_plain for value in within))
        if isinstance(given, float) and given.is_integer():
            return cls(int(given), int(given), True)
        return cls(given, given, True)

    def items(self) -> list[Any]:
        """The items of a list."""
        return list(self.plain or ())
