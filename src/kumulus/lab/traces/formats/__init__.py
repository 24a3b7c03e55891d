"""The formats of traces, one file each: its columns, their units, where they are described, and how a row is a task."""
