"""What runs the documentation: how printed output is compared, and what a page's markers mean."""

import os
from pathlib import Path

import pytest

from tests.support.docs import output, pages, steps
from tests.support.docs.shell import Shell

UP = """\
Updating (dev):

@ updating....
 +  pool-a creating (0s)
 +  pool-b created (0.43s) nodes 3/3 · 121/s
 +  pool-a created (0.33s) nodes 5/5 · 134/s
Outputs:
    nodeCount  : 8
Resources:
    + 2 created
Duration: 6s
"""


def test_figures_that_differ_from_run_to_run_agree() -> None:
    printed = (
        "Updating (dev):\n…\n + pool-a created (1.1s) nodes 5/5 · 99/s\nOutputs:\n nodeCount : 8\n…\nDuration: 1m3s"
    )
    assert output.differences(printed, UP) == []


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("…\nnodeCount : 9\n…", "printed: 'nodeCount : 9'; missing"),
        ("Updating (prod):\n…", "printed: 'Updating (prod):'; there is 'Updating (dev):'"),
        ("…\n + 2 created", "not printed: 'Duration: 6s'"),
        ("Updating (dev):\nOutputs:\n…", "printed: 'Outputs:'; there is '+  pool-a creating (0s)'"),
        ("…\n + pool-a created (1s) nodes 5/5 · 9/s\n + pool-b created (1s) nodes 3/3 · 9/s\n…", "there is 'Outputs:'"),
    ],
)
def test_what_is_not_so_is_told(printed: str, found: str) -> None:
    (told,) = output.differences(printed, UP)
    assert found in told


def test_lines_may_come_in_any_order_where_the_page_says_so() -> None:
    printed = "Updating (dev):\n + pool-a created (1s) nodes 5/5 · 9/s\n + pool-b created (1s) nodes 3/3 · 9/s\n…"
    assert output.differences(printed, UP, unordered=True) == []
    assert output.differences(printed.removesuffix("…"), UP, unordered=True) != []
    assert output.differences(printed.replace("5/5", "4/5"), UP, unordered=True) != []


def test_a_gap_takes_the_place_that_lets_the_rest_agree() -> None:
    assert output.differences("…\nb\nc", "b\na\nb\nc") == []


@pytest.mark.parametrize(
    ("printed", "written", "agrees"),
    [
        ("at 15:52:53: 30 nodes", "at 09:01:00: 30 nodes", True),
        ("at 15:52:53: 30 nodes", "at 09:01:00: 31 nodes", False),
        ("UNTIL 2026-11-21T15:35:01Z", "UNTIL 2027-01-02T00:00:00Z", True),
        ("5/5 nodes", "5/6 nodes", False),
        ("memory.client 64 MB", "memory.client 1.2 GB", True),
        ("+3.98 TiB memory", "+3.99 TiB memory", False),
        ("replicas: 5 => 8", "replicas: 5 => 9", False),
        ("(a100-use1-[24-31])", "(a100-use1-[24-30])", False),
        ("kubeconfig : …/x.yaml", 'kubeconfig : "/tmp/x.yaml"', False),
        ("pod/train-… 1/1", "pod/train-5jgmz   1/1", True),
        ("a.b", "axb", False),
    ],
)
def test_a_printed_line_stands_for_what_no_two_runs_have_in_common_and_no_more(
    printed: str, written: str, agrees: bool
) -> None:
    assert (output.differences(printed, written) == []) is agrees


PAGE = """\
# Page

<!-- file: stacks/Pulumi.dev.yaml -->
```yaml
config: {}
```

<!-- edit: stacks/Pulumi.dev.yaml: replicas: 5 => replicas: 8 -->
<!-- run: fails 2 -->
```console
$ echo one \\
    two
one two
$ false
```

<!-- meanwhile: sleep 0 -->
<!-- not run: needs Docker -->
```console
$ kind create cluster
```

```console
$ unmarked
```

```text
$ hidden in a block of text
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    file = tmp_path / "page.md"
    file.write_text(PAGE)
    return file


def test_a_pages_steps_are_in_its_order(page: Path) -> None:
    written, edited, echo, false, meanwhile = steps.steps(page)
    assert written == steps.File("page.md:5", "stacks/Pulumi.dev.yaml", "config: {}\n")
    assert edited == steps.Edit("page.md:8", "stacks/Pulumi.dev.yaml", "replicas: 5", "replicas: 8")
    assert echo == steps.Command("page.md:11, command 1", "echo one \\\n    two", "one two")
    assert false == steps.Command("page.md:11, command 2", "false", fails=True)
    assert isinstance(meanwhile, steps.Command)
    assert meanwhile.text == "sleep 0"


def test_a_block_without_a_marker_and_commands_in_other_blocks_are_problems(page: Path) -> None:
    problems = [steps.marker_problem(block) for block in pages.blocks(page)]
    assert [bool(problem) for problem in problems] == [False, False, False, True, True]


def test_a_page_has_the_anchors_that_github_makes(page: Path) -> None:
    page.write_text(
        "# What is `real`?\n\n## Two\n\n## Two\n\n```text\n# no heading\n```\n\n## [A link](x.md), 2,550 nodes\n"
    )
    assert pages.anchors(page) == {"what-is-real", "two", "two-1", "a-link-2550-nodes"}


def test_links_in_code_are_none(page: Path) -> None:
    page.write_text("[a](b.md#c) `[no](link)` ![picture](d.png)\n\n```text\n[no](link)\n```\n")
    assert list(pages.links(page)) == [(1, "b.md#c"), (1, "d.png")]


def test_a_shell_keeps_what_its_commands_leave(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    shell = Shell(tmp_path, {"PATH": os.environ["PATH"]})
    try:
        assert shell.run("export WORD=kept; cd below", 30) == (0, "")
        assert shell.run('echo "$WORD $(basename "$PWD")"', 30) == (0, "kept below\n")
        assert shell.run("cat; echo said >&2; (exit 3)", 30) == (3, "said\n")
        with pytest.raises(TimeoutError, match="sleep 60"):
            shell.run("sleep 60", 0.2)
    finally:
        shell.close()
