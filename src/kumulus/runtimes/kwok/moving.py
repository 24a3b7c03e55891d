"""Give components other ports, where a program of somebody else has taken theirs while they did not run.

After a reboot any program can have one of them, and the whole control plane would wait for its end. The API server
keeps its port, which is in kubeconfigs that people have, and so does a component whose port the stack's file names.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from kumulus.host import ports, processes
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok.layout import Layout

_KEPT = "kube-apiserver"
# How a port is written in arguments: in an address of this machine, or as a flag's value.
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+\b|(?<=-port=)\d+\b")


def taken(layout: Layout) -> dict[str, int]:
    """The ports that components which do not run cannot have, as another program listens there; by component."""
    alive = processes.running(layout.directory)
    there = layout.components()
    return {
        component: port
        for component, port in layout.ports().items()
        if (name := component.split(" ")[0]) in there and name not in alive and ports.in_use(port)
    }


def move(layout: Layout, wanted: WantedControlPlane, claims: ports.Claims, report: Reporter) -> bool:
    """Rewrite the settings with other ports in place of those that are taken; the settings then count as changed.

    Running components that have such a port among their arguments are ended. Returns whether there were any.
    """
    # Any number among the options may be a port that the stack's file names.
    chosen = set(re.findall(r"\d+", json.dumps(wanted.options)))
    lost = {name: port for name, port in taken(layout).items() if name != _KEPT and str(port) not in chosen}
    if not lost:
        return False
    others = {port: claims.take() for port in lost.values()}
    for component, port in lost.items():
        report.info(f"{component}: port {port} is in use by {processes.listener(port)}; it has port {others[port]} now")
    settings = layout.settings()
    now = moved(settings, others)
    before = {each["name"]: each for each in settings["components"]}
    alive = processes.running(layout.directory)
    for each in now["components"]:
        if each != before[each["name"]]:
            processes.end(alive.get(each["name"], []))
    # The note first, so that after a kill the next run still applies the objects that have such a port.
    layout.write_note({**layout.note(), "configuration": ""})
    layout.write_settings(now)
    return True


def moved(settings: Mapping[str, Any], others: Mapping[int, int]) -> dict[str, Any]:
    """What kwokctl saved, with the new ports in place of the old ones."""
    new = {str(old): str(port) for old, port in others.items()}

    def rewritten(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: rewritten(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [rewritten(each) for each in value]
        if isinstance(value, str):
            return _PORT.sub(lambda found: new.get(found[0], found[0]), value)
        return others.get(value, value) if key.lower().endswith("port") and isinstance(value, int) else value

    return dict(rewritten(settings))
