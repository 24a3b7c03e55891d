"""A stack file's `clusters`: several clusters in one stack, with what they share under `defaults`.

Each is converted to the form of `kumulus:cluster`, and read and checked in that form. Mistakes are reported at the
place where they were written.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from kumulus.model.checks import problem
from kumulus.model.errors import Notice, Problem, SpecError, Where, path_text, shown, under
from kumulus.model.fields import Section, short_label, whole
from kumulus.model.fields.validation import validated
from kumulus.model.names import CLUSTER_NAME_LENGTH, default_cluster_name, instead
from kumulus.stackfile.load import LoadedCluster, load
from kumulus.stackfile.secrets import Secrets
from kumulus.stackfile.section import Joined, of_stacks
from kumulus.stackfile.settings import SEVERAL, WITH_CLUSTERS, StackSettings, parsed

MOST = 100
"""The most clusters that one entry may stand for, and that a stack may have."""
# What an entry has by itself, and cannot have by `defaults`.
_OWN = ("name", "count")
_NO_SECRETS = Secrets()


class Member(Section):
    """What an entry of `clusters` says in addition to the cluster itself."""

    name: Annotated[str, short_label(CLUSTER_NAME_LENGTH)] = Field(examples=["worker"])
    """The cluster's name in this stack; its full name is the stack's followed by this one."""
    count: Annotated[int, whole(1, MOST)] | None = Field(default=None, examples=["5"])
    """How many such clusters: `worker-0`, `worker-1` and so on; by default one, without a number."""


@dataclass(frozen=True)
class Stack:
    """What a stack file declares."""

    clusters: Mapping[str, LoadedCluster]
    """By their names in the file, in its order; the only one of `kumulus:cluster` has the name ""."""
    hub: str = ""
    """The default cluster of commands; empty if the file names none."""
    notices: tuple[Notice, ...] = ()
    """What was corrected or has no effect."""
    joined: Mapping[str, Joined] = field(default_factory=dict)
    """What extras' keys about all clusters mean for them, such as `federation`, by name."""

    @property
    def only(self) -> LoadedCluster | None:
        """The cluster of a file with `kumulus:cluster`; None for a file with `clusters`."""
        return self.clusters.get("")


def load_stack(
    config: Mapping[str, object],
    stack: str,
    base: Path,
    *,
    source: str = "",
    secrets: Mapping[str, Secrets] | None = None,
) -> Stack:
    """Read and check a stack of one cluster or of several; arguments that are not listed are those of :func:`load`.

    Args:
        config: may also have `clusters`, `defaults`, `hub` and what extras bring.
        secrets: by key, such as `clusters`: the places in it that the configuration keeps secret.
    """
    source = source or f"stacks/Pulumi.{stack}.yaml"
    values = {str(key).removeprefix("kumulus:"): value for key, value in config.items() if value is not None}
    kept = secrets or {}
    if not any(key in values for key in SEVERAL):
        loaded = load(values, stack, base, source=source, secrets=kept.get("cluster"))
        return Stack({"": loaded}, notices=loaded.notices)
    values |= {key: parsed(values[key]) for key in SEVERAL if key != "hub" and key in values}
    if problems := [*_key_problems(values), *_hub_problems(values)]:
        raise SpecError(problems, source)
    return _Reading(values, stack, base, source, kept).stack()


@dataclass(frozen=True)
class _Entry:
    """One cluster of the file: the index of its entry, its name in the stack, and the entry's content."""

    index: int
    name: str
    own: Mapping[str, Any]


