"""Make .venv with the pinned requirements, or bring it up to date; at once when nothing changed."""

import argparse
import tomllib

from kumulus.cli.errors import UserError
from kumulus.host import installation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add(
        "--with",
        dest="with_",
        action="append",
        default=[],
        metavar="EXTRA",
        help="also what an extra needs, such as lab, watch or all; it stays from then on",
    )
    add("--dev", action="store_true", help="with everything that tests and lint need")
    add("--policy", action="store_true", help="also .venv of the policy pack in src/kumulus/extras/policy")
    add("--lock", action="store_true", help="write requirements.txt anew from pyproject.toml; versions in it stay")
    add("--upgrade", action="store_true", help="the same with the newest versions that pyproject.toml allows")


def run(args: argparse.Namespace) -> int:
    """Make it."""
    from kumulus.toolchain import venv

    checkout = installation.checkout()
    # The registry offers this command only in a checkout.
    assert checkout is not None
    settings = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    known = sorted(settings["project"]["optional-dependencies"])
    if unknown := [name for name in args.with_ if name not in known]:
        raise UserError(f"there is no extra {unknown[0]}; there are {', '.join(known)}")
    if args.lock or args.upgrade:
        venv.write_lock(checkout, upgrade=args.upgrade)
    venv.ensure(checkout, [*args.with_, *([venv.DEVELOPMENT] if args.dev else [])])
    if args.policy:
        venv.ensure_policies(checkout / "src" / "kumulus" / "extras" / "policy")
    return 0
