"""The node image for kind: what is asked of the machine, what is kept, and images written without Docker."""

import hashlib
import json
import os
import shutil
import stat
import tarfile
from pathlib import Path

import pytest

from kumulus.extras.kind_image import containers, debian, docker, image
from kumulus.extras.kind_image.containers import ContainerImage
from kumulus.toolchain import ToolchainError
from kumulus.toolchain.progress import ToolLine

# Answers like Docker with an image made from $MADE_FROM, and writes down what it was asked.
DOCKER = """#!/bin/sh
echo "$@" >> "$ASKED"
case "$1" in
  version) echo 20.10;;
  image) echo "$MADE_FROM";;
esac
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH besides the system's, and a cache of the test's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.usefixtures("path")
def test_no_docker_is_said_with_its_package() -> None:
    with pytest.raises(ToolchainError, match=r"there is no docker on PATH\n  On Debian and Ubuntu: apt install docker"):
        image.ensure()


def test_an_engine_that_does_not_answer_is_said_with_its_own_words(path: Path) -> None:
    program(path, "docker", "echo Client: >&2; echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    with pytest.raises(
        ToolchainError, match=r"engine does not answer: Cannot connect to the Docker daemon\n  Start it"
    ):
        image.ensure()


def test_everything_that_the_machine_lacks_is_named_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path, "docker", DOCKER)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ToolchainError) as raised:
        image.ensure()
    assert str(raised.value).splitlines() == [
        "a node image cannot be made here; missing:",
        "  root, which debootstrap needs: sudo ./kumulus kind-image",
        "  debootstrap: apt install debootstrap (Debian and Ubuntu)",
        "  unshare: apt install util-linux (Debian and Ubuntu)",
    ]


def test_an_image_that_docker_has_is_left_alone(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program(path, "docker", DOCKER)
    monkeypatch.setenv("MADE_FROM", image.made_from())
    made = image.ensure()
    assert made.name == f"kumulus/node:v{image.version()}"
    assert [line.split()[0] for line in (tmp_path / "asked").read_text().splitlines()] == ["version", "image"]
    assert capsys.readouterr().err == ""


def test_an_image_of_other_sources_is_replaced_by_the_kept_one(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path, "docker", DOCKER)
    monkeypatch.setenv("MADE_FROM", "something else")
    image.archive().parent.mkdir(parents=True)
    image.archive().touch()
    image.ensure()
    assert (tmp_path / "asked").read_text().splitlines()[-1] == f"load --quiet --input {image.archive()}"


def test_other_sources_make_another_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = image.made_from()
    copy = tmp_path / "node"
    shutil.copytree(image._HERE, copy)
    monkeypatch.setattr(image, "_HERE", copy)
    assert image.made_from() == before
    (copy / "command.py").write_text("")
    assert image.made_from() == before
    (copy / "files" / "etc" / "default" / "kubelet").write_text("KUBELET_EXTRA_ARGS=\n")
    assert image.made_from() != before


def test_a_failed_root_filesystem_shows_the_last_words_and_the_log(path: Path, tmp_path: Path) -> None:
    program(path, "unshare", "echo 'E: Failed getting release file'; exit 1")
    log, node = tmp_path / "log", debian.NodeContents("1.35.4", {}, "pause")
    with pytest.raises(ToolchainError) as raised:
        debian.make(tmp_path / "root", node, "http://127.0.0.1:1/debian", ToolLine("root"), log)
    assert "debootstrap ended with exit code 1" in str(raised.value)
    assert "E: Failed getting release file" in str(raised.value)
    assert str(log) in str(raised.value)
    assert "http://127.0.0.1:1/debian" in log.read_text()


def test_docker_s_refusal_is_shown(path: Path, tmp_path: Path) -> None:
    program(path, "docker", "echo 'no space left on device' >&2; exit 1")
    with pytest.raises(
        ToolchainError, match=r"docker commit failed:\n.*\n    no space left on device\n  The whole log"
    ):
        docker.run(["commit", "x"], ToolLine("image"), tmp_path / "log")


def test_a_docker_that_is_slow_to_inspect_is_said_and_one_that_is_slow_to_remove_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path, "docker", "[ $1 = image ] && exec sleep 5; exit 0")
    path.joinpath("sleep").symlink_to("/bin/sleep")
    monkeypatch.setattr(docker, "_SECONDS", 0.5)
    with pytest.raises(ToolchainError, match=r"Docker's engine does not answer: nothing within 0.5 s\n  Start it"):
        docker.label("kumulus/node:v1", "made-from")
    monkeypatch.setattr(docker, "_REMOVAL_S", 0.5)
    docker.remove("image", "kumulus/node-base:unfinished")


def test_two_caches_make_their_images_beside_each_other(path: Path, tmp_path: Path) -> None:
    path.joinpath("tar").symlink_to(shutil.which("tar", path="/usr/bin:/bin") or "tar")
    program(path, "docker", DOCKER)

    def names(cache: str) -> set[str]:
        """The containers and images that are removed."""
        root = tmp_path / cache / "root"
        root.mkdir(parents=True, exist_ok=True)
        images = tmp_path / "images.tar"
        images.touch()
        docker.make_image("kumulus/node:v1", {}, root, images, ToolLine("image"), tmp_path / "log")
        asked = (tmp_path / "asked").read_text().splitlines()
        (tmp_path / "asked").unlink()
        return {line.split()[-1] for line in asked if line.split()[1] == "rm"}

    one, other = names("one"), names("other")
    assert (len(one), one & other) == (2, set())
    assert names("one") == one


def test_kubeadm_names_the_images(path: Path) -> None:
    lines = [f"registry.example/{name}:v1" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")]
    lines += ["registry.example/kube-proxy:v1", "registry.example/coredns/coredns:v2", "registry.example/pause:3"]
    program(path, "kubeadm", f"printf '{' '.join([*lines, 'registry.example/etcd:3-0'])}'")
    names = image._image_names(path / "kubeadm")
    assert names["coredns"] == "registry.example/coredns/coredns:v2"
    assert names["etcd"] == "registry.example/etcd:3-0"
    program(path, "kubeadm", "echo broken >&2; exit 1")
    with pytest.raises(ToolchainError, match="does not say which images it wants:\n  broken"):
        image._image_names(path / "kubeadm")


def test_images_are_written_as_docker_saves_them(tmp_path: Path) -> None:
    server, library = tmp_path / "server", tmp_path / "libc.so"
    server.write_text("a program")
    library.write_text("a library")
    two = ContainerImage("registry.example/b:2", {"lib/libc.so": library}, {"usr/sbin/iptables": "xtables"})
    archive = tmp_path / "images.tar"
    containers.write(archive, [containers.program("registry.example/a:1", server), two], tmp_path)
    with tarfile.open(archive) as packed:
        manifest = json.loads(read(packed, "manifest.json"))
        assert [each["RepoTags"] for each in manifest] == [["registry.example/a:1"], ["registry.example/b:2"]]
        first = json.loads(read(packed, manifest[0]["Config"]))
        assert first["config"]["Entrypoint"] == ["/usr/local/bin/server"]
        layer = read(packed, manifest[0]["Layers"][0])
        assert first["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
        assert manifest[0]["Config"] == f"{hashlib.sha256(json.dumps(first).encode()).hexdigest()}.json"
        packed.extract(manifest[1]["Layers"][0], tmp_path, filter="data")
    with tarfile.open(tmp_path / manifest[1]["Layers"][0]) as layers:
        assert layers.getmember("usr/sbin/iptables").linkname == "xtables"
        assert stat.S_IMODE(layers.getmember("tmp").mode) == 0o1777
        assert read(layers, "lib/libc.so") == b"a library"


def test_the_same_files_make_the_same_images(tmp_path: Path) -> None:
    server = tmp_path / "server"
    server.write_text("a program")
    for name in ("one", "two"):
        containers.write(tmp_path / name, [containers.program("a:1", server)], tmp_path)
        os.utime(server, (1, 1))
    with tarfile.open(tmp_path / "one") as one, tarfile.open(tmp_path / "two") as two:
        assert read(one, "manifest.json") == read(two, "manifest.json")


def read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()
