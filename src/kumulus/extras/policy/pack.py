"""The pack as Pulumi sees it: three rules, each with its configuration and whether it only warns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)

from kumulus.extras.policy import limits
from kumulus.model.pools import Pool

_POOL = "kumulus:index:NodePool"
_RELEASE = "kubernetes:helm.sh/v3:Release"
_COUNT = {"type": "integer", "minimum": 0}


def _limit(name: str, what: str, amount_of: Callable[[Pool], int], most: int) -> ResourceValidationPolicy:
    """A rule for how many of something a stack's pools may have together."""
    ledger = limits.PoolLedger()

    def validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
        if args.resource_type != _POOL or (pool := limits.pool_of(args.props)) is None:
            return
        stack, amount = limits.stack_of(args.urn), amount_of(pool)
        total = ledger.total(args.urn, amount)
        allowed = limits.limit_for(stack, args.get_config())
        if message := limits.too_many(what, total, pool.name, amount, allowed, stack):
            report_violation(message)

    return ResourceValidationPolicy(
        name=name,
        description=f"How many {what} a stack's node groups may have together.",
        validate=validate,
        config_schema=PolicyConfigSchema(
            properties={
                "most": {**_COUNT, "default": most},
                "stacks": {"type": "object", "additionalProperties": _COUNT, "default": {}},
            }
        ),
    )


def _from_allowed_repositories(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
    if args.resource_type != _RELEASE:
        return
    config: dict[str, Any] = args.get_config()
    release = {key: limits.plain(args.props[key]) for key in ("chart", "repositoryOpts") if key in args.props}
    if message := limits.not_allowed(release, config["allowed"], config["local"]):
        report_violation(message)


def serve() -> None:
    """Serve the pack to the engine that started it, until that ends."""
    PolicyPack(
        name="kumulus-limits",
        enforcement_level=EnforcementLevel.MANDATORY,
        policies=[
            _limit("node-limit", "nodes", limits.nodes_of, 1_000),
            _limit("gpu-limit", "GPUs", limits.gpus_of, 8_000),
            ResourceValidationPolicy(
                name="addon-repositories",
                description="Which repositories the charts of a stack's add-ons may come from.",
                validate=_from_allowed_repositories,
                config_schema=PolicyConfigSchema(
                    properties={
                        "allowed": {
                            "type": "array",
                            "items": {"type": "string"},
                            "default": ["https://prometheus-community.github.io/helm-charts"],
                        },
                        "local": {"type": "boolean", "default": True},
                    }
                ),
            ),
        ],
    )
