"""The formats of traces, one file each: columns, units, where they are described, and how a row becomes a task."""
