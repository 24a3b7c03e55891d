"""The stack's `hostCommands` and `loadImages`, as pulumi-command's ``local.Command``.

Imported only for stacks that have some, as no other stack needs pulumi-command's plugin.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pulumi
from pulumi_command.local import Command

from kumulus.components.inputs import with_secrets
from kumulus.components.resources import ClusterLike
from kumulus.host import installation
from kumulus.model.errors import Where, shown_path
from kumulus.stackfile.host_commands import HostCommand, When, digest_of_file, is_archive, load_name, missing_archive
from kumulus.stackfile.load import LoadedCluster
from kumulus.stackfile.secrets import Secrets

_PATIENCE = 20.0


def host_commands(
    loaded: LoadedCluster,
    when: When,
    *,
    cluster: ClusterLike,
    after: Sequence[pulumi.Resource],
    parent: pulumi.Resource,
) -> list[Command]:
    """Declare those of a stack's commands that run at a given point of an update.

    A command finds the cluster's kubeconfig, and runs again for another cluster. If something in it is secret, its
    output is, too.
    """
    asked = enumerate(loaded.spec.hostCommands)
    return [
        _host_command(command, cluster, loaded.secrets.within("hostCommands", number), after, parent)
        for number, command in asked
        if command.when == when
    ]


def _host_command(
    command: HostCommand,
    cluster: ClusterLike,
    secrets: Sequence[Where],
    after: Sequence[pulumi.Resource],
    parent: pulumi.Resource,
) -> Command:
    kept = Secrets(tuple(secrets))
    plain = command.model_dump(include={"create", "update", "delete", "triggers", "environment"})
    fields = {key: with_secrets(value, kept.within(key)) for key, value in plain.items()}
    environment = {"KUBECONFIG": cluster.kubeconfig, "KUMULUS_CLUSTER": cluster.cluster_name}
    return Command(
        f"{cluster.prefix}{command.name}",
        create=fields["create"],
        update=fields["update"],
        delete=fields["delete"],
        triggers=pulumi.Output.all(fields["triggers"], cluster.identity).apply(lambda both: [*both[0], both[1]]),
        environment=pulumi.Output.all(environment, fields["environment"]).apply(lambda both: {**both[0], **both[1]}),
        # Unchanged: the plugin runs in the project's directory, which may be elsewhere for a colleague.
        dir=command.dir if command.dir != "." else None,
        opts=pulumi.ResourceOptions(
            parent=parent,
            depends_on=[cluster.resource, *after],
            # Otherwise the old command's `delete` would remove what the new one's `create` has made.
            delete_before_replace=True,
            additional_secret_outputs=["stdout", "stderr"] if secrets else None,
        ),
    )


def image_load(
    image: str,
    place: str,
    *,
    cluster: ClusterLike,
    base: Path,
    after: Sequence[Command] = (),
    parent: pulumi.Resource | None = None,
) -> Command:
    """Declare that an image is loaded into the nodes of a kind cluster, and loaded again if its content changes.

    Args:
        image: a name that Docker knows, or the path of an archive.
        place: where the stack file has it, for errors.
        after: commands that may build it; its digest is taken after they have run.
    """
    archive = is_archive(image)
    digest: pulumi.Output[str] = pulumi.Output.all(*(command.stdout for command in after)).apply(
        lambda _: digest_of_archive(image, place, base) if archive else digest_of_image(image, place)
    )
    kind = "image-archive" if archive else "docker-image"
    return Command(
        f"{cluster.prefix}{load_name(image)}",
        # No shell: the image is the command's last argument.
        interpreter=[str(_kumulus()), "kind", "load", kind, "--name", cluster.cluster_name],
        create=str((base / image).resolve()) if archive else image,
        triggers=[digest, cluster.identity],
        opts=pulumi.ResourceOptions(
            parent=parent, depends_on=[cluster.resource, *after], deleted_with=cluster.lifetime
        ),
    )


def _kumulus() -> Path:
    """The command ``kumulus``, which knows which kind program to use, and how to run it on this machine."""
    return (installation.checkout() or installation.scripts()) / "kumulus"


async def digest_of_archive(image: str, place: str, base: Path) -> str:
    """The digest of an archive's content; raises pulumi.RunError if it cannot be read."""
    try:
        return await asyncio.to_thread(digest_of_file, base / image)
    except OSError as error:
        unreadable = f"the archive {shown_path(base / image)} cannot be read: {error.strerror}", "make it readable"
        message, remedy = missing_archive(image, base) or unreadable
        raise pulumi.RunError(f"{place}: {message}; {remedy}") from None


async def digest_of_image(image: str, place: str) -> str:
    """The identity of an image's content in the container engine that kind uses; raises pulumi.RunError likewise."""
    engine = os.environ.get("KIND_EXPERIMENTAL_PROVIDER") or "docker"
    command = [engine, "image", "inspect", "--format", "{{.Id}}", image]
    run = partial(subprocess.run, command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    try:
        answer = await asyncio.to_thread(run)
    except FileNotFoundError:
        raise pulumi.RunError(f"{place}: {engine} is not on PATH, which has the images to load; install it") from None
    except subprocess.TimeoutExpired:
        raise pulumi.RunError(f"{place}: {engine} did not answer within {_PATIENCE:g} s; is its daemon well?") from None
    if answer.returncode == 0:
        return answer.stdout.strip()
    said = " ".join(answer.stderr.split())
    if "no such image" in said.lower() or "image not known" in said.lower():
        remedy = f"run {engine} pull {image}, or build it by one of hostCommands"
        raise pulumi.RunError(f"{place}: {engine} has no image {image}; {remedy}")
    raise pulumi.RunError(f"{place}: {engine} could not be asked for {image}: {said}")
