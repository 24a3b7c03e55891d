"""How commands read their arguments: a mistake is one line, with where to read on, not the list of every option."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn, cast

_SHORT = 160
_ANSWER = 2


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong, and the usage only if that is short; so do its subparsers."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and exit with code 2."""
        message = re.sub(r"argument (\S+): invalid int value: '(.*)'", r"\1 is \2, not a whole number", message)
        usage = " ".join(self.format_usage().split())
        hint = usage if len(usage) <= _SHORT else f"`{self.prog} -h` lists the arguments"
        self.exit(_ANSWER, f"error: {message}\n  {hint}\n")

    def add_subparsers(self, **kwargs: Any) -> argparse._SubParsersAction[Any]:
        """As argparse does it, but each subcommand's help begins with its line from the parent's help."""
        return super().add_subparsers(**{"action": _Described, **kwargs})


class _Described(argparse._SubParsersAction):  # type: ignore[type-arg]
    def add_parser(self, name: str, **kwargs: Any) -> argparse.ArgumentParser:
        help_text = kwargs.get("help")
        about = {"description": f"{help_text[0].upper()}{help_text[1:]}."} if help_text else {}
        return cast(argparse.ArgumentParser, super().add_parser(name, **{**about, **kwargs}))
