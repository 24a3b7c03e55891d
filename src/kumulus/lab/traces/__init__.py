"""Published traces of production clusters, imported as a stack file and an experiment file.

    formats/      one file for each format: its columns, their units and where they are described
    importing.py  a format's tasks, one by one, into a file of tasks; a summary of what came and what did not
    writing.py    the stack file and the experiment file

Used by `kumulus trace import`; docs/traces.md. Nothing holds a whole trace: tasks go from file to file one at a time.
"""
