"""Start components of a control plane one by one, as kwokctl starts all of them at once.

kwokctl starts each as a process in a session of its own, which writes into its log, and keeps its id in a file
(sigs.k8s.io/kwok v0.8.0, pkg/kwokctl/runtime/exec.go). Those that are started before the API server answers ask it
again after pauses: kwok-controller after 1, 3, 7 and 15 seconds.
"""

import os
import subprocess
from collections.abc import Collection
from contextlib import suppress

from kumulus.host import files, processes
from kumulus.runtimes.kwok.layout import Layout

PRIVATE = 0o077
"""The umask of programs whose files only this user may read."""


def launch(layout: Layout, names: Collection[str]) -> None:
    """Start these components as kwokctl's configuration has them; one that runs already would run twice."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("KWOK_")}
    for each in layout.settings().get("components") or []:
        if each["name"] not in names:
            continue
        environment = inherited | {one["name"]: str(one["value"]) for one in each.get("envs") or []}
        with (layout.directory / "logs" / f"{each['name']}.log").open("wb") as log:
            process = subprocess.Popen(
                [each["binary"], *map(str, each.get("args") or [])],
                cwd=each["workDir"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=PRIVATE,
            )
        files.write(layout.directory / "pids" / f"{each['name']}.pid", str(process.pid), mode=0o600)
        # It may outlive this process, and Popen would complain of that. :func:`end` collects its exit status.
        process.returncode = 0


def end(pids: Collection[int]) -> None:
    """Kill processes, wait until they are gone, and collect the exit status of those that this process has started."""
    processes.end(list(pids))
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
