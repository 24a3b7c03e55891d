"""The stages of pod lifecycles, as KWOK's ``Stage`` objects.

===============  ==============================  =================================================================
stage            of a pod that                   due
===============  ==============================  =================================================================
create           has no status yet               at once
start            pulls its images                imagePull after its start
init             runs an init container          init after that container's start
ready            has started                     startUp after its containers' start
succeed, fail-N  is ready, and drawn to end so   startUp and run (or the failure's ``after``) after that start
restart          has ended, and may run again    the kubelet's back-off after its end
resize-N         is ready, and drawn so when it  at once
                 is resized
resize-N-after   is deferred by that             the resize's ``after`` after that
terminating      is deleted while it runs        at once
terminate        is deleted, and ends by itself  termination after its deletion
kill             is deleted, and does not end    the grace period after its deletion
                 within its grace period
===============  ==============================  =================================================================

A stage has weight 1: where one with a weight matches, KWOK passes over those without, which are the cluster's own. One
that holds a resize up outweighs the cluster's stage pod-follow, which accepts all others.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kumulus.kwok import lifecycle_states as states
from kumulus.kwok import stages
from kumulus.kwok.pod_statuses import base
from kumulus.kwok.pod_statuses import lifecycle as templates
from kumulus.kwok.pod_statuses.followed import followed
from kumulus.kwok.pod_statuses.fragments import FAILED_CHECK
from kumulus.model.distributions import Distribution
from kumulus.model.lifecycles import ContainerFailure, Lifecycle, ResizeRefusal

PRIME = 94_906_247
"""The largest prime that is 2 modulo 3 and whose square is below 2^53; see the comment above :func:`definitions`."""
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

LIFECYCLE_LABEL = "kumulus.io/lifecycle"
_ZERO = Distribution("fixed", 0)
_ABOVE_FOLLOWING = 10**18
# Above the stage that ends all deleted pods at once, which has a weight where KWOK was installed from its charts.
_ABOVE_ENDING = 10**6


@dataclass(frozen=True)
class StageObject:
    """A ``Stage`` object."""

    name: str
    """The object's name; it contains a dot, unlike the names of the cluster's own stages."""
    lifecycle: str
    about: str
    """What it waits for, in words."""
    spec: Mapping[str, Any]

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata."""
        labels, annotations = {LIFECYCLE_LABEL: self.lifecycle}, {"kumulus.io/about": self.about}
        return {"name": self.name, "labels": labels, "annotations": annotations}


def stage_objects(lifecycles: Sequence[Lifecycle], *, events: bool = False) -> list[StageObject]:
    """The stages of a stack's lifecycles, in the order of the file, with the events of a kubelet or without."""
    return [stage for index in range(len(lifecycles)) for stage in _Stages(lifecycles, index, events).all()]


