"""The live view in a terminal."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Footer, Sparkline, Static

from kumulus.extras.watch.console.text import amount, bar, cost, headline, main_resource, percent, written
from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.summary import CapacityShare, Summary, summary
from kumulus.model.words import counted

REFRESH = 1.0
"""Seconds between two redraws."""

_LONGEST_NAME = 24
_SHORTEST_BAR = 6
_MOST_REASONS = 6
_STATUS_STYLES = {"ok": "green", "failing": "yellow", "down": "bold red"}
_STATE_STYLES = {"ready": "green", "cordoned": "blue", "faulted": "yellow", "not ready": "red"}
# The same marks as on the page.
_STATE_MARKS = {"ready": "", "cordoned": "–", "faulted": "/", "not ready": "×"}
_PHASE_STYLES = {"Pending": "yellow", "Running": "green", "Succeeded": "blue", "Failed": "red", "Unknown": "magenta"}


class TerminalPanel(Static):
    """A titled box that is redrawn only if its content has changed."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__(id=name)
        self.border_title = title
        self._shown: Text | None = None

    def show(self, content: Text) -> None:
        """Show content."""
        if content == self._shown:
            return
        # Measuring all boxes costs as much as drawing them, and is needed only if the number of lines changes.
        same = self._shown is not None and self._shown.plain.count("\n") == content.plain.count("\n")
        self._shown = content
        self.update(content, layout=not same)


async def show(stack: str, live: Live, remedy: str = "") -> None:
    """Show a fleet until the user has seen enough; the arguments are those of :class:`Terminal`."""
    app = Terminal(stack, live, remedy)
    shown, watched = asyncio.ensure_future(app.run_async()), asyncio.ensure_future(live.ended())
    try:
        await asyncio.wait([shown, watched], return_when=asyncio.FIRST_COMPLETED)
        if watched.done():
            app.exit()
            await shown
            await watched
        await shown
    finally:
        watched.cancel()


