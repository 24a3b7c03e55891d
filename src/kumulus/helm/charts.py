"""Charts from repositories, registries and directories: their version, CRDs, and schema of values."""

import asyncio
import hashlib
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import yaml

from kumulus.helm.command import HelmError, run
from kumulus.nodes.errors import ProviderError
from kumulus.toolchain import cache

_EXACT = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_KEY = re.compile(r"\w+:")
_SCHEMA_REJECTS = "values don't meet the specifications of the schema"
# What Helm's schema library (santhosh-tekuri/jsonschema v6, kind.go) quotes of a value: a text in single quotes, those
# inside it escaped by a backslash; a number after "got"; and after "is not valid FORMAT:" a reason that may repeat the
# text.
_GOT_TEXT = re.compile(r"(?<=: )'(?:[^'\\]|\\.)*'(?= does not match pattern | is not valid )")
_GOT_NUMBER = re.compile(r"(?<= got )[-0-9]\S*(?=, want )")
_NO_FORMAT = re.compile(r"(?<='…' is not valid )([^ :]+): .*")
_ROOM = "make room or set XDG_CACHE_HOME"
# Shorter texts, such as "on", are not taken out of messages: they are in many other words.
_SHORTEST_SECRET = 4


class ChartError(Exception):
    """A chart cannot be fetched or read, or rejects the values; the message says what to do.

    Args:
        path: the property of the resource that is wrong: chart, repository, access or values.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True)
class ChartSource:
    """Where a chart comes from."""

    chart: str
    """A name in a repository, an `oci://` reference or an absolute path."""
    repository: str = ""
    """The repository's URL; empty for a reference or a path."""
    version: str = ""
    """As asked for; empty means the newest."""
    access: Mapping[str, str] = field(default_factory=dict)
    """Credentials of a private repository: username, password, caFile, certFile, keyFile. Registries need `helm
    registry login` instead."""

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Self:
        """The source that a resource's properties, or a function's arguments, describe."""
        repository, version = asked.get("repository") or "", asked.get("version") or ""
        return cls(str(asked["chart"]), repository, version, asked.get("access") or {})

    @property
    def is_path(self) -> bool:
        """Whether it is on this machine, where it may change without a new version."""
        return not self.repository and not self.chart.startswith("oci://")

    @property
    def is_fixed(self) -> bool:
        """Whether every fetch gives the same chart: an exact version from another machine, by TLS."""
        url = urlsplit(self.repository or self.chart)
        local = url.hostname in ("127.0.0.1", "::1", "localhost")
        return url.scheme in ("https", "oci") and not local and _EXACT.fullmatch(self.version) is not None


@dataclass(frozen=True)
class Chart:
    """A chart."""

    place: Path
    """Its directory or archive on this machine."""
    version: str
    crds: Mapping[str, str]
    """The manifests in its `crds` directories, and in those of the charts that it depends on, by name."""

    def digests(self) -> dict[str, str]:
        """For each CRD's manifest, enough of its hash to tell it from others."""
        return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in self.crds.items()}


