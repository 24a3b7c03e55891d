"""Make the files of a release, and publish them: what .github/workflows/release.yml runs, step by step.

    python -m tests.support.release check v0.1.0   # that the tag, the changelog and this checkout say the same
    python -m tests.support.release packages       # sdist, wheel, the users' requirements, the installer, an SBOM
    python -m tests.support.release sdks           # for Node.js, Go and .NET, from the plugin's schema
    python -m tests.support.release sums           # SHA256SUMS
    python -m tests.support.release publish-python | publish-npm | publish-go | publish-nuget | publish-image

The files are in dist/, or in the folder that RELEASE_DIST names. Where to publish is what each client reads of its
environment: UV_PUBLISH_URL, NPM_CONFIG_REGISTRY, git's remote `origin`, NUGET_SOURCE, IMAGE_REPOSITORY.
tests/e2e/test_release.py and test_container_image.py run all of it against stand-ins on this machine, but for packing
the SDK for .NET and uploading it, which takes dotnet.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from kumulus import toolchain
from kumulus.host import version
from kumulus.host.version import VERSION
from kumulus.provider.plugin.package import schema_json
from kumulus.toolchain import venv
from tests.support import installed

ROOT = installed.ROOT
SUMS, REQUIREMENTS, SCHEMA = "SHA256SUMS", "requirements.txt", "schema.json"
BILL = f"kumulus-{VERSION}.cdx.json"
_PROJECT = f'[project]\nname = "kumulus"\nversion = "{VERSION}"\nrequires-python = ">=3.11"\n'
_AUTHOR = ("-c", "user.name=release", "-c", "user.email=release@localhost")
_SDKS = {"nodejs": "npm", "go": "go", "dotnet": "dotnet"}


def check(tag: str) -> None:
    """Refuse a tag that is not this version's, a changelog without it, and files that are not in git."""
    problems = []
    if tag != f"v{VERSION}":
        problems.append(f"the tag is {tag}, and src/kumulus/host/version.py says {VERSION}")
    if not re.search(rf"^## \[{re.escape(VERSION)}\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        problems.append(f"CHANGELOG.md has no section [{VERSION}]; name [Unreleased] so")
    if not list((ROOT / "tests" / "data" / "releases").glob(f"{VERSION}-*")):
        problems.append(f"tests/data/releases has nothing of {VERSION}; run: python -m tests.support.record_release")
    if changed := run(["git", "status", "--porcelain", "--untracked-files=no"], ROOT).strip():
        problems.append(f"these files are not as they are in git:\n{changed}")
    if problems:
        sys.exit("\n".join(f"error: {each}" for each in problems))


def packages(dist: Path) -> None:
    """The sdist and the wheel, what `kumulus[all]` needs in exactly these versions, the installer, and an SBOM."""
    dist.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kumulus-release-") as folder:
        archives = [shutil.copy(made, dist) for made in installed.build(Path(folder))]
        requirements = dist / REQUIREMENTS
        needs = ["--extra", "all", "--constraints", venv.LOCK, "--no-header"]
        venv.run_uv(ROOT, [*venv.COMPILE, *needs, "-o", str(requirements)])
        _bill(Path(folder), requirements, dist / BILL)
    hashes = " ".join(f"--hash=sha256:{sum_of(Path(each))}" for each in archives)
    with requirements.open("a") as file:
        file.write(f"kumulus=={VERSION} {hashes}\n")
    values = {"VERSION": VERSION, "REPOSITORY": version.REPOSITORY, "REQUIREMENTS_SHA256": sum_of(requirements)}
    script = (ROOT / "contrib" / "install.sh").read_text()
    for name, value in values.items():
        script = script.replace(f"@{name}@", value)
    (dist / "install.sh").write_text(script)


def _bill(folder: Path, requirements: Path, file: Path) -> None:
    """A bill of materials (CycloneDX) of these requirements, as uv writes it of a project's lock."""
    (folder / "pyproject.toml").write_text(_PROJECT)
    for arguments in (
        ["add", "--quiet", "--no-sync", "-r", str(requirements)],
        ["export", "--quiet", "--frozen", "--format", "cyclonedx1.5", "--output-file", str(file)],
    ):
        venv.run_uv(ROOT, [*arguments, "--project", str(folder)])


def sdks(dist: Path) -> None:
    """The schema, and an SDK of it for each language whose own tool is on PATH; says which one is not."""
    dist.mkdir(parents=True, exist_ok=True)
    schema = dist / SCHEMA
    schema.write_text(schema_json())
    for language, program in _SDKS.items():
        if shutil.which(program) is None:
            print(f"no SDK for {language}: {program} is not there")
            continue
        target = dist / "sdk" / language
        shutil.rmtree(target, ignore_errors=True)
        generate(language, schema, target)
        _PACKED[language](target, dist)


def generate(language: str, schema: Path, target: Path) -> None:
    """Write an SDK's source: by pulumi-gen-sdk if it was built, otherwise by the engine and its language host.

    For .NET it is always the host, which Pulumi's own releases have: no module with its generator is published.
    """
    if language != "dotnet":
        with suppress(toolchain.ToolMissing):
            run([str(toolchain.find("pulumi-gen-sdk")), language, str(schema), str(target)])
            return
    options = ["--language", language, "--out", str(target)]
    run([str(toolchain.find("pulumi")), "package", "gen-sdk", str(schema), *options])
    # The engine puts each language into a folder of its name.
    if (below := target / language).is_dir():
        shutil.copytree(below, target, dirs_exist_ok=True)
        shutil.rmtree(below)


def _npm_pack(sdk: Path, dist: Path) -> None:
    run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], sdk)
    run(["npm", "run", "build"], sdk)
    for name in ("package.json", "README.md", "LICENSE"):
        source = sdk / name if (sdk / name).is_file() else ROOT / name
        shutil.copy(source, sdk / "bin")
    run(["npm", "pack", "--pack-destination", str(dist.resolve())], sdk / "bin")


