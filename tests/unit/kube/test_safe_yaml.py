"""Texts in the YAML that Kumulus writes are texts to whoever reads it: Pulumi, kubectl and Kumulus itself."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kumulus.kube.safe_yaml import Dumper, written
from kumulus.stackfile.yamltext import read_yaml

# Each is a number or a switch to gopkg.in/yaml.v3 or sigs.k8s.io/yaml: seen with `pulumi config --json` and kubectl.
NO_TEXT_TO_GO = ["08", "-09", "12e5", "1234e56", ".5e3", "0o17", "0O17", "0X1F", "1_0.5", "9e_2", "+_4", "0_8", *"yN"]
# PyYAML quotes these by itself.
NOR_TO_PYYAML = ["1", "017", "1.10", "yes", "null", "~", "12:30", "2026-01-31"]
TEXT_TO_ALL = ["1Gi", "m5", "a2-ultragpu-8g", "10.0.0.1", "1.35.4", "us-east-1a", "e5", "1e", "0b2", "12e5f", "yy"]


@pytest.mark.parametrize("text", NO_TEXT_TO_GO + NOR_TO_PYYAML)
def test_what_go_does_not_read_as_a_text_is_quoted(text: str) -> None:
    assert written({text: text}) == f"'{text}': '{text}'\n"


@pytest.mark.parametrize("text", TEXT_TO_ALL)
def test_other_texts_are_written_as_they_are(text: str) -> None:
    assert written({"a": text}) == f"a: {text}\n"


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="0123456789abeoxOXE_.+-yn", max_size=7))
def test_a_text_is_read_as_it_was_written(text: str) -> None:
    assert read_yaml(written({"a": text})) == {"a": text}


def test_libyaml_and_pyyaml_write_the_same() -> None:
    class Slow(yaml.SafeDumper):
        yaml_implicit_resolvers = Dumper.yaml_implicit_resolvers

    document = {"a": NO_TEXT_TO_GO + TEXT_TO_ALL, "token": "x" * 1200, "é": ["b\nc", "d " * 90, 1, 1.5, True, None]}
    assert written(document) == yaml.dump(document, Dumper=Slow, sort_keys=False, allow_unicode=True)
