"""A runtime, as far as it is asked: nothing is made."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from kumulus.model.checks import problem
from kumulus.model.errors import Problem
from kumulus.runtimes.base import Runtime
from kumulus.runtimes.descriptor import Descriptor, RuntimeOptions
from kumulus.runtimes.section import RuntimeSection


class Toy(RuntimeSection):
    """Settings of the runtime toy."""

    size: int = Field(default=1, examples=["3"])
    """How large it is."""


class ToyRuntime(Runtime):
    """A toy."""

    name, replaced_by = "toy", frozenset({"size"})

    def problems(self, options: dict[str, Any]) -> dict[str, str]:
        """See :meth:`Runtime.problems`."""
        return {} if options.get("size", 1) < 20 else {"size": "write less"}


# What acts on a cluster is left out.
ToyRuntime.__abstractmethods__ = frozenset()


def rules(raw: Mapping[str, Any]) -> Iterable[Problem]:
    """Some sizes are unlucky."""
    if raw.get("toy", {}).get("size") == 13:
        yield problem(("toy", "size"), "is unlucky", "write 12")


RUNTIME = Descriptor(
    name="toy",
    short="in a box",
    about="a toy of a cluster",
    takes="batteries",
    ready_in="1 s",
    implementation="toy_extra.runtime:ToyRuntime",
    options=RuntimeOptions("toy_extra.runtime:Toy", "Settings of the runtime toy.", "{size: 3}"),
    tools=("helm",),
    chooses_version=False,
    kubeconfig_file="toy.yaml",
    rules=rules,
)
