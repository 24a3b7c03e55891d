"""The JSON schema of a whole stack file, `Pulumi.<stack>.yaml`: the keys of Kumulus, and those of others."""

from copy import deepcopy

from kumulus.runtimes import registry
from kumulus.stackfile.clusters import MOST, Member
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.schema.document import DEFINITIONS, DRAFT, NULL, Schema, closed, inner, ref, schema_of
from kumulus.stackfile.schema.forms import forms, required
from kumulus.stackfile.section import of_stacks
from kumulus.stackfile.settings import CONFIG_KEYS, WITH_CLUSTERS

NAMESPACE = "kumulus:"
_SECRET = "secret"  # noqa: S105 - the name of a definition
_CLUSTER = "ClusterSpec"
_MEMBER = "ClusterMember"
_DEFAULTS = "ClusterDefaults"


def stack_schema() -> Schema:
    """The schema of a stack file."""
    cluster, definitions = schema_of(ClusterSpec, forms())
    definitions[_CLUSTER] = cluster
    definitions |= _several(cluster)
    for each in of_stacks().values():
        joining, further = schema_of(each, forms())
        definitions |= {**further, each.__name__: joining}
    definitions["config"] = _config()
    for definition in definitions.values():
        _take_secrets(definition)
    definitions[_SECRET] = {
        "description": "A text that Pulumi keeps encrypted: pulumi config set --secret --path.",
        **closed({"secure": {"type": "string", "description": "The text, encrypted."}}, required=["secure"]),
    }
    return {
        "$schema": DRAFT,
        "title": "Stack file of Kumulus",
        "description": "Pulumi.<stack>.yaml: a stack's configuration, with its emulated cluster in kumulus:cluster.",
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": ref("config"),
            "secretsprovider": {"type": "string", "description": "Pulumi's: what encrypts the stack's secrets."},
            "encryptedkey": {"type": "string", "description": "Pulumi's: the key of the secrets, encrypted."},
            "encryptionsalt": {"type": "string", "description": "Pulumi's: the salt of the passphrase."},
            "environment": {"description": "Pulumi's: the environments that the stack takes configuration from."},
        },
        DEFINITIONS: dict(sorted(definitions.items())),
    }


def _several(cluster: Schema) -> dict[str, Schema]:
    """The definitions of an entry of `clusters`, and of what all entries share."""
    member, _ = schema_of(Member, forms())
    common = {name: each for name, each in cluster["properties"].items() if name not in member["properties"]}
    # Copies, because secrets are allowed in each of them separately.
    shared, own = deepcopy(common), deepcopy(common)
    return {
        _MEMBER: {
            "description": "A cluster, or several that are alike: `name`, `count`, and the fields of `cluster`.",
            **closed({**member["properties"], **own}, required=["name"]),
        },
        _DEFAULTS: {"description": "Everything that `cluster` may have, except a name.", **closed(shared)},
    }


def _path(description: str, example: str) -> Schema:
    return {"description": description, "type": ["string", "null"], "pattern": r"\S", "examples": [example]}


def _switch(description: str) -> Schema:
    choices = [True, False, "true", "false", None]
    return {"description": description, "enum": choices, "default": False, "examples": [True]}


def _properties() -> dict[str, Schema]:
    """The keys in the namespace kumulus."""
    return {
        "cluster": {
            "description": "The cluster, as a mapping or the JSON text of one.",
            "anyOf": [ref(_CLUSTER), {"type": "string"}, NULL],
        },
        "clusterConfig": _path(
            "Path or URL of a KEMU ClusterConfig, in place of kumulus:cluster (docs/stacks.md).", "gcp-large.yaml"
        ),
        "clusters": {
            "description": "Several clusters, in place of kumulus:cluster (docs/many-clusters.md).",
            "anyOf": [
                {"type": "array", "minItems": 1, "maxItems": MOST, "items": ref(_MEMBER)},
                {"type": "string"},
                NULL,
            ],
        },
        "defaults": {
            "description": "What the clusters of kumulus:clusters share; each cluster's own settings override it.",
            "anyOf": [ref(_DEFAULTS), {"type": "string"}, NULL],
        },
        "hub": {
            "description": "The cluster of kumulus:clusters that commands use if none is named.",
            "type": ["string", "null"],
            "minLength": 1,
            "examples": ["hub"],
        },
        **{
            name: {"description": each.about, "anyOf": [ref(each.__name__), {"type": "string"}, NULL]}
            for name, each in of_stacks().items()
        },
        "runtime": {
            "description": "Where the control plane runs, overriding the cluster's setting.",
            "enum": [*registry.NAMES, None],
            "examples": ["kind"],
        },
        "skipAddons": _switch("Leave the cluster's add-ons out."),
        "prices": _path(
            "A file of your own with what machines cost; it wins over the catalog's (docs/prices.md).", "prices.yaml"
        ),
        "nodes": _path(
            "A JSON file with the nodes' names by group and zone, if there are too many for the stack's file "
            "(docs/fleets.md).",
            "stacks/mine.nodes.json",
        ),
        "moveHere": _switch(
            "Recreate here a cluster that is on another machine, or at the project's former place; "
            "what others have put into it is lost."
        ),
        "allowReplace": _switch(
            "Let an update without a preview (`make up`, `pulumi up --skip-preview`) replace a cluster; "
            "what others have put into it is lost."
        ),
    }


def _config() -> Schema:
    """The configuration: only known keys in the namespace kumulus; keys of other namespaces are left alone."""
    properties = _properties()
    assert tuple(properties) == CONFIG_KEYS
    known = "|".join(CONFIG_KEYS)
    cluster, kemu, clusters = (required(f"{NAMESPACE}{key}") for key in ("cluster", "clusterConfig", "clusters"))
    return {
        "description": "The stack's configuration; keys of other namespaces are left alone.",
        "type": "object",
        "properties": {f"{NAMESPACE}{key}": each for key, each in properties.items()},
        "patternProperties": {f"^{NAMESPACE}(?!(?:{known})$)": False},
        "oneOf": [cluster, kemu, clusters],
        "allOf": [
            *({"if": required(f"{NAMESPACE}{key}"), "then": clusters} for key in WITH_CLUSTERS),
            {"if": required(f"{NAMESPACE}nodes"), "then": cluster},
        ],
    }


def _take_secrets(schema: Schema) -> None:
    """Allow a secret wherever a string is allowed: Pulumi's secrets are strings."""
    for holder, key in inner(schema):
        value = holder[key]
        if isinstance(value, dict):
            holder[key] = _or_secret(value)
    for key in ("anyOf", "allOf"):
        for each in schema.get(key, []):
            _take_secrets(each)
    if any(_is_text(each) for each in schema.get("anyOf", [])):
        schema["anyOf"].append(ref(_SECRET))


def _or_secret(schema: Schema) -> Schema:
    _take_secrets(schema)
    if not _is_text(schema):
        return schema
    outside = {key: value for key, value in schema.items() if key in ("description", "default", "examples")}
    return {**outside, "anyOf": [{key: value for key, value in schema.items() if key not in outside}, ref(_SECRET)]}


def _is_text(schema: Schema) -> bool:
    kind = schema.get("type", [])
    return "string" in ([kind] if isinstance(kind, str) else kind) or any(
        isinstance(each, str) for each in schema.get("enum", [])
    )
