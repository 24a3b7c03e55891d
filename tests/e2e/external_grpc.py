"""What cluster-autoscaler would ask: a client of the provider, and a program that stands in for it.

The program does nothing; tests that need its decisions take the real one, from PATH.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
import yaml

from kumulus.extras.scaling.cluster_autoscaler import interface

# It runs under the name by which it was started, as any program does that is no script.
_STAND_IN = '#!/bin/bash\nexec -a "$0" sleep infinity\n'


def stand_in(folder: Path) -> Path:
    """Write a program that only runs."""
    made = folder / "cluster-autoscaler"
    made.write_text(_STAND_IN)
    made.chmod(0o755)
    return made


class CloudProvider:
    """A client of the provider, as cluster-autoscaler's cloud configuration describes it.

    Args:
        cloud_config: the file that cluster-autoscaler is given.
        certified: whether it shows the certificate in it.
    """

    def __init__(self, cloud_config: Path, *, certified: bool = True) -> None:
        said = yaml.safe_load(cloud_config.read_text())
        authority, certificate, key = (Path(said[name]).read_bytes() for name in ("cacert", "cert", "key"))
        self._certified = certified
        shown = {"private_key": key, "certificate_chain": certificate} if certified else {}
        self._channel = grpc.secure_channel(said["address"], grpc.ssl_channel_credentials(authority, **shown))

    def __enter__(self) -> CloudProvider:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    def ask(self, call: str, **fields: Any) -> Any:
        """Ask one thing; raises grpc.RpcError where that is refused."""
        asked, answered = interface.of_call(call)
        done = self._channel.unary_unary(
            f"/{interface.SERVICE}/{call}",
            request_serializer=asked.SerializeToString,
            response_deserializer=answered.FromString,
        )
        # A provider that has just been started may not listen yet; who is refused would try for ever.
        return done(asked(**fields), timeout=60, wait_for_ready=self._certified)
