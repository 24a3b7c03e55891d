"""Whether the charts of a stack's add-ons can be fetched, checked before an update creates anything."""

from __future__ import annotations

from pathlib import Path

import pulumi

from kumulus.components import plugin
from kumulus.components.engine import user_error
from kumulus.components.helm_release import chart_source, repository_access
from kumulus.stackfile.load import Loaded


def require_charts(loaded: Loaded, base: Path) -> None:
    """Have the plugin fetch those of the add-ons' charts that are not on this machine yet; instant if all are.

    Each add-on's own check looks at its chart as well, but only once the add-on's dependency, the cluster, is there. A
    preview creates nothing, so that check is early enough for it.

    Args:
        loaded: the stack.
        base: directory that a local chart's path refers to.

    Raises:
        pulumi.RunError: some cannot be fetched; says for each what to do.
    """
    if pulumi.runtime.is_dry_run():
        return
    wanted = []
    for addon in loaded.spec.clusterAddons:
        chart, repository = chart_source(addon, base)
        access = repository_access(addon, base)
        wanted.append({"chart": chart, "repository": repository or "", "version": addon.version, "access": access})
    answer = pulumi.runtime.invoke("kumulus:index:findCharts", {"charts": wanted}, plugin.asked()).value or {}
    wrong = {int(index): str(said) for index, said in (answer.get("problems") or {}).items()}
    if not wrong:
        return
    lines = [f"  clusterAddons[{index}]: {wrong[index]}" for index in sorted(wrong)]
    raise user_error(
        "\n".join(
            [
                f"{len(wrong)} of {len(wanted)} add-ons cannot be installed; nothing of the cluster was changed",
                *lines,
                f"  To go on without add-ons: pulumi config set -s {pulumi.get_stack()} kumulus:skipAddons true",
            ]
        )
    )
