"""What Pulumi starts of the policy pack; it serves until the command that started it ends."""

import sys
from pathlib import Path

# Pulumi puts the pack's own folder there, which has the modules in a copy that `kumulus policy` made.
_HERE = Path(__file__).resolve().parent
sys.path[0] = str(_HERE if (_HERE / "kumulus").is_dir() else _HERE.parents[2])

from kumulus.extras.policy.pack import serve  # noqa: E402

serve()