def _go_module(sdk: Path, dist: Path) -> None:
    if not (sdk / "go.mod").exists():
        run(["go", "mod", "init", version.GO_MODULE], sdk)
    run(["go", "mod", "tidy"], sdk)
    run(["go", "vet", "./..."], sdk)
    shutil.copy(ROOT / "LICENSE", sdk)


def _nuget_pack(sdk: Path, dist: Path) -> None:
    # A project of Pulumi's packs itself when it is built, and is then not built when it is packed.
    options = ["--configuration", "Release", f"-p:Version={VERSION}", "-p:GeneratePackageOnBuild=false"]
    run(["dotnet", "pack", *options, "--output", str(dist.resolve())], sdk)


_PACKED: Mapping[str, Callable[[Path, Path], None]] = {
    "nodejs": _npm_pack,
    "go": _go_module,
    "dotnet": _nuget_pack,
}


def sums(dist: Path) -> None:
    """SHA256SUMS of the files of the release."""
    files = sorted(file for file in dist.iterdir() if file.is_file() and file.name != SUMS)
    (dist / SUMS).write_text("".join(f"{sum_of(file)}  {file.name}\n" for file in files))


def sum_of(file: Path) -> str:
    """A file's SHA-256, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def publish_python(dist: Path) -> None:
    """Upload sdist and wheel to the package index."""
    venv.run_uv(ROOT, ["publish", *(str(file) for file in sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")]))])


def publish_npm(dist: Path) -> None:
    """Upload the SDK for Node.js; with provenance where npm can say who built it."""
    signed = ["--provenance"] if "ACTIONS_ID_TOKEN_REQUEST_URL" in os.environ else []
    (archive,) = dist.glob("*.tgz")
    run(["npm", "publish", str(archive.resolve()), "--access", "public", *signed])


def publish_go(dist: Path) -> None:
    """Push the SDK for Go as the commit of a tag of its own, which is how Go finds a module in a folder."""
    root = Path(os.environ.get("RELEASE_REPOSITORY", ROOT))
    place = Path("sdk", "go", "kumulus")
    tag = f"{place}/v{VERSION}"
    with tempfile.TemporaryDirectory(prefix="kumulus-release-") as folder:
        tree = Path(folder, "tree")
        run(["git", "worktree", "add", "--detach", str(tree), f"v{VERSION}"], root)
        try:
            shutil.copytree(dist / "sdk" / "go", tree / place)
            run(["git", "add", "--force", str(place)], tree)
            run(["git", *_AUTHOR, "commit", "--quiet", "-m", f"The SDK for Go of {VERSION}"], tree)
            run(["git", "tag", tag], tree)
            run(["git", "push", "origin", tag], tree)
        finally:
            run(["git", "worktree", "remove", "--force", str(tree)], root)


def publish_nuget(dist: Path) -> None:
    """Upload the SDK for .NET."""
    options = ["--source", os.environ["NUGET_SOURCE"], "--api-key", os.environ["NUGET_TOKEN"]]
    (archive,) = dist.glob("*.nupkg")
    run(["dotnet", "nuget", "push", str(archive), *options])


def publish_image(_: Path) -> None:
    """Push the image `kumulus`, which was built of contrib/image, by its version and as the latest."""
    for tag in (VERSION, "latest"):
        name = f"{os.environ['IMAGE_REPOSITORY']}:{tag}"
        run(["docker", "tag", "kumulus", name])
        run(["docker", "push", "--quiet", name])


def run(command: list[str], cwd: Path | None = None) -> str:
    """Run a command to its end; returns its output.

    Raises:
        SystemExit: it failed; the message has its output.
    """
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(command[:3])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


STEPS: Mapping[str, Callable[[Path], None]] = {
    "packages": packages,
    "sdks": sdks,
    "sums": sums,
    "publish-python": publish_python,
    "publish-npm": publish_npm,
    "publish-go": publish_go,
    "publish-nuget": publish_nuget,
    "publish-image": publish_image,
}

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check", tag]:
            check(tag)
        case [step] if step in STEPS:
            STEPS[step](Path(os.environ.get("RELEASE_DIST", ROOT / "dist")).absolute())
        case _:
            sys.exit(__doc__)
