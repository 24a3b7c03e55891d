"""What pods use, as reported by KWOK's emulated kubelets and by metrics-server."""

import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from kumulus.runtimes.kwok.layout import Layout

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(cluster: Path, node: str) -> Series:
    """A node's series, as a Prometheus server reads them.

    Args:
        cluster: the directory of the cluster's files.
    """
    port = Layout(cluster).ports()["kwok-controller"]
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    url = f"https://127.0.0.1:{port}/metrics/nodes/{node}/metrics/resource"
    with urllib.request.urlopen(url, context=anyone, timeout=30) as answer:
        text = answer.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(cluster: Path, node: str, there: Callable[[Series], object], timeout: float = 120) -> Series:
    """The series, once a condition on them holds: KWOK may not know an object yet, or serve another reader."""
    give_up = time.monotonic() + timeout
    while True:
        found = scrape(cluster, node)
        if there(found):
            return found
        assert time.monotonic() < give_up, sorted(found.items(), key=str)
        time.sleep(0.5)


def of_gpus(found: Series, name: str) -> dict[str, float]:
    """A DCGM series by GPU."""
    return {dict(labels)["gpu"]: value for (series, labels), value in found.items() if series == name}


def of_pods(found: Series, name: str) -> dict[str, float]:
    """A series of the resource metrics endpoint by pod."""
    return {dict(labels)["pod"]: value for (series, labels), value in found.items() if series == name}


def top(
    kubeconfig: Path, what: str, *names: str, variables: Mapping[str, str] | None = None, timeout: float = 180
) -> dict[str, list[str]]:
    """What ``kubectl top`` says of some pods or nodes: metrics-server needs two readings of each."""
    give_up = time.monotonic() + timeout
    command = ["kubectl", "--kubeconfig", str(kubeconfig), "top", what, "--no-headers"]
    while True:
        answer = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)
        found = {line.split()[0]: line.split()[1:] for line in answer.stdout.splitlines()}
        if all(name in found and "<unknown>" not in found[name] for name in names):
            return found
        assert time.monotonic() < give_up, answer.stdout + answer.stderr
        time.sleep(1)
