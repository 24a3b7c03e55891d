"""What up, preview and down share: making everything ready and running pulumi on one stack."""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NoReturn

from kumulus import toolchain
from kumulus.cli import beforehand, project, stack_file
from kumulus.cli.errors import UserError
from kumulus.cli.needs import Needs
from kumulus.host import installation
from kumulus.host.installation import pulumi_home
from kumulus.host.pulumi_project import PulumiProject
from kumulus.model.names import suggest
from kumulus.toolchain import environment, pins, plugins, supply, venv
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.venv import enter_venv

_CURRENT = "default: PULUMI_STACK, or the one that `pulumi stack select` chose"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of a command that works on one stack, and passes pulumi's options on.

    The stack may also be the first word. It is not declared here: the parser would mistake the value of one of pulumi's
    options for it.
    """
    parser.add_argument("-s", "--stack", dest="named", metavar="STACK", help=f"which stack ({_CURRENT})")
    parser.usage = f"{parser.prog} [STACK] [-h] [-s STACK] [OPTION ...]"
    parser.epilog = (
        "The first word may be the stack, too. Further options go to pulumi, such as --refresh or --diff.\n"
        f"After one of these, the stack needs -s: `{parser.prog} --refresh -s dev`."
    )


def add_option(parser: argparse.ArgumentParser) -> None:
    """Declare the option that names the stack for the other commands."""
    parser.add_argument("-s", "--stack", help=f"which stack ({_CURRENT})")


def chosen(args: argparse.Namespace) -> tuple[str, list[str]]:
    """The stack that the arguments name, or the current one, and the arguments that are pulumi's."""
    further = list(args.passed_on)
    word = further.pop(0) if further and not further[0].startswith("-") else ""
    if word and args.named and word != args.named:
        raise UserError(f"{word} or {args.named}? Name one stack")
    return project.chosen(word or args.named), further


def make_ready(find: Callable[[str], Needs], stack: str) -> None:
    """Provide the environment, tools, plugins and the state's directory; returns at once if all are there.

    Args:
        find: says what a stack needs; called in the environment.
    """
    here = project.current()
    if (checkout := installation.checkout()) is not None:
        venv.ensure(checkout)
        enter_venv()
    wanted = find(stack)
    known = pins.load()
    if plugins.PROVIDER in wanted.tools and supply.missing(known, known.named(plugins.PROVIDER)):
        print(
            "note: this stack needs Pulumi's Kubernetes provider; if it cannot be downloaded, it is built, which takes "
            "about eleven CPU minutes\n  If only charts need it: kumulus:skipAddons: true in the stack's file",
            file=sys.stderr,
        )
    for version in wanted.versions:
        supply.provide(without_command_plugin(wanted.tools), version)
    install_plugins(wanted.tools)
    prepare_project(here)


def without_command_plugin(tools: Sequence[str]) -> list[str]:
    """Tools but for the plugin that runs commands: :func:`install_plugins` gets that, if need be by pulumi."""
    return [name for name in tools if name != plugins.COMMAND]


def install_plugins(tools: Sequence[str]) -> None:
    """Put those of the tools that are plugins where pulumi looks for them."""
    if plugins.PROVIDER in tools:
        plugins.install(pulumi_home())
    if plugins.COMMAND in tools:
        plugins.install_command(pulumi_home())


def prepare_project(here: PulumiProject) -> None:
    """Prepare what plain `pulumi` needs around a project: our plugin, and the directory of a local backend."""
    if here.plugin is None:
        try:
            installation.install_plugin(pulumi_home(), installation.python())
        except OSError as error:
            raise ToolchainError(f"the plugin cannot be put where Pulumi looks for it: {error}") from None
    backend = here.backend_directory()
    if backend is not None:
        try:
            backend.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UserError(f"the directory for the stacks' state cannot be made: {error}") from None


