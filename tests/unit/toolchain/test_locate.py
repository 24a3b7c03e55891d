"""Finding: when a tool on PATH does, and what is remembered about it."""

import os
import re
from pathlib import Path

import pytest

from kumulus import toolchain
from kumulus.toolchain import cache, environment, pins
from kumulus.toolchain import locate as locating
from kumulus.toolchain.build import install
from kumulus.toolchain.locate import is_installed, locate, plugin_directory
from kumulus.toolchain.versions import KubernetesVersion, satisfies
from tests.unit.toolchain.sample import ROOT, Sample


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sample:
    made = Sample(tmp_path)
    made.write(accepts=">=1.2.0,<1.3.0")
    for name in ("HOME", "PATH", "XDG_CACHE_HOME", "PULUMI_HOME"):
        monkeypatch.setenv(name, made.environment[name])
    return made


@pytest.mark.parametrize(
    ("version", "accepts", "expected"),
    [
        ("1.35.4", "==1.35.4", True),
        ("v1.35.4", "==1.35.4", True),
        ("v1.35.4+k3s1", "==1.35.4", True),
        ("v1.35.4-rc.1", "==1.35.4", False),
        ("v1.32.4-dispatcher", ">=1.32.0", False),
        ("1.35", "==1.35.0", True),
        ("3.6.0", ">=3.6.0,<3.7.0", True),
        ("3.7.0", ">=3.6.0,<3.7.0", False),
        ("3.10.0", ">=3.6.0,<4.0.0", True),
        ("unknown", ">=0.0.0", False),
    ],
)
def test_versions_compare_by_number(version: str, accepts: str, expected: bool) -> None:
    assert satisfies(version, accepts) is expected


@pytest.mark.parametrize(
    ("says", "source", "version", "note"),
    [
        ("echo tool v1.2.9", "PATH", "1.2.9", ""),
        ("echo tool v1.3.0", "missing", "1.2.3", "{} is 1.3.0, needed is >=1.2.0,<1.3.0"),
        ("echo nothing of the kind; exit 3", "missing", "1.2.3", "{} does not say its version"),
    ],
)
def test_a_tool_on_path_is_used_within_its_range_or_the_reason_is_named(
    sample: Sample, says: str, source: str, version: str, note: str
) -> None:
    program = sample.program("alpha", says)
    known = pins.load(sample.pins)
    found = locate(known, known.tool("alpha"))
    assert (found.source, found.version, found.note) == (source, version, note.format(program))
    assert found.path == (program if source == "PATH" else None)


def test_a_program_on_path_is_asked_once_until_it_changes(sample: Sample) -> None:
    asked = sample.folder / "asked"
    sample.program("alpha", f"echo asked >> {asked}; echo tool v1.2.9")
    known = pins.load(sample.pins)
    for _ in range(3):
        assert locate(known, known.tool("alpha")).version == "1.2.9"
    assert asked.read_text().count("asked") == 1
    sample.program("alpha", f"echo asked >> {asked}; echo tool v1.2.10")
    assert locate(known, known.tool("alpha")).version == "1.2.10"


