"""Replaces names by words, with a key: the same name always by the same word, and irreversibly without the table.

What schedulers use for decisions is preserved: equality, order of numbers, keys with a meaning from Kubernetes or a
vendor, and their values if these reveal nothing about the user (an architecture, a GPU product of the catalog, a
number).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kumulus.extras.capture.known_keys import (
    DEVICES_OF_CLASS,
    KNOWN_ATTRIBUTES,
    KNOWN_DRIVERS,
    OF_CLASS,
    OF_RESOURCE,
    VOLUMES_OF_DRIVER,
    is_known_device_text,
    is_known_key,
)
from kumulus.host import files
from kumulus.model.pools import ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL
from kumulus.nodes.catalog.instances import gpu_products, instance_types

# The words that replace names: plain English, easy to distinguish and to pronounce.
_ADJECTIVES = """
    amber ample arctic autumn azure basic beige bold brave brief bright brisk bronze calm candid civic clear
    clever coastal cobalt copper coral cosmic crisp cubic daily deep dry dusty eager early easy fair fast fine
    firm fleet fond fresh gentle glad golden grand green happy hazel hidden humble icy ivory jolly keen kind
    late lemon level light lilac lively lofty loyal lucky lunar mellow merry mild misty modest mossy navy neat
    nimble noble north olive opal open orange pale pearl plain polar proud pure quick quiet rapid rare ready
    regal robust rosy round royal ruby rustic sandy scarlet serene sharp silent silver simple sleek slow smooth
    snowy solar solid spare spring stable steady stone sunny swift tall teal tidy tiny topaz vast velvet violet
    vivid warm west white wide wild windy wise young
"""
ADJECTIVES = tuple(_ADJECTIVES.split())
_NOUNS = """
    acorn alder anchor apple aspen badger banjo barley basin beacon beaver birch bison bramble breeze bridge
    brook butte cactus canoe canyon cedar cello cherry cliff cloud clover comet condor coral cove crane creek
    crow cypress daisy dale delta dingo dove dune eagle elm ember falcon fern ferry fjord flint forest fox
    garnet gecko geyser glacier glade grove gull harbor hare harp hawk hazel heath heron hill holly ibex iris
    island ivy jasper jay juniper kelp kestrel kiwi lagoon lake lantern larch lark laurel lily linden lion lotus
    lynx magpie maple marsh meadow mesa mole moose moss newt oak oasis olive orchid oriole osprey otter owl
    panda peach pebble pelican pine plover plum pond poppy prairie puffin quail quartz rabbit raven reed reef
    ridge river robin rose sage salmon seal shore sparrow spruce stone stork stream sumac summit swan thistle
    thrush tiger topaz trout tulip turtle valley violet walnut willow wolf wren yak zebra
