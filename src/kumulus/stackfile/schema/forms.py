"""The JSON schema of each type that the models check themselves, by the form's name in the fields' checks.

Forms of mappings and lists become definitions of a schema under their names; those of single values are inserted where
they are used. Wherever a form has `FORM: name`, the named form is inserted, with the other keys added to it.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import combinations

from kumulus.model import quotas
from kumulus.model.checks import NATIVE_RESOURCES, TAINT_EFFECTS
from kumulus.model.device_checks import DRIVER_LENGTH, MOST_CONDITIONS
from kumulus.model.fault_effects import KUBELETS
from kumulus.model.fields import FORM
from kumulus.model.names import LABEL_LENGTH, NODE_NAME_LENGTH, SUBDOMAIN_LENGTH
from kumulus.model.owner_kinds import OWNER_LABELS
from kumulus.nodes.catalog.faults import names
from kumulus.nodes.catalog.instances import gpu_products, instance_types
from kumulus.runtimes.kind import section as kind_section
from kumulus.stackfile import cluster_charts, host_commands
from kumulus.stackfile import model as stackfile
from kumulus.stackfile.lifecycles import STEPS
from kumulus.stackfile.schema import patterns, sections
from kumulus.stackfile.schema.document import NULL, Schema, closed


@lru_cache(maxsize=1)
def forms() -> Mapping[str, Schema]:
    """Every form, by name."""
    of_extras = {name: form for each in stackfile.SECTIONS.values() for name, form in each.forms().items()}
    return {**_scalars(), **_mappings(), **_lists(), **_resources(), **_rules(), **sections.forms(), **of_extras}


def text(pattern: str, longest: int | None = None) -> Schema:
    """A string that matches a pattern."""
    return {"type": "string", "pattern": pattern, **({"maxLength": longest} if longest else {})}


def mapping(values: Schema, keys: str = "") -> Schema:
    """A mapping from keys that match a pattern to values of one form."""
    return {"type": "object", **({"propertyNames": {"pattern": keys}} if keys else {}), "additionalProperties": values}


def _scalars() -> dict[str, Schema]:
    image = f"^(?:(?:\\./|\\.\\./|/).*|.*\\.(?:tar|tar\\.gz|tgz)|{host_commands.IMAGE.pattern})$"
    return {
        "label": text(patterns.LABEL),
        "groupName": text(patterns.SUBDOMAIN, LABEL_LENGTH),
        "driver": text(patterns.SUBDOMAIN, DRIVER_LENGTH),
        "subdomainOrEmpty": text(patterns.SUBDOMAIN_OR_EMPTY, SUBDOMAIN_LENGTH),
        "ownNamespace": text(rf"^(?!default$|kube-){patterns.LABEL[1:]}", LABEL_LENGTH),
        "labelValue": text(patterns.LABEL_VALUE, LABEL_LENGTH),
        "labelKeyOrEmpty": text(patterns.LABEL_KEY_OR_EMPTY),
        "quantity": _amount(patterns.QUANTITY, {"type": "number", "minimum": 0}),
        "wholeQuantity": _amount(patterns.WHOLE_QUANTITY, {"type": "integer", "minimum": 0}),
        "duration": {"anyOf": [text(patterns.DURATION), {"type": "number", "const": 0}]},
        "percent": {
            "anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 100}, text(patterns.PER_CENT)],
        },
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "kubernetesVersion": text(patterns.whole(stackfile.VERSION)),
        "notBlank": text(patterns.NOT_BLANK),
        "name": text(patterns.NO_BLANKS_AROUND),
        "repository": text(patterns.CHART_REPOSITORY),
        "loadedImage": text(image),
        "nodeImage": text(patterns.whole(kind_section.IMAGE)),
        "kwokImage": text(patterns.whole(cluster_charts.IMAGE)),
        "network": text(patterns.network(cluster_charts.LONGEST_PREFIX)),
        "instanceType": {"enum": sorted(instance_types())},
        "gpuProduct": {"enum": sorted(gpu_products())},
        "faultKind": {"enum": list(names())},
        "kubelet": {"enum": list(KUBELETS[1:])},
    }


def _amount(pattern: str, number: Schema) -> Schema:
    return {"anyOf": [text(pattern, 100), number]}


def _mappings() -> dict[str, Schema]:
    any_text: Schema = {"type": "string"}
    info = {
        "architecture": "The machine's architecture as Go calls it, such as amd64; by default the label's.",
        "operatingSystem": "The operating system as Go calls it, such as linux; by default the label's.",
        "kubeletVersion": "The kubelet's version, which kubectl shows as the node's.",
    }
    value = {**text(patterns.LABEL_VALUE, LABEL_LENGTH), "type": ["string", "null"]}
    return {
        "labels": mapping({FORM: "labelValue"}, patterns.FREE_LABEL_KEY),
        "annotations": mapping(any_text, patterns.FREE_ANNOTATION_KEY),
        "nodeInfo": {"description": "What a node reports about its machine."}
        | closed({key: {**value, "description": text} for key, text in info.items()}),
        "environment": mapping(any_text, patterns.VARIABLE),
        "switches": mapping({"type": ["boolean", "string"]}),
        "conditions": mapping(
            closed(
                {
                    "status": {"enum": ["True", "False", "Unknown"], "description": "The condition's status."},
                    "reason": {**any_text, "description": "Its reason; by default the condition's type."},
                    "message": {**any_text, "description": "Its message."},
                }
            ),
            patterns.LABEL_KEY,
        ),
        "taint": {"description": "What keeps pods without a matching toleration off a node."}
        | closed(
            {
                "key": {**text(patterns.LABEL_KEY), "description": "A qualified name, such as example.com/dedicated."},
                "value": {**value, "description": "The taint's value; by default none."},
                "effect": {"enum": list(TAINT_EFFECTS), "description": "What it does to pods that do not tolerate it."},
            },
            required=["key", "effect"],
        ),
    }


def _lists() -> dict[str, Schema]:
    return {
        "taints": {"type": "array", "items": {FORM: "taint"}},
        "conditionTypes": {
            "type": "array",
            "items": text(patterns.LABEL_KEY),
            "maxItems": MOST_CONDITIONS,
            "uniqueItems": True,
        },
        "features": {"type": "array", "items": text(patterns.FEATURE), "uniqueItems": True},
        "nodeNames": {"type": "array", "items": text(patterns.NODE_NAME)},
        "namedNodes": {
            "type": "array",
            "items": {"description": "A node that is not called by its group, zone and number."}
            | closed(
                {
                    "name": {**text(patterns.SUBDOMAIN, NODE_NAME_LENGTH), "description": "The node's name."},
                    "labels": {
                        "anyOf": [mapping({FORM: "labelValue"}, patterns.NODE_LABEL_KEY), NULL],
                        "description": "Labels of this node only; they override the group's.",
                    },
                    "unschedulable": {
                        "type": ["boolean", "null"],
                        "description": "Whether the node is created cordoned; later cordons are left as they are.",
                    },
                },
                required=["name"],
            ),
        },
        "namespaces": {"type": "array", "items": text(patterns.LABEL, LABEL_LENGTH)},
        "ownerKinds": {"type": "array", "items": text(patterns.OWNER_KIND)},
        "texts": {"type": "array", "minItems": 1, "items": {"type": "string"}},
    }


def _resources() -> dict[str, Schema]:
    native = "|".join((*NATIVE_RESOURCES, "hugepages-[^/]*", "attachable-volumes-[^/]*"))
    requestable = f"^(?:{native}|{patterns.PREFIXED_KEY[1:-1]})$"
    # Extended resources come in whole pieces; resources in Kubernetes' own domains need not.
    extended = r"^(?!(?:[^/]*\.)?kubernetes\.io/)[^/]*/"
    amounts: Schema = {
        "type": "object",
        "propertyNames": {"pattern": patterns.LABEL_KEY},
        "properties": {"pods": {FORM: "wholeQuantity", "description": "How many pods a node takes."}},
        "patternProperties": {extended: {FORM: "wholeQuantity"}},
        "additionalProperties": {FORM: "quantity"},
    }
    quota = "|".join(
        (
            *map(patterns.literal, quotas.STANDARD),
            *(form.pattern for form in (quotas.HUGE_PAGES, quotas.COUNT, quotas.OF_CLASS)),
            rf"requests\.{patterns.PREFIXED_KEY[1:-1]}",
        )
    )
    objects = map(patterns.literal, quotas.OBJECTS)
    counted = "|".join((*objects, "count/.*", ".*/devices", r"requests\..*/.*", ".*claims"))
    return {
        "resources": amounts,
        "capacity": {**amounts, "propertyNames": {"pattern": requestable}},
        "changes": {
            "type": "object",
            "propertyNames": {"pattern": requestable},
            "additionalProperties": {"anyOf": [text(patterns.CHANGE, 100), {"type": "number"}]},
        },
        "quota": {
            "type": "object",
            "propertyNames": {"pattern": f"^(?:{quota})$"},
            "patternProperties": {f"^(?:{counted})$": {FORM: "wholeQuantity"}},
            "additionalProperties": {FORM: "quantity"},
        },
    }


def required(key: str) -> Schema:
    """Requires that a mapping has a key with a value."""
    return {"required": [key], "properties": {key: {"not": NULL}}}


def any_required(*keys: str) -> Schema:
    """Requires that a mapping has at least one of some keys with a value."""
    return {"anyOf": [required(key) for key in keys]}


def none_of(keys: Iterable[str]) -> Schema:
    """Requires that a mapping has none of some keys with a value."""
    return {"not": any_required(*keys)}


def at_most_one(*keys: str) -> Schema:
    """Requires that a mapping has at most one of some keys with a value."""
    return {"not": {"anyOf": [{"allOf": [required(one), required(other)]} for one, other in combinations(keys, 2)]}}


def _rules() -> dict[str, Schema]:
    """Rules between the keys of one mapping, which are added next to its properties."""
    pods = {"type": "object", "required": ["pods"]}
    whole = {"type": "object", "required": ["capacity"], "properties": {"capacity": pods}}
    by_labels = {"properties": {"ownerKinds": {"items": {"enum": list(OWNER_LABELS)}}}}
    return {
        "nodeGroupRules": {
            "if": required("instanceType"),
            "else": {"required": ["nodeTemplate"], "properties": {"nodeTemplate": whole}},
            "allOf": [
                {"if": required("minReplicas"), "then": required("maxReplicas")},
                {"if": required("maxReplicas"), "then": none_of(("resourceSlices", "topology"))},
            ],
        },
        "topologyRules": {
            "allOf": [
                {"if": required(key), "then": required(needed)}
                for key, needed in (("blocks", "racksPerBlock"), ("leavesPerSpine", "racksPerLeaf"))
            ]
        },
        "lifecycleRules": {
            "allOf": [any_required(*STEPS, "mustRun")],
            "if": required("mustRun"),
            "then": none_of(STEPS),
        },
        "usageRules": {
            "allOf": [any_required("cpu", "memory", "gpu", "gpuMemory"), {"properties": {"selector": by_labels}}]
        },
    }
