"""KEMU's own input files, which are not part of this project; tests that use them are skipped if they are missing."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.project import ROOT

EXAMPLES = ROOT.parent / "shared" / "kemu-examples"
needs_examples = pytest.mark.skipif(not EXAMPLES.is_dir(), reason=f"KEMU's example files are not at {EXAMPLES}")


def workload(name: str) -> dict[str, Any]:
    """One of KEMU's workload manifests.

    Args:
        name: such as ``job-a100-no-affinity-100-workers``.
    """
    manifest: dict[str, Any] = yaml.safe_load((EXAMPLES / "workloads" / f"{name}.yaml").read_text())
    return manifest
