"""Secrets of a stack's configuration: where they are, and how to keep them out of what is shown.

Pulumi passes a program its configuration in plain text and only reports that a whole key, such as `kumulus:cluster`,
contains a secret. The stack file shows where: each secret is written as `{secure: <ciphertext>}`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kumulus.model.errors import Problem, SpecError, Where, path_text
from kumulus.stackfile.yamltext import read_stack_file

HIDDEN = "[secret]"
_SECURE = "secure"


@dataclass(frozen=True)
class Secrets:
    """The places of secrets in a cluster's description."""

    places: tuple[Where, ...] = ()
    """Keys and indices, outermost first; an empty place means that the whole description is secret."""

    def within(self, *where: str | int) -> tuple[Where, ...]:
        """The places below a given one, relative to it; an empty place when everything there is secret."""
        if any(where[: len(place)] == place for place in self.places):
            return ((),)
        return tuple(place[len(where) :] for place in self.places if place[: len(where)] == where)


def places_of_secrets(document: object, key: str) -> tuple[Where, ...]:
    """The places of the secrets in a key's value.

    Args:
        document: a parsed stack file; may be malformed.
        key: such as `kumulus:cluster`, which according to Pulumi contains a secret.

    Returns:
        All of the value if the file has no secret there, since then Pulumi read another file.
    """
    config = document.get("config") if isinstance(document, Mapping) else None
    value = config.get(key) if isinstance(config, Mapping) else None
    return tuple(_places(value, ())) or ((),)


def read_secrets(file: Path, key: str) -> Secrets:
    """The secrets of a stack file in a key's value; a file that cannot be read counts as one without the key."""
    return Secrets(places_of_secrets(parsed(file), key))


def parsed(file: Path) -> object:
    """A stack file's document; None when it cannot be read."""
    try:
        return read_stack_file(file)
    except (OSError, UnicodeDecodeError, SpecError):
        return None


def hidden(problems: Iterable[Problem], secrets: Secrets) -> list[Problem]:
    """Problems without quotes of secret values."""
    paths = [path_text(place) for place in secrets.places]
    return [
        Problem(each.path, "is not what is needed here; its value is secret and not shown", "set it again")
        if any(_is_below(each.path, path) for path in paths)
        else each
        for each in problems
    ]


def _is_below(path: str, place: str) -> bool:
    return not place or (path.startswith(place) and path[len(place) :][:1] in ("", ".", "["))


def with_placeholders(value: object) -> object:
    """A stack file's value with a placeholder for each secret, for commands that cannot decrypt and need no secrets."""
    if _is_secret(value):
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: with_placeholders(inner) for key, inner in value.items()}
    return [with_placeholders(inner) for inner in value] if isinstance(value, list) else value


def without_secrets(value: object) -> object:
    """A stack file's value without its secrets, for uses in which a placeholder would not be a valid value."""
    if isinstance(value, Mapping):
        return {key: without_secrets(inner) for key, inner in value.items() if not _is_secret(inner)}
    return [without_secrets(inner) for inner in value if not _is_secret(inner)] if isinstance(value, list) else value


def _is_secret(value: object) -> bool:
    return isinstance(value, Mapping) and list(value) == [_SECURE] and isinstance(value[_SECURE], str)


def _places(value: object, where: Where) -> Iterable[Where]:
    if _is_secret(value):
        yield where
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _places(inner, (*where, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, (*where, index))
