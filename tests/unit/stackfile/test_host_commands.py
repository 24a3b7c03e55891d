"""Commands on the user's machine and images for the nodes, as a stack file has them."""

from pathlib import Path
from typing import Any

import pytest

from kumulus.stackfile.host_commands import digest_of_file
from kumulus.stackfile.load import load
from tests.support.said import problems_of

COMMAND = {"name": "build", "create": "make image"}


def told(base: Path, **cluster: Any) -> dict[str, str]:
    return problems_of(load, {"cluster": cluster}, "dev", base)


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"name": "Build"}, "name", "write build"),
        ({"create": " "}, "create", "is empty"),
        ({"create": None}, "create", "write create: docker build"),
        ({"when": "afterAddons"}, "when", "write beforeAddons"),
        ({"when": "first"}, "when", "write one of beforeAddons, beforeNodes, last"),
        ({"environment": {"A-B": "x"}}, 'environment["A-B"]', "letters, digits and _"),
        ({"environment": {"TAG": 1.0}}, "environment.TAG", 'in quotes: "1.0"'),
        ({"environment": {"TAG": None}}, "environment.TAG", 'is nothing, not a text; write "", or a text'),
        ({"dir": "./app"}, "dir", "is not there"),
        ({"dir": "x" * 300}, "dir", "is not there"),
        ({"dir": " "}, "dir", "write a directory, or leave the key out"),
        ({"triggers": "v1"}, "triggers", 'is "v1", not a list; write triggers: [v1]'),
        ({"command": "make"}, "command", "not a known key"),
    ],
)
def test_mistakes_in_a_command_are_told(tmp_path: Path, change: dict[str, Any], path: str, words: str) -> None:
    problems = told(tmp_path, hostCommands=[{**COMMAND, **change}])
    assert list(problems) == [f"hostCommands[0].{path}"]
    assert words in next(iter(problems.values()))


def test_commands_have_names_of_their_own(tmp_path: Path) -> None:
    assert "already hostCommands[0].name" in told(tmp_path, hostCommands=[COMMAND, COMMAND])["hostCommands[1].name"]


def test_images_are_names_or_archives_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "app.tar").touch()
    good = ["my-app:dev", "registry.example.com:5000/team/my_app:v1.2", "busybox", "./app.tar"]
    assert told(tmp_path, runtime="kind", loadImages=good) == {}
    bad: dict[object, str] = dict.fromkeys(("my app", "-rf"), "write a name with a tag, my-app:dev, or ./my-app.tar")
    bad |= dict.fromkeys(("./other.tar", f"./{'x' * 300}.tar"), "is not there")
    for image, words in {**bad, "My-App:dev": "write my-app:dev", 5: "not a text"}.items():
        assert words in told(tmp_path, runtime="kind", loadImages=[image])["loadImages[0]"]


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (["my-app:dev", "my-app:dev"], '"my-app:dev" is already loadImages[0]; leave one of them out'),
        (
            ["team/app:1", "busybox", "team-app:1"],
            '"team-app:1" is called load-team-app-1 in the stack, and so is loadImages[0], "team/app:1"; '
            "give one of the two another name or tag",
        ),
        (["app.tar", "./app.tar"], 'is called load-app.tar in the stack, and so is loadImages[0], "app.tar"; give'),
    ],
)
def test_images_have_names_of_their_own_in_the_stack(tmp_path: Path, images: list[str], words: str) -> None:
    (tmp_path / "app.tar").touch()
    [(path, said)] = told(tmp_path, runtime="kind", loadImages=images).items()
    assert path == f"loadImages[{len(images) - 1}]"
    assert words in said


def test_a_command_is_not_called_as_the_loading_of_an_image(tmp_path: Path) -> None:
    commands = [COMMAND, {"name": "load-my-app-dev", "create": "c"}]
    assert told(tmp_path, runtime="kind", hostCommands=commands, loadImages=["busybox", "my-app:dev"]) == {
        "hostCommands[1].name": '"load-my-app-dev" is the name under which loadImages[1] is loaded; write another name'
    }


@pytest.mark.parametrize(("when", "missing"), [("beforeAddons", False), ("beforeNodes", True), ("last", True)])
def test_an_archive_may_be_written_by_a_command_that_runs_before_it_is_loaded(
    tmp_path: Path, when: str, missing: bool
) -> None:
    command = {"name": "build", "create": "docker save -o app.tar x", "when": when}
    problems = told(tmp_path, runtime="kind", hostCommands=[command], loadImages=["./app.tar"])
    assert list(problems) == (["loadImages[0]"] if missing else [])


def test_images_are_for_kind_only(tmp_path: Path) -> None:
    assert "leave it out or write runtime: kind" in told(tmp_path, loadImages=["a:b"])["loadImages"]
    cluster = {"runtime": "kind", "loadImages": ["a:b"]}
    loaded = load({"cluster": cluster, "runtime": "kwok"}, "dev", tmp_path)
    assert loaded.spec.loadImages == []
    (notice,) = loaded.notices
    assert str(notice) == "loadImages: is for the runtime kind, so it is not used with kwok"


def test_an_archives_digest_is_of_its_content(tmp_path: Path) -> None:
    one, same, other = (tmp_path / name for name in "abc")
    one.write_bytes(b"x")
    same.write_bytes(b"x")
    other.write_bytes(b"y")
    assert digest_of_file(one) == digest_of_file(same) != digest_of_file(other)
