"""Write docs/fidelity.md and its pictures from what was recorded."""

import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fidelity import cloned, pictures, speed
from benchmarks.fidelity.facts import Comparison, Difference, Facts, compare
from benchmarks.fidelity.situations import GROUPS, Situation, situations
from kumulus.extras.lab.report.fidelity import REPLAYS, RULES, FidelityRule, rules
from kumulus.model.words import counted, listed, with_part

RESULTS = Path(__file__).resolve().parents[1] / "results" / "fidelity.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"
KINDS = ("document", "sequence", "events", "counts", "placement")
"""Kinds of facts of a situation."""
TIMES = {"bound_s": "bound", "ready_s": "Ready", "ended_s": "ended", "took_s": "all steps"}
PLACES = ("kind", "emulated")
_CREATING = " → Pending ContainerCreating"
_SHOWN, _LONGEST, _WITHIN = 3, 110, 0.01
# The aim of a calibrated run: the error of the median, and the worst.
_MEDIAN, _WORST = 0.02, 0.05


@dataclass
class Line:
    """A line of the ledger: all differences of one rule."""

    rule: FidelityRule
    """The rule."""
    found: list[tuple[Situation, Difference]] = field(default_factory=list)
    """The differences, each with the situation it is of."""

    @property
    def situations(self) -> list[str]:
        """The names of the situations, each once."""
        return list(dict.fromkeys(each.name for each, _ in self.found))


def compared(known: Mapping[str, Any]) -> dict[str, dict[str, Comparison]]:
    """Every situation that both places were seen in: by kind of fact, what comparing came to."""
    found: dict[str, dict[str, Comparison]] = {}
    for each in situations():
        real, emulated = (known[place].get(each.name, {}) for place in PLACES)
        if real and emulated:
            kinds = [kind for kind in KINDS if kind in real]
            found[each.name] = {
                kind: compare(*(_read(each, kind, facts[kind]) for facts in (real, emulated))) for kind in kinds
            }
    return found


def ledger(found: Mapping[str, Mapping[str, Comparison]]) -> list[Line]:
    """The lines, the worst first.

    Raises:
        LookupError: a difference has no rule: nobody has said what follows from it.
    """
    lines = {rule.match: Line(rule) for rule in rules()}
    for each in situations():
        for kind, comparison in found.get(each.name, {}).items():
            for difference in comparison.differences:
                lines[_rule(each, kind, difference.path).match].found.append((each, difference))
    kept = [line for line in lines.values() if line.found]
    return sorted(kept, key=lambda line: (-line.rule.weight, -len(line.situations)))


def _read(situation: Situation, kind: str, facts: Facts) -> Facts:
    """The facts that a controller, a scheduler or kubectl reads."""
    return {path: values for path, values in facts.items() if not any(map(_holds(situation, kind, path), _unread()))}


def _rule(situation: Situation, kind: str, path: str) -> FidelityRule:
    rule = next(filter(_holds(situation, kind, path), rules()), None)
    if rule is None:
        raise LookupError(f"no line of {RULES.name} says what follows from {path} of {situation.name}")
    return rule


def _holds(situation: Situation, kind: str, path: str) -> Callable[[FidelityRule], bool]:
    where = f"{situation.group}/{situation.name} {kind} {path}"
    return lambda rule: bool(re.search(rule.match, where))


def _unread() -> list[FidelityRule]:
    return [rule for rule in rules() if not rule.weight]


def write(known: Mapping[str, Any]) -> None:
    """Write the page's tables and draw its pictures."""
    found = compared(known)
    PAGE.write_text(with_part(PAGE.read_text(), "measured", tables(known)))
    REPLAYS.write_text(json.dumps(replays(known), indent=1, ensure_ascii=False) + "\n")
    pictures.draw(known, found, PAGE.parent / "pictures" / "fidelity.svg")
    pictures.draw_speed(known, PAGE.parent / "pictures" / "fidelity-speed.svg")


def tables(known: Mapping[str, Any]) -> str:
    """All tables of the page as Markdown."""
    found = compared(known)
    parts = [_summary(known, found), "![Facts that are equal, and how long each situation took](pictures/fidelity.svg)"]
    parts += ["## Worst first", _lines(ledger(found))]
    parts += ["## Sequences", _sequences(known, found)]
    parts += ["## Controllers", _controllers(known, found)]
    parts += ["## Schedulers", _schedulers(known, found)]
    parts += ["## Speed", _speeds(known), "![The error of a faster replay](pictures/fidelity-speed.svg)"]
    parts += ["## A clone", _clone(known)] if "clone" in known else []
    return "\n" + "\n\n".join(parts) + "\n\n"


