"""What every resource offers to the protocol adapter: plain values in, plain values out."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kumulus.model.checks import annotation_problems, label_problems
from kumulus.model.errors import Where
from kumulus.model.names import dns_label_mistake
from kumulus.model.plain import UNKNOWN
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.provider.properties import Property
from kumulus.provider.resources.diffing import PropertyDifference, differences
from kumulus.provider.values import contains_unknown

Properties = dict[str, Any]


def known(properties: Properties, key: str) -> Any:
    """Return a property that check fills in or that the plugin recorded."""
    value = properties.get(key)
    if value is None or value is UNKNOWN:
        raise ProviderError(f"the property {key!r} is missing; if the stack's state was edited, put it back there")
    return value


@dataclass(frozen=True)
class InputFailure:
    """An input that cannot be accepted: the property's path and what to write instead."""

    path: str
    reason: str


def name_failures(name: str) -> list[InputFailure]:
    """Failures of a name that has to be a DNS-1123 label."""
    mistake = dns_label_mistake(name)
    return [InputFailure("name", f"{name!r} {mistake.message}; {mistake.remedy}")] if mistake else []


def mark_failures(within: Where, inputs: Mapping[str, Any]) -> list[InputFailure]:
    """Failures of the labels and annotations of what is at a path, as far as they are known."""
    found: list[InputFailure] = []
    for key, problems in (("labels", label_problems), ("annotations", annotation_problems)):
        marks = inputs.get(key)
        if marks is not None and not contains_unknown(marks):
            wrong = problems((*within, key), marks, own_too=True)
            found += [InputFailure(each.path, f"{each.message}; {each.remedy}") for each in wrong]
    return found


@dataclass(frozen=True)
class Operation:
    """The circumstances of one call: for which resource, whether it is only a preview, and how to report and stop."""

    urn: str
    """The resource's URN."""
    report: Reporter
    """Where progress goes."""
    stop: asyncio.Event
    """Set when the user cancelled; begin nothing new after that."""
    preview: bool = False
    """Nothing may be changed; return what is known."""
    timeout: float = 0.0
    """Seconds the user allowed (``customTimeouts``), or 0 for the default."""
    program: str = ""
    """Directory of the user's Pulumi program."""
    old_inputs: Properties = field(default_factory=dict)
    """The recorded inputs, of an update or a delete; outputs are what was found, which may be less."""


@dataclass(frozen=True)
class ReadResult:
    """What a read found: the resource's id, its outputs as they are, and its inputs."""

    resource_id: str
    outputs: Properties
    inputs: Properties


@dataclass(frozen=True)
class CheckResult:
    """Checked inputs with defaults filled in, or the failures."""

    inputs: Properties
    failures: list[InputFailure] = field(default_factory=list)


class Resource(ABC):
    """The life of one resource type.

    Create, update and delete raise :class:`kumulus.nodes.errors.ProviderError` when nothing was done and
    :class:`kumulus.nodes.errors.PartialFailure` when something was.
    """

    token: ClassVar[str]
    """Its type."""
    inputs: ClassVar[tuple[Property, ...]]
    """What it takes; each is an output too, unless it is fleeting."""
    outputs: ClassVar[tuple[Property, ...]] = ()
    """What else it has."""
    delete_before_replace: ClassVar[bool] = True
    """Whether its old self goes before the new one comes."""

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(each.name for each in cls.inputs)

    @classmethod
    def replaced_by(cls) -> tuple[str, ...]:
        """Names of the inputs whose change replaces the resource."""
        return tuple(each.name for each in cls.inputs if each.replaces)

    @classmethod
    def input_failures(cls, inputs: Properties) -> list[InputFailure]:
        """Failures for unknown inputs and for missing ones."""
        keys, name = cls.keys(), cls.token.rpartition(":")[2]
        found = [
            InputFailure(key, f"{name} has no input {key!r}; it takes {', '.join(keys)}")
            for key in inputs
            if key not in keys and not key.startswith("__")
        ]
        missing = [each.name for each in cls.inputs if each.required and inputs.get(each.name) is None]
        return found + [InputFailure(key, "is required") for key in missing]

    def drawn(self, old_inputs: Properties, inputs: Properties, seed: bytes) -> Properties:
        """Random values for inputs that were left out, drawn before the check; none for most resources.

        Args:
            old_inputs: the recorded inputs; a value that was drawn once stays.
            seed: the same seed gives the same answer.
        """
        return {}

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        """Validate the inputs and fill in defaults; must give the same answer for the same arguments."""
        present = {key: inputs[key] for key in self.keys() if inputs.get(key) is not None}
        return CheckResult(present, self.input_failures(inputs))

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        """Compare what is recorded with what is wanted."""
        return [
            found
            for each in self.inputs
            for found in differences(
                each.name, old_outputs.get(each.name), inputs.get(each.name), replace=each.replaces
            )
        ]

    async def examine(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        """:meth:`check`, and the checks of inputs that need to ask something outside the plugin."""
        return self.check(old_inputs, inputs, program)

    async def declare(self, urn: str, old_inputs: Properties, inputs: Properties) -> None:  # noqa: B027
        """Learn that the stack declares this; after a check that passed, in a plugin of each preview or update.

        Args:
            old_inputs: the recorded inputs; none for a resource that is to be created, which may replace another one.
            inputs: the inputs with defaults filled in.
        """

    async def compare(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        """:meth:`diff`, and the differences that only a look at the real thing shows; in previews too."""
        return self.diff(old_outputs, inputs)

    async def preview(  # noqa: B027 - there is nothing that every resource would have to do
        self,
        reporters: Callable[[str], Reporter],
        urn: str,
        old_inputs: Properties,
        old_outputs: Properties,
        inputs: Properties,
    ) -> None:
        """Report at a diff, in previews too, what no other call can report; nothing for most resources.

        Args:
            reporters: gives the reporter of the resource with a URN.
        """

    @abstractmethod
    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        """Create it; returns its id (empty in a preview) and outputs."""

    @abstractmethod
    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> ReadResult | None:
        """Look at the real thing; None when it is gone."""

    @abstractmethod
    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        """Change what exists into what is wanted; returns the outputs."""

    @abstractmethod
    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """Remove it; not finding it is success."""


# Seconds for running requests to end and report their progress.
_WINDING_UP = 1.0
# Seconds of the allowed time that are reserved for ending and for counting what was done.
_EARLY = 3.0


@asynccontextmanager
async def limited(op: Operation) -> AsyncIterator[asyncio.Event]:
    """An event that is set when nothing new may start; shortly after, operations still running are cancelled.

    It is set when the user cancels, and shortly before the end of the time that the user allowed.

    Raises:
        TimeoutError: something was still running.
    """
    stop = asyncio.Event()
    async with asyncio.timeout(None) as limit:
        watching = asyncio.ensure_future(_wind_up(op, stop, limit))
        try:
            yield stop
        finally:
            watching.cancel()


async def _wind_up(op: Operation, stop: asyncio.Event, limit: asyncio.Timeout) -> None:
    early = min(_EARLY, op.timeout / 2)
    with suppress(TimeoutError):
        async with asyncio.timeout(op.timeout - early if op.timeout else None):
            await op.stop.wait()
    stop.set()
    limit.reschedule(asyncio.get_running_loop().time() + (_WINDING_UP if op.stop.is_set() else early))


def why_ended(op: Operation) -> str:
    """Why an operation was ended."""
    if op.stop.is_set() or not op.timeout:
        return "stopped on request"
    return f"not finished within {op.timeout:g} s, the time allowed for it (customTimeouts)"
