"""How commands read their arguments: a mistake is one line, with where to read on, not the list of every option."""

from __future__ import annotations

import argparse
from typing import NoReturn

_SHORT = 160
_ANSWER = 2


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong, and the usage only where that is short; its children are alike."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end with code 2."""
        usage = " ".join(self.format_usage().split())
        hint = usage if len(usage) <= _SHORT else f"`{self.prog} -h` lists the arguments"
        self.exit(_ANSWER, f"error: {message}\n  {hint}\n")
