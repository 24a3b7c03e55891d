"""How problems read."""

from pathlib import Path

from kumulus.model.errors import Notice, Problem, SpecError, path_text, shown, shown_path, under


def test_paths_are_written_as_a_user_would() -> None:
    assert path_text(("nodeGroups", 0, "placement", 1, "replicas")) == "nodeGroups[0].placement[1].replicas"
    assert path_text(("capacity", "nvidia.com/gpu")) == 'capacity["nvidia.com/gpu"]'
    assert path_text(("labels", 'a"b\n')) == 'labels["a\\"b\\n"]'
    assert path_text(()) == ""


def test_paths_join() -> None:
    assert under("labels", '["a b"]') == 'labels["a b"]'
    assert under("taints[0]", "effect") == "taints[0].effect"
    assert under("", "x") == under("x", "") == "x"


def test_an_error_is_a_summary_and_a_line_per_problem() -> None:
    error = SpecError([Problem("a.b", "is wrong", "write c"), Problem("", "is odd")], "stacks/Pulumi.x.yaml")
    assert str(error) == "2 problems in stacks/Pulumi.x.yaml\n  a.b: is wrong; write c\n  is odd"
    assert str(SpecError([Problem("a", "is wrong", "write b")])) == "a: is wrong; write b"


def test_a_notice_names_its_path() -> None:
    assert str(Notice("a.b", "is corrected")) == "a.b: is corrected"


def test_a_path_keeps_its_end_however_long_it_is() -> None:
    assert shown_path(Path("/a" * 100) / "kemu.yaml") == f'"{"/a" * 100}/kemu.yaml"'
    assert "\n" not in shown_path("/tmp/a\nb")


def test_values_are_shown_on_one_printable_short_line() -> None:
    for value in ("a\nb", "\ud800", "x" * 1000, 10**5000, {"a": 1}, [1], None, True, 1.5):
        text = shown(value)
        assert len(text) <= 60
        assert "\n" not in text
        text.encode()


def test_a_key_as_long_as_a_file_is_told_by_its_ends() -> None:
    where = path_text(("nodeGroups", 0, "a" * 1_000_000 + " z"))
    told = str(Problem(where, "is not a known key"))
    assert told.startswith('nodeGroups[0]["aaaa')
    assert told.endswith('a z"]: is not a known key')
    assert len(told) < 500


def test_what_a_message_quotes_does_nothing_to_a_terminal() -> None:
    problem = Problem("a.b", "is \ufeff no\x1b[2J name", "write example.com/\u202ex\nand another")
    assert str(problem) == "a.b: is \\ufeff no\\x1b[2J name; write example.com/\\u202ex\nand another"
