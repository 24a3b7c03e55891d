"""Copy the policy pack into a new directory, with your own limits, and the Python environment it needs.

    kumulus policy team-policy
    pulumi preview --policy-pack team-policy --policy-pack-config team-policy/limits.json

The copy does not depend on Kumulus; edit its limits.json. On another machine, or to recreate its
environment, run the same command again. docs/teams.md describes the rules.
"""

import argparse
import json
import shlex
import shutil
from pathlib import Path

from kumulus.cli import project
from kumulus.cli.errors import UserError

_PACKAGE = Path(__file__).resolve().parents[2]
_LIMITS = "limits.json"
_OWN = ("PulumiPolicy.yaml", "requirements.txt", _LIMITS, "__main__.py")
# The packages that its rules need; they use no library.
_MODULES = ("extras/policy", "model")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("directory", type=Path, help="where to create it; an existing pack is kept")


def run(args: argparse.Namespace) -> int:
    """Create the pack."""
    from kumulus.toolchain import venv

    folder: Path = project.expanded(args.directory)
    try:
        write(folder)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: {error.strerror}") from None
    venv.ensure_policies(folder.resolve())
    quoted = shlex.quote(str(folder))
    print(f"{folder} is ready: pulumi preview --policy-pack {quoted} --policy-pack-config {quoted}/limits.json")
    return 0


def write(folder: Path) -> None:
    """Write the pack, but keep the files that a user may have changed."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "PulumiPolicy.yaml").exists():
        raise UserError(f"{folder} is not empty, and no policy pack; name another directory")
    for name in _MODULES:
        made = folder / "kumulus" / name
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(_PACKAGE / name, made, ignore=shutil.ignore_patterns("__pycache__", ".venv", *_OWN))
    for package in ("kumulus", "kumulus/extras"):
        (folder / package / "__init__.py").touch()
    if not (folder / _LIMITS).exists():
        rules = json.loads((_PACKAGE / "extras" / "policy" / _LIMITS).read_text())
        # Without the limits of this repository's stacks: a user's team-x would have that of our team-*.
        own = {name: rule | {"stacks": {}} if "stacks" in rule else rule for name, rule in rules.items()}
        (folder / _LIMITS).write_text(json.dumps(own, indent=2) + "\n")
    for name in _OWN:
        if not (folder / name).exists():
            shutil.copy(_PACKAGE / "extras" / "policy" / name, folder / name)
    if not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("__pycache__/\n.venv/\n.venv.lock\n")
