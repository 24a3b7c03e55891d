"""The whole package's schema, as Pulumi's registry, `pulumi package` and SDK generators read it."""

import inspect
import json
from typing import Any

from kumulus.host.version import GO_MODULE, NPM_PACKAGE, NUGET_NAMESPACE, REPOSITORY, VERSION
from kumulus.provider.properties import OBJECT_TYPES
from kumulus.provider.resources.base import Resource
from kumulus.provider.resources.registry import CLASSES

_DEPENDENCY = "3.246.0"
_ABOUT: dict[str, Any] = {
    "name": "kumulus",
    "displayName": "Kumulus",
    "version": VERSION,
    "description": "Emulated Kubernetes clusters: a control plane, Helm add-ons and thousands of KWOK nodes with GPUs, "
    "zones, topologies and faults.",
    "keywords": ["pulumi", "kumulus", "kubernetes", "kwok", "gpu", "simulation", "category/infrastructure"],
    "homepage": REPOSITORY,
    "repository": REPOSITORY,
    "license": "Apache-2.0",
    "publisher": "Kumulus",
    "attribution": "Emulated nodes and pods are played by KWOK (https://kwok.sigs.k8s.io).",
    "meta": {"moduleFormat": "(.*)"},
    "config": {},
    "provider": {"description": "The plugin that makes emulated clusters; it has no configuration of its own."},
    "language": {
        "nodejs": {
            "packageName": NPM_PACKAGE,
            "dependencies": {"@pulumi/pulumi": f"^{_DEPENDENCY}"},
            "respectSchemaVersion": True,
        },
        # The package kumulus has the same components, hand-written, for programs that do not need a generated SDK.
        "python": {
            "packageName": "pulumi_kumulus",
            "requires": {"pulumi": f">={_DEPENDENCY},<4.0.0"},
            "respectSchemaVersion": True,
            "pyproject": {"enabled": True},
        },
        "go": {
            "importBasePath": GO_MODULE,
            "modulePath": GO_MODULE,
            "rootPackageName": "kumulus",
            "generateResourceContainerTypes": True,
            "respectSchemaVersion": True,
        },
        "csharp": {
            "rootNamespace": NUGET_NAMESPACE,
            "packageReferences": {"Pulumi": "3.*"},
            "respectSchemaVersion": True,
        },
        "java": {"basePackage": "io.kumulus", "dependencies": {"com.pulumi:pulumi": "1.0.0"}},
    },
}


def package() -> dict[str, Any]:
    """The package's schema (https://www.pulumi.com/docs/iac/guides/building-extending/packages/schema/).

    It imports every component's module, as the plugin does anyway for a program in another language.
    """
    from kumulus.provider.plugin.component_schema import components_schema

    components, sections = components_schema()
    return {
        **_ABOUT,
        "types": {**dict(sorted(OBJECT_TYPES.items())), **sections},
        "resources": {**{each.token: resource_schema(each) for each in CLASSES}, **components},
        "functions": {},
    }


def schema_json() -> str:
    """The package's schema as JSON."""
    return json.dumps(package())


def resource_schema(resource: type[Resource]) -> dict[str, Any]:
    """A resource's entry in the schema, from its declaration."""
    kept = [each for each in resource.inputs if not each.fleeting] + list(resource.outputs)
    return {
        "description": " ".join(inspect.cleandoc(resource.__doc__ or "").split("\n\n")[0].split()),
        "inputProperties": {each.name: each.schema() for each in resource.inputs},
        "requiredInputs": [each.name for each in resource.inputs if each.required],
        "properties": {each.name: each.schema() for each in kept},
        "required": [each.name for each in kept if each.required],
    }
