"""Seeded draws of durations and outcomes in jq, the language of KWOK's stages.

A draw depends only on the seed, on what is drawn, on the pod's identity and on the attempt, so that every evaluation
gives the same value. jq has no hash and no bitwise operations, so text is hashed with arithmetic that is exact in
doubles: a polynomial modulo a prime below 2^26.5, then two rounds of cubing and adding, each a permutation because
the prime is 2 modulo 3. gojq, which KWOK uses, and jq then agree.
"""

from __future__ import annotations

import json

from kumulus.model.distributions import Distribution

PRIME = 94_906_247
"""The largest prime that is 2 modulo 3 and whose square is below 2^53."""

_FACTOR, _ROUNDS = 65_599, (40_692_889, 27_644_437)

_IDENTITY = """\
def index: .metadata.annotations["batch.kubernetes.io/job-completion-index"];
def failures: .metadata.annotations["batch.kubernetes.io/job-index-failure-count"];
def attempts: ([.status.containerStatuses[]?.restartCount] | max // 0) + (failures // "0" | tonumber);
def identity:
  ([.metadata.ownerReferences[]? | select(.controller)] | .[0]) as $owner
  | index as $index
  | [.metadata.namespace] + if $owner and $index then [$owner.kind, $owner.name, $index] else [.metadata.name] end
  | join("/");"""


def definitions(seed: int) -> str:
    """The jq functions that draws are made of.

    ``draw(what)`` is a number above 0 and below 1, ``normal(what)`` one of the standard normal distribution, ``throw``
    the draw of how a run ends. An indexed Job's pod is identified by its Job and its index, since its name differs in
    every run; any other pod by its name. A pod that retries an index must not fail because of the same draw: it is
    distinguished by the Job's count of failures, or by its name where the Job counts none.
    """
    rounds = " ".join(f"| (. * . % {PRIME} * . + {number}) % {PRIME}" for number in _ROUNDS)
    return f"""\
{_IDENTITY}
def draw($what):
  [{json.dumps(str(seed))}, $what, identity, (attempts | tostring)] | join("/")
  | reduce explode[] as $code (7; (. * {_FACTOR} + $code) % {PRIME}) {rounds}
  | (. + 0.5) / {PRIME};
def normal($what): (-2 * (draw($what + " radius") | log) | sqrt) * (6.283185307179586 * draw($what + " angle") | cos);
def throw: draw("outcome" + if index and (failures | not) then " " + .metadata.name else "" end);"""


def seconds(distribution: Distribution, what: str) -> str:
    """A jq expression of a drawn duration in seconds, from the functions of :func:`definitions`.

    Args:
        distribution: what it is drawn from.
        what: a jq expression that names the duration; a different one gives a different draw.
    """
    first, second = _number(distribution.first), _number(distribution.second)
    match distribution.kind:
        case "fixed":
            return first
        case "uniform":
            return f"({first} + ({second} - {first}) * draw({what}))"
        case "normal":
            return f"([0, {first} + {second} * normal({what})] | max)"
        case "lognormal":
            return f"({first} * ({second} * normal({what}) | exp))"
        case "exponential":
            return f"(-{first} * (draw({what}) | log))"


def _number(value: float) -> str:
    return f"{value:.9f}".rstrip("0").rstrip(".") or "0"
