"""Build a node image for kind from Debian's packages and Go modules, for use without an image registry.

Docker has it afterwards as kumulus/node:v<Kubernetes version>; it is kept as an archive too, for `docker load` on other
machines, so that a second run only loads it. The first takes about 15 minutes on two cores, root, and `debootstrap`.
docs/clusters.md says how a stack names it.
"""

import argparse

from kumulus.kind_image import image


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--mirror", metavar="URL", help="a mirror of Debian to take the packages from")
    parser.add_argument("--rebuild", action="store_true", help="with the packages that Debian has now")


def run(args: argparse.Namespace) -> int:
    """Build the image, or load its archive."""
    made = image.ensure(args.mirror, args.rebuild)
    print(f"Docker has {made.name}")
    if made.archive.exists():
        print(f"for other machines: docker load --input {made.archive}")
    return 0
