"""Run an agent's command: kubectl without a shell, on one cluster, with nothing of the user's environment or files."""

import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kumulus.kube import safe_yaml
from kumulus.model.words import counted
from kumulus.testing.manifests import Manifest


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VERBS = _words(
    "annotate api-resources api-versions apply auth autoscale certificate cluster-info cordon create delete describe "
    "drain events explain expose get label logs patch replace rollout run scale set taint top uncordon version "
    "wait"
)
"""Those that neither name a file of this machine, nor start a program on it, nor need a container that runs."""
_READING = _words("api-resources api-versions auth cluster-info describe events explain get logs top version wait")
_LOOKING = (("status",), ("history",))
# They name files or directories, another server or user, or an editor.
REFUSED_FLAGS = _words(
    "cache-dir cert certificate-authority client-certificate client-key cluster context edit filename from-env-file "
    "from-file key kubeconfig kuberc kustomize output-directory password patch-file profile "
    "profile-output proxy-url server token user username"
)
# Flags of one letter; the rest of the word is the value of the first ones, and more flags after the others.
_WITH_VALUE, _WITHOUT = frozenset("nolcLprv"), frozenset("AhRwiqt")
_SHELL = frozenset(["|", "||", "&&", "&", ";", ">", ">>", "<", "<<"])
_HEREDOC = re.compile(r"(?P<command>[^\n]*?)<<-?\s*(['\"]?)(?P<end>\w+)\2\s*\n(?P<text>.*)\n\s*(?P=end)\s*", re.DOTALL)
_MOST_TEXT = 16_000


@dataclass(frozen=True)
class AgentCommand:
    """An agent's command."""

    words: tuple[str, ...] = ()
    """Those of the command line."""
    text: str = ""
    """Its standard input."""
    refused: str = ""
    """Why it is not run, and what to do instead; empty if it is."""

    @property
    def reads_only(self) -> bool:
        """Whether it can change nothing."""
        rest = _after_namespace(self.words[1:])
        return bool(self.refused) or rest[0] in _READING or (rest[0] == "rollout" and rest[1:2] in _LOOKING)


def parsed(command: str | Manifest | Sequence[Manifest]) -> AgentCommand:
    """A command line, or manifests to be applied, as an agent gives them; a here-document is its standard input."""
    if not isinstance(command, str):
        manifests = [command] if hasattr(command, "keys") else list(command)
        return AgentCommand(("kubectl", "apply", "-f", "-"), "---\n".join(map(safe_yaml.written, manifests)))
    text = ""
    if heredoc := _HEREDOC.fullmatch(command.strip()):
        command, text = heredoc["command"], heredoc["text"] + "\n"
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        return AgentCommand(refused=f"the command cannot be read: {error}; close every quote")
    return AgentCommand(words, text, _refusal(words))


def _refusal(words: Sequence[str]) -> str:
    if not words or words[0] != "kubectl":
        return "this is no command of kubectl; write one that begins with kubectl, or give a manifest"
    if shell := next((word for word in words if word in _SHELL), None):
        return f"there is no shell that knows {shell}; write one command of kubectl, and see all of its output"
    rest = _after_namespace(words[1:])
    if not rest or rest[0] not in VERBS:
        named = rest[0] if rest else "nothing"
        return f"kubectl {named} is not offered here; write one of {', '.join(sorted(VERBS))} after kubectl"
    # Also after "--", which may be the value of a flag.
    for word, after in zip(rest[1:], [*rest[2:], ""], strict=True):
        if why := _refused_flag(word, after, rest[0]):
            return why
    return ""


def _after_namespace(words: Sequence[str]) -> tuple[str, ...]:
    """What follows a namespace that is named before the verb."""
    if words and words[0] in ("-n", "--namespace"):
        return tuple(words[2:])
    return tuple(words[1:] if words and words[0].startswith(("-n", "--namespace=")) else words)


def _refused_flag(word: str, after: str, verb: str) -> str:
    """Why a word of a command is refused, with the one after it; empty if it is not."""
    if not word.startswith("-") or word == "-":
        return ""
    name, _, value = word.lstrip("-").partition("=")
    # kubectl takes both.
    name = name.replace("_", "-")
    if not word.startswith("--"):
        name, value = _of_letters(word[1:])
        value = value or after
    elif "=" not in word:
        value = after
    if name in ("f", "filename") and value == "-":
        return ""
    if name in ("o", "output") and "file" in value.partition("=")[0]:
        return f"--output={value.partition('=')[0]} reads a file of this machine; write the template itself"
    if name == "subresource" and value == "status" and verb not in _READING:
        return "a status is written by controllers only; change what they act on"
    if name == "raw" and verb != "get":
        return "--raw is for kubectl get only; name the object"
    if name in REFUSED_FLAGS or (not word.startswith("--") and name not in _WITH_VALUE | _WITHOUT):
        remedy = (
            "give a manifest itself, or as a here-document to -f -" if name in ("f", "filename") else "leave it out"
        )
        return f"-{'-' if word.startswith('--') else ''}{name} is not offered here; {remedy}"
    return ""


def _of_letters(letters: str) -> tuple[str, str]:
    """The flag of several in one word that takes the rest as its value, or is refused; else the last one."""
    for at, letter in enumerate(letters):
        if letter not in _WITHOUT:
            return letter, letters[at + 1 :].lstrip("=")
    return letters[-1:], ""


def run(kubectl: Path, command: AgentCommand, kubeconfig: Path, timeout: float) -> tuple[str, int]:
    """Run a command; returns what it says, and its exit code.

    Args:
        kubeconfig: the cluster's; kubectl keeps what it reads of kinds in the same folder.
    """
    home = kubeconfig.parent
    environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "PATH": ""}
    try:
        ended = subprocess.run(
            [str(kubectl), *command.words[1:]],
            input=command.text.encode(),
            env=environment,
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        said = _shortened(error.stdout or b"")
        return f"{said}\nthe command was ended after {timeout:.0f} s; write one that ends by itself", 124
    except (OSError, ValueError) as error:
        # A word of 130,000 characters, or one with a null byte.
        return f"the command cannot be run: {error}", 126
    return _shortened(ended.stdout), ended.returncode


def _shortened(output: bytes) -> str:
    text = output.decode(errors="replace").rstrip("\n")
    if len(text) <= _MOST_TEXT:
        return text
    return f"{text[:_MOST_TEXT]}\n… of {counted(len(text), 'character')}; ask for less"