@dataclass(frozen=True)
class _Stages:
    """The stages of one lifecycle among others."""

    lifecycles: Sequence[Lifecycle]
    index: int
    events: bool

    @property
    def life(self) -> Lifecycle:
        """The lifecycle, in which pods that must run do not pretend to."""
        return _without_pretending(self.lifecycles[self.index])

    def all(self) -> list[StageObject]:
        life = self.life
        found = [self._create()]
        if life.image_pull:
            found.append(self._start(life.image_pull))
        if life.init:
            found.append(self._init(life.init))
        if life.start_up and not life.must_run:
            found.append(self._ready(life.start_up))
        if life.run:
            found.append(self._end("succeed", "success", life.run, "run", None))
        for number, failure in enumerate(life.failures):
            outcome = f"failure {number}"
            after, what = (failure.after, outcome) if failure.after else (life.run, "run")
            assert after is not None
            found.append(self._end(f"fail-{number}", outcome, after, what, failure))
        if life.run or life.failures:
            found.append(self._restart())
        found += (stage for number in range(len(life.resizes)) for stage in self._resize(number))
        if life.termination:
            ends = self._terminate(life.termination)
            found += (replace(each, spec={**each.spec, "weight": _ABOVE_ENDING}) for each in ends)
        return found

    def _create(self) -> StageObject:
        selections = [each.selection for each in self.lifecycles[: self.index + 1]]
        mine = self.life.selection
        # The selector itself has the labels of this one.
        selections[-1] = replace(mine, labels={})
        selector = states.begins(dict(mine.labels), states.first_condition(selections, self.index))
        mark = (states.CONDITION, self.life.name)
        pending = self.life.must_run == "pending"
        template = templates.beginning(*mark, pending) if self.life.image_pull else self._started(first=mark)
        starts = {} if self.life.image_pull else stages.STARTS
        return self._stage("create", "at once", selector, template, events=starts)

    def _start(self, pull: Distribution) -> StageObject:
        delay = self._delay(states.STARTED, (pull, "image pull"))
        about = "never, as nothing can run" if self.life.must_run else f"image pull: {pull}"
        starts = stages.STARTS_PULLED
        return self._stage("start", about, self._in("pulling"), self._started(), delay, starts)

    def _init(self, init: Distribution) -> StageObject:
        # Each init container has a duration of its own.
        draw = seconds(init, f'("init " + {states.INIT_NAME})')
        delay = states.delay(definitions(self.life.seed), states.INIT_STARTED, draw)
        about, starts = f"init: {init}", stages.STARTS
        return self._stage("init", about, self._in("initializing"), self._started(), delay, starts)

    def _ready(self, start_up: Distribution) -> StageObject:
        delay = self._delay(states.CONTAINERS_STARTED, (start_up, "start-up"))
        return self._stage("ready", f"start-up: {start_up}", self._in("starting"), templates.made_ready(), delay)

    def _end(
        self, step: str, outcome: str, run: Distribution, what: str, failure: ContainerFailure | None
    ) -> StageObject:
        """The end of a run, as success or as a failure.

        Args:
            outcome: which of the lifecycle's failures it is, or success, as it is drawn.
            what: the name of the run's duration, by which it is drawn.
        """
        selector = self._in("starting" if self.life.must_run else "ready")
        about = f"run: {run}"
        if self.life.failures:
            share = failure.share if failure else 1 - sum(each.share for each in self.life.failures)
            drawn = self._drawn("throw", "failure", self.life.failures, "success")
            selector = states.narrowed(selector, drawn, outcome)
            about = f"{about}, for {max(0.0, share):.4g} of the runs"
        delay = self._delay(states.CONTAINERS_STARTED, (self.life.start_up or _ZERO, "start-up"), (run, what))
        return self._stage(step, about, selector, templates.ended(failure, bool(self.life.must_run)), delay)

    def _drawn(self, draw: str, what: str, shares: Sequence[ContainerFailure | ResizeRefusal], rest: str) -> str:
        """A jq expression of which of several shares a draw falls in, as `what` with its number, or the rest."""
        below, branches = 0.0, ""
        for number, each in enumerate(shares):
            below += each.share
            branches += f"{'elif' if branches else 'if'} . < {below:.9f} then {json.dumps(f'{what} {number}')} "
        return f"{definitions(self.life.seed)}\n{draw} | {branches}else {json.dumps(rest)} end"

    def _resize(self, number: int) -> Iterable[StageObject]:
        resize, step = self.life.resizes[number], f"resize-{number}"
        why = f"declared by resizes[{number}] of the lifecycle {self.life.name}"
        drawn = self._drawn(f"draw({states.RESIZE_NAME})", "resize", self.life.resizes, "accepted")
        selector = states.narrowed(self._in("ready"), states.RESIZED, "true")
        selector = states.narrowed(selector, drawn, f"resize {number}")
        about = f"{resize.outcome}, for {resize.share:.4g} of the resizes"
        held = self._stage(step, about, selector, followed(resize.outcome, why))
        yield replace(held, spec={**held.spec, "weight": _ABOVE_FOLLOWING})
        if resize.after:
            selector = states.narrowed(self._in("ready"), f"{states.RESIZE_PENDING}.message", why)
            total = seconds(resize.after, f'({states.RESIZE_NAME} + " deferred")')
            delay = states.delay(definitions(self.life.seed), f"{states.RESIZE_PENDING}.lastTransitionTime", total)
            yield self._stage(f"{step}-after", f"deferred: {resize.after}", selector, followed("accepted"), delay)

    def _terminate(self, termination: Distribution) -> Iterable[StageObject]:
        running, functions = states.is_terminating(self.life.name), definitions(self.life.seed)
        lasts, about = seconds(termination, '"termination"'), f"termination: {termination}"
        outlasts_grace = f"{functions}\n({lasts}) > {states.GRACE} | tostring"
        unseen, seen = (states.narrowed(running, states.SEEN, value) for value in ("false", "true"))
        for step, outlasts, total, status in (
            ("terminate", "false", lasts, base.TERMINATED),
            ("kill", "true", states.GRACE, base.KILLED),
        ):
            selector = states.narrowed(seen, outlasts_grace, outlasts)
            delay = states.delay(functions, states.DELETED, total)
            yield self._stage(step, about, selector, status, delay, removed=True)
        yield self._stage("terminating", "at once", unseen, templates.deletion_seen(), events=stages.ENDS)

    def _restart(self) -> StageObject:
        delay = states.delay("", states.CONTAINERS_ENDED, states.BACK_OFF)
        template = templates.restarted(start_up=self.life.start_up is not None)
        about, starts = "the kubelet's back-off", stages.STARTS
        return self._stage("restart", about, self._in("ended"), template, delay, starts, again=True)

    def _started(self, first: tuple[str, str] | None = None) -> str:
        """The status of :func:`kumulus.kwok.pod_statuses.lifecycle.started`, for this lifecycle."""
        return templates.started(first=first, init=self.life.init is not None, start_up=self.life.start_up is not None)

    def _in(self, state: states.State) -> dict[str, Any]:
        """The selector of this lifecycle's pods in a state."""
        return states.is_in(self.life.name, state)

    def _delay(self, since: str, *parts: tuple[Distribution, str]) -> dict[str, Any]:
        """The delay since a time, in jq: the sum of durations, each with the name by which it is drawn."""
        drawn = any(part.kind != "fixed" for part, _ in parts)
        total = " + ".join(seconds(part, json.dumps(what)) for part, what in parts if part != _ZERO) or "0"
        return states.delay(definitions(self.life.seed) if drawn else "", since, total)

    def _stage(
        self,
        step: str,
        about: str,
        selector: dict[str, Any],
        template: str,
        delay: dict[str, Any] | None = None,
        events: Mapping[str, str] = {},
        again: bool = False,
        removed: bool = False,
    ) -> StageObject:
        """A stage that writes a status.

        Args:
            about: what it waits for, in words.
            events: what it writes, messages by reason; ``again`` if they were written before.
            removed: whether it then deletes the pod.
        """
        patch = stages.pod_removed(template, "status") if removed else stages.pod_status(template)
        rest = {"weight": 1, **({"delay": delay} if delay else {}), **patch}
        spec = stages.spec("Pod", selector, rest)
        if self.events:
            spec = stages.writing(spec, events, again)
        return StageObject(f"{self.life.name}.{step}", self.life.name, about, spec)


def _without_pretending(life: Lifecycle) -> Lifecycle:
    """The lifecycle of pods that must run: their images never come, or they fail before they are ready."""
    match life.must_run:
        case "pending":
            return replace(life, image_pull=Distribution("fixed", stages.FOR_EVER / 1000))
        case "fail":
            return replace(life, start_up=_ZERO, failures=(ContainerFailure(1.0, **FAILED_CHECK, after=_ZERO),))
        case _:
            return life


# Seeded draws of durations and outcomes in jq, the language of KWOK's stages.
#
# A draw depends only on the seed, on what is drawn, on the pod's identity and on the attempt, so that every evaluation
# gives the same value. jq has no hash and no bitwise operations, so text is hashed with arithmetic that is exact in
# doubles: a polynomial modulo a prime below 2^26.5, then two rounds of cubing and adding, each a permutation because
# the prime is 2 modulo 3. So gojq, which KWOK uses, and jq agree.


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
    """A jq expression of a duration in seconds, drawn by :func:`definitions`; ``what``, in jq, tells draws apart."""
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
