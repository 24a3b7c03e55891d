"""What is in every new control plane, kept on this machine, so that the next one begins with it instead of making it.

The API server takes a second to make its roles, the definitions of KWOK's kinds are served a while after that, and the
controllers make the first namespaces' objects when they have started. All of that is the same in every cluster of one
Kubernetes version and configuration. So the first one is kept, at rest and without nodes, and the next one's etcd has
it before its API server starts. Nothing in it is secret, and no two clusters have anything in common that they would
not have otherwise: each has its own certificate authority, UIDs and times.
"""

import base64
import hashlib
import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kumulus.host import files
from kumulus.host.version import VERSION
from kumulus.kube import Client
from kumulus.model.durations import timestamp
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import configuration, pod_logs
from kumulus.runtimes.kwok.layout import Layout
from kumulus.toolchain import cache

_FORMAT = 2
_NODES_AND_EVENTS = (b"/registry/minions/", b"/registry/leases/", b"/registry/events/")
_UID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# A Time of Kubernetes in protobuf: field 1, the seconds, of five bytes until the year 3058, and field 2, which is 0.
_TIME = re.compile(rb"\x08([\x80-\xff]{4}[\x01-\x7f])\x10\x00", re.DOTALL)
_TIME_IN_JSON = re.compile(rb'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"')
# What stands in a template for what each cluster has of its own.
_AUTHORITY, _PORT = "@authority@", "@port:{}@"
_DIRECTORY, _HOME = "@directory@", "@home@"


@dataclass
class Template:
    """A control plane as it is kept."""

    kwok: str
    """`kwok.yaml`."""
    kubeconfig: str
    """The kubeconfig."""
    programs: dict[str, str]
    """The components' programs, by name."""
    objects: dict[str, str]
    """Keys and values of its etcd, in base 64."""
    since: int
    """When it was started, in seconds since 1970."""
    texts: dict[str, str] = field(default_factory=dict)
    """Keys and values, as JSON, of objects that have its certificate authority or a port."""

    def write(self, layout: Layout, ports: Mapping[str, int]) -> None:
        """Write a new cluster's files, except its certificates and their keys.

        Args:
            ports: the new cluster's, by kwokctl's names, such as `etcdPort`.
        """
        for name in ("bin", "etcd", "logs", "pids"):
            (layout.directory / name).mkdir(mode=0o700)
        for name, program in self.programs.items():
            (layout.directory / "bin" / name).symlink_to(program)
        for file, text in ((layout.kwok_file, self.kwok), (layout.kubeconfig, self.kubeconfig)):
            files.write(file, _filled(text, layout, ports), mode=0o600)
        pod_logs.write(layout)

    def fresh(self, authority: str, ports: Mapping[str, int]) -> list[tuple[bytes, bytes]]:
        """Keys and values for a new cluster's etcd, with UIDs and times of its own.

        Args:
            authority: its certificate authority, PEM.
            ports: as for :meth:`write`.
        """
        uids: dict[bytes, bytes] = {}
        now, now_in_json = int(time.time()), f'"{timestamp()}"'.encode()
        # A number outside of these may look like a time, and is none of the template's.
        times = range(self.since, now + 1)

        def new_uid(match: re.Match[bytes]) -> bytes:
            return uids.setdefault(match[0], str(uuid.uuid4()).encode())

        def new_time(match: re.Match[bytes]) -> bytes:
            return b"\x08" + _varint(now) + b"\x10\x00" if _number(match[1]) in times else match[0]

        def renewed(value: bytes) -> bytes:
            own = _UID.sub(new_uid, value)
            return _TIME_IN_JSON.sub(now_in_json, own) if own.startswith(b"{") else _TIME.sub(new_time, own)

        found = [(key.encode(), renewed(base64.b64decode(value))) for key, value in self.objects.items()]
        for key, text in self.texts.items():
            filled = text.replace(_AUTHORITY, json.dumps(authority)[1:-1])
            for name, port in ports.items():
                filled = filled.replace(_PORT.format(name), str(port))
            found.append((key.encode(), renewed(filled.encode())))
        return found


