"""The project's virtual environment: made once, brought up to date when the requirements change.

requirements.txt is the lock: every package of the core, of every extra and of the development, exact and with the hash
of each of its files. What is installed of it follows from pyproject.toml. Another file that an index serves later under
the same version is refused. Kumulus itself is installed from its own directory, without dependencies.

uv installs, with a twentieth of pip's CPU time; it is fetched by pip, by its hash, and asks the indexes that pip would.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from kumulus.host import installation
from kumulus.toolchain import cache, pins
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.progress import answer, say

LOCK = "requirements.txt"
"""What may be installed into a checkout's environment; ``kumulus venv --lock`` writes it."""
DEVELOPMENT = "dev"
"""What `with_` has for everything that tests and lint need, all extras included."""
COMPILE = (
    *("pip", "compile", "--quiet", "pyproject.toml", "--universal", "--python-version", "3.11"),
    *("--generate-hashes", "--no-emit-index-url", "--no-annotate"),
)
"""The arguments by which uv resolves the requirements of a project to exact versions, with hashes."""
SDKS = {
    "pulumi": "pulumi",
    "pulumi-command": "pulumi-resource-command",
    "pulumi-kubernetes": "pulumi-resource-kubernetes",
}
"""Pulumi's Python packages, each with the tool that has the same version."""
_LINES_OF_LOG = 8
# By pip's settings, from a file or a variable, uv's variables that say the same.
_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
}


def python(project: Path) -> Path:
    """The environment's interpreter."""
    return project / ".venv" / "bin" / "python"


def has(project: Path, with_: Iterable[str] = ()) -> bool:
    """Whether the environment has the core and these extras, as the requirements are now.

    Args:
        with_: names of extras, or :data:`DEVELOPMENT`.
    """
    digest, there = _installed(project)
    return digest == _digest(project) and set(with_) <= there and os.access(python(project), os.X_OK)


def is_made(project: Path) -> bool:
    """Whether there is an environment, of whatever requirements, whose installation came to its end."""
    return python(project).exists() and _stamp_file(project).exists()


def ensure(project: Path, with_: Iterable[str] = ()) -> None:
    """Create the environment, or install what it lacks; returns at once if that is nothing.

    Extras that were asked for once stay, and are brought up to date with the rest.

    Args:
        with_: names of extras that are wanted besides the core, or :data:`DEVELOPMENT`.
    """
    wanted = set(with_)
    if has(project, wanted):
        return
    with cache.exclusive(project / ".venv.lock", "making .venv", say):
        if has(project, wanted):
            return
        if not _works(project):
            _create(project)
        wanted |= _installed(project)[1]
        say(f"installing {', '.join(['the core', *sorted(wanted)])} into .venv")
        # Computed before the requirements are read: if they change meanwhile, the next call installs them.
        stamp = json.dumps({"digest": _digest(project), "with": sorted(wanted)})
        # Until it is written again, the environment counts as unfinished.
        _stamp_file(project).unlink(missing_ok=True)
        if DEVELOPMENT in wanted:
            names = ["--all-extras", "--group", "dev"]
        else:
            names = [word for extra in sorted(wanted) for word in ("--extra", extra)]
        _uv(project, ["--require-hashes", "--constraints", LOCK, "-r", "pyproject.toml", "--group", "checkout", *names])
        # Editable, so that a Pulumi program elsewhere on this machine can import the components; `compat` is a plain
        # path entry, so packages added later need no new installation.
        editable = ["--no-deps", "--no-build-isolation", "--config-settings", "editable_mode=compat"]
        _uv(project, [*editable, "--reinstall-package", "kumulus", "-e", "."])
        _stamp_file(project).write_text(f"{stamp}\n")


def write_lock(project: Path, upgrade: bool = False) -> None:
    """Write requirements.txt anew from pyproject.toml.

    Args:
        upgrade: with the newest versions that pyproject.toml allows; otherwise those that are in it stay.
    """
    wanted = ["--all-extras", "--group", "dev", "--group", "checkout", *(["--upgrade"] if upgrade else [])]
    write_requirements(project, [*COMPILE, *wanted, "--custom-compile-command", "kumulus venv --lock", "-o", LOCK])


def write_requirements(project: Path, arguments: list[str]) -> None:
    """Have uv write requirements, with each of Pulumi's SDKs at the version of the program that it is tested with."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as bounds:
        bounds.writelines(f"{sdk}=={pins.load().tool(tool).version}\n" for sdk, tool in SDKS.items())
        bounds.flush()
        run_uv(project, [*arguments, "--constraints", bounds.name])


def ensure_policies(folder: Path) -> None:
    """Create a policy pack's environment, or install what changed in its requirements; instant if nothing did."""
    with cache.exclusive(folder / ".venv.lock", "making .venv", say):
        wanted = hashlib.sha256(f"{folder} ".encode() + (folder / "requirements.txt").read_bytes()).hexdigest()
        stamp = _stamp_file(folder)
        if stamp.exists() and stamp.read_text().strip() == wanted and os.access(python(folder), os.X_OK):
            return
        if not _works(folder):
            _create(folder)
        say(f"installing {folder.name}/requirements.txt into {folder.name}/.venv")
        stamp.unlink(missing_ok=True)
        _pip(folder, ["--require-hashes", "-r", "requirements.txt"])
        stamp.write_text(f"{wanted}\n")