@dataclass
class _Reading:
    """The reading of one file, with the problems and notices found so far."""

    values: Mapping[str, Any]
    stack_name: str
    base: Path
    source: str
    secrets: Mapping[str, Secrets]
    problems: dict[Problem, None] = field(default_factory=dict)
    notices: dict[Notice, None] = field(default_factory=dict)

    def stack(self) -> Stack:
        entries = list(self._entries())
        loaded = {each.name: self._loaded(each) for each in entries}
        found = {name: each for name, each in loaded.items() if each is not None}
        hub = str(self.values.get("hub") or "")
        names = [each.name for each in entries]
        if hub and hub not in names:
            self._report(problem(("hub",), f"{shown(hub)} is none of the clusters", instead(hub, names, listed=10)))
        joined = self._joined(hub, entries)
        if not self.problems:
            self._report(*_conflicts(entries, found))
        if self.problems:
            raise SpecError(self.problems, self.source)
        for key, section in joined.items():
            for name, each in found.items():
                if options := section.runtime_options(name, each.cluster_name):
                    options = {**each.section_options, **options}
                    found[name] = replace(each, section_options=options, joined=(*each.joined, key))
        return Stack(found, hub, tuple(self.notices), joined)

    def _joined(self, hub: str, entries: list[_Entry]) -> dict[str, Joined]:
        """What extras' keys mean for the clusters, as far as they are valid."""
        # The clusters' names, by the name of their entry.
        named: dict[str, list[str]] = {}
        for each in entries:
            named.setdefault(str(self.values["clusters"][each.index]["name"]), []).append(each.name)
        found: dict[str, Joined] = {}
        for key, model in of_stacks().items():
            if self.values.get(key) is None:
                continue
            try:
                found[key], wrong = validated(model, self.values[key], "").joined(hub, named)
            except SpecError as error:
                wrong = list(error.problems)
            self._report(*(replace(each, path=under(key, each.path)) for each in wrong))
        return found

    def _entries(self) -> Iterator[_Entry]:
        """The clusters of the file, each with a unique name."""
        first: dict[str, int] = {}
        for index, raw in enumerate(self.values["clusters"]):
            if not isinstance(raw, Mapping):
                self._report(problem(("clusters", index), f"is {shown(raw)}", "write a mapping with a name"))
                continue
            try:
                member = validated(Member, {key: raw[key] for key in _OWN if key in raw}, "")
            except SpecError as error:
                self._report(*(replace(each, path=under(f"clusters[{index}]", each.path)) for each in error.problems))
                continue
            own = {key: value for key, value in raw.items() if key not in _OWN}
            for name in _names(member):
                if first.setdefault(name, index) == index:
                    yield _Entry(index, name, own)
                else:
                    message = f"{shown(name)} is already one of clusters[{first[name]}]"
                    self._report(problem(("clusters", index, "name"), message, "write another name"))
        if len(first) > MOST:
            remedy = f"write {MOST} or fewer; more take several stacks"
            self._report(problem(("clusters",), f"are {len(first)}", remedy))

    def _loaded(self, entry: _Entry) -> LoadedCluster | None:
        name = f"{default_cluster_name(self.stack_name)}-{entry.name}"
        if len(name) > CLUSTER_NAME_LENGTH:
            message = f"makes the name {name} of {len(name)} characters, at most {CLUSTER_NAME_LENGTH} are allowed"
            self._report(problem(("clusters", entry.index, "name"), message, "write a shorter one"))
            return None
        defaults = self.values.get("defaults") or {}
        config = {key: value for key, value in self.values.items() if key not in SEVERAL}
        config["cluster"] = {**merged(defaults, entry.own), "name": name}
        own = self.secrets.get("clusters", _NO_SECRETS).within(entry.index)
        shared = self.secrets.get("defaults", _NO_SECRETS).places
        not_overridden = [place for place in shared if _is_default(path_text(place), entry, defaults)]
        secrets = Secrets((*own, *not_overridden))
        try:
            loaded = load(config, self.stack_name, self.base, source=self.source, secrets=secrets)
        except SpecError as error:
            if error.source not in ("", self.source):
                # The mistakes of another file, such as that of prices, which the error names.
                raise
            # A setting of the whole stack, such as its runtime, has its place in the file already.
            of_stack = StackSettings.read(config).problems
            for each in error.problems:
                self._report(each if each in of_stack else replace(each, path=_origin(each.path, entry, defaults)))
            return None
        for notice in loaded.notices:
            self.notices[replace(notice, path=_origin(notice.path, entry, defaults))] = None
        return replace(loaded, member=entry.name)

    def _report(self, *found: Problem) -> None:
        # A mistake in the defaults is found for each cluster, and reported once.
        self.problems |= dict.fromkeys(found)


