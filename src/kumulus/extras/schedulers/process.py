"""Start a scheduler against a cluster: see :func:`start`."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kumulus.extras.schedulers import children, objects, registry
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.launch.plan import PLAIN, LaunchPlan, LaunchRequest, Switches
from kumulus.extras.schedulers.objects import Mark
from kumulus.extras.schedulers.running import Running, connected
from kumulus.host import files
from kumulus.host.ports import Claims, NoFreePort
from kumulus.kube import Client

__all__ = ["Running", "start"]


async def start(
    name: str,
    kubeconfig: Path,
    directory: Path,
    config: Path | None = None,
    *,
    binary: Path | None = None,
    timeout: float = 60.0,
    mark: Mark | None = None,
    switches: Switches = PLAIN,
) -> Running:
    """Start a scheduler alongside the cluster's own and wait until it works.

        running = await start("volcano", kubeconfig, directory)
        …
        await running.stop()

    It listens on 127.0.0.1 only, elects no leader, and ends with the calling thread, however that ends.
    If the start fails, nothing is left behind.

    Args:
        directory: a directory of its own for configuration and logs; created if missing, kept private.
        config: the scheduler's own configuration: a KubeSchedulerConfiguration, Volcano's scheduler.conf, Kueue's
            Configuration, YuniKorn's queues.yaml or ConfigMap. Its own address and the API server's are overridden.
        binary: the user's own build in place of the program that schedules.
        timeout: seconds until it has to work.
        mark: the experiment's run that it is started for and the stack whose cluster it is.
        switches: settings that only some schedulers have.

    Raises:
        SchedulerError: it is not built, ended at once, does not work in time, or the cluster cannot be reached.
    """
    try:
        with Claims() as claims:
            request = _request(name, kubeconfig, directory, config, binary, claims, switches)
            if (planned := registry.get(request.name).plan) is None:
                raise SchedulerError(f"{request.name} is the cluster's own scheduler, which runs already")
            async with connected(request.kubeconfig) as client:
                # Before anything is created: a scheduler would try to reach its API server forever.
                await client.get("/readyz")
                version = str((await client.get("/version")).get("gitVersion") or "")
                plan = planned(replace(request, kubernetes=version))
                return await _start(request, plan, client, timeout, mark)
    except NoFreePort as error:
        raise SchedulerError(str(error)) from None
    except OSError as error:
        raise SchedulerError(f"{error.filename or directory}: {error.strerror or error}") from None


async def _start(
    request: LaunchRequest, plan: LaunchPlan, client: Client, timeout: float, mark: Mark | None
) -> Running:
    for name, content in plan.files.items():
        files.write(request.directory / name, content, mode=0o600)
    running = Running(
        name=request.name,
        version=plan.version,
        scheduler_names=plan.scheduler_names,
        settings={"version": plan.version or f"own: {plan.programs[0].binary}", **plan.settings},
        kubeconfig=request.kubeconfig,
        directory=request.directory,
        programs=tuple(plan.programs),
        run=mark.run if mark else "",
    )
    try:
        await objects.create(client, request.name, plan.objects, mark)
        running.launch()
        await running.work(client, plan, timeout)
    except BaseException:
        with suppress(SchedulerError):
            await running.stop()
        raise
    return running


def _request(
    name: str,
    kubeconfig: Path,
    directory: Path,
    config: Path | None,
    binary: Path | None,
    claims: Claims,
    switches: Switches,
) -> LaunchRequest:
    scheduler, directory = registry.get(name), directory.absolute()
    if binary is not None and not binary.is_file():
        raise SchedulerError(f"the scheduler's binary {binary} does not exist\n  Check its path")
    if alive := children.running(directory):
        programs = ", ".join(alive)
        raise SchedulerError(f"{programs} runs in {directory} already\n  Stop it first, or choose another directory")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return LaunchRequest(
        name=scheduler.name,
        kubeconfig=kubeconfig.absolute(),
        directory=directory,
        config=config,
        binary=binary.absolute() if binary is not None else None,
        port=claims.take,
        switches=switches,
    )
