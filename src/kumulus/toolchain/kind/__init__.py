"""What kind takes besides its own program: a Docker engine it can use, and a node image where no registry is in reach.

- `environment`: the variables to run kind with, whatever the engine may give to its containers
- `image`: a node image made here, see docs/kind.md
"""
