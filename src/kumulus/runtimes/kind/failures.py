"""Kind's errors in a line or two: what is wrong, where in the stack file, and what to do."""

import re
from collections.abc import Sequence

from kumulus.host import inotify, installation
from kumulus.model.words import listed
from kumulus.runtimes.kind.commands import Ended

_LONGEST = 300
# What kind waits for in the log of a node's systemd; kind's own documentation proposes this many instances
# (kind.sigs.k8s.io/docs/user/known-issues, "Pod errors due to too many open files").
_NOT_BOOTED = "could not find a log line that matches"
_ENOUGH_INSTANCES = 512
_PULL = re.compile(r'failed to pull image "([^"]+)"')
_LINE = re.compile(r"line (\d+): (.*)")
_PORT = re.compile(r"(?:Bind for )?([0-9.:\[\]a-f]+:\d+)[^\n]*(?:port is already allocated|address already in use)")
# Go's errors repeat the command that failed, which is pages long.
_COMMAND = re.compile(r'command "(\S+(?: [a-z]+)?)[^"]*(?:"[^"]*")*[^"]*" failed with error: ')


def explained(ended: Ended, config: str) -> str:
    """Why kind could not make a cluster; the config is the file that kind read."""
    error, output = _parts(ended.stderr)
    if pulled := _PULL.search(error):
        reason = output or "no reason given"
        return (
            f"the node image {pulled.group(1)} cannot be pulled: {_short(reason)}; check its name and the network, "
            "log in to its registry (`docker login`), or name an image that is there as kind.nodeImage "
            f"(`{installation.command()} kind-image` makes one without a registry)"
        )
    if "unable to decode config" in error or "unknown apiVersion" in error:
        return f"kindConfig: kind cannot read it: {_decoding(error, config)}; correct it in the stack file"
    if port := _PORT.search(f"{error}\n{output}"):
        return (
            f"the address {port.group(1)} is in use on this machine; write another port in kindConfig "
            "(networking.apiServerPort or a node's extraPortMappings), or end what has it"
        )
    if "invalid" in error or "must have at least" in error:
        return f"kindConfig: {_short(_core(error))}; correct it in the stack file"
    if _NOT_BOOTED in error:
        return (
            f"kind could not make the cluster: a node's container runs, but its system did not start; {_not_booted()}"
        )
    reason = _core(error) or f"it ended with exit code {ended.code}"
    last = _short(output.splitlines()[-1]) if output else ""
    return f"kind could not make the cluster: {_short(reason)}" + (f": {last}" if last and last not in reason else "")


def taken(name: str, nodes: Sequence[str] = ()) -> str:
    """The message that somebody else has a cluster of that name."""
    which = f" ({listed(nodes, 3)})" if nodes else ""
    return (
        f"a kind cluster named {name!r} that this stack did not make is there{which}; it is left alone. Set another "
        "`name:` in kumulus:cluster, or take it over with `kind: {adopt: true}`: it is then the stack's, and `destroy` "
        "deletes it; to use it and leave it as it is, write `runtime: existing`"
    )


def brief(ended: Ended) -> str:
    """The last line of a command's messages."""
    error, output = _parts(ended.stderr)
    lines = (output or _core(error) or ended.stderr).strip().splitlines()
    return _short(lines[-1]) if lines else f"exit code {ended.code}"


def _not_booted() -> str:
    most = inotify.limit()
    if most is not None and most < _ENOUGH_INSTANCES:
        return (
            f"the usual cause is that other clusters and programs have all of the {most} inotify instances that a user "
            f"may have here: {inotify.remedy(_ENOUGH_INSTANCES)}"
        )
    return (
        "`kind create cluster --retain` keeps such a container, and `docker logs kind-control-plane` then says why; "
        "`kind delete cluster` removes it"
    )


def _parts(stderr: str) -> tuple[str, str]:
    """The error, and the output of the command that failed."""
    _, found, rest = stderr.rpartition("ERROR: ")
    if not found:
        return "", stderr.strip()
    error, _, output = rest.partition("Command Output: ")
    output = output.partition("\nStack Trace:")[0]
    return error.partition("\nStack Trace:")[0].strip(), output.strip()


def _core(error: str) -> str:
    """An error without kind's prefix, and with the name of the command that failed instead of all of it."""
    error = error.removeprefix("failed to create cluster: ")
    return _COMMAND.sub(lambda found: f"{found.group(1)}: ", error)


def _decoding(error: str, config: str) -> str:
    """Kind's message with the text of the line that it is about: its number is of a file that the user never saw."""
    lines = config.splitlines()
    reasons = []
    for number, what in _LINE.findall(error):
        index = int(number) - 1
        place = f" (at {lines[index].strip()!r})" if index < len(lines) else ""
        reasons.append(f"{what}{place}")
    return _short("; ".join(reasons) or _core(error).partition("unable to decode config: ")[2] or _core(error))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
