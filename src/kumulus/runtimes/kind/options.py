"""The options of a cluster of the kind runtime: what can be wrong with them, shared by stack file and plugin."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from kumulus.model import durations
from kumulus.model.checks import mapping_problems, matching, problem, unknown_key_problems
from kumulus.model.errors import Problem, shown
from kumulus.runtimes.kind.kind_config import config_problems

Provider = Literal["docker", "podman", "nerdctl"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
DEFAULT_WAIT = "3m"
_KEYS = ("kindConfig", "nodeImage", "provider", "wait", "adopt")
IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]*")
image_problems = matching(IMAGE, "an image", "write its name, such as kindest/node:v1.35.4")
"""Problems of a value that is to be the name of an image."""


def options_problems(options: Mapping[str, Any]) -> list[Problem]:
    """Problems of the options of a resource Cluster: those of the file's section ``kind``, and ``kindConfig``."""
    found = unknown_key_problems((), options, _KEYS)
    for key, check in {"nodeImage": image_problems, "wait": durations.duration_problems}.items():
        if options.get(key) is not None:
            found += check((key,), options[key])
    if options.get("provider") not in (None, *PROVIDERS):
        remedy = f"write one of {', '.join(PROVIDERS)}"
        found.append(problem(("provider",), f"is {shown(options['provider'])}", remedy))
    if not isinstance(options.get("adopt", False), bool):
        found.append(problem(("adopt",), f"is {shown(options['adopt'])}", "write true or false"))
    config = options.get("kindConfig")
    if config is not None:
        found += mapping_problems(("kindConfig",), config) or config_problems(("kindConfig",), config)
    return found
