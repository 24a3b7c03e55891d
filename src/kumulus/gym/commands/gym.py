"""List the problems for agents, and check one: its file, and that its recorded solution solves it, on a cluster.

    kumulus gym ls
    kumulus gym check my-problem.yaml --seed 1 --seed 2

A problem is right if it is not solved at its beginning, and is after its solution. More: docs/agents.md.
"""

import argparse
import json

from kumulus.cli.errors import UserError
from kumulus.host import interrupts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("ls", help="list the problems that come with Kumulus")
    listing.add_argument("--json", action="store_true", help="for programs")
    checking = actions.add_parser("check", help="check problems, on a cluster for each")
    checking.add_argument("problems", nargs="+", metavar="PROBLEM", help="a file, or the name of a problem")
    checking.add_argument("--seed", type=int, action="append", metavar="N", help="by default 1 and 2")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    from kumulus.gym import GymError
    from kumulus.testing import ClusterError

    try:
        return _list(as_json=args.json) if args.action == "ls" else _check(args.problems, args.seed or [1, 2])
    except (GymError, ClusterError) as error:
        raise UserError(str(error)) from None


def _list(*, as_json: bool) -> int:
    from kumulus.gym import problem, problems
    from kumulus.model.words import aligned

    found = [problem(name) for name in problems()]
    if as_json:
        wanted = {"name", "subject", "steps", "timeLimit"}
        print(json.dumps([each.model_dump(include=wanted) for each in found], indent=2))
        return 0
    rows = [(each.name, each.subject, str(each.steps), each.timeLimit) for each in found]
    print(aligned([("PROBLEM", "SUBJECT", "STEPS", "TIME"), *rows]))
    return 0


def _check(named: list[str], seeds: list[int]) -> int:
    from kumulus.gym import Environment, problem
    from kumulus.gym.checking import check

    failed = 0
    with interrupts.like_ctrl_c():
        for each in [problem(name) for name in named]:
            with Environment(each) as environment:
                for seed in seeds:
                    wrong = check(environment, seed)
                    print(f"{each.name}, seed {seed}: {wrong or 'right'}", flush=True)
                    failed += bool(wrong)
    return 1 if failed else 0
