"""A node group's `topology`: how many nodes, racks and switches belong together, and the labels that show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import ceil
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from kumulus.model.checks import MOST_REPLICAS, of_mapping, problem, unknown_key_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import FORM, Section, checked, malformed, whole
from kumulus.model.names import LABEL_LENGTH, is_own, label_key_mistake
from kumulus.model.nodes import HOSTNAME_LABEL
from kumulus.model.pools import ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL, REGION_LABEL, ZONE_LABEL
from kumulus.model.topology import LEVELS, Level, Topology, place_name

Preset = Literal["kumulus", "kueue", "kai", "volcano"]
VOLCANO: Preset = "volcano"

_OWN = {
    "nvlinkDomain": "topology.kumulus.io/nvlink-domain",
    "rack": "topology.kumulus.io/rack",
    "leaf": "topology.kumulus.io/leaf",
    "block": "topology.kumulus.io/block",
    "spine": "topology.kumulus.io/spine",
}
# Topograph's keys, for levels without a key in the schedulers' own docs: docs.nvidia.com/topograph, "Node Labels".
_NVIDIA = {
    "nvlinkDomain": "network.topology.nvidia.com/accelerator",
    "leaf": "network.topology.nvidia.com/leaf",
    "spine": "network.topology.nvidia.com/spine",
}
_CLOUD = {"rack": "cloud.provider.com/topology-rack", "block": "cloud.provider.com/topology-block"}
PRESETS: Mapping[str, Mapping[str, str]] = {
    "kumulus": _OWN,
    # kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling
    "kueue": {**_NVIDIA, **_CLOUD},
    # KAI-Scheduler, docs/topology/README.md; its NVLink domains are GPU Feature Discovery's cliques:
    # docs.nvidia.com/nvcf/topology-aware-scheduling
    "kai": {**_NVIDIA, **_CLOUD, "nvlinkDomain": "nvidia.com/gpu.clique"},
    # volcano, docs/user-guide/how_to_use_hypernode_auto_discovery.md
    "volcano": {
        **_NVIDIA,
        "rack": "volcano.sh/hypernode",
        "block": "volcano.sh/hypercluster",
        "leaf": "volcano.sh/tor",
    },
}
"""The label keys of each preset, by level."""
ZONES: Mapping[str, str] = {"kai": "cloud.provider.com/topology-zone"}
"""The key of a further label with a node's zone, for presets whose zones are a level of the topology."""

_TAKEN = (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    REGION_LABEL,
    INSTANCE_TYPE_LABEL,
    ARCH_LABEL,
    OS_LABEL,
    "kubernetes.io/role",
    "type",
)
# The key of the section that defines a level, and the name of the level's domains in messages.
_SIZED_BY = {
    "nvlinkDomain": ("nodesPerNvlinkDomain", "NVLink domains"),
    "rack": ("nodesPerRack", "racks"),
    "leaf": ("racksPerLeaf", "leaf switches"),
    "block": ("racksPerBlock", "blocks"),
    "spine": ("leavesPerSpine", "spine switches"),
}

Count = Annotated[int, whole(1, MOST_REPLICAS)]


@of_mapping
def _label_keys_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    wrong = unknown_key_problems(where, raw, LEVELS)
    for level, key in raw.items():
        here = (*where, level)
        if not isinstance(key, str):
            wrong.append(problem(here, f"is {shown(key)}, not a text", "write a label's key such as example.com/rack"))
        elif mistake := label_key_mistake(key):
            wrong.append(problem(here, f"{shown(key)} {mistake.message}", mistake.remedy))
        elif key in _TAKEN or (is_own(key) and key != _OWN.get(level)):
            message = f"{shown(key)} is a label that Kumulus sets itself"
            wrong.append(problem(here, message, "write a key of your own domain, such as example.com/rack"))
    return wrong


LabelKeys = Annotated[dict[str, str], checked(_label_keys_problems, dict, form="topologyLabels")]


