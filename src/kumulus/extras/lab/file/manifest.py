"""Kubernetes objects from the user's files: as they are, or as templates in which texts are replaced."""

from collections.abc import Mapping
from typing import Any

from kumulus.extras.schedulers.manifests import manifest_problems
from kumulus.model.checks import problem
from kumulus.model.errors import Problem, SpecError, shown
from kumulus.stackfile.yamltext import read_all_yaml

Object = dict[str, Any]
INDEX = "{index}"


def objects_of(text: str, source: str) -> list[Object]:
    """The objects of a YAML text, of one document or several; a List counts as its items."""
    documents = [each for each in read_all_yaml(text, source) if each is not None]
    found: list[Object] = []
    problems: list[Problem] = []
    for index, document in enumerate(documents):
        items = document.get("items") if isinstance(document, Mapping) and document.get("kind") == "List" else None
        for each in items if isinstance(items, list) else [document]:
            problems += _object_problems(index, each)
            if isinstance(each, dict):
                found.append(each)
    if not documents:
        problems.append(Problem("", "has no objects", "write a Kubernetes manifest"))
    if problems:
        raise SpecError(problems, source)
    return found


def filled(text: str, replace: Mapping[str, str], index: int) -> str:
    """A template's text for one job.

    Args:
        replace: texts and their replacements, in which `{index}` is the job's number.
        index: the job's number, from 1.
    """
    for old, new in replace.items():
        text = text.replace(old, new.replace(INDEX, str(index)))
    return text


def replacement_problems(text: str, replace: Mapping[str, str], where: tuple[str | int, ...]) -> list[Problem]:
    """Problems of texts to replace that do not occur in the manifest."""
    return [
        problem((*where, old), "does not occur in the manifest", "leave it out, or write a text that does")
        for old in replace
        if not old or old not in text
    ]


def _object_problems(index: int, raw: object) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return [problem((index,), f"is {shown(raw)}, not an object", "write apiVersion, kind, metadata and spec")]
    found = [
        problem((index, key), f"is {shown(raw.get(key))}", f"write {key}: {example}")
        for key, example in (("apiVersion", "batch/v1"), ("kind", "Job"))
        if not isinstance(raw.get(key), str) or not raw[key]
    ]
    return found or manifest_problems((index,), raw)
