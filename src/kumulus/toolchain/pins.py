"""pins.toml as data, and the stamps that say whether what was built from it is still up to date."""

import difflib
import functools
import hashlib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kumulus.toolchain import accepted, releases
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.releases import Release, Unpinned
from kumulus.toolchain.versions import KUBERNETES_MODULE, KubernetesVersion, normal, numbers

HERE = Path(__file__).resolve().parent
# The programs of a control plane, which are available in several Kubernetes versions.
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")

ANY = "*"
"""What a tool accepts on PATH if its programs do not say their version."""


@dataclass(frozen=True)
class Embed:
    """Files of a module to put into ours; the fields are described at the top of pins.toml."""

    module: str
    path: str
    to: str
    set: Mapping[str, str]
    edit: Mapping[str, str]

    def recipe(self) -> tuple[object, ...]:
        """What determines the files that are built."""
        # Only if there is an edit, so that whatever was built before keeps its stamp.
        return (self.module, self.path, self.to, dict(self.set), *([dict(self.edit)] if self.edit else []))


@dataclass(frozen=True)
class Keep:
    """Files to keep next to the executable; the fields are described at the top of pins.toml."""

    module: str
    path: str
    to: str = ""

    def recipe(self) -> tuple[str, ...]:
        """What determines which files are kept, and where."""
        # Only if it is set, so that whatever was built before keeps its stamp.
        return (self.module, self.path, *([self.to] if self.to else []))


