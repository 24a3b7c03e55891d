"""The user's mistakes, as opposed to ours."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right. The message's first line says what is wrong, the rest what to do."""