class GroupTopology(Section):
    """How the nodes of a group are arranged in each of its zones; places are filled in the order of the ordinals."""

    model_config = ConfigDict(json_schema_extra={FORM: "topologyRules"})

    nodesPerRack: Count = Field(examples=["16"])
    """Nodes in a rack."""
    racksPerBlock: Count | None = Field(default=None, examples=["8"])
    """Racks in a block; by default there are no blocks."""
    blocks: Count | None = Field(default=None, examples=["4"])
    """How many blocks a zone has; by default as many as its nodes need."""
    nodesPerNvlinkDomain: Count | None = Field(default=None, examples=["4"])
    """Nodes that share an NVLink domain; by default none."""
    racksPerLeaf: Count | None = Field(default=None, examples=["1"])
    """Racks behind one leaf switch; by default there are no leaf switches."""
    leavesPerSpine: Count | None = Field(default=None, examples=["4"])
    """Leaf switches behind one spine switch; by default there are no spine switches."""
    preset: Preset = Field(default="kumulus", examples=["kueue"])
    """Whose label keys to use: those of Kueue, KAI, Volcano or Kumulus."""
    labels: LabelKeys = Field(default_factory=dict, examples=["{rack: example.com/rack}"])
    """Label keys by level, instead of the preset's."""

    @model_validator(mode="wrap")
    @classmethod
    def _fits(cls, data: object, handler: ModelWrapValidatorHandler[GroupTopology]) -> GroupTopology:
        made = handler(data)
        if problems := [*_needs(made), *_labels_problems(made), *_nesting_problems(made)]:
            raise malformed(problems)
        return made

    def topology(self) -> Topology:
        """The levels with their label keys and their sizes in nodes."""
        keys = {**PRESETS[self.preset], **self.labels}
        return Topology.of(Level(name, keys[name], nodes) for name, nodes in self.sizes().items())

    def sizes(self) -> dict[str, int]:
        """Nodes in one domain of each defined level."""
        rack = self.nodesPerRack
        leaf = rack * self.racksPerLeaf if self.racksPerLeaf else None
        sizes = {
            "nvlinkDomain": self.nodesPerNvlinkDomain,
            "rack": rack,
            "leaf": leaf,
            "block": rack * self.racksPerBlock if self.racksPerBlock else None,
            "spine": leaf * self.leavesPerSpine if leaf and self.leavesPerSpine else None,
        }
        return {name: nodes for name, nodes in sizes.items() if nodes}

    def places(self) -> int | None:
        """The number of nodes that fit in a zone; None when blocks are added as nodes need them."""
        return self.nodesPerRack * self.racksPerBlock * self.blocks if self.blocks and self.racksPerBlock else None


def well_formed(raw: object) -> GroupTopology | None:
    """A topology from the file, for rules between it and other parts; None when it is missing or malformed."""
    try:
        return GroupTopology.model_validate(raw) if isinstance(raw, Mapping) else None
    except ValidationError:
        return None


def placement_problems(where: Where, topology: GroupTopology, pool: str, replicas: int) -> Iterator[Problem]:
    """Whether there is a place for each of a zone's nodes, and whether the names of the places fit into labels."""
    places = topology.places()
    if places is not None and replicas > places:
        assert topology.blocks
        needed = ceil(replicas / (places // topology.blocks))
        sizes = f"{topology.blocks} × {topology.racksPerBlock} × {topology.nodesPerRack}"
        message = f"is {replicas:,}, but blocks × racksPerBlock × nodesPerRack = {sizes} are {places:,} places"
        remedy = f"write {places:,} or fewer, or topology.blocks: {needed}"
        yield problem((*where, "replicas"), message, remedy)
    last = max(replicas - 1, 0)
    longest = max((place_name(pool, level.place(last)) for level in topology.topology().levels), key=len)
    if len(longest) > LABEL_LENGTH:
        message = f"makes the topology label {longest} of {len(longest)} characters, at most {LABEL_LENGTH} are allowed"
        yield problem(where, message, "write a shorter group or zone name")


def template_problems(where: Where, topology: GroupTopology, labels: Mapping[str, object]) -> Iterator[Problem]:
    """Labels that a group's template, whose `labels` these are, and its topology both set."""
    for level in topology.topology().levels:
        if level.label in labels:
            message = f"is the label of the topology's {_SIZED_BY[level.name][1]} too"
            here = (*where, "nodeTemplate", "metadata", "labels", level.label)
            yield problem(here, message, f"leave it out, or write another key as topology.labels.{level.name}")


def _needs(made: GroupTopology) -> Iterator[Problem]:
    if made.blocks and not made.racksPerBlock:
        yield problem(("racksPerBlock",), "is missing, so the size of a block is not known", "write racksPerBlock: 8")
    if made.leavesPerSpine and not made.racksPerLeaf:
        message = "is missing, so the size of a leaf switch is not known"
        yield problem(("racksPerLeaf",), message, "write racksPerLeaf: 1")


def _labels_problems(made: GroupTopology) -> Iterator[Problem]:
    sizes = made.sizes()
    for name in made.labels:
        if name not in sizes:
            key, what = _SIZED_BY[name]
            message = f"has no effect, as the topology has no {what}"
            yield problem(("labels", name), message, f"leave it out, or write {key}")
    first: dict[str, str] = {}
    # Those with a key of the file come last, so that these are reported.
    for level in sorted(made.topology().levels, key=lambda level: level.name in made.labels):
        if level.label in first:
            message = f"{shown(level.label)} is the label of {_SIZED_BY[first[level.label]][1]} too"
            yield problem(("labels", level.name), message, "write another key")
        first.setdefault(level.label, level.name)


def _nesting_problems(made: GroupTopology) -> Iterator[Problem]:
    """A domain must not be in two domains of a larger level, or the domains would not form a tree."""
    for inner, outer in pairwise(made.topology().levels):
        if outer.nodes % inner.nodes == 0:
            continue
        # Other levels consist of racks, so the level that is not the rack is reported.
        key = _SIZED_BY[inner.name if outer.name == "rack" else outer.name][0]
        (_, small), (_, large) = _SIZED_BY[inner.name], _SIZED_BY[outer.name]
        message = f"gives {small} of {inner.nodes} nodes and {large} of {outer.nodes}, so that one would stand in two"
        yield problem((key,), message, "write sizes of which one divides the other")
