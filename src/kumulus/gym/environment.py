"""``Environment``: a problem on a cluster, which an agent solves by commands of kubectl."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kumulus import toolchain
from kumulus.gym import kubectl, problem_file
from kumulus.gym.conditions import Objects, Verdict
from kumulus.gym.problem_file import GymError, Problem, ProblemStep
from kumulus.model.words import counted
from kumulus.testing import Cluster, ClusterError, Event, Node, Pod
from kumulus.testing.manifests import Manifest
from kumulus.toolchain import ToolchainError, supply

GIVE_UP = "give up"
_COMMAND_S, _SETUP_S, _SETTLED_S = 30.0, 30.0, 3.0
# Two looks so far apart that find the same are taken for rest.
_QUIET_S = 0.15
_LOOK_EVERY = 0.05
_EVENTS = 10


@dataclass(frozen=True)
class Observation:
    """What an agent sees after a command, or at the beginning."""

    text: str
    """What the command said, or what the problem is."""
    code: int
    """The command's exit code."""
    nodes: list[dict[str, Any]]
    """Each node's name, whether it is ready, cordoned, its taints."""
    pods: list[dict[str, Any]]
    """Each pod's namespace, name, phase, node, and why it is not what it should be."""
    events: list[str]
    """The last warnings, in words."""
    step: int = 0
    """How many commands the episode has had."""
    ends: str = ""
    """Why it is over: `solved`, `gave up`, `steps` or `time`; empty while it goes on."""

    def __str__(self) -> str:
        """As a text: what was said, and the state in short."""
        well = sum(each["ready"] and not each["cordoned"] for each in self.nodes)
        ill = [f"  node {_said(each)}" for each in self.nodes if not each["ready"] or each["cordoned"]]
        waiting = [f"  pod {_said(each)}" for each in self.pods if each["reason"] or each["phase"] == "Pending"]
        head = f"[{counted(well, 'node')} ready of {len(self.nodes)}; {counted(len(self.pods), 'pod')}]"
        over = [f"[the episode is over: {self.ends}]"] if self.ends else []
        return "\n".join([self.text, head, *ill[:_EVENTS], *waiting[:_EVENTS], *over])


@dataclass(frozen=True)
class _Look:
    """What there is at one moment."""

    nodes: list[dict[str, Any]]
    pods: list[dict[str, Any]]
    verdict: Verdict


@dataclass
class _Episode:
    """From a reset to the end."""

    problem: Problem
    namespace: str
    look: _Look
    began: float = field(default_factory=time.monotonic)
    steps: int = 0
    ends: str = ""


