"""The JSON schema of an experiment file, made from its models; `kumulus.stackfile.schema` says how."""

from typing import Any, get_args

from kumulus.extras.lab.file.expect import BOUNDS, KEYS, LIMITS
from kumulus.extras.lab.file.measures import UNITS, Unit
from kumulus.extras.lab.file.model import OWN, ExperimentSpec
from kumulus.extras.lab.file.timeline import ACTIONS
from kumulus.extras.lab.file.workload import DESCRIBING, GENERATED, MOST_PRIORITY, PLACES
from kumulus.extras.schedulers.registry import every
from kumulus.stackfile.schema import patterns
from kumulus.stackfile.schema.document import DEFINITIONS, DRAFT, NULL, schema_of
from kumulus.stackfile.schema.forms import at_most_one, forms, required
from kumulus.stackfile.schema.published import DescribedFile

Schema = dict[str, Any]


def experiment_schema() -> Schema:
    """The schema of an experiment file."""
    whole, definitions = schema_of(ExperimentSpec, {**forms(), **_forms()})
    return {"$schema": DRAFT, "title": "Experiment file of Kumulus", **whole, DEFINITIONS: definitions}


def _forms() -> dict[str, Schema]:
    priority = {"type": "integer", "minimum": -MOST_PRIORITY, "maximum": MOST_PRIORITY}
    return {
        "place": {"anyOf": [{"enum": list(PLACES)}, {"type": "string", "pattern": patterns.PREFIXED_KEY}]},
        "priority": {"anyOf": [{"type": "string"}, priority]},
        "arrivalRules": at_most_one("rate", "poisson", "trace"),
        "eventRules": {"oneOf": [required(action) for action in ACTIONS]},
        "schedulerRules": {
            "if": {"properties": {"name": {"enum": [OWN, *(each.name for each in every() if each.is_own)]}}},
            "then": {"properties": {key: {"enum": ["", None]} for key in ("config", "binary")}},
        },
        "expectationRules": _expectation(),
        "workloadRules": _workload(),
    }


def _expectation() -> Schema:
    """A measure with a threshold, in the measure's unit; or a workload with nodes, or what becomes of faulted ones."""
    number = {"type": "number", "minimum": 0}
    texts: dict[Unit, Schema] = {
        **dict.fromkeys(get_args(Unit), number),
        "s": {"anyOf": [{"type": "string", "pattern": patterns.BLANKS_AROUND_DURATION}, {"enum": [0, 1]}]},
        "share": {"anyOf": [{"type": "string", "pattern": patterns.ANY_PER_CENT}, {"enum": [0, 1]}]},
        "bytes": {"anyOf": [{"type": "string"}, {"type": "number"}]},
    }
    written = [
        {
            "if": {
                "required": ["measure"],
                "properties": {"measure": {"enum": [name for name in UNITS if UNITS[name] == unit]}},
            },
            "then": {"properties": {bound: {"anyOf": [form, NULL]} for bound in BOUNDS}},
        }
        for unit, form in texts.items()
    ]
    every = sorted({key for keys in KEYS for key in keys})
    alone = [{"not": {"anyOf": [required(key) for key in every if key not in keys]}} for keys in KEYS]
    measured = {"allOf": [required("measure"), {"anyOf": [required(bound) for bound in LIMITS]}, alone[0]]}
    span = {"type": "string", "pattern": patterns.DURATION}
    properties = ({"nodes": {"type": "array"}}, {"nodes": {"type": "object"}, "within": span}, {"within": span})
    others = [
        {"allOf": [*map(required, keys), only, {"properties": form}]}
        for keys, only, form in zip(KEYS[1:], alone[1:], properties, strict=True)
    ]
    return {"allOf": [{"anyOf": [measured, *others]}, *written]}


def _workload() -> Schema:
    """A manifest describes its objects itself, a recording everything; pods without an end have no duration."""
    named = {"required": ["manifest"], "properties": {"manifest": {"type": "string", "minLength": 1}}}
    endless = {"required": ["kind"], "properties": {"kind": {"enum": ["Pod", "Deployment"]}}}
    somewhere = {"properties": {"topology": required("required")}, "required": ["topology"]}
    sliced = {"properties": {"topology": required("slices")}, "required": ["topology"]}
    somehow = {"properties": {"disruption": {"enum": ["all", "single"]}}, "required": ["disruption"]}
    bound = {"anyOf": [somewhere, somehow]}
    classed = {"required": ["priority"], "properties": {"priority": {"type": "string", "minLength": 1}}}
    recorded = {"required": ["replay"], "properties": {"replay": {"type": "object"}}}
    return {
        "allOf": [
            {"if": recorded, "then": {"not": {"anyOf": [required(key) for key in DESCRIBING]}}},
            {"if": named, "then": {"not": {"anyOf": [required(key) for key in GENERATED]}}},
            {"if": endless, "then": {"not": required("duration")}},
            {"if": classed, "then": {"not": required("preemptionPolicy")}},
            {"if": bound, "then": {"required": ["gang"], "properties": {"gang": {"const": True}}}},
            {"if": sliced, "then": somewhere},
        ]
    }


EXPERIMENT = DescribedFile(
    "experiment",
    experiment_schema,
    """\
# Every field of an experiment file

How an experiment is run and measured is in [Experiments](../experiments.md). A key without a value counts as
absent. This page is generated by `kumulus schema experiment --reference`; the JSON schema for editors,
[experiment.schema.json](../schema/experiment.schema.json), by `kumulus schema experiment`.

In an editor with a YAML language server, the first line of an experiment file names the schema:

```yaml
# yaml-language-server: $schema=../docs/schema/experiment.schema.json
```
""",
)
