"""A node image for kind, made here from Debian's packages and Go modules: for where no image registry is in reach.

- `image`: the whole: what it is made from, where it is kept, whether it is there
- `debian`: the root filesystem
- `containers`: the images of the control plane's programs, which a node brings along
- `docker`: both together, as an image in Docker, by the `docker` command
- `files`: what the root filesystem gets of ours
"""
