"""KEMU's `ClusterConfig`, read unmodified: by path or URL, into the same model as our own format.

KEMU checks nothing: it ignores unknown keys, and two mistakes in its own documentation make nodes on which nothing
schedules. Such things are corrected or ignored here, each with a notice; a file that cannot become a cluster has
problems, as in our own format. Its scalars are strings: KEMU declares them so, and go-yaml keeps `1.10` as written.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from kumulus.kube.safe_yaml import Dumper
from kumulus.model.checks import is_requestable, meant_resource
from kumulus.model.errors import Notice, Problem, SpecError, Where, path_text, shown, under
from kumulus.model.fields.validation import in_file_order
from kumulus.runtimes import registry
from kumulus.stackfile.groups import KEMU_LABELS
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.yamltext import read_yaml_texts

KIND = "ClusterConfig"
PODS = "110"
# The capacity that KWOK's stage node-initialize sets on a node without any resources.
_KWOK_CAPACITY = {"cpu": "1k", "memory": "1Ti", "pods": "1M"}

_SPEC_KEYS = ("kindConfig", "clusterAddons", "nodeGroups")
_ADDON_KEYS = ("name", "repoName", "repoURL", "namespace", "chart", "version", "valuesObject")
_GROUP_KEYS = ("name", "placement", "nodeTemplate")
_PLACEMENT_KEYS = ("availabilityZone", "replicas")
_TEMPLATE_KEYS = ("metadata", "capacity")
_METADATA_KEYS = ("labels", "annotations")

Plain = dict[str, object]


@dataclass(frozen=True)
class KemuFile:
    """A KEMU file as read."""

    spec: ClusterSpec
    """The cluster; its pools are expanded with the flavour `kemu`."""
    notices: tuple[Notice, ...]
    """What was corrected or ignored."""
    source: str
    """The path or URL."""
    plain: Mapping[str, object]
    """The same cluster as a mapping in our format, without KEMU's labels; YAML texts are unchanged."""


def meant_runtime(text: str, source: str) -> str:
    """The runtime that a KEMU file implies: kind if it configures kind, else kwok, which needs nothing."""
    asked = _spec_of(read_yaml_texts(text, source), source).get("kindConfig")
    return registry.sections()["kindConfig"] if asked else registry.DEFAULT


def convert(text: str, source: str, runtime: str = registry.DEFAULT, skip_addons: bool = False) -> KemuFile:
    """The cluster in the text of a KEMU file, whose path or URL is `source`."""
    conversion = _Conversion()
    raw = conversion.spec(_spec_of(read_yaml_texts(text, source), source))
    if skip_addons:
        raw.pop("clusterAddons", None)
    if runtime != registry.sections()["kindConfig"] and raw.pop("kindConfig", None) is not None:
        conversion.notice(("spec", "kindConfig"), f"is for the runtime kind, so it is not used with {runtime}")
    plain = {"runtime": runtime, **raw}
    try:
        spec = ClusterSpec.checked(plain)
    except SpecError as error:
        problems = [*conversion.problems, *map(conversion.as_in_file, error.problems)]
        raise SpecError(in_file_order(problems), source) from None
    if conversion.problems:
        raise SpecError(conversion.problems, source)
    return KemuFile(spec, tuple(conversion.notices), source, plain)


def _spec_of(raw: object, source: str) -> Mapping[str, object]:
    if not isinstance(raw, Mapping):
        problem = Problem("", f"is {shown(raw)}, not a KEMU {KIND}", f"write kind: {KIND} and a spec")
        raise SpecError([problem], source)
    kind = raw.get("kind")
    # KEMU never checks the kind; a file without one is accepted if it has a spec.
    if kind != KIND and (kind is not None or "spec" not in raw):
        message = f"is {shown(kind)}, not KEMU's {KIND}" if kind is not None else "is missing"
        raise SpecError([Problem("kind", message, f"write kind: {KIND}, or name another file")], source)
    spec = raw.get("spec")
    if spec is None:
        return {}
    if not isinstance(spec, Mapping):
        raise SpecError([Problem("spec", f"is {shown(spec)}", "write a mapping with nodeGroups")], source)
    return spec