class Terminal(App[None]):
    """The screen; ``remedy`` says what to do about a cluster that does not answer, empty if unknown."""

    TITLE = "kumulus watch"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #head { height: 1; padding: 0 1; }
    #lost { height: auto; padding: 0 1; background: $error; color: $text; display: none; }
    #body { height: 1fr; }
    #left { width: 3fr; }
    #right { width: 2fr; }
    TerminalPanel, #rate { border: round $primary; padding: 0 1; height: auto; }
    #rate { height: 6; }
    Sparkline { height: 2; }
    #products, #zones { text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("g", "resource('GPUs')", "GPUs"),
        Binding("c", "resource('CPU')", "CPU"),
        Binding("m", "resource('memory')", "memory"),
        Binding("p", "resource('pods')", "pods"),
        Binding("d", "toggle_dark", "dark/light"),
    ]

    def __init__(self, stack: str, live: Live, remedy: str = "") -> None:
        super().__init__()
        self._stack, self._remedy = stack, remedy
        self._live = live
        self._resource = ""

    def compose(self) -> ComposeResult:
        """The screen's parts."""
        yield Static(id="head", markup=False)
        yield Static(id="lost", markup=False)
        with Horizontal(id="body"):
            with VerticalScroll(id="left"):
                yield TerminalPanel("products", "by GPU product")
                yield TerminalPanel("zones", "by zone")
            with VerticalScroll(id="right"):
                yield TerminalPanel("phases", "pods")
                yield TerminalPanel("reasons", "pending because")
                with Vertical(id="rate"):
                    yield Static(id="bound", markup=False)
                    yield Sparkline([0] * 60, id="bindings", summary_function=max)
                yield TerminalPanel("checks", "control plane")
        yield Footer()

    def on_mount(self) -> None:
        """Start redrawing at intervals."""
        self.query_one("#rate").border_title = "pods bound per second, last minute"
        self.set_interval(REFRESH, self.draw)

    def on_resize(self) -> None:
        """Fill the new size; called for the first time soon after the start."""
        self.call_after_refresh(self.draw)

    def action_resource(self, name: str) -> None:
        """Show allocation of another resource."""
        self._resource = name
        self.draw()

    def action_toggle_dark(self) -> None:
        """Switch between the dark and the light theme."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def draw(self) -> None:
        """Show the current fleet; does nothing once the screen is closing, as the last tick may come after that."""
        if not self.is_running:
            return
        now = summary(self._live)
        self._resource = self._resource or main_resource(now.total)
        price = f"  {cost(now.total)}" if now.total.priced else ""
        head = Text.assemble((self._stack, "bold"), "  ", headline(now.total), price)
        self.query_one("#head", Static).update(head, layout=False)
        self._draw_lost(now)
        self._draw_shares("products", now.by_product)
        self._draw_shares("zones", now.by_zone)
        self._panel("phases").show(_phases(now))
        self._panel("reasons").show(_reasons(now))
        self._panel("checks").show(_checks(now))
        self.query_one("#bound", Static).update(f"{now.bound_per_second:,.1f}/s over the last 10 s", layout=False)
        self.query_one("#bindings", Sparkline).data = list(now.bindings)

    def _panel(self, name: str) -> TerminalPanel:
        return self.query_one(f"#{name}", TerminalPanel)

    def _draw_lost(self, now: Summary) -> None:
        lost = self.query_one("#lost", Static)
        lost.display = bool(now.lost)
        if now.lost:
            remedy = f"\n{self._remedy}" if self._remedy else ""
            lost.update(f"nothing heard for {now.lost_for:.0f} s, trying again: {now.lost}{remedy}")

    def _draw_shares(self, name: str, shares: Sequence[CapacityShare]) -> None:
        panel = self._panel(name)
        panel.show(_shares(shares, self._resource, panel.content_size.width))


def _shares(shares: Sequence[CapacityShare], resource: str, width: int) -> Text:
    """A line for each share: its nodes, a bar, figures, and the states of nodes that are not ready."""
    rows = []
    for share in shares:
        part, whole = amount(resource, share.taken), amount(resource, share.allocatable)
        figures = f"{written(resource, part)}/{written(resource, whole)} {percent(part, whole):>5}"
        ill = [(f"{number:,} {_STATE_MARKS[state]}", _STATE_STYLES[state]) for state, number in share.states.items()]
        rows.append((share, part, whole, figures, [each for each in ill if each[1] != _STATE_STYLES["ready"]]))
    name = min(_LONGEST_NAME, max((len(share.name) for share in shares), default=0))
    nodes = max((len(f"{share.nodes:,}") for share in shares), default=0)
    figure = max((len(row[3]) for row in rows), default=0)
    states = max((sum(len(text) + 1 for text, _ in row[4]) for row in rows), default=0)
    length = max(_SHORTEST_BAR, width - name - nodes - figure - states - 3)
    found = Text(no_wrap=True, overflow="ellipsis")
    for share, part, whole, figures, ill in rows:
        shown = share.name if len(share.name) <= name else share.name[: name - 1] + "…"
        found.append(f"{shown:<{name}} {share.nodes:>{nodes},} ")
        found.append(bar(part, whole, length), "cyan on grey23" if whole else "")
        found.append(f" {figures:>{figure}}")
        for text, style in ill:
            found.append(" ")
            found.append(text, style)
        found.append("\n")
    found.rstrip()
    return found


def _phases(now: Summary) -> Text:
    found = Text()
    width = max(len(f"{number:,}") for number in now.phases.values())
    for phase, number in now.phases.items():
        note = f" ({now.waiting:,} unscheduled)" if phase == "Pending" and now.waiting else ""
        found.append(f"{number:>{width},}", _PHASE_STYLES[phase] if number else "dim")
        found.append(f" {phase}{note}\n")
    if now.refused:
        found.append(f"{now.refused:>{width},}", "yellow")
        found.append(" not created")
    found.rstrip()
    return found


def _reasons(now: Summary) -> Text:
    if not now.reasons:
        return Text("no pod waits for a scheduler", "dim")
    found = Text()
    width = len(f"{now.reasons[0][1]:,}")
    for reason, number in now.reasons[:_MOST_REASONS]:
        found.append(f"{number:>{width},}", "yellow")
        found.append(f" {reason}\n")
    if hidden := max(0, len(now.reasons) - _MOST_REASONS):
        found.append(f"and {counted(hidden, 'more reason')}", "dim")
    found.rstrip()
    return found


def _checks(now: Summary) -> Text:
    found = Text()
    width = max(map(len, now.checks), default=0)
    for name, check in now.checks.items():
        found.append(f"{name:<{width}} ")
        found.append(f"{check.status}{f': {check.detail}' if check.detail else ''}\n", _STATUS_STYLES[check.status])
    found.rstrip()
    return found
