"""How metrics-server reaches the usage metrics of a cluster's kubelets (kwok/node_metrics.py).

KWOK reads its ``Metric`` from its file here, not as an object: an object's changed series would never be served.
"""

from __future__ import annotations

from typing import Any

from kumulus.kwok.stages import not_in, stage

ADDRESS = {"type": "ExternalDNS", "address": "localhost"}
"""Where kwok-controller acts as all kubelets; a node's other addresses are its own and lead nowhere."""


def stages() -> list[dict[str, Any]]:
    """A stage that gives each node an address at which its kubelet can be reached."""
    address = f'.status.addresses[]? | select(.type == "{ADDRESS["type"]}") | .address'
    template = f"addresses:\n- {{address: {ADDRESS['address']}, type: {ADDRESS['type']}}}\n"
    # The weight puts it before the heartbeat, which matches as well.
    rest = {"weight": 1, "next": {"statusTemplate": template}}
    return [stage("node-kubelet-address", "Node", [not_in(address, ADDRESS["address"])], rest)]
