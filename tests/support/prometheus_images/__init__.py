"""The images of kube-prometheus-stack, built here from Go programs under the names that the chart uses.

For kube-state-metrics the project's own version has that name. There is none for Grafana, whose page is built by npm.
"""

from pathlib import Path

from kumulus.extras.kind_image import containers
from kumulus.extras.kind_image.containers import ContainerImage
from kumulus.toolchain import pins, supply

_HERE = Path(__file__).resolve().parent
# By program: the image's name and the program's path in it, which the operator's manifests may or may not name.
_IMAGES = {
    "operator": ("quay.io/prometheus-operator/prometheus-operator:v0.83.0", "bin/operator"),
    "prometheus-config-reloader": (
        "quay.io/prometheus-operator/prometheus-config-reloader:v0.83.0",
        "bin/prometheus-config-reloader",
    ),
    "prometheus": ("quay.io/prometheus/prometheus:v3.5.0", "bin/prometheus"),
    "alertmanager": ("quay.io/prometheus/alertmanager:v0.28.1", "bin/alertmanager"),
    "node_exporter": ("quay.io/prometheus/node-exporter:v1.9.1", "bin/node_exporter"),
    "kube-state-metrics": ("registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.16.0", "kube-state-metrics"),
}


def archive(folder: Path) -> Path:
    """Write an archive of them into a folder; programs that are not built yet take some minutes, once."""
    known = pins.load(_HERE / "pins.toml")
    programs = supply.built([tool.name for tool in known.tools], known) | supply.built(["kube-state-metrics"])
    images = [
        ContainerImage(name, {path: programs[program]}, entrypoint=(f"/{path}",))
        for program, (name, path) in _IMAGES.items()
    ]
    file = folder / "images.tar"
    containers.write(file, images, folder)
    return file