class Environment:
    """A problem on a cluster.

    ::

        with Environment("cordoned-zone") as environment:
            observation, done = environment.reset(seed=1), False
            while not done:
                observation, reward, done = environment.step(agent(observation))

    Args:
        problem: one that comes with Kumulus, by its name; the path of a file; or a `Problem`.
        cluster: where to put it, made of the problem's `spec`, such as one leased from a `Pool`; it is reset with each
            episode, and stays the caller's. By default, the environment's own, for as long as its block runs.

    Raises:
        GymError: there is no such problem, or something of it is wrong.
    """

    def __init__(self, problem: str | Path | Problem, cluster: Cluster | None = None) -> None:
        self.problem = problem if isinstance(problem, Problem) else problem_file.problem(problem)
        self._own = cluster is None
        self.cluster = cluster or Cluster(self.problem.spec)
        self._faults = ExitStack()
        self._kinds: dict[str, Any] = {}
        self._kubectl = Path()
        self._episode: _Episode | None = None

    def __enter__(self) -> Self:
        """Start the environment's own cluster.

        Raises:
            ClusterError: it does not start.
        """
        if self._own:
            self.cluster.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._episode = None
        try:
            self._faults.close()
        finally:
            if self._own:
                self.cluster.stop()

    def reset(self, seed: int = 0) -> Observation:
        """Begin an episode: put the cluster back to its start, and the problem into it.

        Args:
            seed: the same one draws the same names, nodes and numbers.

        Raises:
            GymError: the problem cannot be made, or is solved already.
            ClusterError: the cluster is not up, or cannot be reset.
        """
        self._provide()
        self._episode = None
        self.cluster.reset()
        # Their stages and records are gone with the reset.
        self._faults.close()
        drawn, namespace = self.problem.drawn(seed, lambda labels: [each.name for each in self.cluster.nodes(labels)])
        try:
            if namespace:
                self._make_namespace(namespace)
            for step in drawn.setup:
                self._prepare(step, namespace)
        except (GymError, ClusterError) as error:
            raise GymError(f"{self.problem.name} cannot be set up with seed {seed}: {error}") from None
        self._episode = _Episode(drawn, namespace, self._look(drawn, namespace))
        self._episode.look = self._settled(self._episode)
        if self._episode.look.verdict.solved:
            raise GymError(f"{self.problem.name} is solved at its beginning with seed {seed}; write other conditions")
        self._episode.began = time.monotonic()
        return self._observed(self._episode, drawn.description.strip(), 0)

    def step(self, command: str | Manifest | Sequence[Manifest]) -> tuple[Observation, float, bool]:
        """Run a command; whatever is wrong with it is in the observation.

        Args:
            command: a command line of kubectl, as for a shell but without one; a manifest, or several, to be applied;
                or `give up`.

        Returns:
            What there is then; by how much the verdict's progress has grown, from -1 to 1; and whether the episode is
            over.

        Raises:
            GymError: there is no episode, or it is over.
            ClusterError: the cluster does not answer.
        """
        episode = self._there()
        if episode.ends:
            raise GymError(f"the episode is over ({episode.ends}); call reset(seed) first")
        left = episode.problem.seconds - (time.monotonic() - episode.began)
        if isinstance(command, str) and command.strip().lower() == GIVE_UP:
            episode.ends = "gave up"
            return self._observed(episode, "the episode is given up", 0), 0.0, True
        if left <= 0:
            episode.ends = "time"
            limit = episode.problem.timeLimit
            return self._observed(episode, f"the command is not run: the time limit of {limit} is over", 124), 0.0, True
        asked = kubectl.parsed(command)
        text, code = self._run(asked, min(_COMMAND_S, left))
        before = episode.look.verdict
        episode.look = self._settled(episode, changed=not asked.reads_only)
        episode.steps += 1
        # What holds at one moment only does not count.
        if episode.look.verdict.solved and self.verify(0).solved:
            episode.ends = "solved"
        elif episode.steps >= episode.problem.steps:
            episode.ends = "steps"
        elif time.monotonic() - episode.began > episode.problem.seconds:
            episode.ends = "time"
        reward = episode.look.verdict.progress - before.progress
        return self._observed(episode, text, code), reward, bool(episode.ends)

    @property
    def drawn(self) -> Problem:
        """The problem as the episode has it, with every name filled in: its conditions, its solution.

        Raises:
            GymError: there is no episode.
        """
        return self._there().problem

    def verify(self, timeout: float = 5.0) -> Verdict:
        """What is found of the problem's conditions, once all hold, or the time is over.

        Args:
            timeout: seconds that the cluster's controllers have for what they are still to do.

        Raises:
            GymError: there is no episode.
            ClusterError: the cluster does not answer.
        """
        episode, ends, solved = self._there(), time.monotonic() + timeout, False
        while True:
            verdict = self._verdict(episode.problem, episode.namespace)
            # What holds at one moment only does not count.
            if (solved and verdict.solved) or (time.monotonic() >= ends and not verdict.solved):
                return verdict
            solved = verdict.solved
            time.sleep(_QUIET_S)

    def _there(self) -> _Episode:
        if self._episode is None:
            raise GymError("there is no episode; call reset(seed) first")
        return self._episode

    def _provide(self) -> None:
        try:
            supply.provide(["kubectl"])
            self._kubectl = toolchain.find("kubectl")
        except ToolchainError as error:
            raise GymError(str(error)) from None

    def _run(self, command: kubectl.AgentCommand, timeout: float) -> tuple[str, int]:
        if command.refused:
            return command.refused, 2
        return kubectl.run(self._kubectl, command, self.cluster.kubeconfig, timeout)

    def _make_namespace(self, name: str) -> None:
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        # Without its account, the API server refuses pods.
        accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
        self.cluster.wait(lambda: self.cluster.client.get(accounts)["items"], what=f"the account of namespace {name}")

    def _prepare(self, step: ProblemStep, namespace: str) -> None:
        """Do a step of what makes the problem."""
        if step.objects:
            # kubectl refuses an object whose namespace is another than the one that it is given.
            there = [each for each in step.objects if "namespace" in each.get("metadata", {})]
            bare = [each for each in step.objects if each not in there]
            for objects, options in ((bare, ("-n", namespace) if namespace else ()), (there, ())):
                if objects:
                    asked = kubectl.parsed(objects)
                    self._require(kubectl.AgentCommand((*asked.words, *options), asked.text), "objects")
        for command in step.kubectl or ():
            self._require(kubectl.parsed(command), command)
        if step.fault:
            rest = {key: value for key, value in step.fault.items() if key not in ("kind", "target")}
            kind, target = step.fault.get("kind", ""), step.fault.get("target")
            self._faults.enter_context(self.cluster.fault(kind, nodes=target, **rest))
        if step.until:
            self._wait(step, namespace)

    def _require(self, command: kubectl.AgentCommand, what: str) -> None:
        text, code = self._run(command, _COMMAND_S)
        if code:
            raise GymError(f"{what}: {text}")

    def _wait(self, step: ProblemStep, namespace: str) -> None:
        ends = time.monotonic() + _SETUP_S
        while True:
            verdict = Objects(self.cluster.client, self._kinds).verdict(step.until or (), namespace)
            if verdict.solved:
                return
            if time.monotonic() > ends:
                missed = "; ".join(str(each) for each in verdict.outcomes if not each.holds)
                raise GymError(f"after {_SETUP_S:.0f} s, until {missed}")
            time.sleep(_LOOK_EVERY)

    def _verdict(self, drawn: Problem, namespace: str) -> Verdict:
        return Objects(self.cluster.client, self._kinds).verdict(drawn.verify, namespace)

    def _look(self, drawn: Problem, namespace: str) -> _Look:
        nodes, pods = map(_node, self.cluster.nodes()), map(_pod, self.cluster.pods())
        return _Look([*nodes], [*pods], self._verdict(drawn, namespace))

    def _settled(self, episode: _Episode, *, changed: bool = True) -> _Look:
        """What there is once two looks find the same; one look is enough if nothing has changed."""
        ends, look = time.monotonic() + _SETTLED_S, self._look(episode.problem, episode.namespace)
        if not changed and look == episode.look:
            return look
        while time.monotonic() < ends:
            time.sleep(_QUIET_S)
            before, look = look, self._look(episode.problem, episode.namespace)
            if look == before:
                break
        return look

    def _observed(self, episode: _Episode, text: str, code: int) -> Observation:
        warnings = [_event(each) for each in self.cluster.events() if each.type == "Warning"]
        look = episode.look
        return Observation(text, code, look.nodes, look.pods, warnings[-_EVENTS:], episode.steps, episode.ends)


def _node(node: Node) -> dict[str, Any]:
    taints = [f"{each['key']}={each.get('value', '')}:{each['effect']}" for each in node.taints]
    return {"name": node.name, "ready": node.ready, "cordoned": node.unschedulable, "taints": taints}


def _pod(pod: Pod) -> dict[str, Any]:
    status: Mapping[str, Any] = pod.object.get("status") or {}
    containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    states = [detail for each in containers for state, detail in each.get("state", {}).items() if state != "running"]
    unmet = [each for each in status.get("conditions", ()) if each["status"] == "False" and each.get("reason")]
    reasons = [status.get("reason"), *(each.get("reason") for each in states), *(each["reason"] for each in unmet)]
    if "deletionTimestamp" in pod.object["metadata"]:
        reasons.insert(0, "Terminating")
    found = next((each for each in reasons if each), "")
    return {"namespace": pod.namespace, "name": pod.name, "phase": pod.phase, "node": pod.node, "reason": found}


def _event(event: Event) -> str:
    return f"{event.kind} {event.namespace}/{event.name} {event.reason}: {event.message}"


def _said(item: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in item.items() if key != "taints")
