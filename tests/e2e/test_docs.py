"""The commands of README and docs, run as they are printed, page by page, each page in a shell of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.clone import Clone
from tests.support.docs import output
from tests.support.docs.pages import ROOT, pages
from tests.support.docs.shell import Shell
from tests.support.docs.steps import Command, Edit, File, is_run, steps

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

# Each command has so long, in seconds; the longest takes some twenty on an idle machine.
PATIENCE = 240
# These are about one stack: the last of them takes it down.
TOGETHER = [f"docs/{name}.md" for name in ("console", "experiments", "schedulers", "testing", "start")]
PAGES = [page.relative_to(ROOT).as_posix() for page in pages() if is_run(page)]
PAGES.sort(key=lambda page: TOGETHER.index(page) if page in TOGETHER else len(TOGETHER))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """One clone for all pages."""
    made = Clone(tmp_path_factory.mktemp("clone"))
    yield made
    made.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_pages_commands_do_what_it_prints(page: str, clone: Clone) -> None:
    shell = Shell(clone.directory, clone.environment)
    try:
        for step in steps(ROOT / page):
            match step:
                case Command():
                    follow(step, shell)
                case File():
                    write(step, clone.directory)
                case Edit():
                    edit(step, clone.directory)
    finally:
        shell.close()
        for path in {step.path for step in steps(ROOT / page) if not isinstance(step, Command)}:
            restore(path, clone.directory)


def follow(step: Command, shell: Shell) -> None:
    code, said = shell.run(step.text, PATIENCE)
    assert (code != 0) == step.fails, f"{step.place}: {step.text}\nended with {code}:\n{said}"
    if step.output is not None:
        found = output.differences(step.output, said, step.unordered)
        assert not found, f"{step.place}: {step.text}\n{found[0]}\n--- written:\n{said}"


def write(step: File, directory: Path) -> None:
    file = directory / step.path
    file.parent.mkdir(parents=True, exist_ok=True)
    before, salt = "", ""
    if step.at_end:
        # Where pulumi has added a line of its own, the file's own text ends above it.
        before, found, after = file.read_text().partition("\nencryptionsalt:")
        before, salt = before.rstrip("\n") + "\n", f"{found[1:]}{after}"
    file.write_text(f"{before}{step.text}{salt}")


def edit(step: Edit, directory: Path) -> None:
    file = directory / step.path
    text = file.read_text()
    assert step.old in text, f"{step.place}: {step.path} has no {step.old!r}"
    file.write_text(text.replace(step.old, step.new, 1))


def restore(path: str, directory: Path) -> None:
    """The next page finds the files of a fresh clone."""
    if (ROOT / path).exists():
        shutil.copy2(ROOT / path, directory / path)
    else:
        (directory / path).unlink(missing_ok=True)
