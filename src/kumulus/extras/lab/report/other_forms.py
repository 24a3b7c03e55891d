"""The other forms of a complete report: JUnit XML and plots."""

from __future__ import annotations

from pathlib import Path

from kumulus.extras.lab.report import junit
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.report.model import Report
from kumulus.host import files


def write(report: Report, directory: Path) -> None:
    """Write JUnit XML and plots."""
    with os_errors_explained(directory / junit.FILE):
        files.write(directory / junit.FILE, junit.junit(report))
    # Drawing needs a library that should not be loaded during a measurement.
    from kumulus.extras.lab.report import plots

    plots.write(report, directory)
