"""Numbers on a command line that are none: each is refused with its option's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from kumulus.cli.main import main

TRACE = ("trace", "import", "csv", "jobs.csv", "--stack", "s.yaml", "--experiment", "e.yaml")


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "0"])
@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("plan", "--nodes", "10"), "--memory"),
        (TRACE, "--speed"),
        (TRACE, "--inflate"),
        (("replay", "import", "audit.log", "--experiment", "e.yaml"), "--speed"),
        (("capture", "--to", "capture"), "--rate"),
        # Before a clone is created, which takes a while.
        (("fit", "pod.yaml", "--on", "capture", "-s", "none", "--watch"), "--every"),
    ],
)
def test_a_number_that_is_none_is_refused(
    words: tuple[str, ...],
    option: str,
    number: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\n")
    kubeconfig = tmp_path / ".kumulus" / "clusters" / "clone" / "kubeconfig.yaml"
    kubeconfig.parent.mkdir(parents=True)
    kubeconfig.touch()
    (tmp_path / "pod.yaml").write_text("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n")
    assert main([*words, option, number]) == 1
    assert capsys.readouterr().err.startswith(f"error: {option} ")
