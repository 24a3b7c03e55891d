"""YAML: how much a text may cost to read, and how it is written so that all programs read it alike.

A few hundred bytes of aliases of aliases stand for billions of values, and libyaml's composer, which recurses in C,
ends the process at a hundred thousand brackets. So the events are counted first: they neither nest nor expand.

PyYAML quotes the texts that YAML 1.1 takes for something else, as its authors read it. Kubernetes' and Pulumi's
programs in Go (gopkg.in/yaml.v3, resolve.go; sigs.k8s.io/yaml) take more texts for numbers: a rack's `08` is 8 to them,
and `12e5`, as a commit may begin, is 1200000.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

MOST_BYTES = 4 * 1024 * 1024
MOST_VALUES = 100_000
"""Keys and values of one text. The largest stack of the project's own has 2,000."""
MOST_LEVELS = 100
MOST_TRIED_TWICE = 10_000
"""If libyaml refuses a text after more values than this, PyYAML's own parser, at 40 µs a value, does not try it."""

FAST_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader: libyaml's, ten times as fast, where PyYAML was built with it."""


class TooMuch(ValueError):
    """A text is not read: it would cost too much, or it contains itself.

    Args:
        message: what there is too much of, as the end of a sentence, without a full stop.
        remedy: what to write instead, without a full stop.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message, self.remedy = message, remedy


def too_large() -> TooMuch:
    """The error for a text with more than :data:`MOST_BYTES`."""
    return TooMuch(f"is larger than {MOST_BYTES >> 20} MiB", "write less, or in several files")


def check_limits(text: str, *, only_fast: bool = False) -> bool:
    """Refuse a text that costs too much to read; one that does not parse is for its reader to report.

    Args:
        only_fast: if libyaml fails, leave the rest to a reader that counts by itself (:class:`YamlLimits`).

    Returns:
        Whether libyaml accepts it.

    Raises:
        TooMuch: it is larger than 4 MiB, deeper than 100 levels, or stands for more than 100,000 values; or libyaml
            refuses it after so many values that no other parser should try it.
    """
    if len(text) > MOST_BYTES:
        raise too_large()
    # PyYAML's own parser may accept what libyaml refuses.
    loaders = (FAST_LOADER,) if only_fast else (FAST_LOADER, yaml.SafeLoader)
    for loader in loaders:
        limits = YamlLimits()
        try:
            for event in yaml.parse(text, Loader=loader):
                limits.count(event)
            return loader is FAST_LOADER
        except TooMuch:
            raise
        except (yaml.YAMLError, ValueError) as reason:
            if limits.values > MOST_TRIED_TWICE:
                raise TooMuch(_parse_error(reason), "correct it") from None
    return False


class YamlLimits:
    """Counts the values that the events of one text stand for.

    Attributes:
        values: how many there have been so far.
    """

    def __init__(self) -> None:
        self.values = 0
        # By anchor, how many values an alias for it repeats; one that is missing here stands for a single value.
        self._sizes: dict[str, int] = {}
        # The collections that have not ended, each with its anchor and how many values there were before it.
        self._begun: list[tuple[str | None, int]] = []

    def count(self, event: Any) -> None:
        """Count one event.

        Raises:
            TooMuch: there are too many values by now, or too deep ones, or one contains itself.
        """
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = self._begun.pop()
            if anchor:
                self._sizes[anchor] = self.values - before
            return
        if not isinstance(event, yaml.NodeEvent):
            return
        if isinstance(event, yaml.AliasEvent) and any(anchor == event.anchor for anchor, _ in self._begun):
            # As in Go; PyYAML would make a value that contains itself.
            message = f"{_place(event)}*{event.anchor} stands for what it is in"
            raise TooMuch(message, "leave it out, or write what is meant")
        before = self.values
        # What an alias stands for is counted again.
        self.values += self._sizes.get(event.anchor or "", 1) if isinstance(event, yaml.AliasEvent) else 1
        if isinstance(event, yaml.CollectionStartEvent):
            self._begun.append((event.anchor, before))
            if len(self._begun) > MOST_LEVELS:
                raise TooMuch(f"{_place(event)}is nested too deeply", "write fewer levels")
        if self.values > MOST_VALUES:
            message = f"{_place(event)}more than {MOST_VALUES:,} values, with what its aliases repeat"
            raise TooMuch(message, "write fewer, or fewer aliases")


def _parse_error(reason: Exception) -> str:
    mark = getattr(reason, "problem_mark", None)
    if mark is None:
        return f"is not a YAML text: {' '.join(str(reason).split())}"
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(reason, 'problem', None) or 'is not YAML'}"


def _place(event: Any) -> str:
    return f"line {event.start_mark.line + 1}, column {event.start_mark.column + 1}: "


if TYPE_CHECKING:
    _Fast = yaml.SafeDumper
else:
    _Fast = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# Go takes all underscores out before it looks.
_NUMBER = re.compile(
    r"[-+]?_*(0_*[bB][01_]+|0_*[oO][0-7_]+|0_*[xX][0-9a-fA-F_]+"
    r"|(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)(_*[eE]_*[-+]?[0-9_]+)?)\Z"
)
_SWITCH = re.compile(r"[yYnN]\Z")


class Dumper(_Fast):
    """PyYAML's safe dumper, which also quotes the texts that Go would take for something else.

    It is libyaml's, if PyYAML was built with it.
    """


Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", _SWITCH, list("yYnN"))


def written(value: object, width: int = 80) -> str:
    """A document's text, with keys in the order of its mappings.

    Args:
        width: the longest line, in characters, where a text can be broken.
    """
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, width=width, allow_unicode=True))
