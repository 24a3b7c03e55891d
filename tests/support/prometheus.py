"""A Prometheus as a test asks it."""

from __future__ import annotations

import json
import math
import re
import ssl
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any


class Prometheus:
    """One that answers at an address such as ``https://127.0.0.1:9090``, or in plain.

    Args:
        address: where.
        pki: the directory of the cluster's certificates, for one that asks for them.
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
        """The numbers that an expression has now; a dashboard's variables stand for everything."""
        found = self.api("query", query=re.sub(r"\$\w+", ".*", expr))["result"]
        numbers = [float(sample["value"][1]) for sample in found]
        return [number for number in numbers if not math.isnan(number)]
