"""What a fault writes into pods' statuses: its own texts arrive as they are, whatever is in them."""

from __future__ import annotations

import re

import pytest
import yaml

from kumulus.kwok.pod_statuses import fault
from kumulus.model.pod_effects import PodEffects

TEXTS = [
    "UNSUPPORTED ARCHITECTURE",
    "MESSAGE of REASON: EXIT_CODE, HIT in STATUSES of CONTAINERS",
    "PULL_REASON PULL_MESSAGE",
    "GPU \U0001f525 on \u706b, \\ud83d and \\u007b",
    "quotes \", ' and \\, {{ .spec }}, {{{ and }}, # : - %s",
    "two\nlines,\ttabs, \u0085 and \u2028",
]


def said(template: str, key: str) -> list[str]:
    """The texts after a key in a template, as YAML has them."""
    found = re.findall(rf'\b{key}: ("(?:[^"\\]|\\.)*")', template)
    return [yaml.load(each, Loader=yaml.CSafeLoader) for each in found]


@pytest.mark.parametrize("text", TEXTS)
def test_a_faults_texts_arrive_as_they_are(text: str) -> None:
    effects = PodEffects("fail", container="trainer", exit_code=3, reason=text, message=text)
    for init in (False, True):
        template = fault.failed(effects, init)
        assert said(template, "message") == said(template, "reason") == [text]
        assert 'eq .name "trainer"' in template
        assert "exitCode: 3" in template
    assert said(fault.evicted(effects), "message") == [text] * 2
    template = fault.unpulled(effects, "ErrImagePull")
    assert said(template, "message") == [text]
    assert "reason: ErrImagePull" in template
    # A text never begins an action of a template.
    for template in (fault.failed(effects, False), fault.evicted(effects), fault.unpulled(effects, "ErrImagePull")):
        assert "{{" not in re.sub(r"\{\{ (?:end|else|if|with|range|or|add1|\$|\.)[^}]*\}\}", "", template)
        assert "{{ .spec }}" not in template
