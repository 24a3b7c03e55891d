"""What a program imports from `kumulus`: a list that is meant, and an import that costs nothing."""

import subprocess
import sys

import pytest

import kumulus
from tests.support.project import ROOT


@pytest.mark.parametrize("name", kumulus.__all__)
def test_each_is_a_class_of_its_own_module_with_a_docstring(name: str) -> None:
    found = getattr(kumulus, name)
    assert (found.__name__, isinstance(found, type)) == (name, True)
    assert found.__doc__
    assert name in dir(kumulus)


def test_what_is_not_there_is_told_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nope'"):
        kumulus.Nope  # noqa: B018


def test_a_name_of_an_extra_whose_packages_are_not_there_says_how_to_get_them() -> None:
    """As in a new clone, whose .venv has the core's packages only."""
    script = "import sys; sys.modules['numpy'] = None; from kumulus import KwokCluster; from kumulus import Experiment"
    environment = {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", script]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert answer.stderr.splitlines()[-2:] == [
        "ModuleNotFoundError: kumulus.Experiment needs the package numpy",
        "  To get it: ./kumulus venv --with lab",
    ]


def test_importing_the_package_imports_nothing_else() -> None:
    """The toolchain runs on a bare Python, and a program pays for what it uses only."""
    script = "import sys; before = set(sys.modules); import kumulus; print(sorted(set(sys.modules) - before))"
    environment = {"PYTHONPATH": str(ROOT / "src")}
    # Without site-packages there is no pulumi and no pydantic to import either.
    command = [sys.executable, "-S", "-c", script]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert not [name for name in ("pulumi", "pydantic", "yaml", "aiohttp") if f"'{name}'" in answer.stdout]
    others = [name for name in eval(answer.stdout) if name.startswith("kumulus.")]
    assert others == []


def test_the_folder_at_the_top_has_the_classes_of_the_package_and_no_copies() -> None:
    import components

    assert {*components.__all__, "Experiment"} == {*kumulus.__all__}
    assert all(getattr(components, name) is getattr(kumulus, name) for name in components.__all__)


def test_help_does_not_load_what_only_waiting_takes() -> None:
    """Every command begins with these imports, and a Tab in the shell is one."""
    script = "import sys; from kumulus.cli.main import main; main(['--help'])"
    script = f"import atexit, sys; atexit.register(lambda: print('asyncio' in sys.modules)); {script}"
    environment = {"PYTHONPATH": str(ROOT / "src")}
    answer = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[0].startswith("usage: ")
    assert answer.stdout.splitlines()[-1] == "False"
