"""What a complete report is written as besides: JUnit XML and plots."""

from __future__ import annotations

from pathlib import Path

from kumulus.lab.report import junit
from kumulus.lab.report.files import telling
from kumulus.lab.report.model import Report
from kumulus.surroundings import files


def write(report: Report, directory: Path) -> None:
    """Write them.

    Args:
        report: the report.
        directory: the run's.

    Raises:
        LabError: one cannot be written.
    """
    with telling(directory / junit.FILE):
        files.write(directory / junit.FILE, junit.junit(report))
    # Drawing takes a library that is not worth loading while something is measured.
    from kumulus.lab.report import plots

    plots.write(report, directory)