async def read(source: ChartSource) -> Chart:
    """Fetch and read a chart."""
    place = await fetch(source)
    try:
        about = yaml.safe_load(await run("show", "chart", str(place)))
        return Chart(place, str(about["version"]), _by_name(await run("show", "crds", str(place))))
    except (HelmError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ChartError("chart", f"{_named(source)} cannot be read: {reason}; correct it or name another") from None


async def fetch(source: ChartSource) -> Path:
    """The directory or archive of a chart, fetched if necessary: one that is fixed, once per machine."""
    if source.is_path:
        return Path(source.chart)
    try:
        return await _kept(source)
    except HelmError as error:
        raise _fetch_error(source, str(error)) from None


async def check_values(chart: Chart, values: Mapping[str, Any]) -> None:
    """Check values against the chart's schema; other mistakes in a chart show up when it is installed."""
    if not _has_schema(chart.place):
        return
    try:
        await run("template", "check", str(chart.place), "--values", "-", stdin=json.dumps(dict(values)))
    except HelmError as error:
        _, found, problems = str(error).partition(_SCHEMA_REJECTS)
        if found:
            # The rest of the first line, and lines with nothing but a chart's name and a colon, say nothing to users.
            lines = [line for line in problems.splitlines()[1:] if line.strip() and not line.endswith(":")]
            rejected = "; ".join(_without_values(line.strip(" -"), values) for line in lines)
            raise ChartError("values", f"the chart's schema rejects them: {rejected}; write what it asks for") from None


async def _kept(source: ChartSource) -> Path:
    """The chart's archive, fetched if necessary."""
    folder = cache.charts()
    key = hashlib.sha256(json.dumps([source.chart, source.repository, source.version]).encode()).hexdigest()[:32]
    place = folder / f"{key}.tgz"
    try:
        if source.is_fixed and place.is_file():
            cache.used(place)
            return place
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            fetched = await _pulled(source, Path(scratch))
            os.replace(fetched, place)
        cache.remove_old_charts()
    except OSError as error:
        message = f"the chart {source.chart} cannot be kept in {folder}: {error.strerror or error}; {_ROOM}"
        raise ChartError("chart", message) from None
    return place


async def _pulled(source: ChartSource, scratch: Path) -> Path:
    """The archive of a chart that helm has fetched into a folder."""
    reference = source.chart
    options: list[str] = []
    if source.repository and source.access:
        # Helm takes a password from a file, or as an argument, which every user of this machine could read.
        reference, options = await _private_repository(source, scratch)
    elif source.repository:
        options = ["--repo", source.repository]
    if source.version:
        options += ["--version", source.version]
    into = scratch / "chart"
    into.mkdir()
    await run("pull", reference, "--destination", str(into), *options)
    (found,) = into.glob("*.tgz")
    return found


async def _private_repository(source: ChartSource, scratch: Path) -> tuple[str, list[str]]:
    """A chart's reference in a private repository, and the options by which helm reads that repository's entry.

    The entry is written into ``scratch``.
    """
    names = ("username", "password", "caFile", "certFile", "keyFile")
    access = {name: source.access[name] for name in names if source.access.get(name)}
    entry = {"name": "private", "url": source.repository, **access}
    config = _private_file(scratch / "repositories.yaml", {"apiVersion": "v1", "repositories": [entry]})
    where = ["--repository-config", config, "--repository-cache", str(scratch)]
    await run("repo", "update", *where)
    return f"private/{source.chart}", where


def _private_file(file: Path, content: object) -> str:
    """The path of a new JSON file that only this user can read."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        json.dump(content, opened)
    return str(file)


def _by_name(text: str) -> dict[str, str]:
    """The CRD manifests in a text, each unchanged: another program's YAML is not re-serialised here."""
    found: dict[str, str] = {}
    for part in _documents(text):
        name = re.search(r"^  name: *[\"']?([a-z0-9.-]+)[\"']? *$", part, re.MULTILINE)
        kind = re.search(r"^kind: *[\"']?CustomResourceDefinition", part, re.MULTILINE)
        if name and kind:
            found[name[1]] = part.strip() + "\n"
        elif part.strip():
            found |= _parsed(part)
    return found


def _documents(text: str) -> Iterator[str]:
    """The YAML documents in a text. Between files without a separator, one begins where a top-level key comes again."""
    keys: set[str] = set()
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        key = _KEY.match(line)
        is_separator = line.startswith("---")
        if is_separator or (key and key[0] in keys):
            yield "".join(lines)
            keys, lines = set(), []
        if key:
            keys.add(key[0])
        if not is_separator:
            lines.append(line)
    yield "".join(lines)


def _parsed(part: str) -> dict[str, str]:
    """The manifest of a document that is indented differently, or written as JSON.

    Raises:
        ValueError: it is no YAML, or a CRD without a name.
    """
    try:
        document = yaml.safe_load(part)
    except yaml.YAMLError as error:
        raise ValueError(f"a manifest among its CRDs is no YAML: {error}") from None
    match document:
        case {"kind": "CustomResourceDefinition", "metadata": {"name": name}}:
            return {str(name): part.strip() + "\n"}
        case {"kind": "CustomResourceDefinition"}:
            raise ValueError("one of its CRDs has no name")
    return {}


def _has_schema(place: Path) -> bool:
    """Whether a chart has a schema of its values, or contains another chart, which may have one."""
    if place.is_dir():
        return any(place.rglob("values.schema.json")) or any(place.glob("charts/*.tgz"))
    with tarfile.open(place) as archive:
        return any(name.endswith(("values.schema.json", ".tgz")) for name in archive.getnames())


def _without_values(line: str, values: object) -> str:
    """A message of the schema check without the values that it quotes, since some may be secret."""
    line = _GOT_NUMBER.sub("…", _NO_FORMAT.sub(r"\1", _GOT_TEXT.sub("'…'", line)))
    for text in sorted(_texts(values), key=len, reverse=True):
        line = line.replace(text, "…")
    return line


def _texts(value: object) -> list[str]:
    """The texts in a value that may be secrets."""
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    return [value] if isinstance(value, str) and len(value) >= _SHORTEST_SECRET else []


def _named(source: ChartSource) -> str:
    version = f" {source.version}" if source.version else ""
    repository = f" of {source.repository}" if source.repository else ""
    return f"the chart {source.chart}{version}{repository}"


def _fetch_error(source: ChartSource, reason: str) -> ChartError:
    what, reason = _named(source), " ".join(reason.split())
    password = source.access.get("password", "")
    if len(password) >= _SHORTEST_SECRET:
        reason = reason.replace(password, "…")
    remedies = (*_OF_REGISTRIES, *_REMEDIES) if source.chart.startswith("oci://") else _REMEDIES
    for pattern, path, remedy in remedies:
        if re.search(pattern, reason):
            return ChartError(path, f"{what} cannot be fetched: {reason}; {remedy}")
    return ChartError("chart", f"{what} cannot be fetched: {reason}; check chart, version and repoURL")


_OF_REGISTRIES = (
    (r"\b40[13]\b|nauthorized|denied", "chart", "log in first: helm registry login HOST"),
    (r"x509|certificate", "chart", "have this machine trust its certificate authority"),
)
_REMEDIES = (
    (r"no space left on device", "chart", _ROOM),
    (r"\b40[13]\b|nauthorized|denied", "access", "write repositoryOpts with username and password"),
    (r"x509|certificate", "access", "write repositoryOpts with the caFile of its certificate authority"),
    (
        r"dial tcp|no such host|refused|timeout|did not finish|cannot be reached",
        "repository",
        "check repoURL and the network, then run it again",
    ),
    (
        r"not found|no chart (name|version)|invalid_reference|manifest unknown",
        "chart",
        "write a chart and a version that the repository has",
    ),
)


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
    limit = asyncio.Semaphore(_AT_ONCE)

    async def problem_of(asked: dict[str, Any]) -> str:
        try:
            async with limit:
                await fetch(ChartSource.of(asked))
        except (ChartError, ProviderError) as error:
            return str(error)
        return ""

    found = await asyncio.gather(*map(problem_of, arguments.get("charts") or []))
    return {"problems": {str(index): problem for index, problem in enumerate(found) if problem}}
