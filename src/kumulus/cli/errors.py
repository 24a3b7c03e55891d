"""The user's mistakes, as opposed to ours."""

from __future__ import annotations

import errno


class UserError(Exception):
    """Something the user can fix. The message's first line says what is wrong, the rest what to do."""


def os_message(error: OSError) -> str | None:
    """Two lines for a full disk, or a file that this user may not read or write; None for any other error."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}no space left on the disk that is written to\n  Make room there, and run it again"
    if not isinstance(error, PermissionError) or error.filename is None:
        return None
    remedy = "Run it as the user it belongs to, or in a copy of your own"
    return f"{error.filename}: permission denied\n  {remedy}"
