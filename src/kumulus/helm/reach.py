"""``kumulus:index:findCharts``: which charts cannot be fetched; a program asks before it declares anything."""

from __future__ import annotations

import asyncio
from typing import Any

from kumulus.helm import charts
from kumulus.helm.charts import ChartError, Source
from kumulus.nodes.errors import ProviderError

FIND_CHARTS = "kumulus:index:findCharts"

# Each fetch is a process that unpacks an archive.
_AT_ONCE = 4


async def find_charts(arguments: dict[str, Any]) -> dict[str, Any]:
    """Fetch all charts that are not on this machine yet.

    Args:
        arguments: ``charts``: for each, its ``chart``, ``repository``, ``version`` and ``access``.

    Returns:
        ``problems``: what is wrong, by the chart's index in the list; empty if all were fetched.
    """
    changed = asyncio.Semaphore(_AT_ONCE)

    async def problem(asked: dict[str, Any]) -> str:
        source = Source(
            str(asked["chart"]), asked.get("repository") or "", asked.get("version") or "", asked.get("access") or {}
        )
        try:
            async with changed:
                await charts.have(source)
        except (ChartError, ProviderError) as error:
            return str(error)
        return ""

    found = await asyncio.gather(*map(problem, arguments.get("charts") or []))
    return {"problems": {str(index): problem for index, problem in enumerate(found) if problem}}