def test_a_program_that_did_not_answer_in_time_is_asked_again(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = sample.folder / "slow"
    slow.touch()
    program = sample.program("alpha", f"[ ! -e {slow} ] || exec sleep 60; echo tool v1.2.9")
    known = pins.load(sample.pins)
    with monkeypatch.context() as hurried:
        hurried.setattr(locating, "_TIMEOUT_S", 0.2)
        assert locate(known, known.tool("alpha")).note == f"{program} does not say its version"
    slow.unlink()
    assert locate(known, known.tool("alpha")).version == "1.2.9"


def test_a_built_tool_counts_as_built_though_env_puts_it_on_path_until_its_module_changes(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = pins.load(sample.pins)
    made = sample.folder / "made"
    made.write_text("#!/bin/sh\necho tool v1.2.3\n")
    install(made, known.tool("alpha"), sample.cache / known.key, known.tool("alpha").stamp())
    monkeypatch.setenv("PATH", f"{sample.cache / known.key / 'bin'}:{os.environ['PATH']}")
    assert locate(known, known.tool("alpha")).source == "built"
    pins.load.cache_clear()
    pins._module_files.cache_clear()
    (sample.folder / "modules" / "alpha" / "go.sum").write_text("other\n")
    known = pins.load(sample.pins)
    assert locate(known, known.tool("alpha")).source == "missing"


@pytest.mark.parametrize("linked", [False, True])
def test_pulumi_on_path_counts_only_with_its_language_host_next_to_the_program_itself(
    sample: Sample, linked: bool
) -> None:
    known = pins.load()
    program = sample.program("pulumi", "echo v3.250.0")
    found = locate(known, known.tool("pulumi"))
    assert (found.source, found.path) == ("missing", None)
    assert found.note.startswith(f"{program} has no pulumi-language-python")
    folder = sample.folder / "elsewhere" if linked else sample.path
    folder.mkdir(exist_ok=True)
    if linked:
        program.rename(folder / "pulumi")
        program.symlink_to(folder / "pulumi")
    for name in ("pulumi-language-python", "pulumi-language-python-exec"):
        (folder / name).touch(mode=0o755)
    assert locate(known, known.tool("pulumi")).path == program
    assert locate(known, known.tool("pulumi-language-python")).path == folder / "pulumi-language-python"


def test_a_provider_plugin_that_pulumi_has_already_need_not_be_built(sample: Sample) -> None:
    known = pins.load()
    provider = known.tool("pulumi-resource-kubernetes")
    home = Path(os.environ["PULUMI_HOME"])
    directory = plugin_directory(home, provider)
    directory.mkdir(parents=True)
    (directory / provider.name).touch(mode=0o755)
    assert locate(known, provider).source == "plugins"
    # What the engine leaves beside a plugin it did not finish.
    directory.with_name(f"{directory.name}.partial").touch()
    assert not is_installed(home, provider)
    assert locate(known, provider).source == "missing"


@pytest.mark.usefixtures("sample")
def test_a_missing_tool_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(toolchain.ToolMissing) as raised:
        toolchain.find("kube-apiserver")
    version = pins.load().default_kubernetes
    assert str(raised.value) == f"kube-apiserver v{version} is missing\n  To get it: ./kumulus tools"


@pytest.mark.parametrize(
    ("tool", "version", "said"),
    [
        ("kube-apiserver", "v1.2.3", "Kubernetes v1.2.3 is not among the supported versions: v1."),
        ("etcd", "3.5.0", r"etcd is available in version \S+ only, not 3.5.0"),
        ("helmet", None, "there is no tool 'helmet'"),
    ],
)
def test_what_cannot_be_had_is_refused(tool: str, version: str | None, said: str) -> None:
    with pytest.raises(toolchain.ToolchainError, match=said):
        toolchain.find(tool, version)


def test_every_pinned_tool_has_its_module_with_checksums_and_a_disk_estimate() -> None:
    known = pins.load()
    others = [tool for version in known.other_kubernetes for tool in known.control_plane(version)]
    for tool in (*known.tools, *others):
        if not tool.buildable:
            assert tool.release or tool.unpinned, tool.name
            continue
        assert {"go.mod", "go.sum"} <= dict(tool.module_files()).keys(), tool.name
        assert known.gigabytes_to_build([tool]) > 0


def test_all_of_a_kubernetes_version_s_module_is_of_that_version() -> None:
    known = pins.load()
    folder = pins.HERE / "modules" / "kubernetes"
    assert {file.stem for file in folder.glob("*.sum")} == {each.version for each in known.kubernetes}
    for each in known.kubernetes:
        module = {name: content.decode() for name, content in each.module_files(folder)}
        staging = f"v0.{each.version.removeprefix('1.')}"
        replaced = re.findall(r"^replace (\S+) => (\S+) (\S+)$", module["go.mod"], re.MULTILINE)
        assert {(old == new, version) for old, new, version in replaced} == {(True, staging)}
        assert module["go.mod"].count(f"k8s.io/kubernetes v{each.version} ") == 1
        assert f"\nk8s.io/kubernetes v{each.version} h1:" in module["go.sum"]
        # What upstream's own go.mod has from beside it has no version that could be built without a replacement.
        unreplaced = {line.split()[0] for line in module["go.sum"].splitlines() if line.split()[1] == staging}
        assert unreplaced <= {old for old, *_ in replaced}


def test_a_module_that_a_later_kubernetes_began_with_is_not_replaced_before() -> None:
    folder = pins.HERE / "modules" / "kubernetes"
    earlier = KubernetesVersion("1.35.4", "1.26", "go1.25").module_files(folder)
    assert b"k8s.io/streaming" not in earlier[0][1]
    assert b"since" not in earlier[0][1]


def test_kubectl_on_path_may_be_one_minor_version_older_or_newer() -> None:
    known = pins.load()
    minor = int(known.default_kubernetes.split(".")[1])
    assert known.tool("kubectl").accepts == f">=1.{minor - 1}.0,<1.{minor + 2}.0"


def test_what_mirrors_kubernetes_was_checked_against_all_versions_on_offer() -> None:
    """CONTRIBUTING.md, "Add a Kubernetes version", says how to check it again."""
    newest, *_, oldest = (each.rpartition(".")[0] for each in toolchain.kubernetes_versions())
    sources = [*(ROOT / "src").rglob("*.py")]
    found = {file: re.findall(r"Checked against Kubernetes\s(\S+) to (\S+)\.", file.read_text()) for file in sources}
    assert len([file for file, checked in found.items() if checked]) >= 9
    assert {file.name: checked for file, checked in found.items() if set(checked) - {(oldest, newest)}} == {}


def test_hosts_of_other_languages_are_on_path_once_they_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    known = pins.load()
    host = known.tool("pulumi-language-yaml")
    home = cache.home_of(known, host)
    assert str(home / "bin") not in environment.directories()
    made = tmp_path / "made"
    made.write_text("#!/bin/sh\n")
    install(made, host, home, host.stamp())
    assert environment.directories()[-1] == str(home / "bin")


def test_programs_that_do_not_say_their_version_are_taken_from_path_together_with_their_files(sample: Sample) -> None:
    sample.pins.write_text(
        sample.pins.read_text()
        + '[[tool]]\nname = "gamma"\nversion = "1.0.0"\npurpose = "the third"\naccepts = "*"\noptional = true\n'
        + '[[tool]]\nname = "gamma-files"\nversion = "1.0.0"\npurpose = "its files"\nbeside = "gamma"\n'
        + 'optional = true\nkeep = [{path = "*.yaml"}]\n'
    )
    known = pins.load(sample.pins)
    program = sample.program("gamma", "exit 1")
    alone = locate(known, known.tool("gamma"))
    assert (alone.source, alone.note) == ("missing", f"{program} has no gamma-files next to it")
    (sample.path / "gamma-files").mkdir()
    found = locate(known, known.tool("gamma"))
    assert (found.source, found.path, found.version) == ("PATH", program, "")
    assert locate(known, known.tool("gamma-files")).path == sample.path / "gamma-files"
