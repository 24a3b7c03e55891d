"""What can be said of a cluster for tests without asking it, with an event loop and without one alike."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from kumulus.runtimes.kwok.runtime import KwokRuntime
from kumulus.testing import guard
from kumulus.testing.clients import Clients
from kumulus.testing.errors import ClusterError
from kumulus.testing.plane import Plane


class ClusterFacts(ABC):
    """Where a cluster that is up is, and what its components say."""

    @property
    @abstractmethod
    def _up(self) -> Plane:
        """The control plane; raises ClusterError if it is not up."""

    @property
    def folder(self) -> Path:
        """The temporary folder with all that it keeps."""
        return self._up.folder

    @property
    def kubeconfig(self) -> Path:
        """Its kubeconfig file."""
        return Path(self._up.observed.kubeconfig)

    @property
    def server(self) -> str:
        """The address of its API server."""
        return self._up.observed.server

    @property
    def env(self) -> dict[str, str]:
        """The variables for programs that are to use it: `subprocess.run(…, env={**os.environ, **cluster.env})`."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    @property
    def clients(self) -> Clients:
        """Clients of the packages kubernetes, kr8s and lightkube."""
        return Clients(self.kubeconfig)

    def described(self) -> dict[str, Any]:
        """Where it is, for programs in any language: `kubeconfig`, `server`, `folder` and so on."""
        plane = self._up
        return {
            "name": plane.loaded.cluster_name,
            "kubeconfig": str(self.kubeconfig),
            "server": self.server,
            "folder": str(plane.folder),
            "nodes": sum(pool.count for pool in plane.pools.values()),
            "kubernetesVersion": plane.loaded.spec.kubernetesVersion or KwokRuntime().default_version(),
        }

    def keep(self, *, guarded: bool = False) -> str:
        """Leave it standing after its block and its process; returns how to reach and how to remove it, in words.

        Args:
            guarded: whether it still ends with the process that it was to end with.
        """
        if not guarded:
            guard.dismiss(self.folder)
        self._up.kept = True
        return f"export KUBECONFIG={self.kubeconfig}\nto remove it: kumulus cluster down {self.folder}"

    def logs(self, component: str = "", lines: int = 20) -> str:
        """The last lines of the log of a component, such as `kube-scheduler`; of all components' logs without its name.

        Raises:
            ClusterError: there is no such component.
        """
        layout = self._up.layout
        known = layout.components()
        if component and component not in known:
            raise ClusterError(f"{component} is no component of the cluster; it has: {', '.join(known)}")
        if component:
            return layout.log_tail(component, lines)
        tails = {each: layout.log_tail(each, lines) for each in known}
        return "\n".join(f"{each}:\n{tail}" for each, tail in tails.items() if tail)
