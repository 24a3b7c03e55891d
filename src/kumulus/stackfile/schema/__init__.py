"""JSON schemas of what users write, generated from the models: for editors, and for the reference pages.

`forms` has the schema of each type that the models check themselves; `document` makes a schema from a model; `stack` is
the schema of the whole stack file; `published` makes the reference pages. A run of the program imports none of them.
"""
