"""Python requirements name the hashes of what may be installed, and pip installs nothing else."""

import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kumulus.toolchain import pins, venv
from kumulus.toolchain.errors import ToolchainError
from tests.support.project import ROOT

FILES = ("requirements.txt", "src/kumulus/toolchain/uv-requirements.txt", "src/kumulus/extras/policy/requirements.txt")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def requirements(file: str) -> dict[str, list[str]]:
    """The hashes of each requirement of a file, by what is required."""
    text = re.sub(r"(?m)^\s*#.*$", "", (ROOT / file).read_text()).replace("\\\n", " ")
    lines = [re.sub(r" ; [^\\]+? (?=--hash)", " ", line).split() for line in text.splitlines() if line.strip()]
    return {line[0]: line[1:] for line in lines}


@pytest.mark.parametrize("file", FILES)
def test_every_requirement_is_exact_and_has_the_hashes_of_its_files(file: str) -> None:
    found = requirements(file)
    assert found
    for requirement, options in found.items():
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!+-]+", requirement), requirement
        assert options, f"{requirement} has no hash"
        assert all(_HASH.fullmatch(option) for option in options), requirement
        assert len(set(options)) == len(options), requirement


@pytest.mark.parametrize("file", FILES)
def test_compiled_packages_have_hashes_for_more_than_one_machine(file: str) -> None:
    found = {requirement.partition("==")[0].lower(): options for requirement, options in requirements(file).items()}
    for compiled in {"grpcio", "pyyaml", "wrapt"} & set(found):
        assert len(found[compiled]) > 10, compiled


@pytest.mark.parametrize("file", [FILES[0], FILES[2]])
def test_pulumis_sdks_are_of_the_programs_that_they_are_tested_with(file: str) -> None:
    found = {each for each in requirements(file) if each.partition("==")[0] in venv.SDKS}
    wanted = {f"{sdk}=={pins.load().tool(tool).version}" for sdk, tool in venv.SDKS.items()}
    assert "pulumi" in {each.partition("==")[0] for each in found}
    assert found <= wanted


def wheel(folder: Path, text: str) -> str:
    """Make the only version of a package; returns its hash."""
    name, about = "sample-1.0-py3-none-any.whl", "sample-1.0.dist-info"
    files = {
        "sample.py": text,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data.encode()).digest()).rstrip(b'=').decode()},"
        for path, data in files.items()
    ]
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, data in {**files, f"{about}/RECORD": "\n".join([*record, f"{about}/RECORD,,"]) + "\n"}.items():
            archive.writestr(path, data)
    return hashlib.sha256((folder / name).read_bytes()).hexdigest()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose environment's Python installs from a folder, into another one."""
    python = venv.python(tmp_path)
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "pyproject.toml").touch()
    for name, value in {
        "NO_INDEX": "1",
        "FIND_LINKS": str(tmp_path / "index"),
        "TARGET": str(tmp_path / "into"),
    }.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return tmp_path


def install(project: Path, requirement: str) -> None:
    folder = project / "pack"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "requirements.txt").write_text(f"{requirement}\n")
    own = venv.python(folder)
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_bytes(venv.python(project).read_bytes())
    own.chmod(0o755)
    venv.ensure_policies(folder)


def test_what_is_not_what_it_was_is_not_installed(project: Path) -> None:
    known = wheel(project / "index", "a = 1")
    with pytest.raises(ToolchainError, match=r"(?s)pip could not install .*hash"):
        install(project, "sample==1.0")
    wheel(project / "index", "a = 'another'")
    with pytest.raises(ToolchainError, match=r"(?s)pip could not install .*DO NOT MATCH THE HASHES"):
        install(project, f"sample==1.0 --hash=sha256:{known}")
    assert not (project / "into").exists()
    known = wheel(project / "index", "a = 1")
    install(project, f"sample==1.0 --hash=sha256:{known}")
    assert (project / "into" / "sample.py").read_text() == "a = 1"


def test_a_checkouts_environment_takes_no_file_but_those_of_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    known = wheel(tmp_path / "index", "a = 1")
    wheel(tmp_path / "index", "a = 'another'")
    about = (
        '[project]\nname = "kumulus"\nversion = "1"\ndependencies = ["sample"]\n[dependency-groups]\ncheckout = []\n'
    )
    (tmp_path / "pyproject.toml").write_text(about)
    (tmp_path / venv.LOCK).write_text(f"sample==1.0 --hash=sha256:{known}\n")
    with pytest.raises(ToolchainError, match=r"(?s)uv could not install .*Hash mismatch"):
        venv.ensure(tmp_path)
    assert not list((tmp_path / ".venv").rglob("sample*"))
    assert not venv.has(tmp_path)


def test_requirements_that_change_while_they_are_installed_are_installed_the_next_time(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements = project / "requirements.txt"
    requirements.touch()
    monkeypatch.setattr(venv, "_uv", lambda *_: requirements.write_text("another==1.0\n"))
    venv.ensure(project)
    assert not venv.has(project)
    venv.ensure(project)
    assert venv.has(project)


def needs(name: str) -> list[str]:
    """What a package needs; nothing where it is not for this machine, or for nobody's tests (Ray, Dask)."""
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def test_what_a_requirement_needs_is_a_requirement_too() -> None:
    """What has no hash is refused."""
    names = {canonicalize_name(requirement.partition("==")[0]) for requirement in requirements(FILES[0])}
    missing = {
        f"{name} needs {needed.name}"
        for name in names
        for needed in map(Requirement, needs(name))
        if (needed.marker is None or needed.marker.evaluate({"extra": ""}))
        and canonicalize_name(needed.name) not in names
    }
    assert len(names) > 50
    assert missing == set()


def test_pulumi_lists_the_packages_with_a_pip_that_does_not_load_its_network_modules_for_it() -> None:
    """Pulumi's language host does so in every preview and update. The pip of Python 3.11 takes twice as long."""
    assert any(each.startswith("pip==") for each in requirements(FILES[0]))
    command = [sys.executable, "-X", "importtime", "-m", "pip", "list", "-v", "--format", "json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not [line for line in answer.stderr.splitlines() if line.endswith(" pip._vendor.requests")]
