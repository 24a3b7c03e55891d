"""The user's mistakes, as opposed to ours."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right. The message's first line says what is wrong, the rest what to do."""


def os_message(error: OSError) -> str | None:
    """A file that this user may not read or write, as one line; None for an error of another kind."""
    if not isinstance(error, PermissionError) or error.filename is None:
        return None
    remedy = "Run it as the user it belongs to, or in a copy of your own"
    return f"{error.filename}: permission denied\n  {remedy}"
