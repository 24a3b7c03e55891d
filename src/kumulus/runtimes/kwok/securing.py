"""Make components of a cluster that an earlier version made ask for certificates, and log less, like a new one's.

Also, the API server asks kwok-controller, and nobody else, for logs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kumulus.host import processes
from kumulus.runtimes.kwok import access, etcd, kubelets, logs
from kumulus.runtimes.kwok.layout import Layout


def outdated(settings: Mapping[str, Any], pki: Path) -> list[str]:
    """The components that answer more clients, or log more, than they should, by what kwokctl saved.

    They are in the order in which they are ended: clients before servers.
    """
    if not {"etcdPort", "etcdPeerPort", "kwokControllerPort"} <= (settings.get("options") or {}).keys():
        return []
    wanted = {each.get("name"): each.get("args") for each in secured(settings, pki).get("components") or []}
    saved = {each.get("name"): each.get("args") for each in settings.get("components") or []}
    order = (*logs.FLAGS, *access.CONTROLLERS, etcd.API_SERVER, etcd.ETCD)
    return [name for name in order if name in saved and saved[name] != wanted[name]]


def secured(settings: Mapping[str, Any], pki: Path) -> dict[str, Any]:
    """What kwokctl saved, with components that ask for a certificate and an API server that shows one to etcd."""
    options = settings.get("options") or {}
    wanted: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for flags in (
        etcd.flags(pki, int(options["etcdPort"]), int(options["etcdPeerPort"])),
        access.flags(pki),
        kubelets.flags(int(options["kwokControllerPort"])),
        logs.FLAGS,
    ):
        for component, each in flags.items():
            wanted[component] |= each
    components = [
        {**each, "args": _with(each.get("args") or [], wanted[each["name"]])} if each.get("name") in wanted else each
        for each in settings.get("components") or []
    ]
    return {**settings, "components": components}


def secure(layout: Layout) -> None:
    """Secure a cluster that an earlier version made; components that have to be restarted are ended.

    Raises:
        OSError: the configuration cannot be written.
    """
    settings, pki = layout.settings(), layout.directory / "pki"
    alive = processes.running(layout.directory)
    # Before it is written: if this run is killed in between, the next one still knows that it is to be done.
    for name in outdated(settings, pki):
        processes.end(alive.get(name, []))
    layout.write_settings(secured(settings, pki))


def _with(arguments: Sequence[str], wanted: Mapping[str, str]) -> list[str]:
    parsed = [each.removeprefix("--").partition("=") for each in arguments]
    if all((key, "=", value) in parsed for key, value in wanted.items()):
        return list(arguments)
    kept = [each for each, (key, *_) in zip(arguments, parsed, strict=True) if key not in wanted]
    return [*kept, *(f"--{key}={value}" for key, value in wanted.items())]
