"""A control plane that was made with an earlier patch of Kubernetes gets the wanted one in place."""

import shutil
from pathlib import Path

import psutil
import pytest

from kumulus import toolchain
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import Plane
from tests.support.pods import PODS, pod

pytestmark = pytest.mark.integration
EXCHANGED = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def made_earlier(plane: Plane, folder: Path) -> Layout:
    """Have a control plane look as if the patch before had made it: by its record, and by where its programs are."""
    layout = Layout(Path(plane.observed.directory))
    folder.mkdir()
    version = str(layout.settings()["options"]["kubeVersion"])
    minor, _, patch = version.rpartition(".")
    for name in EXCHANGED:
        link = layout.directory / "bin" / name
        shutil.copy(link.resolve(), folder / name)
        link.unlink()
        link.symlink_to(folder / name)
    settings = layout.settings()
    settings["options"]["kubeVersion"] = f"{minor}.{int(patch) - 1}"
    others = [each for each in layout.documents() if each.get("kind") != settings["kind"]]
    layout.write_documents([settings, *others])
    return layout


async def test_the_programs_are_exchanged_and_all_objects_stay(plane: Plane, tmp_path: Path) -> None:
    uid = plane.api.create(PODS, pod("mine"))["metadata"]["uid"]
    layout = made_earlier(plane, tmp_path / "earlier")
    before = plane.processes()
    after = await plane.repair()
    assert (after.identity, after.health) == (plane.identity, "running")
    now = plane.processes()
    assert {name for name in now if now[name] != before[name]} == set(EXCHANGED)
    for name in EXCHANGED:
        pinned = toolchain.find(name, plane.wanted.kubernetes_version)
        assert Path(psutil.Process(now[name][0]).exe()) == pinned.resolve()
    assert layout.settings()["options"]["kubeVersion"] == plane.wanted.kubernetes_version
    assert plane.api.get(f"{PODS}/mine")["metadata"]["uid"] == uid
    plane.api.delete(f"{PODS}/mine")
