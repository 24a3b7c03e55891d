"""A Prometheus client for tests."""

import json
import math
import re
import ssl
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any


class Prometheus:
    """The Prometheus at an address such as ``https://127.0.0.1:9090``; plain HTTP works too.

    Args:
        pki: the directory of the cluster's certificates, for a Prometheus that requires them.
    """

    def __init__(self, address: str, pki: Path | None = None) -> None:
        self.address = address
        self.tls = None
        if pki is not None:
            self.tls = ssl.create_default_context(cafile=pki / "ca.crt")
            self.tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")

    def api(self, path: str, **parameters: str) -> Any:
        """The ``data`` of an answer of its HTTP API."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with urllib.request.urlopen(f"{self.address}/api/v1/{path}{query}", timeout=30, context=self.tls) as answer:
            return json.load(answer)["data"]

    def values(self, expr: str) -> list[float]:
        """The current values of an expression; a dashboard's variables match everything."""
        found = self.api("query", query=re.sub(r"\$\w+", ".*", expr))["result"]
        numbers = [float(sample["value"][1]) for sample in found]
        return [number for number in numbers if not math.isnan(number)]
