"""A copy of the project in a directory of its own, to run the real ``pulumi`` command on."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from kumulus.toolchain import environment, pins, plugins
from kumulus.toolchain.locate import plugin_directory
from kumulus.toolchain.plugins import PROVIDER
from tests.support import processes
from tests.support.api import Api

ROOT = Path(__file__).resolve().parents[2]
NODES = "/api/v1/nodes"
POOL = "kumulus:index:NodePool"
CLUSTER = "kumulus:index:Cluster"

_IDLE = ("same", "refresh", "read")
# Variables that the tester's shell may hold and a test must not see. The last one would make each command compile the
# program and the plugin again, unlike on users' machines.
_PRIVATE = ("PULUMI_", "KUMULUS_", "KWOK_", "KUBECONFIG", "HELM_", "PYTHONDONTWRITEBYTECODE")
_PASSPHRASE = "PULUMI_CONFIG_PASSPHRASE"
# What `pulumi stack init` wrote, by project, with STACK for the stack's name.
_INITIAL: dict[str, str] = {}
# Where the first project has its provider.
_PROVIDER: list[Path] = []
_LISTS = tempfile.TemporaryDirectory(prefix="kumulus-pip-")

PACKAGES_LISTED_ONCE = {"PYTHONPATH": str(ROOT / "tests" / "support" / "once"), "PIP_LISTS": _LISTS.name}
"""Variables by which pulumi's commands ask pip for an environment's packages once in a run, not each time."""


def node_group(name: str, replicas: int, zone: str = "z", *, gpus: int = 0, **capacity: str) -> dict[str, Any]:
    """A node group of a stack file: nodes in one zone, with 8 cores unless their capacity says otherwise."""
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", **capacity}
    if gpus:
        capacity["nvidia.com/gpu"] = str(gpus)
    placement = [{"availabilityZone": zone, "replicas": replicas}]
    return {"name": name, "placement": placement, "nodeTemplate": {"capacity": capacity}}


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    """Its exit code."""
    stdout: str
    """What it wrote to standard output."""
    stderr: str
    """What it wrote to standard error."""
    seconds: float
    """How long it took."""

    @property
    def text(self) -> str:
        """Everything it wrote."""
        return f"{self.stdout}\n{self.stderr}"


@dataclass(frozen=True)
class Step:
    """One step of a preview."""

    op: str
    """Such as ``update``, ``create``, ``replace``."""
    type: str
    """Type token of the resource."""
    name: str
    """Name of the resource."""
    changed: Mapping[str, str]
    """The kind of each changed property (``update``, ``add`` …) by its path."""
    old: Mapping[str, Any]
    """The recorded inputs, new: the declared ones."""
    new: Mapping[str, Any]
    found: Mapping[str, Any]
    """The recorded outputs; after a refresh, those that were read."""


@dataclass(frozen=True)
class Preview:
    """What ``pulumi preview --json`` says."""

    steps: tuple[Step, ...]
    """The steps that change something."""
    messages: Mapping[str, str]
    """The diagnostics of each resource, by its name; those of the stack as a whole by ""."""

    @property
    def by_name(self) -> dict[str, Step]:
        """The steps of clusters and node pools only, by the resource's name."""
        return {step.name: step for step in self.steps if step.type in (POOL, CLUSTER)}


class Running:
    """A command that is under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._started = time.monotonic()
        self._result: Result | None = None

    def await_plugin(self) -> int | None:
        """The pid of the command's plugin, once it is started; None when the command ends before."""
        while self.process.poll() is None:
            with suppress(psutil.Error):
                for child in psutil.Process(self.process.pid).children():
                    if "kumulus.provider.plugin" in child.cmdline():
                        return child.pid
            time.sleep(0.02)
        return None

    def result(self, timeout: float = 300) -> Result:
        """Wait for its end; later calls return the same result."""
        if self._result is None:
            out, err = self.process.communicate(timeout=timeout)
            self._result = Result(self.process.returncode, out, err, time.monotonic() - self._started)
        return self._result


