"""GPUs requested by ResourceClaims: the claim for an amount of GPU, and the amount that a claim requests.

Pure functions. A part of a GPU is `milli` of a device that several claims share (consumable capacity, KEP-5075), or
the smallest MIG device with at least that much (partitionable devices, KEP-4815). Sources: k8s.io/api/resource/v1; for
a MIG device's share of its GPU, docs.nvidia.com/datacenter/tesla/mig-user-guide: 1g to 7g are sevenths of the
multiprocessors, and `kumulus.model.devices.PROFILES` has the eighths of the memory.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kumulus.model.devices import EIGHTHS, MIG_CLASS, MILLI, NVIDIA_DRIVER, PROFILES, WHOLE, Parts
from kumulus.model.slices import RESOURCE_API

KIND = "ResourceClaimTemplate"
REQUEST = "gpu"
"""The name of a pod's claim, and of the request in it."""

SLICES = {"1g": 1, "2g": 2, "3g": 4, "4g": 4, "7g": EIGHTHS}
"""The eighths of the memory that a MIG device of each size takes, smallest first."""

_PROFILE = re.compile(r'profile(?:\.startsWith\(| == )"([1-7]g)\.')
_DEVICE = re.compile(r"gpu-[0-9]+-mig-.+-([0-9]+)-[0-9]+")
_SIZES = {profile.number: profile.size for profile in PROFILES}


class GpuDemand(NamedTuple):
    """What a claim requests."""

    gpus: int = 0
    milli: int = 0
    """Thousandths of one GPU, in addition; for a MIG device, what it takes of its GPU."""


def mig_size(milli: int) -> str:
    """The smallest MIG device with that share of a GPU's multiprocessors and memory: 3g for 300 thousandths."""
    for size, eighths in SLICES.items():
        if min(int(size[0]) * WHOLE // 7, eighths * WHOLE // EIGHTHS) >= milli:
            return size
    return "7g"


def rounded(milli: int, parts: Parts) -> int:
    """The thousandths of a GPU taken for a part of it: exactly that part, or the eighths of the MIG device."""
    return milli if parts == "milli" or milli >= WHOLE else SLICES[mig_size(milli)] * WHOLE // EIGHTHS


def template_name(workload: str, gpus: int, milli: int, parts: Parts) -> str:
    """The name of the template for the claims of a workload's pods that request this amount."""
    amount = f"{gpus}-gpu" if gpus else f"{milli}-milli" if parts == "milli" else f"mig-{mig_size(milli)}"
    return f"{workload}-{amount}"


def claim_template(name: str, labels: Mapping[str, str], gpus: int, milli: int, parts: Parts) -> dict[str, Any]:
    """A ResourceClaimTemplate.

    Args:
        labels: of the template and of the claims created from it.
        gpus: whole GPUs; 0 for a part of one.
        milli: that part, in thousandths.
    """
    exactly: dict[str, Any] = {"deviceClassName": NVIDIA_DRIVER}
    if gpus:
        exactly["count"] = gpus
    elif parts == "milli":
        exactly["capacity"] = {"requests": {MILLI: str(milli)}}
    else:
        expression = f'device.attributes["{NVIDIA_DRIVER}"].profile.startsWith("{mig_size(milli)}.")'
        exactly = {"deviceClassName": MIG_CLASS, "selectors": [{"cel": {"expression": expression}}]}
    return {
        "apiVersion": RESOURCE_API,
        "kind": KIND,
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "metadata": {"labels": dict(labels)},
            "spec": {"devices": {"requests": [{"name": REQUEST, "exactly": exactly}]}},
        },
    }


def demand(spec: Mapping[str, Any]) -> GpuDemand:
    """What a claim requests of NVIDIA's GPUs; the first of several alternatives (`firstAvailable`).

    Args:
        spec: the claim's, or `spec.spec` of its template.
    """
    gpus = milli = 0
    for request in (spec.get("devices") or {}).get("requests") or ():
        first = (request.get("firstAvailable") or [{}])[0]
        exactly = request.get("exactly") or first
        count = int(exactly.get("count") or 1)
        if exactly.get("adminAccess"):
            continue
        if exactly.get("deviceClassName") == MIG_CLASS:
            milli += count * WHOLE * _eighths(exactly) // EIGHTHS
        elif exactly.get("deviceClassName") == NVIDIA_DRIVER:
            part = ((exactly.get("capacity") or {}).get("requests") or {}).get(MILLI)
            if part is not None and str(part).isdecimal() and int(part) < WHOLE:
                milli += count * int(part)
            else:
                gpus += count
    return GpuDemand(gpus, milli)


def _eighths(exactly: Mapping[str, Any]) -> int:
    """The eighths that a request for a MIG device takes, by its selector; the whole GPU if the selector has no size."""
    for selector in exactly.get("selectors") or ():
        if found := _PROFILE.search((selector.get("cel") or {}).get("expression", "")):
            return SLICES.get(found[1], EIGHTHS)
    return EIGHTHS


def demands(objects: Iterable[Mapping[str, Any]]) -> dict[str, GpuDemand]:
    """What each ResourceClaimTemplate among some objects requests, by name."""
    templates = (each for each in objects if each["kind"] == KIND)
    return {each["metadata"].get("name", ""): demand(each["spec"].get("spec") or {}) for each in templates}


def claimed(spec: Mapping[str, Any], known: Mapping[str, GpuDemand]) -> GpuDemand:
    """What a pod requests by claims that are created for it from templates.

    Args:
        known: what each template requests, by its name.
    """
    named = (each.get("resourceClaimTemplateName", "") for each in spec.get("resourceClaims") or ())
    found = [known[name] for name in named if name in known]
    return GpuDemand(sum(each.gpus for each in found), sum(each.milli for each in found))


def taken(device: str, consumed: str) -> int:
    """What an allocated device takes of its GPU, in thousandths.

    Args:
        device: its name, as a ResourceSlice has it.
        consumed: how much of its capacity `milli` the allocation consumed; empty where the allocation does not say.
    """
    if found := _DEVICE.fullmatch(device):
        return WHOLE * _SIZES.get(int(found[1]), EIGHTHS) // EIGHTHS
    if not consumed:
        return WHOLE
    # The API server writes 1000 as 1k.
    return int(consumed) if consumed.isdecimal() else WHOLE
