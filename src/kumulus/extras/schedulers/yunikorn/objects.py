"""YuniKorn's queues, which are not objects of the cluster.

Quotas are read from its configuration, and their use follows from the pods that name a queue.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from kumulus.extras.schedulers.kinds import Object, ObjectKind, Quota
from kumulus.extras.schedulers.readers import part, texts
from kumulus.kube.safe_yaml import FAST_LOADER, check_limits


def queues(found: Object) -> list[Quota]:
    """The queues with a quota in its ConfigMap, by their full names; none if the text cannot be read."""
    text = str(part(found, "data").get("queues.yaml") or "")
    try:
        check_limits(text)
        plain = yaml.load(text, Loader=FAST_LOADER)  # noqa: S506  # it is the safe one
        return [
            quota
            for partition in plain["partitions"]
            for queue in partition["queues"]
            for quota in _below(queue, str(queue["name"]))
        ]
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError):
        # YuniKorn itself refuses such a text, and says so in its log.
        return []


def _below(queue: Mapping[str, Any], name: str) -> list[Quota]:
    most = texts((queue.get("resources") or {}).get("max"))
    own = [Quota("YuniKorn queue", name, most, {}, 0, 0)] if most else []
    return own + [each for child in queue.get("queues") or () for each in _below(child, f"{name}.{child['name']}")]


KINDS = (ObjectKind("ConfigMap", "configmaps", only="?fieldSelector=metadata.name%3Dyunikorn-configs", queues=queues),)
