"""What is kept of a control plane for the next one, and that the next one has nothing of its identity."""

import base64
import json
import os
from pathlib import Path

import pytest

from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok.runtime import KwokRuntime
from kumulus.testing import template
from kumulus.testing.template import Template

UID = b"0f2b1c3d-0000-4000-8000-0123456789ab"
STARTED = 1_790_000_000
# The seconds of an object's creation, 5 s after the start, and of something else at another time.
MADE, OTHER = (b"\x08" + template._varint(second) + b"\x10\x00" for second in (STARTED + 5, STARTED - 5))


def kept(objects: dict[str, bytes], texts: dict[str, str] | None = None) -> Template:
    coded = {key: base64.b64encode(value).decode() for key, value in objects.items()}
    return Template("", "", {}, coded, STARTED, texts or {})


def wanted(**options: object) -> WantedControlPlane:
    return WantedControlPlane("test", "me", "/home", KwokRuntime().default_version(), dict(options), 3)


def test_the_same_uid_is_replaced_by_the_same_other_one() -> None:
    found = dict(kept({"a": b"uid " + UID, "b": b"owner " + UID}).fresh("", {}))
    uid = found[b"a"].removeprefix(b"uid ")
    assert (len(uid), found[b"b"]) == (len(UID), b"owner " + uid)
    assert uid != UID


def test_times_since_its_start_are_now_and_others_stay() -> None:
    value = dict(kept({"a": MADE + OTHER}).fresh("", {}))[b"a"]
    assert value.endswith(OTHER)
    assert template._number(value[1:6]) > STARTED + 5


def test_a_text_has_the_new_authority_port_and_time() -> None:
    text = '{"data": "@authority@", "port": @port:kubeApiserverPort@, "at": "2026-09-21T14:13:25Z"}'
    ((_, value),) = kept({}, {"a": text}).fresh('one\n"two"', {"kubeApiserverPort": 7})
    found = json.loads(value)
    assert (found["data"], found["port"]) == ('one\n"two"', 7)
    assert found["at"] > "2026-09-21T14:13:25Z"


def test_other_settings_and_programs_have_another_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = tmp_path / "program"
    program.touch()
    monkeypatch.setattr("kumulus.toolchain.find", lambda *_: program)
    one, again = template.file_of(wanted()), template.file_of(wanted())
    assert one == again
    assert template.file_of(wanted(featureGates={"A": "true"})) != one
    os.utime(program, (1, 1))
    assert template.file_of(wanted()) != one


def test_what_takes_further_programs_or_a_chosen_port_has_none() -> None:
    assert template.file_of(wanted(podUsage="pods")) is None
    assert template.file_of(wanted(apiServerPort=6443)) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kwok": ""}'])
def test_a_damaged_template_counts_as_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "damaged.json").write_text(text)
    assert template.read(tmp_path / "damaged.json") is None
    assert template.read(tmp_path / "absent.json") is None
