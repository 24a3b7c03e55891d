"""contrib/image: built from a base made here, run without root, and used by the examples of docs/testing.md."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.extras.kind_image.debian import SUITE
from kumulus.host.version import VERSION
from kumulus.model.pools import GROUP_LABEL
from kumulus.testing.wanted import loaded, tools
from tests.support import examples, processes, registries, release
from tests.support.api import Api
from tests.support.docker import docker, require
from tests.support.project import NODES, ROOT, node_group

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

IMAGE, BASE = "kumulus", "kumulus-test-base"
PACKAGES = "ca-certificates,openssl,python3-venv,socat"
AUTHORITIES = Path("etc/ssl/certs/ca-certificates.crt")
PARTS = ("kumulus", "pyproject.toml", "requirements.txt", "README.md", "LICENSE", "NOTICE", "src", "contrib/image")
LARGEST = 600e6
GROUP = node_group("red", 30, "use1", cpu="4", memory="16Gi")
# No image of others can be pulled here, such as the one that cleans up for Testcontainers; and where this machine is a
# container itself, Docker's engine is in it, not beyond its gateway.
ALONE = {**os.environ, "TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "localhost"}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image, built on a Debian that is made here, with the tools that are here."""
    require()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("a base image takes root and debootstrap (Debian: debootstrap), as none can be pulled")
    root = tmp_path_factory.mktemp("base") / "root"
    examples.got("unshare", "--mount", "debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root))
    # Whatever authorities this machine trusts to reach packages.
    shutil.copy(Path("/") / AUTHORITIES, root / AUTHORITIES)
    trusting = [f"--change=ENV {name}=/{AUTHORITIES}" for name in ("PIP_CERT", "SSL_CERT_FILE")]
    with subprocess.Popen(["tar", "-C", str(root), "--exclude=./dev/*", "-c", "."], stdout=subprocess.PIPE) as packed:
        subprocess.run(["docker", "import", *trusting, "-", BASE], stdin=packed.stdout, check=True, timeout=300)
    folder = context(tmp_path_factory.mktemp("context"))
    options = ["--network=host", f"--build-arg=BASE={BASE}", "-f", "contrib/image/Dockerfile", "-t", IMAGE, "."]
    # Builders differ in what they take; the older one is everywhere.
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    built = subprocess.run(
        ["docker", "build", *options],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert built.returncode == 0, (built.stdout + built.stderr)[-5000:]
    yield IMAGE
    docker("image", "rm", "--force", IMAGE, BASE, timeout=120)


def context(folder: Path) -> Path:
    """The parts of the checkout that the image is made of, with the tools that a cluster needs."""
    for part in PARTS:
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, folder / part)
    (folder / "contrib/image/tools").mkdir()
    # kubectl is for the first cluster alone, which is made as the image is built.
    for tool in [*tools(loaded(None, 1, "", {})), "kubectl"]:
        shutil.copy(toolchain.find(tool), folder / "contrib/image/tools" / tool)
    return folder


def test_a_container_has_a_mounted_files_nodes_without_root_and_ends_in_order(image: str, tmp_path: Path) -> None:
    assert int(docker("image", "inspect", "--format={{.Size}}", image)) < LARGEST
    mounted = stack_file(tmp_path, {"nodeGroups": [GROUP]})
    container = docker("run", "--detach", *mounted, "--publish=127.0.0.1::6443", image).strip()
    try:
        assert healthy(container)
        port = docker("port", container, "6443/tcp").strip().rpartition(":")[2]
        text = docker("exec", container, "cat", "/kumulus/kubeconfig")
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(text.replace("localhost:6443", f"127.0.0.1:{port}"))
        api = Api(kubeconfig)
        assert [node["metadata"]["labels"][GROUP_LABEL] for node in api.list(NODES)] == ["red"] * 30
        api.close()
        assert docker("exec", container, "id", "-u").strip() == "10001"
        docker("stop", "--time=30", container, timeout=60)
        assert json.loads(docker("inspect", "--format={{json .State}}", container))["ExitCode"] == 0
    finally:
        docker("rm", "--force", "--volumes", container)


def test_a_mistake_in_a_mounted_stack_file_ends_the_container(image: str, tmp_path: Path) -> None:
    options = ["--rm", *stack_file(tmp_path, {"nodeGroups": [{**GROUP, "replica": 3}]})]
    done = subprocess.run(["docker", "run", *options, image], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, done.stdout
    assert "replica" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_runs_as_it_was_published_from_a_registry_of_images(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built = docker("image", "inspect", "--format={{.Id}}", image)
    with registries.serving() as internet:
        place = f"{internet.url.removeprefix('http://')}/mine/kumulus"
        monkeypatch.setenv("IMAGE_REPOSITORY", place)
        release.publish_image(Path())
        tags = [f"{place}:{tag}" for tag in (VERSION, "latest")]
        docker("image", "rm", "--force", image, *tags)
        try:
            docker("pull", "--quiet", tags[0], timeout=300)
            # What is tested below runs on what was pulled.
            docker("tag", tags[0], image)
            assert docker("image", "inspect", "--format={{.Id}}", image) == built
        finally:
            docker("image", "rm", "--force", tags[0])


def test_testcontainers_for_python_start_it(image: str, tmp_path: Path) -> None:
    folder = examples.write(tmp_path / "empty", "test_in_container.py")
    examples.have(folder, "testcontainers==4.15.0", "kubernetes==37.0.2")
    assert "1 passed" in examples.run(folder, *examples.pytest_of("test_in_container.py"), env=ALONE)


def test_testcontainers_for_go_start_it(image: str, tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("there is no go on PATH")
    folder = examples.write(tmp_path / "empty", "container_test.go")
    examples.got("go", "mod", "init", "example.com/container", cwd=folder)
    modules = ("github.com/testcontainers/testcontainers-go@v0.45.0", "k8s.io/client-go@v0.35.3")
    examples.got("go", "get", "-t", *modules, "./...", cwd=folder)
    done = subprocess.run(
        ["go", "test", "-count=1", "-v", "./..."],
        cwd=folder, env=ALONE, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert "--- PASS: TestThirtyNodesAreThere" in done.stdout, done.stdout + done.stderr


def stack_file(folder: Path, cluster: dict[str, Any]) -> list[str]:
    """The options that mount a stack file, which the container's user can read."""
    (folder / "stack.yaml").write_text(json.dumps({"config": {"kumulus:cluster": cluster}}))
    (folder / "stack.yaml").chmod(0o644)
    return ["--env=STACK=/stack.yaml", f"--volume={folder / 'stack.yaml'}:/stack.yaml:ro"]


def healthy(container: str) -> bool:
    """Whether a container becomes healthy, by Docker's own check, before it ends."""
    state = "{{if .State.Running}}{{.State.Health.Status}}{{else}}ended{{end}}"
    said = partial(docker, "inspect", f"--format={state}", container)
    processes.await_that(lambda: said().strip() != "starting", 120, "the container starts", pause=0.2)
    return said().strip() == "healthy"
