"""Building one tool from its Go module, and installing it in one step."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from kumulus.host import files, installation
from kumulus.toolchain import cache, golang, progress
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.pins import Embed, Tool
from kumulus.toolchain.progress import ToolLine


@dataclass(frozen=True)
class Builder:
    """A Go compiler with its caches and a directory for its logs."""

    go: Path
    scratch: Path
    logs: Path

    def caches(self, workspace: str) -> Path:
        """Go's caches for the tools of one :attr:`Tool.workspace`; others would share little but Go's own library."""
        return self.scratch / "caches" / workspace

    def drop_caches(self, workspace: str) -> None:
        """Free the space once a workspace's last tool is built: the caches of all would need twice as much."""
        shutil.rmtree(self.caches(workspace), ignore_errors=True)

    def build(self, tool: Tool, home: Path, step: ToolLine) -> None:
        """Build a tool and install it under `home`; readers see either the whole old file or the whole new one."""
        work = self.scratch / "work" / tool.name
        ours = work / "module"
        shutil.rmtree(work, ignore_errors=True)
        for name, content in tool.module_files():
            (ours / name).parent.mkdir(parents=True, exist_ok=True)
            (ours / name).write_bytes(content)
        self.logs.mkdir(parents=True, exist_ok=True)
        (self.logs / f"{tool.name}.log").write_bytes(b"")
        if newer := golang.newer(tool):
            self._get_newer_go(newer, tool, ours, step)
        for embed in tool.embed:
            self._embed(tool, embed, ours, step)
        self._begin_with_library(tool, ours, step)
        made = work / tool.name
        if tool.file is not None:
            module, path = tool.file
            shutil.copyfile(self._module_directory(tool, module, ours, step) / path, made)
        elif tool.package is not None:
            self._go(tool, ["build", "-ldflags", tool.linker_flags(), "-o", str(made), tool.package], ours, step)
        if tool.keep:
            self._keep(tool, work, home, step)
        install(made, tool, home, tool.stamp())
        shutil.rmtree(work, ignore_errors=True)

    def _get_newer_go(self, version: str, tool: Tool, module: Path, step: ToolLine) -> None:
        """Have Go fetch the newer Go that a module asks for, unless it is as new itself."""
        try:
            self._go(tool, ["version"], module, step)
        except ToolchainError as error:
            raise ToolchainError(
                f"{tool.name} v{tool.version} needs Go {version} or later, which could not be fetched from the Go proxy"
                f"\n  To get it: set GOPROXY to a proxy that has golang.org/toolchain, or install Go {version} or later"
                f" from https://go.dev/dl/ and put its bin directory on PATH\n  {error}"
            ) from error
        for folder, _, _ in os.walk(self.caches(tool.workspace) / "gomod" / "golang.org"):
            # Go leaves these read-only in spite of -modcacherw, and only root could remove them.
            os.chmod(folder, 0o700)

    def _begin_with_library(self, tool: Tool, module: Path, step: ToolLine) -> None:
        """Compile what the first tool needs of Go's own library; every workspace's cache starts as hard links to that.

        Not for a tool that a newer Go builds: what another Go has compiled is of no use to it.
        """
        library = self.caches("std") / "gocache"
        complete, linked = library.with_suffix(".complete"), self.caches(tool.workspace) / "linked"
        if linked.exists() or tool.package is None or golang.newer(tool):
            return
        if not complete.exists():
            listed = ["list", "-deps", "-f", "{{if .Standard}}{{.ImportPath}}{{end}}", tool.package]
            packages = self._go(tool, listed, module, step).split()
            public = [name for name in packages if not {"internal", "vendor"} & set(name.split("/"))]
            self._go(tool, ["build", *public], module, step, self.caches("std"))
            complete.touch()
        shutil.rmtree(self.caches(tool.workspace) / "gocache", ignore_errors=True)
        shutil.copytree(library, self.caches(tool.workspace) / "gocache", copy_function=_link)
        linked.touch()

    def _embed(self, tool: Tool, embed: Embed, ours: Path, step: ToolLine) -> None:
        """Put files of another module into ours."""
        folder, _, name = embed.path.rpartition("/")
        source = self._module_directory(tool, embed.module, ours, step) / folder
        found = [file for file in sorted(source.glob(name)) if not file.name.endswith("_test.go")]
        # Of a pattern, `to` names the folder, else the file.
        target = ours / embed.to
        contents = {target / file.name if "*" in name else target: file.read_bytes() for file in found}
        for old in embed.edit:
            if not any(old.encode() in content for content in contents.values()):
                raise ToolchainError(f"{tool.name}: nothing in {embed.path} of {embed.module} to edit: {old!r}")
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_altered(content, embed))

    def _keep(self, tool: Tool, work: Path, home: Path, step: ToolLine) -> None:
        """Install the files of modules that are kept with a tool."""
        share = work / "share"
        share.mkdir()
        for keep in tool.keep:
            found = sorted(self._module_directory(tool, keep.module, work / "module", step).glob(keep.path))
            if not found:
                raise ToolchainError(f"{tool.name}: module {keep.module} has no file {keep.path}")
            (share / keep.to).mkdir(parents=True, exist_ok=True)
            for file in found:
                shutil.copyfile(file, share / keep.to / file.name)
        put_kept(share, tool, home)

    def _module_directory(self, tool: Tool, module: str, cwd: Path, step: ToolLine) -> Path:
        described = json.loads(self._go(tool, ["mod", "download", "-json", module], cwd, step))
        return Path(described["Dir"])

    def _go(self, tool: Tool, arguments: list[str], cwd: Path, step: ToolLine, caches: Path | None = None) -> str:
        """Run Go with its messages appended to the tool's log; returns its standard output."""
        log = self.logs / f"{tool.name}.log"
        output = cwd.parent / "stdout"
        output.write_bytes(b"")
        needs_newer_go = golang.newer(tool) is not None
        variables = golang.environment(self.scratch, caches or self.caches(tool.workspace), may_switch=needs_newer_go)
        try:
            progress.run([self.go, *arguments], step, log, stdout=output, cwd=cwd, env=variables)
        except progress.Failed as failure:
            raise ToolchainError(
                f"{tool.name} v{tool.version} could not be built: go ended with exit code {failure.code}"
                f"\n{failure.tail}\n  The whole log: {log}"
                f"\n  What is built already is kept; {installation.command()} tools goes on from here."
            ) from failure
        return output.read_text()


