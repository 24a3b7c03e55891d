"""What there is of a control plane, by its files and its processes."""

from collections.abc import Mapping, Sequence

from kumulus.host import processes
from kumulus.runtimes.base import MISSING, Observed
from kumulus.runtimes.kwok import addition, hung, kept
from kumulus.runtimes.kwok.layout import Layout


def observed(layout: Layout, identity: str, running: Mapping[str, Sequence[int]] | None = None) -> Observed:
    """A control plane as it is.

    Args:
        identity: the one that it is known to have.
        running: its processes; looked for when None.
    """
    running = processes.running(layout.directory) if running is None else running
    alive = running.keys() - hung.useless(layout, running).keys()
    damaged = kept.damaged(layout)
    copy = layout.of_copy() if damaged else layout
    states = {name: "running" if name in alive else "stopped" for name in copy.components()}
    spoiled = {layout.kwok_file.name: damaged, layout.kubeconfig.name: kept.kubeconfig_damaged(layout)}
    states |= {name: kept.DAMAGED for name, damaged in spoiled.items() if damaged}
    states |= dict.fromkeys(kept.lost(layout), MISSING)
    layout = copy
    port = layout.ports().get("kube-apiserver")
    return Observed(
        identity=identity,
        kubeconfig=str(layout.kubeconfig),
        server=f"https://127.0.0.1:{port}",
        directory=str(layout.directory),
        components=states,
        configuration=layout.note().get("configuration", ""),
        endpoints={name: at for each in addition.every() for name, at in each.endpoints(layout).items()},
    )
