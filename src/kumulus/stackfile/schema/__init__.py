"""JSON schemas of what users write, made from the models: for editors, and for the pages of reference.

`forms` says for each type that the models check themselves what a schema can say of it; `document` makes a schema from
a model; `stack` is the whole stack file; `page` is its page of reference. Imported by nothing that a run of the program
needs.
"""
