"""The nodes of a run at their current prices: a fault may change the price of machines while they are there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.views import NodeView, in_cluster, node_view
from kumulus.extras.watch.live.devices import Devices, Published
from kumulus.model.offer_effects import OfferEffects
from kumulus.model.pools import INSTANCE_TYPE_LABEL
from kumulus.nodes.catalog.prices import Prices, is_spot


class PricedNodes:
    """Puts nodes into an allocation, at their current prices."""

    def __init__(self, allocation: Allocation, cluster: str = "") -> None:
        self._allocation = allocation
        self._cluster = cluster
        self._offers: Sequence[OfferEffects] = ()
        self._nodes: dict[str, tuple[NodeView, tuple[str, str, str]]] = {}
        self._devices = Devices()

    def put(self, key: str, message: Any, product_label: str, prices: Prices) -> None:
        """Add or update a node.

        Args:
            key: its name, see :func:`in_cluster`.
            message: ``Node`` of :mod:`kumulus.kube.messages`.
            prices: what machines cost unless a fault changes that.
        """
        labels = message.metadata.labels
        view = node_view(message, product_label, prices)._replace(name=key, cluster=self._cluster)
        how = "spot" if is_spot(labels) else "on-demand"
        self._nodes[key] = view, (labels.get(INSTANCE_TYPE_LABEL, ""), view.zone, how)
        self._allocation.put_node(self._at_price_of_now(key))

    def remove(self, key: str) -> None:
        """Remove a node."""
        self._nodes.pop(key, None)
        self._allocation.remove_node(key)

    def reprice(self, offers: Sequence[OfferEffects]) -> None:
        """Apply these faults to the prices of nodes from now on."""
        self._offers = offers
        for key in self._nodes:
            self._allocation.put_node(self._at_price_of_now(key))

    def publish(self, key: str, slices: Published | None) -> None:
        """Set a ResourceSlice, None if it is gone; its node has the GPUs in it, which claims can have."""
        found = slices and replace(slices, node=in_cluster(self._cluster, slices.node))
        for node in self._devices.set_slice(key, found):
            if node in self._nodes:
                self._allocation.put_node(self._at_price_of_now(node))

    def _at_price_of_now(self, key: str) -> NodeView:
        view, offering = self._nodes[key]
        # GPUs that a node offers both ways are the same ones.
        view = view._replace(has=view.has._replace(gpus=max(view.has.gpus, self._devices.published(key))))
        if view.hourly is None:
            return view
        factors = [each.price_factor for each in self._offers if each.selects(*offering)]
        return view._replace(hourly=math.prod(factors, start=view.hourly)) if factors else view