class Project:
    """A Pulumi program in a directory of its own, with its own state, PULUMI_HOME and KUMULUS_HOME.

    Args:
        root: an empty directory.
        program: a directory with ``Pulumi.yaml`` and ``__main__.py`` to copy; the project itself by default.
        virtualenv: where the program's packages are.
    """

    def __init__(self, root: Path, program: Path = ROOT, virtualenv: Path = ROOT / ".venv") -> None:
        self.directory = root / "project"
        self.home = root / "home"
        self.pulumi_home = root / "pulumi"
        self.stacks = self.directory / "stacks"
        self.stack = "quickstart"
        self._started: list[subprocess.Popen[str]] = []
        self._known: set[str] = set()
        self._apis: dict[str, tuple[float, Api]] = {}
        for folder in (self.stacks, root / "state", self.pulumi_home):
            folder.mkdir(parents=True)
        settings = yaml.safe_load((program / "Pulumi.yaml").read_text())
        settings["runtime"]["options"]["virtualenv"] = str(virtualenv)
        settings["backend"] = {"url": f"file://{root / 'state'}"}
        for plugin in settings.get("plugins", {}).get("providers", []):
            plugin["path"] = str((program / plugin["path"]).resolve())
        (self.directory / "Pulumi.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        (self.directory / "__main__.py").write_text((program / "__main__.py").read_text())
        kept = {key: value for key, value in os.environ.items() if not key.startswith(_PRIVATE)}
        self.environment = {
            **environment.complete(kept),
            **PACKAGES_LISTED_ONCE,
            "PULUMI_HOME": str(self.pulumi_home),
            processes.HOME_VARIABLE: str(self.home),
            # Independent of the terminal: tests compare plain text.
            "NO_COLOR": "1",
        }

    def install_plugins(self) -> None:
        """Have Pulumi's Kubernetes provider, by a link to that of another project of this run: it has 160 MB."""
        there = plugin_directory(self.pulumi_home, pins.load().tool(PROVIDER))
        if _PROVIDER and _PROVIDER[0].is_dir():
            with suppress(shutil.Error):
                shutil.copytree(_PROVIDER[0], there, copy_function=os.link)
        plugins.install(self.pulumi_home)
        _PROVIDER[:] = _PROVIDER or [there]

    def keep_clusters_in(self, home: Path) -> None:
        """Move KUMULUS_HOME to another directory, before there are any clusters."""
        self.home = home
        self.environment[processes.HOME_VARIABLE] = str(home)

    # --- the stack file --------------------------------------------------------------------------------------------

    def stack_file(self, stack: str | None = None) -> Path:
        """The path of a stack's file."""
        return self.stacks / f"Pulumi.{stack or self.stack}.yaml"

    def write_stack(self, cluster: Mapping[str, Any] | None = None, stack: str | None = None, **config: Any) -> None:
        """Write a stack's file.

        Args:
            stack: the stack's name; the current one by default, and the current one from now on.
            config: further keys of the namespace kumulus.
        """
        wanted = {"cluster": cluster, **config} if cluster is not None else config
        self.write_config({f"kumulus:{key}": value for key, value in wanted.items()}, stack)

    def write_config(self, config: Mapping[str, Any], stack: str | None = None) -> None:
        """Write a stack's file with these keys under ``config``; the salt that pulumi put there is kept."""
        self.stack = stack or self.stack
        file = self.stack_file()
        salt = [line for line in _lines(file) if line.startswith("encryptionsalt:")]
        text = yaml.safe_dump({"config": json.loads(json.dumps(config))}, sort_keys=False)
        file.write_text(text + "".join(f"{line}\n" for line in salt))

    def copy_stack(self, stack: str) -> dict[str, Any]:
        """Copy a stack's file of the repository, unmodified; returns its ``kumulus:cluster``."""
        self.stack = stack
        text = (ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text()
        self.stack_file().write_text(text)
        cluster: dict[str, Any] = yaml.safe_load(text)["config"]["kumulus:cluster"]
        return cluster

    # --- pulumi ----------------------------------------------------------------------------------------------------

    def known(self, stack: str) -> None:
        """Note that a stack exists in the backend already, made by another project."""
        self._known.add(stack)

    def start(self, *arguments: str, stack: str | None = None, **variables: str) -> Running:
        """Start a pulumi command on a stack, which is created in the backend first."""
        stack = stack or self.stack
        if stack not in self._known:
            if not self._copied(stack, variables):
                made = self._spawn("stack", "init", stack, "--no-select", variables=variables).result()
                assert made.code == 0, made.text
            self._known.add(stack)
        return self._spawn(*arguments, "--stack", stack, variables=variables)

    def pulumi(self, *arguments: str, stack: str | None = None, timeout: float = 300, **variables: str) -> Result:
        """Run a pulumi command on a stack and wait for it."""
        return self.start(*arguments, stack=stack, **variables).result(timeout)

    def up(self, *arguments: str, stack: str | None = None, timeout: float = 300, shown: bool = False) -> Result:
        """Run ``pulumi up``, which has to succeed; `shown` keeps its preview, without which no cluster is replaced."""
        unasked = ["--yes"] if shown else ["--yes", "--skip-preview"]
        result = self.pulumi("up", *unasked, *arguments, stack=stack, timeout=timeout)
        assert result.code == 0, result.text
        return result

    def destroy(self, *arguments: str, stack: str | None = None, timeout: float = 300) -> Result:
        """Run ``pulumi destroy``, which has to succeed."""
        result = self.pulumi("destroy", "--yes", "--skip-preview", *arguments, stack=stack, timeout=timeout)
        assert result.code == 0, result.text
        return result

    def preview(self, *arguments: str) -> Result:
        """Run ``pulumi preview``, which has to succeed."""
        result = self.pulumi("preview", *arguments)
        assert result.code == 0, result.text
        return result

    def foresee(self, *arguments: str) -> Preview:
        """What ``pulumi preview --json`` says would change."""
        result = self.preview("--json", *arguments)
        digest = json.loads(result.stdout)
        messages: dict[str, str] = {}
        for entry in digest.get("diagnostics") or []:
            name = str(entry.get("urn") or "").split("::")[-1]
            messages[name] = f"{messages.get(name, '')}\n{entry['message']}".strip()
        return Preview(tuple(_step(step) for step in digest["steps"] if step["op"] not in _IDLE), messages)

    def outputs(self, stack: str | None = None) -> dict[str, Any]:
        """The stack's outputs, as the backend has them: `pulumi stack output` takes half a second to read them."""
        [found] = [each for each in self.state(stack)["resources"] if each["type"] == "pulumi:pulumi:Stack"]
        outputs: dict[str, Any] = found.get("outputs", {})
        return outputs

    def state(self, stack: str | None = None) -> dict[str, Any]:
        """The deployment as the backend has it."""
        file = self.backend_file(stack)
        found: dict[str, Any] = json.loads(file.read_text())["checkpoint"]["latest"]
        return found

    def backend_file(self, stack: str | None = None) -> Path:
        """The file in which the backend keeps a stack."""
        name: str = yaml.safe_load((self.directory / "Pulumi.yaml").read_text())["name"]
        return self.directory.parent / "state" / ".pulumi" / "stacks" / name / f"{stack or self.stack}.json"

    def _spawn(self, *arguments: str, variables: Mapping[str, str]) -> Running:
        process = subprocess.Popen(
            ["pulumi", *arguments, "--non-interactive", "--color", "never"],
            executable=_pulumi(self.environment),
            cwd=self.directory,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._started.append(process)
        return Running(process)

    def _copied(self, stack: str, variables: Mapping[str, str]) -> bool:
        """Create a stack by a copy of what `pulumi stack init` wrote for one in this run; False where there is none.

        That takes pulumi half a second each time, and what it writes differs by the stack's name alone, as long as the
        backend is this project's own and nothing is said of secrets.
        """
        settings = yaml.safe_load((self.directory / "Pulumi.yaml").read_text())
        backend, file = self.directory.parent / "state", self.backend_file(stack)
        usual = settings["backend"] == {"url": f"file://{backend}"} and not self.environment.get(_PASSPHRASE, "-")
        salted = any(line.startswith("encryptionsalt:") for line in _lines(self.stack_file(stack)))
        if not usual or salted or variables or "PULUMI_BACKEND_URL" in self.environment or file.exists():
            return False
        name, full = settings["name"], f"organization/{settings['name']}/{stack}"
        if name not in _INITIAL:
            made = self._spawn("stack", "init", stack, "--no-select", variables={}).result()
            assert made.code == 0, made.text
            _INITIAL[name] = file.read_text().replace(f'"{full}"', '"STACK"')
            return True
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_INITIAL[name].replace('"STACK"', f'"{full}"'))
        (backend / ".pulumi" / "meta.yaml").write_text("version: 1\n")
        with self.stack_file(stack).open("a") as opened:
            salt = json.loads(_INITIAL[name])["checkpoint"]["latest"]["secrets_providers"]["state"]["salt"]
            opened.write(f"encryptionsalt: {salt}\n")
        return True

    # --- the cluster -----------------------------------------------------------------------------------------------

    def cluster(self, name: str | None = None) -> Path:
        """The directory of a cluster's files."""
        return self.home / "clusters" / (name or self.stack)

    def kubeconfig(self, name: str | None = None) -> Path:
        """The path of a cluster's kubeconfig."""
        return self.cluster(name) / "kubeconfig.yaml"

    def api(self, name: str | None = None) -> Api:
        """A client of a cluster; a new one when its kubeconfig has been rewritten."""
        file = self.kubeconfig(name)
        stamp = file.stat().st_mtime
        known = self._apis.get(str(file))
        if known is None or known[0] != stamp:
            known = (stamp, Api(file))
            self._apis[str(file)] = known
        return known[1]

    def kubectl(self, *arguments: str, name: str | None = None) -> str:
        """Run kubectl on a cluster; it has to succeed."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig(name)), *arguments]
        answer = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=60)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def kumulus(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command `kumulus` in the project."""
        line = [sys.executable, str(ROOT / "kumulus"), *arguments]
        return subprocess.run(
            line, cwd=self.directory, env=self.environment, capture_output=True, text=True, check=False, timeout=300
        )

    def node_uids(self, name: str | None = None, **selectors: str) -> dict[str, str]:
        """The UIDs of a cluster's nodes, by node name."""
        return {node["name"]: node["uid"] for node in self.api(name).metadata(NODES, **selectors)}

    def identity(self, name: str | None = None) -> str:
        """The UID of the namespace kube-system."""
        uid: str = self.api(name).get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
        return uid

    # --- the end ---------------------------------------------------------------------------------------------------

    def processes(self) -> dict[str, list[int]]:
        """Pids of the control planes' processes, by ``<cluster>/<component>``."""
        return processes.components(self.home)

    def close(self) -> None:
        """End everything that was started here."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        for _, api in self._apis.values():
            api.close()
        try:
            processes.kill(processes.helpers(self.home))
        finally:
            processes.kill(pid for pids in self.processes().values() for pid in pids)


def _step(step: Mapping[str, Any]) -> Step:
    kinds = {path: str(change["kind"]) for path, change in (step.get("detailedDiff") or {}).items()}
    token, name = step["urn"].split("::")[2].rsplit("$", 1)[-1], step["urn"].split("::")[3]
    old, new = ((step.get(key) or {}).get("inputs") or {} for key in ("oldState", "newState"))
    found = (step.get("oldState") or {}).get("outputs") or {}
    return Step(step["op"], token, name, kinds, old, new, found)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except FileNotFoundError:
        return []


def _pulumi(variables: Mapping[str, str]) -> str:
    from kumulus.toolchain import find

    previous = os.environ.get("PATH")
    os.environ["PATH"] = variables["PATH"]
    try:
        return str(find("pulumi"))
    finally:
        if previous is not None:
            os.environ["PATH"] = previous