def put_kept(share: Path, tool: Tool, home: Path) -> None:
    """Move a folder to where a tool's kept files belong, on the same file system."""
    target = cache.kept(home, tool)
    for file in share.rglob("*"):
        if file.is_file():
            files.sync(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    share.replace(target)


def install(made: Path, tool: Tool, home: Path, stamp_text: str) -> None:
    """Move a finished file to where its tool belongs, on the same file system, and then write the stamp that vouches.

    Args:
        made: the file; for a tool of files only, nothing is moved.
        home: the directory that the tool is installed under.
        stamp_text: of :meth:`Tool.stamp` or :meth:`Release.stamp`.
    """
    target, stamp = cache.executable(home, tool), cache.stamp_file(home, tool)
    for directory in (target.parent, stamp.parent):
        directory.mkdir(parents=True, exist_ok=True)
    if not tool.files_only:
        made.chmod(0o755)
        # After a power loss, a stamp must not vouch for a file that has lost its content.
        files.sync(made)
        made.replace(target)
    files.write(stamp, stamp_text)


def reuse(tool: Tool, home: Path, scratch: Path) -> bool:
    """Hard-link the same tool from the directory of other pins; returns whether there was one."""
    if tool.keep:
        # Its directory is named after what it is built from, so no other one has the same.
        return False
    root = cache.root()
    for stamp in (*root.glob(f"*/stamps/{tool.name}"), *root.glob(f"kubernetes/*/stamps/{tool.name}")):
        other = stamp.parent.parent
        origin = cache.origin(other, tool)
        # A link to one program of an archive would miss the files that belong next to it.
        has_neighbours = origin == "downloaded" and tool.release is not None and bool(tool.release.others)
        if other != home and origin is not None and not has_neighbours:
            link = scratch / "work" / f"{tool.name}.link"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            _link(cache.executable(other, tool), link)
            install(link, tool, home, stamp.read_text())
            return True
    return False


def _link(source: str | Path, link: str | Path) -> None:
    """Hard-link a file; it is copied where the file system has no hard links."""
    try:
        os.link(source, link)
    except OSError:
        shutil.copy2(source, link)


def _altered(content: bytes, embed: Embed) -> bytes:
    """A file's content with the keys of an embed set, and its texts edited."""
    if embed.set:
        content = json.dumps({**json.loads(content), **embed.set}).encode()
    for old, new in embed.edit.items():
        content = content.replace(old.encode(), new.encode())
    return content
