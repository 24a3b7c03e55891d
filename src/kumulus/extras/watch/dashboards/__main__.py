"""``python -m kumulus.extras.watch.dashboards DIRECTORY``: write the dashboards' JSON files, for Grafana's *Import*."""

import argparse
from pathlib import Path

from kumulus.extras.watch.dashboards import provisioned

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m kumulus.extras.watch.dashboards", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIRECTORY", help="where to write them; made if it is missing")
    directory: Path = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in provisioned().items():
        (directory / name).write_text(content, encoding="utf-8")
