"""The command `kumulus`, killed while it restores the keys of a cluster: when the first of them are written."""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from kumulus.runtimes.kwok.etcd_keys import EtcdKeys
commit = EtcdKeys._commit
def dying(self, operations):
    commit(self, operations)
    os.kill(os.getpid(), signal.SIGKILL)
EtcdKeys._commit = dying
from kumulus.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def dying(*arguments: str) -> list[str]:
    """The command line."""
    return [sys.executable, "-c", _PROGRAM, str(_ROOT / "src"), *arguments]
