"""Finding: when a tool on PATH does, and what is remembered about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kumulus import toolchain
from kumulus.toolchain import cache, environment, pins
from kumulus.toolchain.build import install
from kumulus.toolchain.locate import is_installed, locate, plugin_directory
from kumulus.toolchain.versions import satisfies
from tests.unit.toolchain.sample import Sample


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


def test_a_tool_on_path_within_its_range_is_used(sample: Sample) -> None:
    program = sample.program("alpha", "echo tool v1.2.9")
    known = pins.load(sample.pins)
    found = locate(known, known.tool("alpha"))
    assert (found.source, found.path, found.version) == ("PATH", program, "1.2.9")


def test_a_tool_on_path_outside_its_range_is_not_used_and_the_reason_is_given(sample: Sample) -> None:
    program = sample.program("alpha", "echo tool v1.3.0")
    known = pins.load(sample.pins)
    found = locate(known, known.tool("alpha"))
    assert (found.source, found.path) == ("missing", None)
    assert found.note == f"{program} is 1.3.0, needed is >=1.2.0,<1.3.0"


def test_a_program_of_the_same_name_that_tells_no_version_is_not_used(sample: Sample) -> None:
    program = sample.program("alpha", "echo nothing of the kind; exit 3")
    known = pins.load(sample.pins)
    assert locate(known, known.tool("alpha")).note == f"{program} does not say its version"


def test_a_program_on_path_is_asked_once_until_it_changes(sample: Sample) -> None:
    asked = sample.folder / "asked"
    sample.program("alpha", f"echo asked >> {asked}; echo tool v1.2.9")
    known = pins.load(sample.pins)
    for _ in range(3):
        assert locate(known, known.tool("alpha")).version == "1.2.9"
    assert asked.read_text().count("asked") == 1
    sample.program("alpha", f"echo asked >> {asked}; echo tool v1.2.10")
    assert locate(known, known.tool("alpha")).version == "1.2.10"


def test_a_built_tool_that_env_put_on_path_still_counts_as_built(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = pins.load(sample.pins)
    made = sample.folder / "made"
    made.write_text("#!/bin/sh\necho tool v1.2.3\n")
    made.chmod(0o755)
    install(made, known.tool("alpha"), sample.cache / known.key, known.tool("alpha").stamp())
    monkeypatch.setenv("PATH", f"{sample.cache / known.key / 'bin'}:{os.environ['PATH']}")
    assert locate(known, known.tool("alpha")).source == "built"


def test_changed_module_files_make_a_built_tool_count_as_missing(sample: Sample) -> None:
    known = pins.load(sample.pins)
    made = sample.folder / "made"
    made.touch(mode=0o755)
    install(made, known.tool("alpha"), sample.cache / known.key, known.tool("alpha").stamp())
    assert locate(known, known.tool("alpha")).source == "built"
    pins.load.cache_clear()
    pins._module_files.cache_clear()
    (sample.folder / "modules" / "alpha" / "go.sum").write_text("other\n")
    known = pins.load(sample.pins)
    assert locate(known, known.tool("alpha")).source == "missing"


def test_pulumi_on_path_counts_only_with_its_language_host_beside_it(sample: Sample) -> None:
    known = pins.load()
    program = sample.program("pulumi", "echo v3.250.0")
    found = locate(known, known.tool("pulumi"))
    assert found.source == "missing"
    assert found.note.startswith(f"{program} has no pulumi-language-python")
    for name in ("pulumi-language-python", "pulumi-language-python-exec"):
        sample.program(name, "")
    assert locate(known, known.tool("pulumi")).path == program
    assert locate(known, known.tool("pulumi-language-python")).path == sample.path / "pulumi-language-python"


def test_a_link_to_pulumi_counts_when_the_language_host_is_beside_what_it_points_to(sample: Sample) -> None:
    known = pins.load()
    program = sample.program("pulumi", "echo v3.250.0")
    elsewhere = sample.folder / "elsewhere"
    elsewhere.mkdir()
    program.rename(elsewhere / "pulumi")
    program.symlink_to(elsewhere / "pulumi")
    for name in ("pulumi-language-python", "pulumi-language-python-exec"):
        (elsewhere / name).touch(mode=0o755)
    assert locate(known, known.tool("pulumi")).path == program
    assert locate(known, known.tool("pulumi-language-python")).path == elsewhere / "pulumi-language-python"


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
    assert str(raised.value) == "kube-apiserver v1.35.4 is missing\n  To get it: ./kumulus tools"


def test_the_default_kubernetes_version_is_the_one_of_the_built_control_plane() -> None:
    assert toolchain.kubernetes_versions()[0] == pins.load().tool("kube-apiserver").version


@pytest.mark.parametrize(
    ("tool", "version", "said"),
    [
        ("kube-apiserver", "v1.2.3", "Kubernetes v1.2.3 is not among the supported versions: v1.35.4, v1.34.1"),
        ("etcd", "3.5.0", "etcd is available in version 3.6.8 only, not 3.5.0"),
        ("helmet", None, "there is no tool 'helmet'"),
    ],
)
def test_what_cannot_be_had_is_refused(tool: str, version: str | None, said: str) -> None:
    with pytest.raises(toolchain.ToolchainError, match=said):
        toolchain.find(tool, version)


def test_every_pinned_tool_has_its_module_with_checksums_and_a_disk_estimate() -> None:
    known = pins.load()
    others = [tool for version in known.kubernetes for tool in known.control_plane(version)]
    for tool in (*known.tools, *others):
        if not tool.buildable:
            assert tool.release is not None, tool.name
            continue
        assert (tool.sources / "go.mod").is_file(), tool.name
        assert (tool.sources / "go.sum").is_file(), tool.name
        assert known.gigabytes_to_build([tool]) > 0


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