def file_of(wanted: WantedControlPlane) -> Path | None:
    """Where the template of such control planes is kept, which may not exist; None for those that can have none.

    The file's name is a hash of all that decides what is in it: the programs, their settings, and what Kumulus makes.
    """
    options = wanted.options
    if configuration.has_additions(options) or options.get("apiServerPort"):
        return None
    ports = {key: number for number, key in enumerate(configuration.port_keys(options), 1)}
    settings = configuration.documents(replace(wanted, home="/", owner=""), ports)
    programs = [Path(value) for key, value in settings[0]["options"].items() if key.endswith("Binary")]
    stamps = [(str(each), each.stat().st_mtime_ns) for each in programs]
    recipe = json.dumps([_FORMAT, VERSION, settings, configuration.fingerprint(options), stamps], sort_keys=True)
    return cache.root().parent / "clusters" / f"{hashlib.sha256(recipe.encode()).hexdigest()[:24]}.json"


def read(file: Path) -> Template | None:
    """The template in a file; None if there is none that can be read."""
    try:
        found = Template(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    cache.used(file)
    return found


async def keep(
    file: Path, layout: Layout, client: Client, entries: Iterable[tuple[bytes, bytes]], since: float
) -> None:
    """Keep a control plane at rest, without its nodes, as a template.

    Args:
        entries: keys and values of its etcd.
        since: when it was started, in seconds since 1970.
    """
    options = layout.settings()["options"]
    ports = {key: int(options[key]) for key in configuration.port_keys({})}
    texts = await _texts(client, (layout.directory / "pki" / "ca.crt").read_text(), ports)
    kept = Template(
        kwok=_emptied(layout.text(layout.kwok_file), layout, ports),
        kubeconfig=_emptied(layout.text(layout.kubeconfig), layout, ports),
        programs={each.name: str(each.resolve()) for each in (layout.directory / "bin").iterdir()},
        objects={
            key.decode(): base64.b64encode(value).decode()
            for key, value in entries
            if not key.startswith(_NODES_AND_EVENTS) and key.decode() not in texts
        },
        since=int(since),
        texts=texts,
    )
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for other in file.parent.glob("*.json"):
        if cache.is_old([other]):
            other.unlink(missing_ok=True)
    files.write(file, json.dumps(asdict(kept)), mode=0o600)


async def _texts(client: Client, authority: str, ports: Mapping[str, int]) -> dict[str, str]:
    """The objects that have the certificate authority or the API server's port, by key, with placeholders for these."""
    found = {}
    kinds = (("ConfigMap", "configmaps", "configmaps"), ("Service", "services", "services/specs"))
    for kind, plural, stored in kinds:
        for each in (await client.get(f"/api/v1/{plural}"))["items"]:
            metadata: dict[str, Any] = {key: own for key, own in each["metadata"].items() if key != "resourceVersion"}
            text = json.dumps({"apiVersion": "v1", "kind": kind, **each, "metadata": metadata})
            emptied = text.replace(json.dumps(authority)[1:-1], _AUTHORITY)
            emptied = emptied.replace(json.dumps(authority.rstrip("\n"))[1:-1], _AUTHORITY)
            if kind == "Service":
                name = "kubeApiserverPort"
                emptied = re.sub(rf"\b{ports[name]}\b", _PORT.format(name), emptied)
            if emptied != text:
                found[f"/registry/{stored}/{metadata['namespace']}/{metadata['name']}"] = emptied
    return found


def _emptied(text: str, layout: Layout, ports: Mapping[str, int]) -> str:
    """A file's text with placeholders for what is a cluster's own."""
    text = text.replace(str(layout.directory), _DIRECTORY).replace(str(layout.home), _HOME)
    for name, port in ports.items():
        text = re.sub(rf"\b{port}\b", _PORT.format(name), text)
    return text


def _filled(text: str, layout: Layout, ports: Mapping[str, int]) -> str:
    """The text of a template's file for a new cluster."""
    for name, port in ports.items():
        text = text.replace(_PORT.format(name), str(port))
    return text.replace(_DIRECTORY, str(layout.directory)).replace(_HOME, str(layout.home))


def _number(varint: bytes) -> int:
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(varint))


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
