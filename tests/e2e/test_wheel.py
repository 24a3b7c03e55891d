"""The wheel, installed into an environment of its own: from nothing to 30 nodes and back, without the checkout."""

import json
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from kumulus.host.version import VERSION
from tests.support.api import Api
from tests.support.installed import ROOT, Environment, User
from tests.support.pods import is_ready
from tests.support.project import NODES

pytestmark = pytest.mark.e2e

# What others call their packages, and what Kumulus' own were called once.
COMMON_NAMES = ("spec", "kube", "cli", "components", "lab", "host", "provider", "policy")
WITH_TENANT = "from kumulus import Tenant\n\nTenant('team', cluster=cluster)\n"
WITH_ITS_PROVIDER = "print(cluster.kubernetes)\n"
WITH_A_MISTAKE = "pulumi.CustomResource('kumulus:index:NodePool', 'wrong', {'replicas': -1})\n"
WITH_MISTAKES = "".join(
    f"KwokNodeGroup('{name}', cluster=cluster, zones={{'a': 1}}, instance_type='none')\n" for name in ("one", "two")
)
FOREIGN = "raise ImportError('this is somebody else\\'s package')\n"


@pytest.fixture(scope="module")
def environment(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment.make(tmp_path_factory.mktemp("installed") / "env")
    for name in COMMON_NAMES:
        (made.packages / name).mkdir()
        (made.packages / name / "__init__.py").write_text(FOREIGN)
    made.install(archives[1])
    return made


def test_both_archives_have_every_file_of_the_package_as_it_is(archives: tuple[Path, Path], tmp_path: Path) -> None:
    sdist, wheel = archives
    package = ROOT / "src" / "kumulus"
    files = {
        str(path.relative_to(package)): path
        for path in package.rglob("*")
        if path.is_file() and not {"__pycache__", ".venv", ".venv.lock"} & set(path.parts)
    }
    assert len(files) > 300
    with zipfile.ZipFile(wheel) as zipped:
        modes = {each.filename.removeprefix("kumulus/"): each.external_attr >> 16 for each in zipped.infolist()}
        assert {name for name in modes if not re.search(r"\.(dist-info|data)/", name)} == set(files)
        assert all(zipped.read(f"kumulus/{name}") == path.read_bytes() for name, path in files.items())
    executable = {name for name, path in files.items() if path.stat().st_mode & 0o100}
    assert executable == {name for name, mode in modes.items() if mode & 0o100}
    assert "provider/pulumi-resource-kumulus" in executable
    with tarfile.open(sdist) as packed:
        members = {each.name.partition("/src/kumulus/")[2]: each for each in packed.getmembers() if each.isfile()}
        assert set(files) <= set(members)
        assert executable == {name for name in files if members[name].mode & 0o100}


def test_thirty_nodes_from_an_empty_folder_and_nothing_left(environment: Environment, user: User) -> None:
    shell = user.variables(environment)
    before = environment.digest()
    made = user.run(["kumulus", "new", "my-fleet"], user.home, shell)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == "made my-fleet: the stack dev, 30 nodes\n  cd my-fleet\n  kumulus up\n"
    project = user.home / "my-fleet"
    # A program with folders of its own by such names.
    for name in COMMON_NAMES:
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(FOREIGN)
    stack_file = (project / "Pulumi.dev.yaml").read_bytes()

    up = user.run(["kumulus", "up"], project, shell)
    assert up.returncode == 0, up.stdout + up.stderr
    assert "warning" not in up.stdout.lower() + up.stderr.lower()
    nodes = Api(project / ".kumulus" / "clusters" / "dev" / "kubeconfig.yaml").list(NODES)
    assert len(nodes) == 30
    assert all(map(is_ready, nodes))

    # Plain pulumi, on another PULUMI_HOME where Kumulus has never been.
    elsewhere = {"PULUMI_HOME": str(user.home / "other"), "PULUMI_CONFIG_PASSPHRASE": ""}
    plain = user.variables(environment, tools=True, **elsewhere)
    same = user.run(["pulumi", "preview", "-s", "dev", "--expect-no-changes", "--non-interactive"], project, plain)
    assert same.returncode == 0, same.stdout + same.stderr
    assert "warning" not in same.stdout + same.stderr
    assert (project / "Pulumi.dev.yaml").read_bytes() == stack_file

    # By name, and by the path of the plugin in the package.
    for plugin in ("kumulus", str(environment.packages / "kumulus" / "provider" / "pulumi-resource-kumulus")):
        schema = user.run(["pulumi", "package", "get-schema", plugin], user.home, plain)
        assert json.loads(schema.stdout)["version"] == VERSION, schema.stderr

    listed = user.run(["kumulus", "fault", "list"], project, shell)
    assert (listed.returncode, listed.stdout) == (0, "dev: no active fault\n"), listed.stderr
    down = user.run(["kumulus", "down"], project, shell)
    assert down.returncode == 0, down.stdout + down.stderr
    assert not (project / ".kumulus").exists()
    assert user.processes() == {}
    assert environment.digest() == before


def test_a_program_of_ones_own_from_an_empty_folder(environment: Environment, user: User) -> None:
    shell = user.variables(environment)
    assert user.run(["kumulus", "new", "fleet", "--program"], user.home, shell).returncode == 0
    project = user.home / "fleet"
    up = user.run(["kumulus", "up"], project, shell)
    assert up.returncode == 0, up.stdout + up.stderr
    assert len(Api(project / ".kumulus" / "clusters" / "dev" / "kubeconfig.yaml").list(NODES)) == 30
    # What no file says is shown as it is up.
    cost = user.run(["kumulus", "price"], project, shell)
    assert cost.stdout.startswith("dev as it is up: 30 nodes, $"), cost.stderr
    shown = json.loads(user.run(["kumulus", "topology", "--json"], project, shell).stdout)
    assert (shown["source"], sum(pool["nodes"] for pool in shown["pools"])) == ("cluster", 30)
    # A tenant needs no other plugin.
    program = project / "__main__.py"
    good = program.read_text()
    program.write_text(f"{good}\n{WITH_TENANT}")
    up = user.run(["kumulus", "up"], project, shell)
    assert up.returncode == 0, up.stdout + up.stderr
    assert not list(user.home.glob(".pulumi/plugins/resource-kubernetes*"))
    # A mistake is said in one line, and by nothing else: the engine interrupts programs when a resource has failed.
    asks = (WITH_ITS_PROVIDER, "kumulus tools --with pulumi-resource-kubernetes")
    wrong = (WITH_MISTAKES, "KwokNodeGroup one", "KwokNodeGroup two")
    for more, *told in (asks, (WITH_A_MISTAKE, "replicas"), wrong):
        program.write_text(f"{good}\n{more}")
        failed = user.run(["kumulus", "preview"], project, shell)
        said = failed.stdout + failed.stderr
        assert failed.returncode != 0
        assert all(each in said for each in told)
        assert "Traceback" not in said
    program.write_text(good)
    down = user.run(["kumulus", "down"], project, shell)
    assert down.returncode == 0, down.stdout + down.stderr
    assert user.processes() == {}


def test_programs_have_the_plugin_of_their_own_version(environment: Environment, user: User, tmp_path: Path) -> None:
    """Of two environments on one machine; the other's plugin ends with a word by which it is known."""
    other = Environment.make(tmp_path / "other")
    shutil.copytree(environment.packages / "kumulus", other.packages / "kumulus")
    version = other.packages / "kumulus" / "host" / "version.py"
    assert f'"{VERSION}"' in version.read_text()
    version.write_text(version.read_text().replace(VERSION, "99.0.0"))
    (other.packages / "kumulus" / "provider" / "plugin" / "__main__.py").write_text(
        "raise SystemExit('I am the other')\n"
    )
    user.run(["kumulus", "new", "fleet"], user.home, user.variables(environment))
    project = user.home / "fleet"
    command = ["pulumi", "preview", "-s", "dev", "--non-interactive"]
    for each, broken in ((other, True), (environment, False), (other, True)):
        shell = user.variables(each, tools=True, PULUMI_CONFIG_PASSPHRASE="")
        user.run(["pulumi", "stack", "init", "dev", "--no-select"], project, shell)
        told = user.run(command, project, shell)
        found = (told.returncode != 0, "I am the other" in told.stdout + told.stderr)
        assert found == (broken, broken), told.stdout + told.stderr
    folder = user.home / ".pulumi" / "plugins"
    assert sorted(path.name for path in folder.glob("resource-kumulus-*") if path.is_dir()) == [
        f"resource-kumulus-v{VERSION}",
        "resource-kumulus-v99.0.0",
    ]


def test_the_installed_command_says_versions_and_what_is_for_a_checkout_only(
    environment: Environment, user: User
) -> None:
    shell = user.variables(environment)
    lines = user.run(["kumulus", "--version"], user.home, shell).stdout.splitlines()
    assert lines[0].split() == ["Kumulus", VERSION, str(environment.prefix)]
    assert [line.split()[0] for line in lines] == ["Kumulus", "Python", "Pulumi", "Kubernetes", "KWOK", "etcd"]
    listed = user.run(["kumulus"], user.home, shell).stdout
    assert "\n  new " in listed
    assert "\n  venv " not in listed
    refused = user.run(["kumulus", "venv"], user.home, shell)
    assert (refused.returncode, refused.stderr) == (
        1,
        "error: `kumulus venv` is for a checkout of Kumulus; this one is installed with pip\n",
    )
    nowhere = user.run(["kumulus", "up"], user.home, shell)
    assert (nowhere.returncode, nowhere.stderr) == (
        1,
        f"error: there is no Pulumi.yaml in {user.home} or above it\n  To make a project: kumulus new my-fleet\n",
    )
    page = (ROOT / "docs" / "faults.md").read_text()
    assert user.run(["kumulus", "docs", "faults"], user.home, shell).stdout.endswith(f"/docs/faults.md\n\n{page}")
    report = json.loads(user.run(["kumulus", "doctor", "--json"], user.home, shell).stdout)
    assert report["findings"][1]["place"] == str(environment.prefix)


def test_the_first_example_of_the_page_on_testing_passes_as_copied(environment: Environment, user: User) -> None:
    (example,) = re.findall(r"```python\n(# test_cordon\.py\n.+?)```", (ROOT / "docs" / "testing.md").read_text(), re.S)
    folder = user.home / "empty"
    folder.mkdir()
    (folder / "test_cordon.py").write_text(example)
    shell = user.variables(environment, TMPDIR=str(user.home))
    done = user.run(["python", "-m", "pytest", "-o", "kumulus_nodes=h100=30"], folder, shell)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert "plugins:" in done.stdout
    assert not (user.home / ".kube").exists()
    assert list(user.home.glob("kumulus-test-*")) == []
    assert user.processes() == {}
