"""A client of the cluster whose errors are worded for the user."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig

_PATIENCE_SECONDS = 10.0


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client, closed with the context.

    Raises:
        SchedulerError: the kubeconfig cannot be used, or the server refused a request.
    """
    try:
        async with Client(load_kubeconfig(kubeconfig), patience=_PATIENCE_SECONDS) as client:
            yield client
    except (ApiError, Unreachable, KubeconfigError) as error:
        raise SchedulerError(str(error)) from None
