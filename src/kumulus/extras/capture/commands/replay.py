"""Play a recorded day of a cluster again: from its audit log, repeated captures or KWOK's recording.

    kumulus replay policy > audit-policy.yaml                  # what an API server has to log for it
    kumulus replay import audit.log -s mine --experiment day.yaml
    kumulus experiment run day.yaml                            # what happened, compared with what would have

It reads JSON lines of audit.k8s.io/v1, webhook batches, exports of EKS, GKE and AKS (packed by gzip or not), what
`kwokctl snapshot record` writes, and a directory of captures called after their times. More: docs/your-cluster.md.
"""

import argparse
from pathlib import Path

from kumulus.cli import errors, project
from kumulus.cli.errors import UserError

_SUFFIXES = (".yaml", ".yml")
_POLICY = """\
# What a replay needs of an API server's audit log: kube-apiserver --audit-policy-file, --audit-log-path.
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
  - level: None
    verbs: [get, list, watch]
  # When pods got a node, ran and ended.
  - level: Request
    verbs: [create, update, patch]
    resources:
      - {group: "", resources: [pods/binding, pods/status, pods/eviction]}
  - level: None
    resources:
      - {group: "", resources: [nodes/status, "*/status"]}
      - {group: apps, resources: ["*/status"]}
      - {group: batch, resources: ["*/status"]}
  # What was asked for, as the server took it; of nodes their cordons.
  - level: RequestResponse
    verbs: [create, update, patch]
    resources:
      - {group: "", resources: [pods, nodes, namespaces, resourcequotas, limitranges]}
      - {group: apps}
      - {group: batch}
      - {group: policy}
      - {group: scheduling.k8s.io}
OF_SCHEDULERS      - {group: resource.k8s.io, resources: [resourceclaims, resourceclaimtemplates]}
  - level: Metadata
    verbs: [delete, deletecollection]
    resources:
      - {group: "", resources: [pods, nodes, namespaces, resourcequotas, limitranges]}
      - {group: apps}
      - {group: batch}
      - {group: policy}
      - {group: scheduling.k8s.io}
      - {group: resource.k8s.io, resources: [resourceclaims, resourceclaimtemplates]}
  - level: Metadata
    verbs: [create]
    resources:
      - {group: autoscaling}
      - {group: "", resources: [persistentvolumeclaims]}
  - level: None
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    commands = parser.add_subparsers(dest="action", metavar="import|policy", required=True)
    imports = commands.add_parser("import", help="write an experiment that replays what was recorded")
    logs = "an API server's audit log (JSON lines, webhook batches, exports of EKS, GKE and AKS), KWOK's recording, "
    imports.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help=f"{logs}captures in their order, or a directory of these"
    )
    imports.add_argument("-s", "--stack", default="", help="the stack to replay it on, such as a clone of the cluster")
    imports.add_argument("--experiment", required=True, type=Path, metavar="FILE", help="the experiment file to write")
    imports.add_argument(
        "--from", dest="since", default="", metavar="WHEN", help="where to begin: a time, or how long after the start"
    )
    imports.add_argument("--until", default="", metavar="WHEN", help="where to end, likewise (default: at the end)")
    imports.add_argument(
        "--speed", type=float, default=1.0, metavar="N", help="how many times faster than recorded (default: 1)"
    )
    commands.add_parser("policy", help="print an audit policy that logs all that a replay needs, and no more")


def policy() -> str:
    """The audit policy."""
    from kumulus.extras.schedulers import registry

    groups = dict.fromkeys(kind.group for kind in registry.object_kinds() if kind.replayed)
    groups.pop("scheduling.k8s.io")
    return _POLICY.replace("OF_SCHEDULERS", "".join(f"      - {{group: {each}}}\n" for each in groups))


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    if args.action == "policy":
        print(policy(), end="")
        return 0
    return _import(args)


def _import(args: argparse.Namespace) -> int:
    from kumulus.extras.capture.day.importing import first_lines, import_day, summary
    from kumulus.extras.capture.dumps import FileRefused

    if args.experiment.suffix not in _SUFFIXES:
        raise UserError(f"--experiment {args.experiment} is no YAML file; write {args.experiment}.yaml")
    if not 0 < args.speed <= 10_000:
        raise UserError(f"--speed is {args.speed:g}; write a number above 0, at most 10000")
    errors.refuse_others(first_lines(args.experiment))
    stack = project.chosen(args.stack) if args.stack else ""
    try:
        found = import_day(args.files, args.experiment, stack, args.speed, args.since, args.until)
    except FileRefused as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{error.filename or args.experiment}: {error.strerror or error}") from None
    print("\n".join(summary(found)))
    for line in found.counted.bad:
        print(f"  bad: {line}")
    print(f"wrote {args.experiment}, {found.recording}")
    return 0
