"""Which tools there are: their versions, where they come from, how large they are, and who needs them."""

from __future__ import annotations

from kumulus.cli import needs
from kumulus.cli.doctor_stack import how
from kumulus.model.words import aligned
from kumulus.toolchain import releases, supply
from kumulus.toolchain.locate import Location, locate
from kumulus.toolchain.pins import Pins


def table(known: Pins) -> str:
    """A line for each tool."""
    others = [tool for version in known.other_kubernetes for tool in known.control_plane(version)]
    rows = [("TOOL", "VERSION", "FROM", "SIZE", "NEEDED BY")]
    rows += [_row(known, locate(known, tool)) for tool in (*known.tools, *others)]
    widest = max(len(size) for *_, size, _ in rows)
    return aligned([(*row, size.rjust(widest), who) for *row, size, who in rows])


def urls(known: Pins) -> str:
    """The URLs of this platform's release files, one a line.

    Without images' layers: a registry wants a token for them.
    """
    files = (release for release in known.releases.values() if not release.image)
    return "\n".join(dict.fromkeys(releases.address(release.url) for release in files))


def _row(known: Pins, location: Location) -> tuple[str, str, str, str, str]:
    tool = location.tool
    who = ", ".join(needs.parts(tool.name)) or f"--with {tool.name}"
    if tool.version in known.other_kubernetes:
        who = f"kubernetesVersion: v{tool.version}"
    if location.path is None:
        return tool.name, tool.version, f"not there ({how([tool])})", "-", who
    source = "Pulumi's plugins" if location.source == "plugins" else location.source
    return tool.name, location.version, source, f"{supply.size(location.path) / 1e6:,.0f} MB", who