@dataclass(frozen=True)
class Tool:
    """One executable; the fields are described at the top of pins.toml."""

    name: str
    version: str
    purpose: str
    cpu: int | None
    """CPU seconds that building it took; None if that was not measured."""
    module: str
    package: str | None
    file: tuple[str, str] | None
    ldflags: tuple[str, ...]
    embed: tuple[Embed, ...]
    keep: tuple[Keep, ...]
    probe_args: tuple[str, ...]
    probe_pattern: str | None
    accepts: str
    beside: str | None
    folder: str
    optional: bool
    on_demand: bool
    release: Release | None
    """The file with it in its project's release for this platform; None if we know of none."""
    unpinned: Unpinned | None
    """The image that it is a program of, if the image's digest is yet to be accepted."""
    modules: Path
    kubernetes: KubernetesVersion | None
    """The Kubernetes version of a program of Kubernetes' module; None for any other."""

    @property
    def files_only(self) -> bool:
        """Whether it has no program to run, only files that are kept."""
        return bool(self.keep) and self.package is None and self.file is None

    @property
    def buildable(self) -> bool:
        """Whether it has a Go module to build."""
        return bool(self.module)

    @property
    def workspace(self) -> str:
        """The name of what it shares Go's caches with: the tools of its module, and of one version of Kubernetes."""
        return f"{self.module}-{self.version}" if self.kubernetes else self.module

    def module_files(self) -> tuple[tuple[str, bytes], ...]:
        """The files of the Go module this tool is built in, by their path in it."""
        folder = self.modules / self.module
        return self.kubernetes.module_files(folder) if self.kubernetes else _module_files(folder)

    def linker_flags(self) -> str:
        """What `go build -ldflags` gets: no symbol tables, and the version where the program takes it."""
        major, minor, *_ = self.version.split(".")
        filled = (flag.format(version=self.version, major=major, minor=minor) for flag in self.ldflags)
        return " ".join(["-s", "-w", *filled])

    def stamp(self) -> str:
        """A hash of everything that determines the build: another stamp means another binary."""
        digest = hashlib.sha256()
        system = os.uname()
        embeds = [embed.recipe() for embed in self.embed]
        recipe: list[object] = [
            self.name,
            self.version,
            self.package,
            self.file,
            self.ldflags,
            embeds,
            system.sysname,
            system.machine,
        ]
        if self.keep:
            recipe.append(tuple(keep.recipe() for keep in self.keep))
        digest.update(json.dumps(recipe).encode())
        module_files = self.module_files() if self.buildable else ()
        for name, content in module_files:
            digest.update(f"\0{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Pins:
    """Everything pins.toml says."""

    tools: tuple[Tool, ...]
    kubernetes: tuple[KubernetesVersion, ...]
    """The Kubernetes versions on offer, the default one first."""
    go_minimum: str
    disk: Mapping[str, float]
    """The most disk space that building in a module takes, in GB."""
    sets: Mapping[str, tuple[str, ...]]
    """Names for several optional tools that are wanted together."""
    releases: Mapping[tuple[str, str], Release]
    """Files of official releases for this platform, by tool and version."""

    def gigabytes_to_build(self, tools: Sequence[Tool]) -> float:
        """The disk space needed to build these tools: modules are built one after the other."""
        return max((self.disk[tool.module] for tool in tools if tool.buildable), default=0.0)

    def tool(self, name: str) -> Tool:
        """The tool of this name."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        known = (*self.sets, *(tool.name for tool in self.tools))
        near = difflib.get_close_matches(name, known)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
        raise ToolchainError(f"there is no tool {name!r}; {hint}")

    def named(self, name: str) -> tuple[Tool, ...]:
        """The tool of this name, or those of a set of this name."""
        return tuple(self.tool(each) for each in self.sets.get(name, (name,)))

    @property
    def required(self) -> tuple[Tool, ...]:
        """The tools that every cluster of the runtime kwok needs, in the order they are built."""
        return tuple(tool for tool in self.shared if not tool.on_demand)

    @property
    def shared(self) -> tuple[Tool, ...]:
        """The tools that share one directory: the required ones, and those that are fetched on demand."""
        return tuple(tool for tool in self.tools if not tool.optional)

    @property
    def default_kubernetes(self) -> str:
        """The Kubernetes version of a control plane if its stack asks for none."""
        return self.kubernetes[0].version

    @property
    def other_kubernetes(self) -> tuple[str, ...]:
        """The other Kubernetes versions that a stack can ask for."""
        return tuple(each.version for each in self.kubernetes[1:])

    def control_plane(self, version: str) -> tuple[Tool, ...]:
        """The control plane's programs at one of the supported Kubernetes versions."""
        version = normal(version)
        wanted = next((each for each in self.kubernetes if each.version == version), None)
        if wanted is None:
            supported = ", ".join(f"v{known.version}" for known in self.kubernetes)
            raise ToolchainError(f"Kubernetes v{version} is not among the supported versions: {supported}")
        tools = tuple(self.tool(name) for name in CONTROL_PLANE)
        if version == self.default_kubernetes:
            return tools
        return tuple(
            replace(
                tool,
                version=version,
                kubernetes=wanted,
                accepts=f"=={version}",
                release=self.releases.get((tool.name, version)),
            )
            for tool in tools
        )

    @functools.cached_property
    def key(self) -> str:
        """The name of the shared tools' directory: the same pins on the same kind of machine share one."""
        return combined(self.shared)


def combined(tools: tuple[Tool, ...]) -> str:
    """One short hash for several tools."""
    return hashlib.sha256(" ".join(tool.stamp() for tool in tools).encode()).hexdigest()[:12]


@functools.lru_cache(maxsize=8)
def load(path: Path = HERE / "pins.toml") -> Pins:
    """Read pins.toml; `modules/` is looked for next to it."""
    try:
        document = tomllib.loads(path.read_text())
        versions = tuple(KubernetesVersion(**entry) for entry in document.get("kubernetes", []))
        flags, modules = document.get("ldflags", {}), path.parent / "modules"
        tools = tuple(_tool(entry, flags, modules, versions) for entry in document["tool"])
        files = releases.read(document.get("download", []), releases.platform(), accepted.layers())
        return Pins(
            tools=tuple(_with_release(tool, tools, files) for tool in tools),
            kubernetes=versions,
            go_minimum=document["go"]["minimum"],
            disk=document["disk"],
            sets={name: tuple(members) for name, members in document.get("sets", {}).items()},
            releases={key: file for key, file in files.items() if isinstance(file, Release)},
        )
    except (OSError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise ToolchainError(f"{path} cannot be used: {error!r}") from error


def _tool(
    entry: Mapping[str, Any],
    ldflags: Mapping[str, list[str]],
    modules: Path,
    versions: Sequence[KubernetesVersion],
) -> Tool:
    of_kubernetes = versions[0] if entry.get("module") == KUBERNETES_MODULE else None
    version = of_kubernetes.version if of_kubernetes else entry["version"]
    probe = entry.get("probe", {})
    file = entry.get("file")
    return Tool(
        name=entry["name"],
        version=version,
        purpose=entry["purpose"],
        cpu=entry.get("cpu"),
        module=entry.get("module", ""),
        package=entry.get("package"),
        file=(file["module"], file["path"]) if file else None,
        ldflags=tuple(ldflags.get(entry.get("module", ""), ())),
        embed=tuple(
            Embed(e["module"], e["path"], e["to"], e.get("set", {}), e.get("edit", {})) for e in entry.get("embed", [])
        ),
        keep=tuple(Keep(k.get("module", ""), k["path"], k.get("to", "")) for k in entry.get("keep", [])),
        probe_args=tuple(probe.get("args", ())),
        probe_pattern=probe.get("pattern"),
        accepts=entry.get("accepts") or _around(version, entry.get("skew")),
        beside=entry.get("beside"),
        folder=entry.get("folder", "bin"),
        optional=entry.get("optional", False),
        on_demand=entry.get("on_demand", False),
        release=None,
        unpinned=None,
        modules=modules,
        kubernetes=of_kubernetes,
    )


def _around(version: str, skew: int | None) -> str:
    """The versions at most so many minor ones before or after; without a number, exactly this one."""
    if skew is None:
        return f"=={version}"
    major, minor, *_ = numbers(version)
    return f">={major}.{minor - skew}.0,<{major}.{minor + skew + 1}.0"


def _with_release(tool: Tool, tools: Sequence[Tool], files: Mapping[tuple[str, str], Release | Unpinned]) -> Tool:
    """The tool with its release file; a tool `beside` another one is in that one's file, whatever its own version."""
    version = next((other.version for other in tools if other.name == tool.beside), tool.version)
    file = files.get((tool.name, version))
    if isinstance(file, Unpinned):
        return replace(tool, unpinned=file)
    return replace(tool, release=file)


@functools.lru_cache(maxsize=32)
def _module_files(folder: Path) -> tuple[tuple[str, bytes], ...]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return tuple((file.relative_to(folder).as_posix(), file.read_bytes()) for file in files)
