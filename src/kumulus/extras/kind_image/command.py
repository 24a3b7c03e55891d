"""Build a node image for kind from Debian's packages and Go modules, for use without an image registry.

Docker has it afterwards as kumulus/node:v<Kubernetes version>; it is kept as an archive too, for `docker load` on other
machines, so that a second run only loads it. The first takes about 15 minutes on two cores, root, and `debootstrap`.
docs/clusters.md says how a stack names it.
"""

import argparse

from kumulus.cli.doctor import Finding, short
from kumulus.extras.kind_image import image


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


def finding() -> Finding:
    """Whether the image was made, for `kumulus doctor`."""
    purpose, remedy = "nodes of the runtime kind where no image registry is in reach", "make kind-image"
    archive = image.archive()
    if archive.exists():
        return Finding("kind node image", "ok", image.version(), f"made: {short(archive)}", purpose)
    return Finding("kind node image", "absent", "-", "not made (optional)", purpose, remedy, remedy)