"""
NOUNS = tuple(_NOUNS.split())


_PREFIX = "x.example"
_HARMLESS_VALUE = re.compile(r"|true|false|[0-9]{1,6}")
_NUMBERS = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(?=[-+]|$)")
_ARCHITECTURES = frozenset(("amd64", "arm64", "arm", "ppc64le", "s390x", "riscv64", "386", "linux", "windows"))
_KNOWN_NAMES = frozenset(
    (
        "default",
        "default-scheduler",
        "kube-system",
        "kube-public",
        "kube-node-lease",
        "system-cluster-critical",
        "system-node-critical",
    )
)
_ENCODING = "utf-8"


class WrongTable(Exception):
    """A file is not a translation table, or others may read it."""


@dataclass
class Words:
    """The word for each name; words for new names are added on demand."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Secret; with the same key, names get the same words again."""
    by_name: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._taken = {word: name for name, word in self.by_name.items()}

    def name(self, text: str) -> str:
        """The word for an object's name; the system's own names stay, and what stays as the value of any label.

        Labels refer to objects by their names, such as a queue or a namespace.
        """
        return text if _is_harmless("", text) else self.word(text)

    def key_of(self, text: str) -> str:
        """The replacement of a qualified name; a name that has the same meaning everywhere stays."""
        if is_known_key(text):
            return text
        prefix, slash, last = text.rpartition("/")
        # A prefix makes a resource an extended one.
        return f"{self.word(prefix)}.{_PREFIX}/{self.word(last)}" if slash else self.word(last)

    def resource(self, text: str) -> str:
        """A resource's name, or a quota's for it: what tells Kubernetes which amount is meant stays.

        Only the names in it are replaced, each by the same word as where the class, driver or resource itself is named.
        """
        if is_known_key(text):
            return text
        if ending := next((each for each in OF_CLASS if text.endswith(each)), ""):
            return self.name(text.removesuffix(ending)) + ending
        prefix = next((each for each in OF_RESOURCE if text.startswith(each)), "")
        counted = text.removeprefix(prefix)
        if counted.startswith(DEVICES_OF_CLASS):
            return prefix + DEVICES_OF_CLASS + self.name(counted.removeprefix(DEVICES_OF_CLASS))
        if counted.startswith(VOLUMES_OF_DRIVER):
            return prefix + VOLUMES_OF_DRIVER + self.key_of(counted.removeprefix(VOLUMES_OF_DRIVER))
        return prefix + self.key_of(counted)

    def value(self, key: str, text: str) -> str:
        """A label's value; numbers, switches and what the catalog knows stay."""
        return text if _is_harmless(key, text) else self.word(text)

    def driver(self, text: str) -> str:
        """A DRA driver's name, or an attribute's domain: replaced like a device's text, since rules compare the two."""
        return self.device_text(text)

    def attribute(self, text: str) -> str:
        """An attribute's or a capacity's name, `domain/identifier` or `identifier`; identifiers have no dashes."""
        domain, slash, last = text.rpartition("/")
        own = last if last in KNOWN_ATTRIBUTES else self.word(last).replace("-", "_")
        return f"{self.driver(domain)}/{own}" if slash else own

    def device_text(self, text: str) -> str:
        """An attribute's text; drivers, products of the catalog and vendors' own words stay."""
        known = text in KNOWN_DRIVERS or is_known_device_text(text) or text.replace(" ", "-") in gpu_products()
        return text if known or _HARMLESS_VALUE.fullmatch(text) else self.word(text)

    def version(self, text: str) -> str:
        """A version; the part after its three numbers is treated as a name."""
        numbers = _NUMBERS.match(text)
        if numbers is None:
            return "0.0.0-" + self.word(text)
        rest = text[numbers.end() :]
        return f"{numbers[0]}{rest[0]}{self.word(rest[1:])}" if rest else numbers[0]

    def word(self, text: str) -> str:
        """The word for a text: always the same, and unique to it."""
        if (known := self.by_name.get(text)) is not None:
            return known
        digest = hmac.new(self.key, text.encode(_ENCODING, "surrogatepass"), hashlib.sha256).digest()
        start = f"{ADJECTIVES[digest[0] % len(ADJECTIVES)]}-{NOUNS[digest[1] % len(NOUNS)]}"
        tries = (f"{start}-{digest.hex()[-digits:]}" for digits in (4, 8, 16, 32))
        made = next(each for each in tries if each not in self._taken)
        self.by_name[text], self._taken[made] = made, text
        return made

    def back(self, text: str) -> str:
        """A text with every word in it replaced by its original name."""
        return _WORD.sub(lambda found: self._taken.get(found["word"].replace("_", "-"), found[0]), text)

    def save(self, file: Path) -> None:
        """Write the table atomically, readable only by its owner."""
        content = {"kind": "KumulusTranslation", "key": self.key.hex(), "words": dict(sorted(self.by_name.items()))}
        files.write(file, json.dumps(content, indent=1), mode=0o600)

    @classmethod
    def read(cls, file: Path) -> Words:
        """The words of a table.

        Raises:
            WrongTable: it is not a table, or others may read it.
        """
        with file.open(encoding=_ENCODING) as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise WrongTable(f"{file} may be read by others: it says what every word stands for; chmod 600 {file}")
            try:
                found = json.load(opened)
                key, words = bytes.fromhex(found["key"]), found["words"]
                if found["kind"] != "KumulusTranslation" or not isinstance(words, Mapping) or len(key) != 32:
                    raise ValueError
            except (ValueError, KeyError, TypeError, RecursionError):
                raise WrongTable(f"{file} is no translation table of kumulus capture") from None
        return cls(key, {str(name): str(word) for name, word in words.items()})


_WORD = re.compile(
    rf"(?P<word>(?:{'|'.join(ADJECTIVES)})[-_](?:{'|'.join(NOUNS)})[-_]"
    r"(?:[0-9a-f]{32}|[0-9a-f]{16}|[0-9a-f]{8}|[0-9a-f]{4}))"
    # What `key_of` puts between a domain's word and the slash.
    rf"(?:\.{re.escape(_PREFIX)}(?=/))?"
)


def _is_harmless(key: str, text: str) -> bool:
    if _HARMLESS_VALUE.fullmatch(text) or text in _KNOWN_NAMES:
        return True
    if key in (OS_LABEL, ARCH_LABEL, f"beta.{OS_LABEL}", f"beta.{ARCH_LABEL}"):
        return text in _ARCHITECTURES
    if key == INSTANCE_TYPE_LABEL:
        return text in instance_types()
    return key == "nvidia.com/gpu.product" and text in gpu_products()
