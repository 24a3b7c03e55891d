"""What Pulumi starts of the policy pack; it serves until the command that started it ends."""

from __future__ import annotations

import sys
from pathlib import Path

# Pulumi puts the pack's own folder there.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from policy.pack import serve  # noqa: E402

serve()
