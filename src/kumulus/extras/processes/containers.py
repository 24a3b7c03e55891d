"""What a container of a pod is to be as a process: its program, arguments, environment and mounts; plain functions."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

NODE = "local"
Manifest = Mapping[str, Any]
VOLUMES = ("configMap", "secret", "projected", "downwardAPI", "emptyDir")
_PROBES = ("httpGet", "tcpSocket", "exec")
_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class Missing(Exception):
    """Something that a container needs is not there (yet), or nothing here does what it asks for."""


def repository(image: str) -> str:
    """An image's name without its tag and its digest."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def containers(pod: Manifest) -> Iterator[Manifest]:
    """All containers of a pod, those for its beginning first."""
    yield from pod["spec"].get("initContainers") or []
    yield from pod["spec"]["containers"]


def require(pod: Manifest, programs: Mapping[str, str]) -> None:
    """Raise Missing where a pod asks for what its process cannot have; ``programs`` are the stack's, by image."""
    spec = pod["spec"]
    for each in containers(pod):
        if repository(each["image"]) not in programs:
            raise Missing(f"the stack's kwok.processes do not name the image {each['image']}")
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            if (probe := each.get(kind)) and not any(way in probe for way in _PROBES):
                raise Missing(f"{kind} of container {each['name']}: only {', '.join(_PROBES)} can be asked here")
    if any(each.get("restartPolicy") for each in spec.get("initContainers") or []):
        raise Missing("init containers that go on are not known here")
    for volume in spec.get("volumes") or []:
        if not any(kind in volume for kind in VOLUMES):
            kind = next((key for key in volume if key != "name"), "nothing")
            raise Missing(f"volume {volume['name']}: {kind} is no volume of a process; {', '.join(VOLUMES)} are")
    if any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")):
        raise Missing("a process has no network, processes or IPC of this machine: leave hostNetwork and the like out")


def field(pod: Manifest, path: str, address: str) -> str:
    """A field of a pod for the downward API."""
    known = {
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
        "metadata.uid": pod["metadata"]["uid"],
        "spec.nodeName": NODE,
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", "default"),
        "status.podIP": address,
        "status.podIPs": address,
        "status.hostIP": "127.0.0.1",
    }
    if path in known:
        return str(known[path])
    for kind in ("labels", "annotations"):
        values = pod["metadata"].get(kind) or {}
        if path == f"metadata.{kind}":
            return "\n".join(f'{key}="{value}"' for key, value in sorted(values.items()))
        if path.startswith(f"metadata.{kind}['"):
            return str(values.get(path[len(f"metadata.{kind}['") : -2], ""))
    raise Missing(f"field {path} of the pod is not known here")


def environment(
    pod: Manifest,
    container: Manifest,
    address: str,
    port: int,
    content: Callable[[str, Manifest], Mapping[str, str]],
) -> dict[str, str]:
    """A container's environment.

    Args:
        port: the API server's, on the pod's 127.0.0.1.
        content: what a ConfigMap or a Secret has, by its field in the API and the reference to it.
    """
    made = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",  # noqa: S108 - the pod's own
        "HOSTNAME": pod["metadata"]["name"],
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
    }
    for source in container.get("envFrom") or []:
        for kind in ("configMapRef", "secretRef"):
            if kind in source:
                found = content(kind.removesuffix("Ref"), source[kind])
                made |= {source.get("prefix", "") + key: value for key, value in found.items()}
    for variable in container.get("env") or []:
        source = variable.get("valueFrom")
        if not source:
            made[variable["name"]] = expanded(variable.get("value", ""), made)
        elif "fieldRef" in source:
            made[variable["name"]] = field(pod, source["fieldRef"]["fieldPath"], address)
        elif kind := next((each for each in ("configMapKeyRef", "secretKeyRef") if each in source), ""):
            found, key = content(kind.removesuffix("KeyRef"), source[kind]), source[kind]["key"]
            if key not in found and not source[kind].get("optional"):
                raise Missing(f"variable {variable['name']}: {source[kind]['name']} has no key {key}")
            if key in found:
                made[variable["name"]] = found[key]
        else:
            raise Missing(f"variable {variable['name']}: {', '.join(source)} is not known here")
    return made


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """A text with ``$(NAME)`` replaced, as Kubernetes does for variables, commands and arguments."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])

    return _VARIABLE.sub(value, text)


def command(container: Manifest, variables: Mapping[str, str]) -> list[str]:
    """A container's command line. The first word is where its program is there, whatever it is here."""
    asked = [expanded(each, variables) for each in container.get("command") or []]
    first = asked[0] if asked and asked[0].startswith("/") else f"/programs/{container['name']}"
    return [first, *asked[1:], *(expanded(each, variables) for each in container.get("args") or [])]


def mounts(container: Manifest, program: str, first: str, volumes: str) -> list[tuple[str, str, bool]]:
    """What is mounted for a container: the place here, the absolute path there, and whether it is read-only.

    Args:
        volumes: the folder that has the pod's volumes.
    """
    made = [(program, inside(first), True)]
    for each in container.get("volumeMounts") or []:
        source = os.path.join(volumes, each["name"], each.get("subPath", ""))
        made.append((source.rstrip("/"), inside(each["mountPath"]), bool(each.get("readOnly"))))
    return made


def inside(path: str) -> str:
    """A path in a container as an absolute one, which a kubelet makes of relative ones; ``..`` does not lead out."""
    return os.path.normpath(os.path.join("/", path))


def port_of(container: Manifest, port: Any) -> int:
    """The number of a port, which may be named."""
    if isinstance(port, int) or str(port).isdigit():
        return int(port)
    for each in container.get("ports") or []:
        if each.get("name") == port:
            return int(each["containerPort"])
    raise Missing(f"container {container['name']} has no port {port}")
