"""Pulumi programs under Pulumi's mocks: what they register, with which inputs and options."""

import asyncio
import contextvars
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pytest
from pulumi.runtime import mocks, rpc, set_mocks, settings
from pulumi.runtime import stack as pulumi_stack
from pulumi.runtime.settings import set_root_resource

CLUSTER, COMMAND = "kumulus:index:Cluster", "command:local:Command"
IDENTITY, STACK_ID = "kumulus:index:StackIdentity", "0123456789abcdef" * 2
OBJECT = "kumulus:index:KubernetesObject"
KUBECONFIG = "/home/me/.kumulus/clusters/dev/kubeconfig.yaml"


@dataclass
class Registered:
    """One resource as the program registered it; other resources are named by their type and name."""

    type: str
    name: str
    inputs: dict[str, Any]
    parent: str
    deleted_with: str
    depends_on: set[str]
    provider: str
    delete_before_replace: bool
    frames: int
    formerly: set[str]
    replace_on_changes: list[str]
    secret_inputs: set[str]
    secret_outputs: set[str]


@dataclass
class Program:
    """What a program did."""

    resources: list[Registered] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def of_type(self, token: str) -> dict[str, Registered]:
        return {resource.name: resource for resource in self.resources if resource.type == token}

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The manifests of that kind among the plugin's Kubernetes objects."""
        manifests = [each.inputs["manifest"] for each in self.resources if each.type == OBJECT]
        return [each for each in manifests if each["kind"] == kind]

    def only(self, token: str) -> Registered:
        (found,) = self.of_type(token).values()
        return found


def short(urn: str) -> str:
    """``<type>::<name>`` of a URN; "" stays."""
    _, _, rest = urn.partition("::")
    token, _, name = rest.partition("::")[2].partition("::")
    return f"{token.rsplit('$', 1)[-1]}::{name}" if name else ""


class Outputs(mocks.Mocks):
    """Gives each resource the outputs that the plugin would give; in a preview only those known then."""

    def __init__(self, preview: bool) -> None:
        self._preview = preview

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        state = dict(args.inputs)
        if args.typ == CLUSTER:
            state["kubeconfig"] = KUBECONFIG
            if not self._preview:
                state |= {"identity": "uid-1", "server": "https://127.0.0.1:1"}
        if args.typ == IDENTITY:
            state["stackId"] = STACK_ID
        if args.typ == COMMAND and not self._preview:
            state |= {"stdout": "", "stderr": ""}
        # The cluster's controller fills in the data.
        if args.typ == OBJECT and args.inputs["manifest"]["kind"] == "Secret" and not self._preview:
            state["data"] = {"token": "dDBrZW4=", "ca.crt": "Q0E="}
        return None if self._preview else f"{args.name}-id", state

    def call(self, args: mocks.MockCallArgs) -> Any:
        if args.token == "kumulus:index:findKwok":
            # The name of a context says whether its cluster is meant to be out of reach.
            problem = {"problem": "it is not reachable"} if args.args.get("context") == "unreachable" else {}
            return {"controller": "", "stages": False, **problem}, []
        if args.token == "kumulus:index:findCharts":
            # The name of a repository says whether it is meant to be unreachable.
            wrong = {
                str(index): f"the chart {chart['chart']} cannot be fetched"
                for index, chart in enumerate(args.args["charts"])
                if ".invalid" in str(chart.get("repository"))
            }
            return {"problems": wrong}, []
        raise AssertionError(f"unexpected call of {args.token}")


class Monitor(mocks.MockMonitor):
    """Records registrations with their options, which Pulumi's own mocks drop."""

    def __init__(self, preview: bool) -> None:
        super().__init__(Outputs(preview))
        self.program = Program()

    def RegisterResource(self, request: Any) -> Any:
        answer = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        if request.type != "pulumi:pulumi:Stack":
            self.program.resources.append(
                Registered(
                    type=request.type,
                    name=request.name,
                    inputs=rpc.deserialize_properties(request.object, keep_unknowns=True),
                    parent=short(request.parent),
                    deleted_with=short(request.deletedWith),
                    depends_on={short(urn) for urn in request.dependencies},
                    provider=short(request.provider),
                    delete_before_replace=request.deleteBeforeReplace,
                    frames=len(request.stackTrace.frames),
                    formerly={each.spec.type for each in request.aliases},
                    replace_on_changes=list(request.replaceOnChanges),
                    secret_inputs={key for key, value in request.object.fields.items() if _has_secret(value)},
                    secret_outputs=set(request.additionalSecretOutputs),
                )
            )
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:
        outputs = rpc.deserialize_properties(request.outputs, keep_unknowns=True)
        self.program.outputs[short(request.urn)] = outputs
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]


def _has_secret(value: Any) -> bool:
    if value.HasField("struct_value"):
        fields = value.struct_value.fields
        return rpc._special_sig_key in fields or any(map(_has_secret, fields.values()))
    return value.HasField("list_value") and any(map(_has_secret, value.list_value.values))


def run(program: Callable[[], object], *, preview: bool = False) -> Program:
    """Run a Pulumi program against the mocks, in a context and an event loop of its own."""

    def alone() -> Program:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        monitor = Monitor(preview)
        logger = logging.Logger("pulumi")
        handler = logging.Handler()
        handler.emit = lambda record: monitor.program.said.append(record.getMessage())  # type: ignore[method-assign]
        logger.addHandler(handler)
        try:
            set_mocks(monitor.mocks, "kumulus", "dev", preview, logger, monitor)
            # The root resource that the mocks made has no program, so it would not register the program's exports.
            set_root_resource(None)  # type: ignore[arg-type]
            loop.run_until_complete(pulumi_stack.run_in_stack(lambda: (program(), None)[1]))
        except pulumi.RunError as error:
            error.declared = [each.name for each in monitor.program.resources]  # type: ignore[attr-defined]
            raise
        finally:
            # A failed program leaves tasks behind, which would be awaited together with the next program's.
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True))
            settings.SETTINGS.rpc_manager.clear()
            settings.SETTINGS.outputs.clear()
            asyncio.set_event_loop(None)
            loop.close()
        return monitor.program

    return contextvars.Context().run(alone)


def refused(program: Callable[[], object], *, preview: bool = False) -> str:
    """What is said of a program that is refused before it declares a cluster."""
    with pytest.raises(pulumi.RunError) as raised:
        run(program, preview=preview)
    assert not [name for name in vars(raised.value)["declared"] if name.endswith("-control-plane")]
    return str(raised.value)
