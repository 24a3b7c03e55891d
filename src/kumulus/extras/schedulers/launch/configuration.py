"""Read the user's own configuration of a scheduler, with errors that name the file and the remedy."""

from pathlib import Path
from typing import Any

import yaml

from kumulus.extras.schedulers.errors import SchedulerError


def read(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a configuration, and the parsed mapping."""
    try:
        text = path.read_text()
        document = yaml.safe_load(text)
    except FileNotFoundError:
        raise SchedulerError(f"the scheduler's configuration {path} does not exist\n  Check its path") from None
    except (OSError, ValueError) as error:
        raise SchedulerError(f"the scheduler's configuration {path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        where = " ".join(str(error).split())
        raise SchedulerError(f"the scheduler's configuration {path} is not YAML: {where}") from None
    if not isinstance(document, dict):
        raise SchedulerError(f"the scheduler's configuration {path} is no mapping of names to values")
    return text, document


def of_kind(path: Path, kind: str, group: str) -> dict[str, Any]:
    """A configuration that must be of a kind, such as ``KubeSchedulerConfiguration``, in any version of its group."""
    _, document = read(path)
    if document.get("kind") != kind or not str(document.get("apiVersion", "")).startswith(f"{group}/"):
        found = f"{document.get('kind')} of {document.get('apiVersion')}" if document.get("kind") else "of no kind"
        raise SchedulerError(f"the scheduler's configuration {path} is {found}\n  Write a {kind} of {group}")
    return document


def section(document: dict[str, Any], name: str, path: Path | None) -> dict[str, Any]:
    """A mapping inside a configuration, created if missing."""
    found = document.setdefault(name, {})
    if not isinstance(found, dict):
        raise SchedulerError(f"the scheduler's configuration {path}: {name} is {found!r}\n  Write a mapping")
    return found