def _stamp_file(project: Path) -> Path:
    return project / ".venv" / "kumulus-installed"


def _installed(project: Path) -> tuple[str, set[str]]:
    """The digest of what was last installed, and what was asked for besides the core."""
    try:
        stamp = json.loads(_stamp_file(project).read_text())
        return str(stamp["digest"]), set(stamp["with"])
    except (OSError, ValueError, TypeError, KeyError):
        return "", set()


def _digest(project: Path) -> str:
    # A virtual environment is bound to its path and to the Python it was made from.
    digest = hashlib.sha256(f"{project}".encode())
    for name in (LOCK, "pyproject.toml"):
        try:
            digest.update((project / name).read_bytes())
        except OSError:
            return ""
    return digest.hexdigest()


def _works(project: Path) -> bool:
    """Whether the environment's Python is recent enough and has pip."""
    try:
        code = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
        return answer([python(project), "-c", code]).returncode == 0
    except OSError:
        return False


def _create(project: Path) -> None:
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise ToolchainError(
            f"this Python ({sys.executable}) cannot make virtual environments: it comes without ensurepip"
            f"\n  On Debian and Ubuntu: apt install python{version}-venv"
        )
    say(f"making .venv with Python {sys.version.split()[0]}")
    shutil.rmtree(project / ".venv", ignore_errors=True)
    # If we run from the environment that is to be replaced, this is the Python it was made from.
    base = getattr(sys, "_base_executable", None) or sys.executable
    said = answer([base, "-m", "venv", project / ".venv"])
    if said.returncode != 0:
        raise ToolchainError(f"python -m venv failed:\n  {(said.stdout + said.stderr).strip()}")


def _pip(project: Path, arguments: list[str]) -> None:
    pip = [str(python(project)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _install(project, "pip", pip, arguments)


def _uv(project: Path, arguments: list[str]) -> None:
    run_uv(project, ["pip", "install", "--quiet", "--python", str(python(project)), *arguments])


def run_uv(project: Path, arguments: list[str]) -> None:
    """Run the pinned uv in a project, with pip's settings."""
    _install(project, "uv", [_uv_program(project)], arguments, _settings(project))


def _uv_program(project: Path) -> Path:
    """The pinned uv, which pip fetches into the cache once on a machine."""
    requirements = pins.HERE / "uv-requirements.txt"
    folder = cache.root() / f"uv-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    program = folder / "bin" / "uv"
    if not os.access(program, os.X_OK):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with cache.exclusive(folder.with_suffix(".lock"), "fetching uv", say):
            if not os.access(program, os.X_OK):
                options = ["--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes"]
                _pip(project, [*options, "-r", str(requirements), "--upgrade", "--target", str(folder)])
    return program


def _settings(project: Path) -> dict[str, str]:
    """The variables to run uv with: it asks the indexes that pip asks, and trusts the machine's certificates."""
    found = {"UV_NATIVE_TLS": "1", "UV_NO_CONFIG": "1"}
    for line in answer([python(project), "-m", "pip", "config", "list"], cwd=project).stdout.splitlines():
        key, _, value = line.partition("=")
        if name := _SETTINGS.get(key.rpartition(".")[2]):
            found[name] = value.strip().strip("'\"").replace("\\n", " ").strip()
    return {**found, **os.environ}


def _install(
    project: Path,
    name: str,
    program: Sequence[str | Path],
    arguments: list[str],
    environment: dict[str, str] | None = None,
) -> None:
    said = answer([*program, *arguments], cwd=project, env=environment)
    if said.returncode != 0:
        last = "\n".join(f"  {line}" for line in said.stderr.strip().splitlines()[-_LINES_OF_LOG:])
        raise ToolchainError(f"{name} could not install {' '.join(arguments)}:\n{last}\n  The next run tries again.")


def enter_venv() -> None:
    """Run this command again in .venv, in place of this process; returns if it runs there already or is installed.

    If there is no .venv, it is made.
    """
    checkout = installation.checkout()
    if checkout is None or os.path.realpath(sys.prefix) == os.path.realpath(checkout / ".venv"):
        return
    if not has_venv():
        ensure(checkout)
    program = str(installation.python())
    os.execv(program, [program, str(checkout / "kumulus"), *sys.argv[1:]])


def with_venv() -> None:
    """Let this process import what .venv has, which takes less time than another process in it.

    If .venv is of another Python, it is entered after all.
    """
    checkout = installation.checkout()
    if checkout is None:
        return
    packages = checkout / ".venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    if packages.is_dir():
        sys.path.append(str(packages))
    else:
        enter_venv()


def has_venv() -> bool:
    """Whether there is a .venv to enter whose installation came to its end, or none is needed."""
    checkout = installation.checkout()
    return checkout is None or is_made(checkout)
