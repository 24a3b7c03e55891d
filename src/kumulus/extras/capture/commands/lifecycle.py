"""Learn from the pods of a real cluster how long emulated ones pull, start and run, and how they fail.

    kubectl get pods -A -o json > pods.json
    kumulus lifecycle fit pods.json                # podLifecycles for a stack file, one for each kind of owner
    kumulus lifecycle fit pods.json --by app       # one for each value of that label

It reads what kubectl writes as JSON or YAML, or a directory of such files, as must-gather makes. A capture has no
times. More: docs/pods.md.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kumulus.cli.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    fit = actions.add_parser("fit", help="print lifecycles that fit a cluster's pods")
    fit.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what kubectl get pods -A -o json wrote")
    fit.add_argument("--by", default="", metavar="LABEL", help="one for each value of a label, not of owners' kinds")


def run(args: argparse.Namespace) -> int:
    """Print them."""
    from kumulus.extras.capture import lived
    from kumulus.extras.capture.dumps import FileRefused
    from kumulus.kube import safe_yaml
    from kumulus.model.names import dns_safe

    try:
        groups, others = lived.grouped(_pods(args.files), args.by)
    except FileRefused as error:
        raise UserError(str(error)) from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}") from None
    made = {kind: lives.lifecycle(dns_safe(kind.lower())[:40].strip("-")) for kind, lives in sorted(groups.items())}
    known = {kind: life for kind, life in made.items() if len(life) > 2}
    if not known:
        wanted = f"the label {args.by}" if args.by else "an owner"
        raise UserError(
            f"no pod in {', '.join(map(str, args.files))} has {wanted}, and times"
            "\n  To save pods with their times: kubectl get pods -A -o json > pods.json"
        )
    left = [(kind, "no times") for kind in made.keys() - known.keys()] + (
        [("other pods", str(others))] if others else []
    )
    for what, why in sorted(left):
        print(f"# not in it: {what} ({why})")
    print("podLifecycles:")
    for kind, life in known.items():
        print(f"# {groups[kind].about()}\n{safe_yaml.written([life])}", end="")
    return 0


def _pods(paths: list[Path]) -> Iterator[dict[str, Any]]:
    from kumulus.extras.capture import dumps

    for file in dumps.files(paths):
        yield from (each for each in dumps.objects(file) if each.get("kind") == "Pod")
