"""What `kubectl logs`, `attach`, `exec` and `port-forward` show of an emulated pod: that it is one.

KWOK takes what it shows from files and programs (v0.8.0, pkg/kwok/server). Of logs, one file of ours is that of every
container. The other three get a path that cannot exist, and KWOK's error, which has the path, says why:

- the file to attach to: a client would wait in silence for what is added to a file that exists;
- the directory in which an `exec` is to start its command: without it, nothing is started;
- the program to start for each connection to a forwarded port.
"""

from pathlib import Path
from typing import Any

from kumulus.host import files
from kumulus.model.durations import timestamp
from kumulus.runtimes.kwok.layout import Layout

SAID = "this is an emulated pod: no container runs, and nothing is logged"
# In no directory, so that nobody can make it: were it there, an `exec` would run on this machine.
_NOTHING = "/dev/null/this is an emulated pod: no container runs"


def documents(directory: str) -> list[dict[str, Any]]:
    """What kwok-controller is to know of it; the directory is the cluster's, or empty where clusters are compared."""
    file = str(Path(directory) / Layout.POD_LOG)
    specs = {
        "ClusterLogs": {"logs": [{"logsFile": file, "previousLogsFile": file}]},
        "ClusterAttach": {"attaches": [{"logsFile": _NOTHING}]},
        "ClusterExec": {"execs": [{"local": {"workDir": _NOTHING}}]},
        "ClusterPortForward": {"forwards": [{"command": [_NOTHING]}]},
    }
    head = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "metadata": {"name": "emulated"}}
    return [{**head, "kind": kind, "spec": spec} for kind, spec in specs.items()]


def write(layout: Layout) -> None:
    """Write the file, in the form of a container runtime."""
    line = f"{timestamp()} stdout F {SAID}\n"
    files.write(layout.directory / Layout.POD_LOG, line, mode=0o600)
