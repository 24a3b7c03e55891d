"""Write YAML in which every text is read as a text: by Kubernetes' and Pulumi's programs in Go, and by Kumulus.

PyYAML quotes the texts that YAML 1.1 takes for something else, as its authors read it. Those in Go
(gopkg.in/yaml.v3, resolve.go; sigs.k8s.io/yaml) take more texts for numbers: a rack's `08` is 8 to them, and `12e5`, as
a commit may begin, is 1200000.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    _Fast = yaml.SafeDumper
else:
    _Fast = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# Go takes all underscores out before it looks.
_NUMBER = re.compile(
    r"[-+]?_*(0_*[bB][01_]+|0_*[oO][0-7_]+|0_*[xX][0-9a-fA-F_]+"
    r"|(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)(_*[eE]_*[-+]?[0-9_]+)?)\Z"
)
_SWITCH = re.compile(r"[yYnN]\Z")


class Dumper(_Fast):
    """PyYAML's safe dumper, libyaml's if PyYAML was built with it, which quotes what Go would read otherwise."""


Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", _SWITCH, list("yYnN"))


def written(value: object, width: int = 80) -> str:
    """A document's text, with keys in the order of its mappings.

    Args:
        width: the longest line, in characters, where a text can be broken.
    """
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, width=width, allow_unicode=True))