def check_options(command: str, options: Sequence[str]) -> None:
    """Refuse misspelt options of pulumi. One that resembles none is left to pulumi, which has hidden ones."""
    flags = sorted({each.partition("=")[0] for each in options if each.startswith("--")})
    known = re.findall(r"--[a-z][a-z-]+", run_quietly([command, "--help"])[1]) if flags else []
    for flag in flags:
        near = suggest(flag, known, likeness=0.8)
        if near and flag not in known:
            raise UserError(f"pulumi {command} has no option {flag}; did you mean {near}?")


def create(stack: str) -> None:
    """Create the stack in the backend; only the project's first is selected, while `pulumi stack init` selects each."""
    beforehand.check_stack(stack)
    if project.state_exists(stack):
        return
    stack_file.check(stack)
    beforehand.note_other_names(stack)
    arguments = ["stack", "init", stack, "--non-interactive"]
    if project.current().selected_stack(pulumi_home()) is not None:
        arguments.append("--no-select")
    code, output = run_quietly(arguments)
    if "incorrect passphrase" in output:
        file = project.current().shown(project.current().stack_file(stack))
        raise UserError(
            f"your passphrase is not the one of {file}: its encryptionsalt is of another, perhaps of the empty one\n"
            "  To use yours: delete the line encryptionsalt, and set the file's secrets (secure: …) again"
        )
    if code != 0 and "already exists" not in output:
        raise UserError(f"pulumi cannot create the stack {stack}:\n  {output.strip()}")


def exists(stack: str) -> bool:
    """Whether the backend knows the stack.

    Raises:
        UserError: the backend does not answer.
    """
    known = project.state_exists(stack)
    if known is not None:
        return known
    code, output = run_quietly(["stack", "tag", "ls", "-s", stack])
    if code != 0 and "no stack named" not in output:
        raise UserError(f"pulumi cannot look for the stack {stack}:\n  {output.strip()}")
    return code == 0


def forget(stack: str) -> int:
    """Remove an empty stack from the backend; its file stays. Returns pulumi's exit code."""
    code, output = run_quietly(["stack", "rm", stack, "--yes", "--preserve-config"])
    if code != 0:
        print(output.strip(), file=sys.stderr)
        return code
    file = project.current().stack_file(stack)
    kept = f", {project.current().shown(file)} stays" if file.exists() else ""
    # This answers the hint that pulumi has just printed, to run `pulumi stack rm`.
    print(f"That is done: the stack {stack} is removed as well{kept}.")
    return 0


def run(arguments: Sequence[str], output: IO[str] | None = None) -> int:
    """Run pulumi in the project and wait for it; returns its exit code.

    It is waited for after Ctrl-C, too: that reaches pulumi, which then ends its update in order.

    Args:
        output: what takes its output; it then asks no questions. None for the screen.
    """
    quiet: dict[str, Any] = (
        {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT} if output is not None else {}
    )
    sys.stdout.flush()
    process = subprocess.Popen(
        [toolchain.find("pulumi"), *arguments],
        cwd=project.current().root,
        env=environment.complete(os.environ),
        **quiet,
    )
    with _signals_passed_on(process):
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise


def run_quietly(arguments: Sequence[str]) -> tuple[int, str]:
    """Run pulumi in the project and wait for it; returns its exit code, and its output instead of showing it."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        code = run(arguments, output)
        output.seek(0)
        return code, output.read()


def become(arguments: Sequence[str]) -> NoReturn:
    """Run pulumi in the project in place of this process, so that signals and the exit code are its own."""
    sys.stdout.flush()
    os.chdir(project.current().root)
    os.execve(toolchain.find("pulumi"), ["pulumi", *arguments], environment.complete(os.environ))


@contextmanager
def _signals_passed_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass SIGTERM and SIGHUP on to a process during this block, but for one that is ignored: nohup ignores SIGHUP."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread can handle signals.
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    replaced = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
    try:
        for number in replaced:
            signal.signal(number, lambda sent, _: process.send_signal(sent))
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
