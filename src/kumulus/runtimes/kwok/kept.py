"""A second copy of ``kwok.yaml``: what a full disk or a loss of power has cut off is brought back from it.

kwokctl writes the file in place, and no component can be started without it. The copy is made whenever a cluster has
come up as wanted, when we write the file ourselves, and when a cluster is looked at that has none yet.
"""

from __future__ import annotations

from kumulus.runtimes.kwok.layout import Layout
from kumulus.surroundings import files

DAMAGED = "damaged"
"""The state of a file that cannot be read, and is brought back by a repair."""

# What every control plane has: with fewer, the file ends too early.
_NEEDED = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}


def damaged(layout: Layout) -> bool:
    """Whether ``kwok.yaml`` is not all that it was: it does not parse, lacks components, or ends too early."""
    if not set(layout.components()) >= _NEEDED:
        return True
    # Cut off between two documents, or before a component's last flags, it is still YAML.
    text, copy = layout.text(layout.kwok_file), layout.text(layout.kept_file)
    return len(text) < len(copy) and copy.startswith(text)


def can_be_restored(layout: Layout) -> bool:
    """Whether there is a copy that a control plane can be started with."""
    return set(layout.of_copy().components()) >= _NEEDED


def keep(layout: Layout) -> None:
    """Make the copy, if ``kwok.yaml`` is as it should be; a full disk keeps nobody from working.

    Raises:
        OSError: it cannot be written.
    """
    if not damaged(layout) and (text := layout.text(layout.kwok_file)) != layout.text(layout.kept_file):
        files.write(layout.kept_file, text, mode=0o600)


def restore(layout: Layout) -> bool:
    """Bring ``kwok.yaml`` back where it is damaged and there is a copy; whether that was done.

    Raises:
        OSError: it cannot be written.
    """
    if not damaged(layout) or not can_be_restored(layout):
        return False
    files.write(layout.kwok_file, layout.text(layout.kept_file), mode=0o600)
    return True
