"""A `docker` and a `kind` that do as a test says, for outcomes of theirs that cannot be had otherwise.

Both keep "containers" in one file; what they are asked is written down, a line for each call.
"""

import json
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DOCKER = """
what, rest = arguments[0], arguments[1:]
answer(what)
nodes = state["nodes"]
if what == "ps":
    label = [each.rpartition("=")[2] for each in rest if each.startswith("label=")]
    print("\\n".join(n["id"] for n in nodes.values() if not label or n["cluster"] == label[0]))
elif what == "inspect":
    print(json.dumps([
        {"Id": n["id"], "Name": "/" + name, "Created": n["created"], "State": {"Status": n["state"]},
         "Config": {"Labels": {"io.x-k8s.kind.role": n["role"], "io.x-k8s.kind.cluster": n["cluster"]}}}
        for name, n in nodes.items() if n["id"] in rest]))
elif what in ("start", "unpause", "restart"):
    for n in nodes.values():
        if n["id"] in rest:
            n["state"] = "running"
save()
"""

_KIND = """
name = arguments[arguments.index("--name") + 1]
what = arguments[0]
def clean_up():
    # kind removes what has the name, whoever made it (pkg/cluster/internal/create/create.go).
    global state
    if "--retain" not in arguments:
        state = json.load(open(file))
        state["nodes"] = {key: n for key, n in state["nodes"].items() if n["cluster"] != name}
        save()
if what == "create":
    answer("check")
    for step in ("Ensuring node image (kindest/node:v1) ", "Preparing nodes "):
        print(f" • {step} ...", file=sys.stderr, flush=True)
        answer("pull" if "image" in step else "prepare", clean_up)
    state["nodes"][name + "-control-plane"] = {
        "id": str(state["next"]), "role": "control-plane", "state": "running", "cluster": name,
        "created": time.strftime("%Y-%m-%dT%H:%M:%S.123456789Z", time.gmtime())}
    state["next"] += 1
    save()
    answer(what, clean_up)
    path = arguments[arguments.index("--kubeconfig") + 1]
    open(path, "w").write(state["kubeconfig"])
elif what == "delete":
    answer(what)
    idle = state.setdefault("idle", {})
    if idle.get("kind delete", 0) > 0:
        idle["kind delete"] -= 1
        save()
        sys.exit(0)
    state["nodes"] = {key: n for key, n in state["nodes"].items() if n["cluster"] != name}
    save()
elif what == "get":
    answer(what)
    print(state["kubeconfig"])
"""

_COMMON = """#!{python}
import json, os, sys, time
file = {file!r}
state = json.load(open(file))
arguments = sys.argv[1:]
open(file + ".asked", "a").write({name!r} + " " + " ".join(arguments) + "\\n")
def save():
    json.dump(state, open(file + ".new", "w")); os.replace(file + ".new", file)
def answer(what, failed=lambda: None):
    told = state["answers"].get({name!r} + " " + what)
    if told:
        time.sleep(told.get("seconds", 0))
        print(told.get("says", ""), file=sys.stderr, flush=True)
        if told.get("code", 1):
            failed()
            sys.exit(told.get("code", 1))
"""


@dataclass
class StandIn:
    """Their directory, to be put on PATH, and what they know."""

    directory: Path
    """An empty one."""

    def __post_init__(self) -> None:
        self.directory.mkdir()
        self._file = self.directory / "state.json"
        self._write({"nodes": {}, "answers": {}, "next": 100, "kubeconfig": ""})
        for name, body in (("docker", _DOCKER), ("kind", _KIND)):
            script = self.directory / name
            script.write_text(_COMMON.format(python=sys.executable, file=str(self._file), name=name) + body)
            script.chmod(script.stat().st_mode | stat.S_IXUSR)

    @property
    def kind(self) -> str:
        return str(self.directory / "kind")

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """The containers, by name."""
        return dict(self._read()["nodes"])

    def asked(self) -> list[str]:
        """Every call so far."""
        try:
            return Path(f"{self._file}.asked").read_text().splitlines()
        except FileNotFoundError:
            return []

    def answers(self, command: str, says: str = "", *, code: int = 1, seconds: float = 0.0) -> None:
        """Let a command such as ``kind create`` say something, take its time, and fail unless ``code`` is 0."""
        with self._changed() as state:
            state["answers"][command] = {"says": says, "code": code, "seconds": seconds}

    def keep_until_asked(self, command: str, times: int) -> None:
        """Let a command do nothing, and say nothing, before the n-th time."""
        with self._changed() as state:
            state["idle"] = {command: times - 1}

    def forget(self, command: str) -> None:
        """Let a command do its work again."""
        with self._changed() as state:
            state["answers"].pop(command, None)

    def add(self, cluster: str, container: str, role: str = "control-plane", **known: str) -> None:
        """Add a container that somebody else made."""
        made = {"state": "running", "created": "2026-01-01T00:00:00.5Z", **known}
        made |= {"id": container, "role": role, "cluster": cluster}
        with self._changed() as found:
            found["nodes"][f"{cluster}-{role}"] = made

    def remove(self, *nodes: str) -> None:
        """Remove containers by name; all of them when none is named."""
        with self._changed() as found:
            found["nodes"] = {name: node for name, node in found["nodes"].items() if nodes and name not in nodes}

    def set_state(self, state: str) -> None:
        """Change the state of all containers."""
        with self._changed() as found:
            for node in found["nodes"].values():
                node["state"] = state

    def serves(self, address: str) -> None:
        """The API server that the kubeconfig of every cluster names."""
        cluster = {"name": "c", "cluster": {"server": address}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        user = {"name": "u", "user": {"token": "t"}}
        document = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "c"}
        with self._changed() as found:
            found["kubeconfig"] = json.dumps(document)

    @contextmanager
    def _changed(self) -> Iterator[dict[str, Any]]:
        state = self._read()
        yield state
        self._write(state)

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._file.read_text())
        return found

    def _write(self, state: dict[str, Any]) -> None:
        new = self._file.with_suffix(".written")
        new.write_text(json.dumps(state))
        new.replace(self._file)
