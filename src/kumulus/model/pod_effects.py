"""What a fault does to pods, in plain dataclasses: the provider plugin imports this file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kumulus.model.plain import made_from, plain

ACTIONS = ("fail", "failInit", "evict", "imagePull", "stuck")
"""A container fails; an init container fails; the kubelet evicts the pod; an image cannot be pulled; a deleted pod is
stuck."""


@dataclass(frozen=True)
class PodEffects:
    """What a fault does to each pod it selects.

    Args:
        action: fail, failInit, evict, imagePull or stuck.
        container: the name of the container; empty for those with one of the images, or the first.
        exit_code: of the container that fails.
        reason, message: why it failed, or why the pod was evicted, or why the image is not there.
        delay: seconds from the pod's start to the fault.
        jitter: up to this many seconds more, evenly spread over the pods.
        repeat: whether every pod is hit, and a restarted container again; otherwise each pod that is there when the
            fault begins, once.
        percent: how many of the selected pods are hit.
        labels: those that a pod has to have.
        namespaces: it is in one of them; empty for any.
        owner_kinds: it belongs to a workload of one of these kinds; empty for any.
        images: one of its containers has one of these images, in which `*` stands for any characters; empty for any.
    """

    action: str
    container: str = ""
    exit_code: int = 1
    reason: str = ""
    message: str = ""
    delay: float = 0.0
    jitter: float = 0.0
    repeat: bool = True
    percent: float = 100.0
    labels: Mapping[str, str] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    owner_kinds: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    @property
    def containers(self) -> str:
        """The list in a pod's spec of those it hits."""
        return "initContainers" if self.action == "failInit" else "containers"

    @property
    def image_pattern(self) -> str:
        """The images as one regular expression; empty for any."""
        each = "|".join(".*".join(map(re.escape, image.split("*"))) for image in self.images)
        return f"^(?:{each})$" if each else ""

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able."""
        # Earlier versions wrote no images.
        return dict(plain(self, optional=("images",)))


def pod_effects_from(raw: Mapping[str, object]) -> PodEffects:
    """Effects from the plain form that `PodEffects.to_plain` writes; numbers may be floats, as in protobuf."""
    return made_from(PodEffects, raw)
