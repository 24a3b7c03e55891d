"""What the nodes cost for an hour: by group, type, zone and how they are had, and for how much of it nothing runs."""

from __future__ import annotations

from kumulus.extras.watch.dashboards.model import Dashboard, Panel, Row, last, over_time
from kumulus.extras.watch.dashboards.overview import CHOICES, CHOSEN

_USD = "currencyUSD"
_COST = f"kumulus:cost:hourly{{{CHOSEN}}}"
_WASTED = f"kumulus:cost_wasted:hourly{{{CHOSEN}}}"


def _by(title: str, label: str, series: str = _COST) -> Panel:
    return over_time(title, (f"sum by ({label}) ({series})", f"{{{{{label}}}}}"), unit=_USD, width=12, stacked=True)


COST = Dashboard(
    "kumulus-cost",
    "Kumulus / Cost",
    "What the nodes cost for an hour, by node group, instance type, zone and capacity type, and what of it is wasted.",
    (
        Row(
            "Now",
            (
                last("Cost per hour", f"sum({_COST})", unit=_USD, width=5, height=5),
                last(
                    "Wasted",
                    f"sum({_WASTED}) / (sum({_COST}) > 0)",
                    "gauge",
                    unit="percentunit",
                    width=5,
                    height=5,
                    upper=1,
                    about="The part of the cost for which nothing is requested: of a node with GPUs its idle GPUs, of "
                    "another one what is left of CPU or memory, whichever is requested more.",
                ),
                last(
                    "Cost of a requested GPU",
                    f'sum({_COST}) / (sum(kumulus:requests:sum{{resource="nvidia_com_gpu",{CHOSEN}}}) > 0)',
                    unit=_USD,
                    width=5,
                    height=5,
                    about="For an hour.",
                ),
                last("Nodes with a price", "count(kumulus:node:hourly)", width=4, height=5),
                last(
                    "Nodes without",
                    "kumulus:nodes_unpriced:count",
                    width=5,
                    height=5,
                    about="Their price is not known, and they are in no other figure of this page.",
                ),
            ),
        ),
        Row(
            "Cost per hour",
            (
                _by("By node group", "node_group"),
                _by("By instance type", "instance_type"),
                _by("By zone", "zone"),
                _by("By capacity type", "capacity_type"),
                _by("Wasted, by node group", "node_group", _WASTED),
                over_time(
                    "Nodes by instance type",
                    (
                        "count by (instance_type, capacity_type) (kumulus:node:hourly)",
                        "{{instance_type}} {{capacity_type}}",
                    ),
                    width=12,
                    stacked=True,
                ),
            ),
        ),
    ),
    CHOICES,
)