@dataclass
class _Conversion:
    """The conversion of one file into our format. Values of a wrong type stay unchanged: the models report them."""

    notices: list[Notice] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def notice(self, where: Where, message: str) -> None:
        self.notices.append(Notice(path_text(where), message))

    def as_in_file(self, problem: Problem) -> Problem:
        """A problem in our format, with the paths of the KEMU file."""
        path = under("spec", problem.path)
        message = re.sub(r"(?<![\w.])(nodeGroups|clusterAddons)\[(?=[0-9])", r"spec.\1[", problem.message)
        return Problem(self.renamed.get(path, path), message, problem.remedy)

    def spec(self, raw: Mapping[str, object]) -> Plain:
        where: Where = ("spec",)
        result = self._known(where, raw, _SPEC_KEYS)
        self._text_only(where, result, "kindConfig")
        self._each(where, result, "clusterAddons", self._addon)
        self._each(where, result, "nodeGroups", self._group)
        return result

    def _addon(self, where: Where, raw: Mapping[str, object]) -> Plain:
        result = self._known(where, raw, _ADDON_KEYS)
        self._text_only(where, result, "valuesObject")
        return {key: value for key, value in result.items() if value != ""}

    def _group(self, where: Where, raw: Mapping[str, object]) -> Plain:
        result = {"placement": [], **self._known(where, raw, _GROUP_KEYS)}
        self._each(where, result, "placement", self._placement)
        template = result.get("nodeTemplate", {})
        if isinstance(template, Mapping):
            result["nodeTemplate"] = self._template((*where, "nodeTemplate"), template)
        return result

    def _placement(self, where: Where, raw: Mapping[str, object]) -> Plain:
        result = self._known(where, raw, _PLACEMENT_KEYS)
        replicas = result.get("replicas")
        if replicas is None:
            self.notice((*where, "replicas"), "is missing; taken as 0, as KEMU does")
            result["replicas"] = 0
        elif isinstance(replicas, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", replicas):
            result["replicas"] = int(replicas)
        return result

    def _template(self, where: Where, raw: Mapping[str, object]) -> Plain:
        result = self._known(where, raw, _TEMPLATE_KEYS)
        metadata = result.get("metadata")
        if isinstance(metadata, Mapping):
            result["metadata"] = self._metadata((*where, "metadata"), metadata)
        capacity = result.get("capacity")
        if not capacity and (capacity is None or isinstance(capacity, Mapping)):
            defaults = ", ".join(f"{name} {amount}" for name, amount in _KWOK_CAPACITY.items())
            self.notice((*where, "capacity"), f"is missing; taken as KWOK's default: {defaults}")
            result["capacity"] = dict(_KWOK_CAPACITY)
        elif isinstance(capacity, Mapping):
            result["capacity"] = self._capacity((*where, "capacity"), capacity)
        return result

    def _metadata(self, where: Where, raw: Mapping[str, object]) -> Plain:
        result = self._known(where, raw, _METADATA_KEYS)
        for key, texts in result.items():
            if isinstance(texts, Mapping):
                result[key] = {name: "" if text is None else text for name, text in texts.items()}
        return result

    def _capacity(self, where: Where, raw: Mapping[str, object]) -> Plain:
        if not all(isinstance(name, str) for name in raw):
            # A key that is not a string, which the model rejects.
            return dict(raw)
        result: Plain = {}
        for name, amount in raw.items():
            here = (*where, name)
            meant = name if is_requestable(name) else meant_resource(name)
            if meant is None:
                self.notice(here, "is a resource no pod can request, as its name has no domain; left out")
            elif meant != name and meant in raw:
                self.notice(here, f"is not a resource of Kubernetes; left out, as {meant} is there too")
            else:
                result[meant] = amount
                if meant != name:
                    self.notice(here, f"is not a resource of Kubernetes; taken as {meant}")
                    self.renamed[path_text((*where, meant))] = path_text(here)
        if "pods" not in result:
            self.notice((*where, "pods"), f"is missing, so that nothing would schedule; taken as {PODS}")
            result["pods"] = PODS
        return result

    def _known(self, where: Where, raw: Mapping[str, object], keys: tuple[str, ...]) -> Plain:
        """A copy with the known keys that have a value."""
        for key in raw:
            if key not in keys:
                self.notice((*where, str(key)), "is not a key of KEMU's format; ignored, as KEMU does")
        return {key: raw[key] for key in keys if raw.get(key) is not None}

    def _text_only(self, where: Where, result: Plain, key: str) -> None:
        """Report a value that is no text, and drop it; an empty text is dropped, too."""
        # Every scalar inside would be read as a string, but a chart's values and kind's settings need types.
        if isinstance(result.get(key), Mapping | list):
            message = "is not a text, which KEMU's format needs here"
            self.problems.append(Problem(path_text((*where, key)), message, f"write {key}: | and indent what follows"))
            del result[key]
        elif result.get(key) == "":
            del result[key]

    def _each(self, where: Where, result: Plain, key: str, convert_one: Callable[[Where, Plain], Plain]) -> None:
        """Convert the mappings of a list in the result, in place."""
        values = result.get(key)
        if isinstance(values, list):
            result[key] = [
                convert_one((*where, key, index), value) if isinstance(value, dict) else value
                for index, value in enumerate(values)
            ]


_WIDTH = 120
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/:@+-]*")


def stack_file_of(file: KemuFile) -> str:
    """The text of a stack file; comments list what was corrected."""
    cluster = dict(file.plain)
    groups = cluster.get("nodeGroups")
    if isinstance(groups, list):
        cluster["nodeGroups"] = [_group(group) for group in groups]
    document = {"config": {"kumulus:cluster": cluster}}
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
    return "\n".join([*_comments(file.source, file.notices), text])


def _group(group: Mapping[str, Any]) -> Plain:
    template = dict(group["nodeTemplate"])
    metadata = dict(template.get("metadata") or {})
    # KEMU's own labels, which a template may override, as in KEMU.
    metadata["labels"] = {**KEMU_LABELS, **(metadata.get("labels") or {})}
    named = {"name": group["name"], "placement": group["placement"]}
    return {**named, "nodeTemplate": {**template, "metadata": metadata}}


def _comments(source: str, notices: tuple[Notice, ...]) -> list[str]:
    lines = [f"From KEMU's {source}, by kumulus convert."]
    if notices:
        lines += ["What KEMU takes differently, or this format does not have:", *(f"  {each}" for each in notices)]
    return [f"# {line}" for text in lines for line in text.splitlines()]


class _Dumper(yaml.SafeDumper):
    """Writes multi-line strings as blocks, and quotes whatever a YAML reader could take for another type."""

    yaml_implicit_resolvers = Dumper.yaml_implicit_resolvers

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if _PLAIN.fullmatch(text) else '"'
    if "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
