"""Rules of DeviceClasses with their names exchanged: by where they stand, or not at all."""

from __future__ import annotations

import pytest

from kumulus.extras.capture.cel import CannotRename, renamed


class Marked:
    """Says of each text what it was taken for."""

    def driver(self, text: str) -> str:
        return f"D:{text}"

    def attribute(self, text: str) -> str:
        return f"A_{text}"

    def device_text(self, text: str) -> str:
        return f"T:{text}"

    def version(self, text: str) -> str:
        return f"V:{text}"


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("device.driver == 'gpu.acme'", 'device.driver == "T:gpu.acme"'),
        ('"x" == device.driver', '"T:x" == device.driver'),
        ('device.attributes["d"].model == "m"', 'device.attributes["D:d"].A_model == "T:m"'),
        ('device.attributes["d"]["model"] == "m"', 'device.attributes["D:d"]["A_model"] == "T:m"'),
        ('device.attributes["d"].type == "in"', 'device.attributes["D:d"].A_type == "T:in"'),
        ("device.attributes[device.driver].driver", "device.attributes[device.driver].A_driver"),
        ('device.attributes["d"].a in ["x", "y"]', 'device.attributes["D:d"].A_a in ["T:x", "T:y"]'),
        ('"d" in device.attributes && true', '"D:d" in device.attributes && true'),
        ('"m" in device.attributes["d"] || false', '"A_m" in device.attributes["D:d"] || false'),
        ('has(device.attributes["d"].m)', 'has(device.attributes["D:d"].A_m)'),
        ('device.attributes["d"].?m.orValue("x") == "x"', 'device.attributes["D:d"].?A_m.orValue("T:x") == "T:x"'),
        (
            'device.capacity["d"].memory.compareTo(quantity("40Gi")) >= 0',
            'device.capacity["D:d"].A_memory.compareTo(quantity("40Gi")) >= 0',
        ),
        (
            'device.attributes["d"].v.isGreaterThan(semver("1.2.3-acme"))',
            'device.attributes["D:d"].A_v.isGreaterThan(semver("V:1.2.3-acme"))',
        ),
        ('device.attributes["d"].index >= 3u', 'device.attributes["D:d"].A_index >= 3u'),
        ("device.driver ==\n  'x'", 'device.driver ==   "T:x"'),
        ("device.driver == 'a\"b'", 'device.driver == "T:a\\"b"'),
    ],
)
def test_a_name_is_found_by_where_it_stands(written: str, found: str) -> None:
    assert renamed(written, Marked()) == found


@pytest.mark.parametrize(
    "written",
    [
        "device.driver.startsWith('acme')",
        'device.attributes["d"].model.matches("acme.*")',
        'device.attributes["d"].model < "acme"',
        'device.attributes["d"].model + "acme" == "x"',
        '"acme".size() == 4',
        'r"acme" == device.driver',
        '"""acme""" == device.driver',
        '"ac\\u006de" == device.driver',
        '["acme"].exists(acme, acme == device.driver)',
        'cel.bind(acme, device.attributes["d"], acme.model == "x")',
        '"acme" in device.driver',
        '"acme" in device.attributes["d"].list',
        'quantity("acme").sign() == 1',
        "device.acme",
        "acme",
        "device.driver == 'x' // acme",
        "device.driver == 'acme",
        "device.driver == b'acme'",
        "🙂",
    ],
)
def test_where_it_is_not_sure_what_is_a_name_nothing_is_renamed(written: str) -> None:
    with pytest.raises(CannotRename):
        renamed(written, Marked())