def _summary(known: Mapping[str, Any], found: Mapping[str, Mapping[str, Comparison]]) -> str:
    about = known["about"]["versions"]
    times = [len(known[place][name]["took_s"]) for place in PLACES for name in found]
    least = f"{min(times)}" if min(times) == max(times) else f"{min(times)} to {max(times)}"
    rows = ["| | situations | facts | equal | within the real spread | different |", "|---|---|---|---|---|---|"]
    for group in GROUPS:
        names = [each.name for each in situations() if each.group == group and each.name in found]
        of = [comparison.counts for name in names for comparison in found[name].values()]
        sums = [sum(column) for column in zip(*of, strict=True)] or [0, 0, 0]
        total = sum(sums)
        shares = " | ".join(f"{each:,} ({each / total:.0%})" if total else "" for each in sums)
        rows.append(f"| {group} | {len(names)} | {total:,} | {shares} |")
    missing = [each.name for each in situations() if each.name not in found]
    said = f" Not in the tables, as one of the places has no record of them: {', '.join(missing)}." if missing else ""
    versions = f"kubelet {about['kubeletVersion']}, {about['containerRuntimeVersion']}"
    real, emulated = (known[f"{place} recorded"] for place in PLACES)
    recorded = (
        f"Recorded on {real['date']} ({versions}; load average before it {real['load average before']}) and on "
        f"{emulated['date']} (emulated; {emulated['load average before']}), each situation {least} times.{said}"
    )
    return "\n".join([recorded, "", *rows])


def _lines(lines: Sequence[Line]) -> str:
    rows = [
        "| An experiment is not to be trusted that … | What differs | Example: real | emulated |",
        "|---|---|---|---|",
    ]
    for line in lines:
        of, first = next((each for each in line.found if re.search(line.rule.example, each[1].path)), line.found[0])
        where = f"{line.rule.name} ({listed(line.situations, _SHOWN)})"
        example = f"{of.name}: `{first.path}` is {_values(first.real)}"
        rows.append(f"| {line.rule.consequence} | {where} | {example} | {_values(first.emulated)} |")
    unread = "; ".join(rule.name for rule in _unread())
    return "\n".join(rows) + f"\n\nNot compared, since no program of Kubernetes but the kubelet reads it: {unread}."


def _values(found: Mapping[str, int]) -> str:
    """Values, those of most runs first; how many runs, where it is not all of them."""
    total = sum(found.values())
    texts = [
        f"`{_short(value)}`" + ("" if found[value] == total else f" ({found[value]} of {total})")
        for value in _most(found)
    ]
    return listed(texts, _SHOWN)


def _most(found: Mapping[str, int]) -> list[str]:
    return sorted(found, key=lambda value: (-found[value], value))


def _short(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "¦").replace("`", "'")
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"


def _sequences(known: Mapping[str, Any], found: Mapping[str, Mapping[str, Comparison]]) -> str:
    equal, alike, rows = [], [], ["| Situation | Real: what a watch sees | Emulated |", "|---|---|---|"]
    for name, of in found.items():
        if "sequence" in of and not of["sequence"].differences:
            equal.append(name)
        for difference in of["sequence"].differences if "sequence" in of else ():
            real, emulated = (_most(side)[0] for side in (difference.real, difference.emulated))
            if real.replace(_CREATING, "") == emulated:
                alike.append(name)
            else:
                rows.append(f"| {name} | {real} | {emulated} |")
    same = f"The same in {counted(len(equal), 'situation')}: {', '.join(equal) or 'none'}."
    nearly = f"But for ContainerCreating, which only a lifecycle with `imagePull` shows, in {len(alike)}"
    return "\n".join([f"{same} {nearly}: {', '.join(alike) or 'none'}.", "", *rows])


def _controllers(known: Mapping[str, Any], found: Mapping[str, Mapping[str, Comparison]]) -> str:
    rows = ["| Workload | Pods ever made, real | emulated | Status of the object | Seconds, real | emulated |"]
    rows.append("|---|---|---|---|---|---|")
    for each in situations():
        if each.group != "controllers" or each.name not in found:
            continue
        made = [sorted(known[place][each.name]["counts"]["pods ever made"]) for place in PLACES]
        off = found[each.name]["document"].differences
        status = "the same" if not off else "other: " + listed([f"`{one.path}`" for one in off], _SHOWN)
        spans = " | ".join(_span(known, place, each.name, "took_s") for place in PLACES)
        rows.append(f"| {each.name} | {', '.join(made[0])} | {', '.join(made[1])} | {status} | {spans} |")
    return "\n".join(rows)


def _span(known: Mapping[str, Any], place: str, name: str, time: str) -> str:
    values = sorted(known[place][name].get(time, []))
    if not values:
        return ""
    return f"{statistics.median(values):.2f} ({values[0]:.2f} to {values[-1]:.2f})"


