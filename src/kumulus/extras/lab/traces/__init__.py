"""Published traces of production clusters, imported as a stack file and an experiment file.

    formats/      one file for each format: its columns, their units and where they are described
    importing.py  writes a format's tasks, one by one, into a file of tasks; sums up what was imported and what was not
    writing.py    the stack file and the experiment file

Used by `kumulus trace import`; docs/traces.md. A whole trace is never in memory: tasks are copied one at a time.
"""
