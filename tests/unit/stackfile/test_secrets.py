"""Secrets of a stack file: where they are, and that nothing quotes them."""

from pathlib import Path

import pytest
import yaml

from kumulus.model.errors import SpecError
from kumulus.stackfile.load import load
from kumulus.stackfile.secrets import Secrets, places_of_secrets, read_secrets, with_placeholders

KEY = "kumulus:cluster"
ADDONS = [
    {"name": "a", "chart": "oci://e.com/c", "valuesObject": {"auth": [{"user": "u", "word": {"secure": "v1:x"}}]}}
]


def test_a_secret_is_where_the_stack_file_has_ciphertext() -> None:
    document = {"config": {KEY: {"clusterAddons": ADDONS}}}
    place = ("clusterAddons", 0, "valuesObject", "auth", 0, "word")
    secrets = Secrets(places_of_secrets(document, KEY))
    assert secrets.places == (place,)
    assert secrets.within("clusterAddons", 0) == (place[2:],)
    assert secrets.within(*place[:-1]) == (("word",),)
    assert secrets.within(*place) == ((),)
    assert secrets.within(*place, "deeper") == ((),)
    assert secrets.within("clusterAddons", 1) == ()


def test_where_the_file_tells_nothing_all_of_the_key_is_secret(tmp_path: Path) -> None:
    """Such as when Pulumi was told to read another file."""
    file = tmp_path / "Pulumi.dev.yaml"
    for text in (None, "config: {}", "a: [", yaml.safe_dump({"config": {KEY: {"nodeGroups": []}}})):
        if text is not None:
            file.write_text(text)
        assert read_secrets(file, KEY).within("clusterAddons", 3) == ((),)


def test_commands_that_cannot_decrypt_see_a_placeholder() -> None:
    more = {"secure": "v1:x", "insecure": 1}
    assert with_placeholders(more) == more, "a mapping with more than ciphertext is no secret"
    plain = with_placeholders(ADDONS)
    assert plain == [{**ADDONS[0], "valuesObject": {"auth": [{"user": "u", "word": "[secret]"}]}}]


@pytest.mark.parametrize(
    ("addon", "place"),
    [
        ({"valuesObject": "a: [hunter2"}, ("valuesObject",)),
        ({"valuesObject": {"a": 1}, "repositoryOpts": {"password": 31337000}}, ("repositoryOpts", "password")),
        ({"valuesObject": {"a": 1}, "name": "hunter2 hunter2"}, ()),
    ],
)
def test_a_mistake_in_a_secret_is_told_without_the_secret(addon: dict[str, object], place: tuple[str, ...]) -> None:
    cluster = {"clusterAddons": [{"name": "a", "chart": "oci://e.com/c", **addon}]}
    secrets = Secrets((("clusterAddons", 0, *place),))
    with pytest.raises(SpecError) as raised:
        load({KEY: cluster}, "dev", Path(), secrets=secrets)
    assert "its value is secret and not shown" in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert "31337" not in str(raised.value)
    # Without the mark it is quoted, as everything else is.
    with pytest.raises(SpecError, match=r"hunter2|31337|line 1"):
        load({KEY: cluster}, "dev", Path())