def _schedulers(known: Mapping[str, Any], found: Mapping[str, Mapping[str, Comparison]]) -> str:
    times = {"bound_s": "from creation to binding", "took_s": "until all are Ready"}
    columns = " | ".join(f"Seconds {words}, real | emulated | off" for words in times.values())
    rows = [f"| Workload | Pods by shape of node, real | emulated | | {columns} |", "|---" * 10 + "|"]
    off: dict[str, list[tuple[float, float]]] = {time: [] for time in times}
    for each in situations():
        if each.group != "schedulers" or each.name not in found:
            continue
        placed = [sorted(known[place][each.name]["placement"]["pods by shape of node"]) for place in PLACES]
        same = "other" if found[each.name]["placement"].differences else "equal"
        cells = [" or ".join(placed[0]), " or ".join(placed[1]), same]
        for time in times:
            real, emulated = (statistics.median(known[place][each.name][time]) for place in PLACES)
            off[time].append((emulated / real - 1, emulated - real))
            cells += [*(_span(known, place, each.name, time) for place in PLACES), f"{off[time][-1][0]:+.0%}"]
        rows.append(f"| {each.name} | {' | '.join(cells)} |")
    equal = sum("| equal |" in row for row in rows)
    said = [f"Placement is equal in {equal} of {counted(len(rows) - 2, 'workload')}."]
    said += [f"Of the seconds {words}, {_error(off[time])}" for time, words in times.items()]
    return " ".join(said) + "\n\n" + "\n".join(rows)


def _error(off: Sequence[tuple[float, float]]) -> str:
    """Of errors, as shares and in seconds, the median and the worst, and whether both are within the aim."""
    shares, seconds = (sorted(map(abs, each)) for each in zip(*off, strict=True))
    median, worst = statistics.median(shares), shares[-1]
    met = "met" if median <= _MEDIAN and worst <= _WORST else "missed"
    return (
        f"the median is off by {median:.0%} ({statistics.median(seconds):.2f} s) in the median workload and by at most "
        f"{worst:.0%} ({seconds[-1]:.2f} s); the aim of {_MEDIAN:.0%} and {_WORST:.0%} is {met}."
    )


def replays(known: Mapping[str, Any]) -> dict[str, Any]:
    """Up to which speed all measures are within a hundredth, and the worst error of each speed."""
    median = statistics.median(each["duration"] for each in speed.jobs())
    off = [row for row in speed.errors(known["speed"]) if row["speed"] > 1]
    worst = {row["speed"]: row for row in sorted(off, key=lambda row: abs(row["worst"]))}
    exact = [each for each in worst if all(abs(worst[one]["worst"]) <= _WITHIN for one in worst if one <= each)]
    rows = {
        str(at): {"seconds": round(median / at, 1), "error": round(abs(row["worst"]), 3), "measure": row["measure"]}
        for at, row in sorted(worst.items())
    }
    return {"exact": max(exact, default=1), "worst": rows}


def _speeds(known: Mapping[str, Any]) -> str:
    trace = speed.jobs()
    median = statistics.median(each["duration"] for each in trace)
    names = speed.MEASURES.values()
    rows = [
        f"| Speed | a job of median length takes | replays | {' | '.join(names)} |",
        "|---|---|---|" + "---|" * len(names),
    ]
    off = speed.errors(known["speed"])
    for factor, runs in sorted(known["speed"].items(), key=lambda each: int(each[0])):
        of = {row["measure"]: row for row in off if row["speed"] == int(factor)}
        cells = " | ".join(
            f"{of[name]['median']:+.1%} (worst {of[name]['worst']:+.1%})" if name in of else "not measured"
            for name in speed.MEASURES
        )
        rows.append(f"| ×{factor} | {median / int(factor):.1f} s | {len(runs)} | {cells} |")
    exact = replays(known)["exact"]
    last = (
        f"All of them stay within {_WITHIN:.0%} up to ×{exact}."
        if exact > 1
        else f"Of the faster ones, none keeps all of them within {_WITHIN:.0%}."
    )
    said = (
        f"{counted(len(trace), 'job')} of {median:.0f} s (median) on 32 GPUs, emulated only; the measures are in the "
        f"trace's own time. {last}"
    )
    return f"{said}\n\n" + "\n".join(rows)


def _clone(known: Mapping[str, Any]) -> str:
    found = known["clone"]
    rows = ["| | Real | The clone | Error of the median |", "|---|---|---|---|"]
    for name, words in cloned.MEASURES.items():
        sides = [sorted(each[name] for each in found[place] if name in each) for place in ("kind", "clone")]
        if not all(sides):
            rows.append(f"| {words} | not measured in one of the places | | |")
            continue
        real, emulated = map(statistics.median, sides)
        spans = " | ".join(
            f"{statistics.median(side):.2f} s ({side[0]:.2f} to {side[-1]:.2f}; {len(side)} measured)" for side in sides
        )
        rows.append(f"| {words} | {spans} | {emulated / real - 1:+.1%} |")
    recorded = known["clone recorded"]
    return (
        f"{found['said']} Recorded on {recorded['date']}, with a load average of {recorded['load average before']} "
        f"before it, {counted(len(found['kind']), 'repetition')} each.\n\n" + "\n".join(rows)
    )
