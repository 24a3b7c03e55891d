"""The page of recorded runs as one self-contained file: no server, no network.

Its modules become one script, in the order of their imports, each in its own scope; a content security policy allows
that script and the style by their hashes, and nothing else. Recorded values are data in it, never markup.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from aiohttp import web

from kumulus.extras.watch.console.serving import HEADERS, Guarded
from kumulus.extras.watch.history.document import History

_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:class|function|const) (\w+)", re.MULTILINE)
_ENTRY = "run"


Reasons = Mapping[str, Sequence[str]]
"""Why pods are where they are: lines by the pod's namespace/name."""


def page(histories: Sequence[History], reasons: Sequence[Reasons] = ()) -> str:
    """The HTML of the page of one run, or of two side by side; ``reasons`` are those of each, if known."""
    script, style = bundle(_ENTRY), _asset("style.css")
    title = " and ".join(str(each.about.get("title", "a run"))[:200] for each in histories)
    parts = {
        "<title>Kumulus</title>": f"<title>{html.escape(title)} · Kumulus</title>",
        "<!--policy-->": f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">',
        "<!--style-->": f"<style>{style}</style>",
        "<!--data-->": "\n".join(
            _data(each, known) for each, known in zip(histories, reasons or [{}] * len(histories), strict=True)
        ),
        "<!--script-->": f'<script type="module">{script}</script>',
    }
    # One pass, so that text in one part is never taken for another part's placeholder.
    return re.sub("|".join(map(re.escape, parts)), lambda match: parts[match[0]], _asset("run.html"))


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(history: History, reasons: Reasons) -> str:
    plain = history.to_plain()
    if reasons:
        plain["why"] = _each_once({pod: reasons[pod] for pod, *_ in history.pods if pod in reasons})
    text = json.dumps(plain, separators=(",", ":"))
    # Without `<`, nothing in it can end its element, or start a comment or another element.
    return f'<script type="application/json">{text.replace("<", chr(92) + "u003c")}</script>'


def _each_once(reasons: Reasons) -> dict[str, Any]:
    """The reasons, with each line that several pods share stored once."""
    numbers: dict[str, int] = {}
    pods = {pod: [numbers.setdefault(line, len(numbers)) for line in lines] for pod, lines in reasons.items()}
    return {"lines": list(numbers), "pods": pods}


def bundle(entry: str) -> str:
    """A module of the page and all that it imports, as one script."""
    return "\n".join(_scoped(name, source) for name, source in ordered(entry).items())


def ordered(entry: str) -> dict[str, str]:
    """A module and all that it imports, by name, each after its own imports."""
    found: dict[str, str] = {}

    def add(name: str) -> None:
        source = _asset(f"{name}.js")
        for _, wanted in _IMPORT.findall(source):
            if wanted not in found:
                add(wanted)
        found[name] = source

    add(entry)
    return found


def _scoped(name: str, source: str) -> str:
    """A module as a function that is called immediately and returns the module's exports."""
    exported = _EXPORT.findall(source)
    # `export const A = 0, B = 1;` exports several names.
    for line in re.findall(r"^export const (.+);$", source, re.MULTILINE):
        exported += re.findall(r", ([A-Z_]+) =", line)
    body = _IMPORT.sub(lambda match: f"const {{ {match[1]} }} = {_scope(match[2])};\n", source)
    body = re.sub(r"^export ", "", body, flags=re.MULTILINE)
    return f"const {_scope(name)} = (() => {{\n{body}return {{ {', '.join(dict.fromkeys(exported))} }};\n}})();"


def _scope(name: str) -> str:
    return f"module{name.capitalize()}"


def _asset(name: str) -> str:
    return resources.files("kumulus.extras.watch.console").joinpath("assets", name).read_text(encoding="utf-8")


def shown(histories: Sequence[History], reasons: Sequence[Reasons] = ()) -> Guarded:
    """A server of the page of one run, or of two; see :func:`page`."""
    text = page(histories, reasons)
    # The page contains its own policy, with the hashes of its parts; only a header can forbid framing.
    headers = {**HEADERS, "Content-Security-Policy": "frame-ancestors 'none'"}

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=headers)

    return Guarded("kumulus experiment show", {"GET ": answer})
