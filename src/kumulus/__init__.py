"""One Pulumi stack file becomes a running, emulated Kubernetes cluster.

Public is what can be imported from here: the components and :class:`Experiment`, see docs/library.md;
:mod:`kumulus.program`, the whole of a program; :mod:`kumulus.testing`, clusters for tests; and :mod:`kumulus.gym`,
problems for agents. Every other module is Kumulus' own, and may change with any version.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kumulus.components.device_class import DeviceClass
    from kumulus.components.emulated_cluster import EmulatedCluster
    from kumulus.components.existing_cluster import ExistingCluster
    from kumulus.components.fault import Fault
    from kumulus.components.helm_addon import HelmAddon
    from kumulus.components.kind_cluster import KindCluster
    from kumulus.components.kwok_charts import KwokCharts
    from kumulus.components.kwok_cluster import KwokCluster
    from kumulus.components.kwok_node_group import KwokNodeGroup
    from kumulus.components.tenant import Tenant
    from kumulus.extras.lab.experiment import Experiment
    from kumulus.extras.watch.prometheus_stack import PrometheusStack

__all__ = [
    "DeviceClass",
    "EmulatedCluster",
    "ExistingCluster",
    "Experiment",
    "Fault",
    "HelmAddon",
    "KindCluster",
    "KwokCharts",
    "KwokCluster",
    "KwokNodeGroup",
    "PrometheusStack",
    "Tenant",
]

# Imported when asked for: a program pays for what it uses only, and the toolchain runs on a bare Python.
_MODULES = {
    "DeviceClass": "kumulus.components.device_class",
    "EmulatedCluster": "kumulus.components.emulated_cluster",
    "ExistingCluster": "kumulus.components.existing_cluster",
    "Experiment": "kumulus.extras.lab.experiment",
    "Fault": "kumulus.components.fault",
    "HelmAddon": "kumulus.components.helm_addon",
    "KindCluster": "kumulus.components.kind_cluster",
    "KwokCharts": "kumulus.components.kwok_charts",
    "KwokCluster": "kumulus.components.kwok_cluster",
    "KwokNodeGroup": "kumulus.components.kwok_node_group",
    "PrometheusStack": "kumulus.extras.watch.prometheus_stack",
    "Tenant": "kumulus.components.tenant",
}
_EXTRAS = "kumulus.extras."


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kumulus.host.extras import BrokenExtra

    module = _MODULES[name]
    try:
        found = getattr(import_module(module), name)
    except BrokenExtra as error:
        from kumulus.components.engine import user_error

        raise user_error(str(error)) from None
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not module.startswith(_EXTRAS) or package == __name__:
            raise
        from kumulus.host.installation import way_to_add

        extra = module.removeprefix(_EXTRAS).partition(".")[0]
        why = f"kumulus.{name} needs the package {package}\n  To get it: {way_to_add(extra)}"
        raise ModuleNotFoundError(why, name=package) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
