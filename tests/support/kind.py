"""What tests of a real kind cluster need from the machine, and the add-on that they install in it.

Without Docker they are skipped, or fail in CI (docker.py). Without a node image, which `make kind-image` makes, they
are skipped with a message.
"""

import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.extras.kind_image import image
from tests.support import docker
from tests.support.tools import require

HELLO_CHART = Path(__file__).with_name("hello-chart")
_HELLO_NODE_PORT = 30080
_HELLO = "hello from "


def node_image() -> str:
    """The node image's name, once Docker has it; skips or fails the test where that is impossible."""
    docker.require()
    require("kind", "kwok-charts", "hello")
    if not image.archive().exists():
        pytest.skip(f"no node image at {image.archive()}: make kind-image")
    return image.ensure().name


def kwok_charts() -> dict[str, str]:
    """KWOK's charts from its Go module, for a stack's ``kwokCharts``; their image is in the node image."""
    folder = toolchain.kept("kwok-charts")
    return {"chart": str(folder / "kwok"), "stageFastChart": str(folder / "stage-fast")}


def hello() -> dict[str, Any]:
    """The add-on: a pod that answers over HTTP at its node's port."""
    return {"name": "hello", "namespace": "web", "chart": str(HELLO_CHART), "valuesObject": {}}


def config(port: int) -> dict[str, Any]:
    """A kind configuration with which the add-on answers at a port of 127.0.0.1."""
    mapping = {"containerPort": _HELLO_NODE_PORT, "hostPort": port, "listenAddress": "127.0.0.1"}
    nodes = [{"role": "control-plane", "extraPortMappings": [mapping]}]
    return {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": nodes}


def answering(port: int) -> str:
    """The name of the add-on's pod that answers; empty where none does."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            words = str(answer.read().decode())
    except OSError:
        return ""
    # For a moment after a restart the address may belong to another pod, which answers something else.
    return words.removeprefix(_HELLO).strip() if words.startswith(_HELLO) else ""


def free_port() -> int:
    """A port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def containers(cluster: str) -> dict[str, str]:
    """The state of a cluster's nodes' containers, by name."""
    label = f"label=io.x-k8s.kind.cluster={cluster}"
    lines = docker.docker("ps", "--all", "--format", "{{.Names}} {{.State}}", "--filter", label).splitlines()
    return dict(line.split() for line in lines)
