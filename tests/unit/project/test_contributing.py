"""CONTRIBUTING's table of what a change touches: of an example of each, the files that know it are those of its row."""

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from kumulus import toolchain
from kumulus.extras.schedulers import registry
from tests.support.project import ROOT

SRC = ROOT / "src" / "kumulus"
# A row's first words, and a pattern of what its example is called wherever it is known.
EXAMPLES = {
    "a scheduler": r"(?i)yunikorn|scheduling\.(volcano\.sh|run\.ai|x-k8s\.io)",
    "… whose label keys": r"(?<![\w.-])kai(?![\w.-])",
    "a field of a node group": r"\bGpuOperator",
    "a property of one of the plugin's resources": "clusterOutlivesStack",
    "a cloud in the catalog": "Standard_ND96asr_v4",
    "a fault of known effects": "xid-48",
    "a panel of a Grafana dashboard": "Nodes with a price",
    "a command": r'[\'"]fault[\'"]: Command',
    "a Kubernetes version": re.escape(toolchain.kubernetes_versions()[1]),
}


@cache
def rows() -> dict[str, tuple[int, list[Path]]]:
    """By its first words: how many files a row says, and the files or folders that it names for that."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("| Change |")[2].partition("\n\n")[0]
    found: dict[str, tuple[int, list[Path]]] = {}
    for line in table.splitlines()[2:]:
        change, files, _ = (cell.strip() for cell in line.strip("| ").split(" | "))
        count = int(files.partition(":")[0])
        named = [Path(each.removeprefix("src/kumulus/")) for each in re.findall(r"`([^`]+/[^`]+|[a-z]+)`", files)]
        if change.startswith("…"):
            # It takes those of the row before, too.
            named = [*found[next(reversed(found))][1], *named]
        found[change] = count, named[:count]
    return found


class _Code(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


@cache
def texts() -> dict[Path, str]:
    """The files of the package, without comments and docstrings; the gym's problems only use what there is.

    The schedulers' folders are their own.
    """
    files = [each for each in SRC.rglob("*") if each.suffix in (".py", ".toml", ".yaml") and each.is_file()]
    own = (SRC / "extras" / "schedulers" / name.replace("-", "_") for name in registry.NAMES)
    aside = (SRC / "gym" / "problems", *own)
    files = [each for each in files if not any(map(each.is_relative_to, aside))]
    return {each.relative_to(SRC): _code(each.suffix, each.read_text(encoding="utf-8")) for each in files}


def _code(suffix: str, text: str) -> str:
    return ast.unparse(_Code().visit(ast.parse(text))) if suffix == ".py" else text


@pytest.mark.parametrize("change", EXAMPLES)
def test_the_files_that_know_an_example_are_those_that_its_row_names(change: str) -> None:
    count, places = next(row for name, row in rows().items() if name.startswith(change))
    knowing = [path for path, text in texts().items() if re.search(EXAMPLES[change], text)]
    assert len(knowing) == len(places) == count, knowing
    for place in places:
        assert [path for path in knowing if path.is_relative_to(place)], (place, knowing)


@pytest.mark.parametrize("change", rows())
def test_what_a_row_names_is_there(change: str) -> None:
    assert all((SRC / place).exists() for place in rows()[change][1])


def test_every_file_of_tests_is_run_once_by_make_test_or_by_make_test_rest() -> None:
    run = subprocess.run(["make", "-n", "test", "test-rest"], cwd=ROOT, capture_output=True, text=True, check=True)
    said = [ROOT / word for word in run.stdout.split() if word.startswith("tests/")]
    files = Counter(file for each in said for file in ([each] if each.suffix else each.rglob("test_*.py")))
    assert files == dict.fromkeys((ROOT / "tests").rglob("test_*.py"), 1)
