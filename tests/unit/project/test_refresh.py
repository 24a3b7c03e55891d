"""Pins are raised, kept if what is run afterwards passes, and put back if it does not."""

import subprocess
from pathlib import Path

import pytest

from tests.support import refresh

ACTIONS = refresh.KINDS[-1]
OLD = "0" * 40


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that names an action of which there is a newer version."""
    published = tmp_path / "git" / "actions" / "checkout"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "--quiet", str(published)], check=True)
    for version in ("1.9.0", "1.10.0"):
        commit = ["commit", "--quiet", "--allow-empty", "-m", version]
        for command in (commit, ["tag", "-a", f"v{version}", "-m", version], ["tag", "--force", "v1"]):
            subprocess.run([*git, *command], cwd=published, check=True, capture_output=True)
    monkeypatch.setenv("REFRESH_GIT", f"file://{tmp_path}/git")
    made = tmp_path / "checkout"
    made.mkdir()
    (made / "action.yml").write_text(f"steps:\n  - uses: actions/checkout@{OLD} # v1.9.0\n")
    return made


def test_what_passes_is_kept(root: Path) -> None:
    found = refresh.refresh(root, [ACTIONS], [["true"]])
    assert found.raised == {"GitHub's actions": ["actions/checkout 1.9.0 → 1.10.0"]}
    head = ["git", "-C", str(root.parent / "git" / "actions" / "checkout"), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    assert (root / "action.yml").read_text() == f"steps:\n  - uses: actions/checkout@{commit} # v1.10.0\n"
    assert refresh.refresh(root, [ACTIONS], [["false"]]).raised == {"GitHub's actions": []}, (
        "nothing newer, nothing run"
    )


def test_what_does_not_pass_is_put_back_and_says_what_failed(root: Path) -> None:
    before = (root / "action.yml").read_text()
    found = refresh.refresh(root, [ACTIONS], [["true"], ["sh", "-c", "echo so it is; exit 1"]])
    assert (root / "action.yml").read_text() == before
    (said,) = found.lines()
    assert said.startswith("put back, GitHub's actions:\n  sh -c ")
    assert said.endswith("so it is")


def test_an_address_out_of_reach_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFRESH_GIT", f"file://{root}/nowhere")
    found = refresh.refresh(root, [ACTIONS], [["true"]])
    assert "nowhere/actions/checkout" in found.put_back["GitHub's actions"]


def test_packages_whose_versions_differ_are_named() -> None:
    before = "a_A==1.0 \\\n    --hash=x\nb==2 ; python_version < '4'\n"
    assert refresh.changed(before, before.replace("a_A==1.0", "a-a==1.1") + "c==3\n") == ["a-a 1.0 → 1.1", "c – → 3"]
