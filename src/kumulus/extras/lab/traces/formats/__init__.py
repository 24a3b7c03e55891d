"""The formats of traces, one file each: columns, units, where they are described, and how a row becomes a task."""

from collections.abc import Mapping

from kumulus.extras.lab.traces.formats import generic, openb, pai, philly, slurm_tables, swf
from kumulus.extras.lab.traces.task import Format

FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        openb.FORMAT,
        philly.FORMAT,
        philly.CSV,
        slurm_tables.HELIOS,
        slurm_tables.ACME,
        pai.FORMAT,
        generic.FORMAT,
        swf.FORMAT,
    )
}
"""Each format by its name in the command."""