def merged(defaults: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults overridden by a cluster's own values: mappings key by key, anything else as a whole.

    A key without a value counts as absent.
    """
    result = dict(defaults)
    for key, value in own.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[key] = merged(below, value)
        elif value is not None or key not in result:
            result[key] = value
    return result


def names_in(config: Mapping[str, object]) -> list[str]:
    """The names of a stack file's clusters, unchecked; none for a file without `clusters`."""
    entries = parsed(config.get("kumulus:clusters"))
    found: list[str] = []
    for raw in entries if isinstance(entries, list) else ():
        with contextlib.suppress(SpecError, TypeError):
            found += _names(validated(Member, {key: raw[key] for key in _OWN if key in raw}, ""))
    return found


def _names(member: Member) -> list[str]:
    return [member.name] if member.count is None else [f"{member.name}-{number}" for number in range(member.count)]


def _key_problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Top-level keys that do not go together, `clusters` that are no list, and `defaults` that cannot be shared."""
    if "clusters" not in values:
        for key in WITH_CLUSTERS:
            if key in values:
                yield problem((key,), "has no effect without clusters", "leave it out, or write clusters")
        return
    for key in ("cluster", "clusterConfig"):
        if key in values:
            yield problem((key,), "describes the cluster, and clusters do so too", "leave one of the two out")
    if "nodes" in values:
        yield problem(("nodes",), "has no effect with clusters", "write the nodes in their groups")
    if not isinstance(values["clusters"], list) or not values["clusters"]:
        yield problem(("clusters",), f"is {shown(values['clusters'])}", "write a list of clusters, each with a name")
    defaults = values.get("defaults", {})
    if not isinstance(defaults, Mapping):
        yield problem(("defaults",), f"is {shown(defaults)}", "write a mapping of what the clusters share")
        return
    for key in _OWN:
        if defaults.get(key) is not None:
            yield problem(("defaults", key), "is each cluster's own", "leave it out")


def _hub_problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    if "hub" not in values:
        return
    hub = values["hub"]
    if not isinstance(hub, str) or not hub:
        yield problem(("hub",), f"is {shown(hub)}", "write the name of one of the clusters")


def _conflicts(entries: list[_Entry], found: Mapping[str, LoadedCluster]) -> Iterator[Problem]:
    """Two clusters with the same port on this machine, or on the same existing cluster."""
    first: dict[object, str] = {}
    for each in entries:
        spec = found[each.name].spec
        ports = {"kwok.apiServerPort": spec.kwok.apiServerPort}
        for name, section in spec.sections_of_extras().items():
            ports |= {f"{name}.{place}": port for place, port in section.ports().items()}
        taken: list[tuple[object, str, str]] = [(port, place, "port") for place, port in ports.items() if port]
        if spec.runtime_descriptor.outlives_stack:
            taken.append(((spec.existing.kubeconfig, spec.existing.context), "existing", "cluster"))
        for value, place, what in taken:
            other = first.setdefault((what, value), each.name)
            if other != each.name:
                message = f"is also the {what} of {shown(other)}"
                yield Problem(f"clusters[{each.index}].{place}", message, f"give each cluster a {what} of its own")


def _origin(path: str, entry: _Entry, defaults: Mapping[str, Any]) -> str:
    """The place in the file where a place in a cluster was written."""
    return under("defaults" if _is_default(path, entry, defaults) else f"clusters[{entry.index}]", path)


def _is_default(path: str, entry: _Entry, defaults: Mapping[str, Any]) -> bool:
    """Whether a place in a cluster was written in the defaults, rather than in the cluster's own entry."""
    return _depth(path, defaults) > _depth(path, entry.own)


def _depth(path: str, written: object, prefix: Where = ()) -> int:
    """How far a mapping leads towards a place: the length of the longest path in it that is a prefix of the place."""
    if not isinstance(written, Mapping):
        return 0
    deepest = 0
    for key, value in written.items():
        here = path_text((*prefix, str(key)))
        if path == here or (path.startswith(here) and path[len(here)] in ".["):
            deepest = max(deepest, len(here), _depth(path, value, (*prefix, str(key))))
    return deepest
