"""How a mistake in a stack file is reported: where it is, what is wrong, what to write instead."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kumulus.model.words import counted

Where = tuple[str | int, ...]
"""A place in a document: mapping keys and list indices, outermost first."""
_LONGEST_PLACE = 400


@dataclass(frozen=True)
class Problem:
    """One mistake that makes a stack, or another file, unusable."""

    path: str
    """The place as the file has it, `nodeGroups[0].nodeTemplate.capacity["nvidia.com/gpu"]`; empty for the document as
    a whole."""
    message: str
    """What is wrong, without a period."""
    remedy: str = ""
    """What to write instead, without a period; may be empty."""

    def __post_init__(self) -> None:
        # Either may quote a key of the file, whose control characters must not reach a terminal.
        object.__setattr__(self, "message", _printable(self.message))
        object.__setattr__(self, "remedy", _printable(self.remedy))

    def __str__(self) -> str:
        text = f"{_readable(self.path)}: {self.message}" if self.path else self.message
        return f"{text}; {self.remedy}" if self.remedy else text


@dataclass(frozen=True)
class Notice:
    """A mistake that was corrected, or a part of a file that has no effect; the user does not have to act on it."""

    path: str
    """The place as the file has it."""
    message: str
    """What was found and what is used instead."""

    def __str__(self) -> str:
        return f"{_readable(self.path)}: {self.message}" if self.path else self.message


class SpecError(Exception):
    """Every problem of one source at once; `str()` is the message for the user, one line per problem.

    Args:
        problems: at least one problem, in the order of the file.
        source: the file, URL or stack they are in; empty when there is none.
    """

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.source = source
        super().__init__(self.problems, source)

    def __str__(self) -> str:
        if len(self.problems) == 1 and not self.source:
            return str(self.problems[0])
        summary = counted(len(self.problems), "problem") + (f" in {self.source}" if self.source else "")
        return "\n".join([summary, *(f"  {problem}" for problem in self.problems)])


def path_text(where: Sequence[str | int]) -> str:
    """Write a place as a user would type it: `nodeGroups[0].metadata.labels["example.com/team"]`."""
    text = ""
    for part in where:
        if not isinstance(part, str):
            # An index of a list; or a key that is no text, which another check refuses.
            text += f"[{part}]"
        elif part.isascii() and part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{_quoted(part)}]"
    return text


def _readable(path: str) -> str:
    """A place for messages: a very long path is shortened to its beginning and end."""
    return path if len(path) <= _LONGEST_PLACE else f"{path[: _LONGEST_PLACE // 2]} … {path[-(_LONGEST_PLACE // 2) :]}"


def under(prefix: str, path: str) -> str:
    """Join two paths written by `path_text`, either of which may be empty."""
    if not prefix or not path:
        return prefix or path
    return f"{prefix}{path}" if path.startswith("[") else f"{prefix}.{path}"


def shown(value: object) -> str:
    """A value from the file, on one line and short enough for a message; safe to print, whatever it contains."""
    text = _quoted(value) if isinstance(value, str) else _words(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def shown_path(path: object) -> str:
    """A path, never shortened: paths often differ only at their ends."""
    return _quoted(str(path))


def _quoted(text: str) -> str:
    # Control characters would break the line and lone surrogates cannot be printed at all.
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text)


def _words(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 200:
        # Python refuses to print integers of thousands of digits.
        return "a number of more than 60 digits"
    return repr(value)
