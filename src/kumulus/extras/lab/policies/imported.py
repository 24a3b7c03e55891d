"""What a policy's answers depend on beside its own file: the modules and data that it reads when it is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.policies import load

# Installed packages are not part of a policy, even if its directory has them.
_OTHERS = ("__pycache__", "site-packages")


def files(policy: Path) -> list[Path]:
    """The files below a policy's directory that it reads while it is imported, without itself.

    It is imported in a process of its own: modules that another policy has imported are not read again in this one. A
    policy that cannot be imported has none; its run says why it cannot.
    """
    line = [sys.executable, "-P", "-m", __name__, str(policy)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(line, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"the policy {policy} cannot be looked through:\n{done.stderr.strip()}")
    # Before it there is what the policy prints.
    return [Path(each) for each in json.loads(done.stdout.splitlines()[-1])]


def _read_by(policy: Path) -> list[str]:
    root, opened, before = policy.resolve().parent, set[str](), set(sys.modules)

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and str(arguments[1] or "r").startswith("r"):
            opened.add(arguments[0])

    sys.addaudithook(note)
    try:
        load.policy(str(policy), Path(), 0)
    except (LabError, SystemExit):
        return []
    # A module that has been compiled before is not opened.
    gained = {getattr(sys.modules[name], "__file__", None) or "" for name in set(sys.modules) - before}
    found = {Path(each).resolve() for each in opened | gained if each}
    return sorted(
        str(each)
        for each in found - {policy.resolve()}
        if each.is_relative_to(root) and each.is_file() and not set(_OTHERS) & set(each.relative_to(root).parts)
    )


if __name__ == "__main__":
    print(json.dumps(_read_by(Path(sys.argv[1]))))
