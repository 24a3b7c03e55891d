"""`kumulus mcp`, as an agent's program uses it: the SDK's own client, which starts the real command."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from kumulus.testing import Cluster
from tests.support import processes
from tests.support.project import ROOT

pytestmark = pytest.mark.integration

LOOKING = {"clusters", "nodes", "pods", "events", "why"}
CHANGING = {"create", "apply", "fit", "inject", "clear", "measure", "reset", "destroy"}
POD = """
apiVersion: v1
kind: Pod
metadata: {name: big}
spec:
  containers: [{name: c, image: none, resources: {limits: {nvidia.com/gpu: "9"}}}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 5
  completions: 5
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: none, resources: {limits: {nvidia.com/gpu: "8"}}}]
"""
EXPERIMENT = """
name: small
workloads:
  - {name: pods, kind: Job, workers: 4, requests: {cpu: "1"}}
until: running
"""


class Agent:
    """An agent's program: asks tools, and reads their answers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in (await self._client.list_tools()).tools}

    async def ask(self, tool: str, **arguments: Any) -> Any:
        answer = await self._client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        return answer.structured_content

    async def waits(self, pod: str) -> Any:
        return (await self.ask("why", pod=pod))["conditionsNotTrue"]

    async def failures(self) -> list[Any]:
        return [each for each in (await self.ask("events"))["events"] if "FailedScheduling" in str(each)]

    async def refusal(self, tool: str, **arguments: Any) -> str:
        answer = await self._client.call_tool(tool, arguments)
        assert answer.is_error
        return str(answer.content)


def command(*arguments: str) -> Client:
    server = StdioServerParameters(command=str(ROOT / "kumulus"), args=["mcp", *arguments], env=dict(os.environ))
    return Client(stdio_client(server))


async def answered(ask: Callable[[], Awaitable[Any]]) -> Any:
    """What the answer to a question is once the scheduler has looked at a pod."""
    for _ in range(600):
        if found := await ask():
            return found
        await asyncio.sleep(0.1)
    raise AssertionError("no scheduler looked at it")


def gone(folder: str) -> bool:
    return not Path(folder).exists()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3) as made:
        yield made


async def test_an_agent_makes_a_cluster_breaks_it_measures_in_it_and_takes_it_down() -> None:
    async with command("--write") as client:
        agent = Agent(client)
        assert set(await agent.tools()) == LOOKING | CHANGING
        made = await agent.ask("create", name="fleet", nodes={"h100": 4})
        assert made["nodes"] == 4
        assert (await agent.ask("nodes"))["ready"] == 4

        assert await agent.ask("apply", manifests=POD) == {"applied": ["Pod big"]}
        assert (await agent.ask("pods"))["byPhase"] == {"Pending": 1}
        waits = await answered(lambda: agent.waits("big"))
        assert any("Insufficient nvidia.com/gpu" in each["message"] for each in waits), waits
        assert await answered(agent.failures)
        fits = await agent.ask("fit", workload=JOB)
        assert (fits["pods"], fits["fitted"]) == (5, 4)
        assert "1 more node" in fits["changes"][0]

        begun = await agent.ask("inject", kind="gpu-fell-off-bus", nodes=2)
        broken = (await agent.ask("nodes", most=2))["nodes"]
        assert sorted(each["name"] for each in broken) == begun["nodes"]
        assert all("nvidia.com/gpu-error" in str(each["taints"]) for each in broken)
        await agent.ask("clear", fault=begun["fault"])
        await agent.ask("inject", kind="gpu-fell-off-bus", nodes=1)
        assert "objects removed" in (await agent.ask("reset"))["reset"]
        assert (await agent.ask("clusters"))["clusters"]["fleet"]["faults"] == []
        found = await agent.ask("nodes")
        assert not any(each["taints"] for each in found["nodes"])
        assert (await agent.ask("pods"))["count"] == 0

        measured = await agent.ask("measure", experiment=EXPERIMENT)
        assert measured["status"] == "success", measured
        assert "all pods are running" in "\n".join(measured["report"])
        await agent.ask("create", name="second", nodes=1)
        second = (await agent.ask("clusters"))["clusters"]["second"]["folder"]
        assert set((await agent.ask("destroy", cluster="fleet"))["clusters"]) == {"second"}
        assert gone(made["folder"])
    # What it has made ends with the server, which ends with its connection.
    processes.await_that(lambda: gone(second), 30, "the second cluster's folder is removed")


async def test_what_is_wrong_is_an_answer_that_says_what_to_do(cluster: Cluster) -> None:
    async with command("--write", "--kubeconfig", str(cluster.kubeconfig)) as client:
        agent = Agent(client)
        (seen,) = (await agent.ask("clusters"))["clusters"]
        assert "is only looked at" in await agent.refusal("reset", cluster=seen)
        assert "there is none; create makes one" in await agent.refusal("reset")
        assert "is no instance type" in await agent.refusal("create", nodes={"tpu9": 1})
        run = EXPERIMENT + "timeline: [{run: {command: id}}]\n"
        assert "starts no programs of this machine" in await agent.refusal("measure", experiment=run)
        assert "is not a known key" in await agent.refusal("measure", experiment=EXPERIMENT + "polcy: FGD\n")
        assert 'pods "none" not found' in await agent.refusal("why", pod="none")
        assert f"there are {seen}" in await agent.refusal("nodes", cluster="other")


async def test_without_write_it_only_looks(cluster: Cluster) -> None:
    async with command("--kubeconfig", str(cluster.kubeconfig)) as client:
        agent = Agent(client)
        tools = await agent.tools()
        assert set(tools) == LOOKING
        assert all(tool.annotations.read_only_hint for tool in tools.values())
        answer = await agent.ask("nodes", most=2)
        assert (answer["count"], len(answer["nodes"]), answer["leftOut"]) == (3, 2, 1)
