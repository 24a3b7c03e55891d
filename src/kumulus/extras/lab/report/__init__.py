"""What a run leaves: report.json and its schema, plots, JUnit, the index of runs; comparisons and the history page."""

import os

from kumulus.toolchain import cache

# Before any part of it imports matplotlib: the cache of fonts is where `uninstall` removes it.
os.environ.setdefault("MPLCONFIGDIR", str(cache.root().parent / "matplotlib"))
