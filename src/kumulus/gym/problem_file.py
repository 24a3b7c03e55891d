"""Problems as their files describe them, and what a seed draws of one."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from kumulus.gym import kubectl
from kumulus.gym.conditions import ProblemCondition
from kumulus.model import durations
from kumulus.model.checks import problem as mistake
from kumulus.model.errors import Problem as Mistake
from kumulus.model.errors import SpecError, Where, shown
from kumulus.model.fields import Section, checked, malformed, whole
from kumulus.model.fields.validation import validated
from kumulus.model.names import nearest
from kumulus.model.words import listed
from kumulus.stackfile.location import read_text
from kumulus.stackfile.yamltext import read_yaml
from kumulus.testing import ClusterError, wanted

NAMESPACE = "namespace"
"""The name of the draw that says in which namespace a problem is."""
_FOLDER = Path(__file__).parent / "problems"
_CLUSTER = _FOLDER.parent / "cluster.yaml"
_WHOLE = re.compile(r"\$(?:([a-z][a-z0-9_]*)|\{([a-z][a-z0-9_]*)\})")
Duration = Annotated[str, checked(durations.duration_problems, str, form="duration")]
Objects = list[dict[str, Any]]
Values = Mapping[str, Any]


class GymError(Exception):
    """A problem's file is wrong, or an episode cannot begin or go on; the message's first line says why."""


class _Text(Template):
    """A text with names of draws, `$node` or `${node}`; `$$` is a dollar sign."""

    idpattern = r"[a-z][a-z0-9_]*"
    flags = re.VERBOSE


class DrawnNodes(Section):
    """So many nodes, drawn of those that a label selector selects; `$name_1` is the first of several."""

    nodes: str = Field(examples=["kumulus.io/group=h100"])
    count: Annotated[int, whole(1, 1000)] = 1


class ProblemStep(Section):
    """One step of what makes a problem: objects to apply, commands, a fault as in a stack file, or what to wait for."""

    objects: Objects | None = None
    kubectl: list[str] | None = None
    fault: dict[str, Any] | None = None
    until: list[ProblemCondition] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            what = f"says {' and '.join(sorted(self.model_fields_set)) or 'nothing'}"
            raise malformed([mistake((), what, "write one of objects:, kubectl:, fault: and until: in each step")])
        return self


class Problem(Section):
    """A problem: a cluster, what is wrong with it, the agent's task, and what has to hold in the end.

    Attributes:
        name: its name.
        subject: what it is about.
        cluster: a stack file's `kumulus:cluster`; by default the one of the problems that come with Kumulus.
        draw: what the seed draws, by name: one of a list, or nodes; of mappings, each key is a name.
        description: the agent's task.
        setup: what makes it, in this order.
        verify: what has to hold for it to be solved.
        timeLimit: how long an episode may take, such as `10m`.
        steps: how many commands an episode may have.
        solution: commands, or objects to apply, that solve it.
    """

    name: str = Field(examples=["cordoned-zone"])
    subject: str = ""
    cluster: dict[str, Any] = Field(default_factory=dict)
    draw: dict[str, list[Any] | DrawnNodes] = Field(default_factory=dict)
    description: str = Field(examples=["Pods of web stay Pending. Get them to run."])
    setup: list[ProblemStep] = Field(examples=["[{kubectl: […]}]"])
    verify: list[ProblemCondition] = Field(examples=["[{kind: Pod, atLeast: 3}]"])
    timeLimit: Duration = "10m"
    steps: Annotated[int, whole(1, 10_000)] = 30
    solution: list[str | dict[str, Any]] = Field(default_factory=list)

    @property
    def spec(self) -> dict[str, Any]:
        """Its cluster, as :class:`kumulus.testing.Cluster` takes it."""
        return self.cluster or standard_cluster()

    @property
    def seconds(self) -> float:
        """How long an episode may take."""
        return durations.of(self.timeLimit)

    def drawn(self, seed: int, nodes: Callable[[str], Iterable[str]]) -> tuple[Self, str]:
        """What a seed makes of it, with every name filled in; and its namespace, empty if it has none.

        Args:
            nodes: the names of the nodes that a label selector selects.

        Raises:
            GymError: there are not as many nodes as are to be drawn.
        """
        draws, values = random.Random(f"{self.name}/{seed}"), dict[str, Any]()
        for name, of in self.draw.items():
            if isinstance(of, DrawnNodes):
                there = sorted(nodes(str(_filled(of.nodes, values))))
                if len(there) < of.count:
                    what = f"{self.name}: draw.{name}: {len(there)} of {of.count} nodes are there"
                    raise GymError(f"{what}; write another selector or count")
                values |= _named(name, draws.sample(there, of.count))
                continue
            chosen = draws.choice(of)
            values |= chosen if isinstance(chosen, Mapping) else {name: chosen}
        written = self.model_dump(exclude={"draw", "cluster"}, exclude_unset=True)
        made = type(self).model_validate({**_filled(written, values), "cluster": self.cluster})
        return made, str(values.get(NAMESPACE, ""))


@cache
def standard_cluster() -> dict[str, Any]:
    """The cluster of the problems that come with Kumulus, as :class:`kumulus.testing.Cluster` takes it."""
    found = read_yaml(_CLUSTER.read_text(encoding="utf-8"), str(_CLUSTER))
    assert isinstance(found, dict)
    return found


def problems() -> list[str]:
    """The names of the problems that come with Kumulus."""
    return sorted(each.stem for each in _FOLDER.glob("*.yaml"))


def problem(named: str | Path) -> Problem:
    """A problem that comes with Kumulus, by its name; or one of a file's.

    Raises:
        GymError: there is none, or something of it is wrong; the message lists every mistake and its remedy.
    """
    if named in problems():
        file = _FOLDER / f"{named}.yaml"
    elif isinstance(named, Path) or Path(named).suffix in (".yaml", ".yml"):
        file = Path(named)
    else:
        near = nearest(named, problems()) or ["a name that `kumulus gym ls` lists", "the path of a YAML file"]
        raise GymError(f"there is no problem {named}; write {' or '.join(near)}")
    try:
        _, text = read_text(str(file), Path(), "")
        return read(read_yaml(text, str(file)), str(file))
    except SpecError as error:
        raise GymError(str(error)) from None


def read(raw: object, source: str) -> Problem:
    """A problem from a plain mapping, as YAML gives it."""
    made = validated(Problem, raw, source)
    wrong = [*_name_mistakes(made)]
    wrong += [
        mistake((key,), "is empty", "write at least one") for key in ("setup", "verify") if not getattr(made, key)
    ]
    for at, command in enumerate(made.solution):
        if isinstance(command, str) and (refused := kubectl.parsed(command).refused):
            what, _, remedy = refused.partition("; ")
            wrong.append(mistake(("solution", at), f"is refused: {what}", remedy))
    if made.cluster:
        try:
            wanted.loaded(made.cluster, None, "", {})
        except ClusterError as error:
            wrong.append(mistake(("cluster",), str(error), "write it as below kumulus:cluster of a stack file"))
    if wrong:
        raise SpecError(wrong, source)
    return made


def _name_mistakes(made: Problem) -> Iterator[Mistake]:
    """Draws that are none, and names in texts that are not drawn."""
    known = set[str]()
    for name, of in made.draw.items():
        if not re.fullmatch(_Text.idpattern, name):
            yield mistake(("draw", name), "is no name of a draw", "write small letters, digits and _")
        if isinstance(of, DrawnNodes):
            yield from _undrawn(("draw", name, "nodes"), of.nodes, known)
            known |= set(_named(name, [""] * of.count))
        elif of and all(isinstance(each, Mapping) for each in of):
            known |= set.intersection(*(set(each) for each in of))
        elif of:
            known.add(name)
        else:
            yield mistake(("draw", name), "is empty", "write at least one value")
    written = made.model_dump(include={"description", "setup", "verify", "solution"}, exclude_unset=True)
    for where, text in _texts((), written):
        yield from _undrawn(where, text, known)


def _undrawn(where: Where, text: str, known: set[str]) -> Iterator[Mistake]:
    if not _Text(text).is_valid():
        yield mistake(where, f"has a $ that begins no name: {shown(text)}", "write $$ for a dollar sign")
        return
    for name in _Text(text).get_identifiers():
        if name not in known:
            near = nearest(name, known) or sorted(known)
            remedy = f"write {listed([f'${each}' for each in near])}, or draw it" if near else "draw it"
            yield mistake(where, f"says ${name}, which is not drawn", remedy)


def _texts(where: Where, value: object) -> Iterator[tuple[Where, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts((*where, str(key)), str(key))
            yield from _texts((*where, str(key)), each)
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _texts((*where, at), each)


def _named(name: str, nodes: list[str]) -> dict[str, Any]:
    """The values of a draw of nodes: one name, or all of them and each by its number."""
    if len(nodes) == 1:
        return {name: nodes[0]}
    return {name: nodes, **{f"{name}_{at}": each for at, each in enumerate(nodes, 1)}}


def _filled(value: Any, values: Values) -> Any:
    """With names replaced by what was drawn: a text that is one name becomes the value itself."""
    if isinstance(value, str):
        if (one := _WHOLE.fullmatch(value)) and (one[1] or one[2]) in values:
            return values[one[1] or one[2]]
        texts = {key: " ".join(each) if isinstance(each, list) else each for key, each in values.items()}
        return _Text(value).substitute(texts)
    if isinstance(value, Mapping):
        return {_filled(key, values): _filled(each, values) for key, each in value.items()}
    return [_filled(each, values) for each in value] if isinstance(value, list) else value
