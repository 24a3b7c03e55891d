"""The commands that a stack runs on the user's machine, `hostCommands`, and the images it loads, `loadImages`."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from kumulus.model.checks import no_text_problem, problem
from kumulus.model.errors import Problem, Where, path_text, shown, shown_path
from kumulus.model.fields import Section, checked, short_label, text
from kumulus.model.names import ValueMistake

When = Literal["beforeAddons", "beforeNodes", "last"]
IMAGE = re.compile(
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _command_mistake(value: str) -> ValueMistake | None:
    return None if value.strip() else ValueMistake("is empty", "write a command, or leave the key out")


def _directory_mistake(value: str) -> ValueMistake | None:
    return None if value.strip() else ValueMistake("is empty", "write a directory, or leave the key out")


def _environment_problems(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, dict):
        return [problem(where, f"is {shown(raw)}", "write a mapping of variables, such as {TAG: dev}")]
    found = []
    for key, value in raw.items():
        here = (*where, str(key))
        if not _VARIABLE.fullmatch(str(key)):
            found.append(problem(here, "is not the name of a variable", "write letters, digits and _"))
        elif not isinstance(value, str):
            found.append(no_text_problem(here, value))
    return found


def is_archive(image: str) -> bool:
    """Whether an image is the path of an archive made by `docker save`, rather than a name that Docker knows."""
    return image.startswith(("./", "../", "/")) or image.endswith((".tar", ".tar.gz", ".tgz"))


def _image_mistake(value: str) -> ValueMistake | None:
    if is_archive(value) or IMAGE.fullmatch(value):
        return None
    lower = value.lower()
    remedy = f"write {lower}" if IMAGE.fullmatch(lower) else "write a name with a tag, my-app:dev, or ./my-app.tar"
    return ValueMistake("is neither an image's name nor the path of an archive", remedy)


Command = Annotated[str, text(_command_mistake, form="notBlank")]
Directory = Annotated[str, text(_directory_mistake, form="notBlank")]
Image = Annotated[str, text(_image_mistake, form="loadedImage")]


class HostCommand(Section):
    """A command that runs on the user's machine: pulumi-command's `local.Command`, run by /bin/sh.

    It finds `KUBECONFIG` and `KUMULUS_CLUSTER` in its environment, and runs again for another cluster.
    """

    name: Annotated[str, short_label(63)] = Field(examples=["build-image"])
    """The command's name, unique in the stack."""
    create: Command = Field(examples=["docker build -t my-app:dev ."])
    """What is run first."""
    update: Command | None = Field(default=None, examples=["docker build -t my-app:dev ."])
    """What is run when anything here changes; by default `create` again."""
    delete: Command | None = Field(default=None, examples=["docker image rm my-app:dev"])
    """What is run when the command is removed from the stack, or the stack is destroyed."""
    triggers: list[Any] = Field(default_factory=list, examples=["[v1]"])
    """Any values; if one changes, `delete` and `create` run."""
    environment: Annotated[dict[str, str], checked(_environment_problems, form="environment")] = Field(
        default_factory=dict, examples=["{TAG: dev}"]
    )
    """Further environment variables."""
    dir: Directory = Field(default=".", examples=["./app"])
    """The directory to run in, relative to the project's."""
    when: When = Field(default="beforeAddons", examples=["beforeAddons"])
    """Before add-ons and images, before the emulated nodes, or after everything."""


def missing_directory(command: HostCommand, base: Path) -> tuple[str, str] | None:
    """What is wrong with a command's directory, and the remedy; None for nothing."""
    place = base / command.dir
    # Unlike Path.is_dir, this raises nothing for a name that is too long or may not be looked up.
    if os.path.isdir(place):
        return None
    return f"the directory {shown_path(place)} is not there", "write the directory that the command runs in"


def load_name(image: str) -> str:
    """The name in a stack under which an image is loaded."""
    written = (letter if letter.isalnum() or letter in "-._" else "-" for letter in image.removeprefix("./"))
    return f"load-{''.join(written)}"


def load_name_problems(images: object, commands: Mapping[str, Where]) -> Iterator[Problem]:
    """Images, and commands, whose names in the stack are the same.

    Args:
        images: `loadImages` as the file has it.
        commands: the place of each command's name, by that name.
    """
    first: dict[str, int] = {}
    listed = images if isinstance(images, list | tuple) else ()
    for index, image in enumerate(listed):
        if not isinstance(image, str) or _image_mistake(image):
            continue
        name = load_name(image)
        if name in first:
            place, other = path_text(("loadImages", first[name])), listed[first[name]]
            if image == other:
                message, remedy = f"{shown(image)} is already {place}", "leave one of them out"
            else:
                message = f"{shown(image)} is called {name} in the stack, and so is {place}, {shown(other)}"
                remedy = "give one of the two another name or tag"
            yield problem(("loadImages", index), message, remedy)
        elif name in commands:
            message = f"{shown(name)} is the name under which {path_text(('loadImages', index))} is loaded"
            yield problem(commands[name], message, "write another name")
        first.setdefault(name, index)


def missing_archive(image: str, base: Path) -> tuple[str, str] | None:
    """What is wrong with an archive of `loadImages`, and the remedy; None for nothing."""
    if not is_archive(image) or os.path.isfile(base / image):
        return None
    return f"the archive {shown_path(base / image)} is not there", "write the path of what `docker save` has written"


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
