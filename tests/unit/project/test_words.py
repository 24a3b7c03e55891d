"""Names in the code and texts for users have the field's words, which ARCHITECTURE.md explains, and no private ones."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.support.project import ROOT

SOURCE = ROOT / "src" / "kumulus"
# The policy pack's environment is among them once it was used.
FILES = [each for each in sorted(SOURCE.rglob("*.py")) if not {"protocol", ".venv"} & set(each.parts)]
# What they meant, and what says it. Whole names, without a leading underscore.
PRIVATE = {
    "turn": "apply, lock, limit, set",
    "turns": "steps, limiter, changes",
    "turned": "applied",
    "turns_of": "steps_of",
    "in_turn": "locked",
    "way": "a noun that says what it is",
    "seen": "a class: State, Snapshot",
    "told": "reported",
    "beside": "what it is, not where",
    "whose": "owner",
    "asked_of": "the name of what is asked for",
    "of_any": "check_…",
    "formerly": "before",
    "given": "values, fields, options: what they are",
    "laid_on": "merged",
}
# Neither a whole name nor a part of one.
PARTS = {"beside", "told", "whose"}
# A noun is no name of a class; as a variable it is plain English.
ONLY_CLASSES = {"seen", "way"}
# Names that users import, from two packages.
SHARED = {
    "Pod": "kumulus.testing and kumulus.extras.lab.policies",
    "Pool": "kumulus.testing; a pool of nodes has the glossary's word",
    "Problem": "kumulus.gym; a file's problem has the glossary's word",
}
# A key of pins.toml.
FIELDS = {("toolchain/pins.py", "beside")}
PHRASES = re.compile(r"\bto be had\b|\b(?:be|is) had\b|\blaid out for\b", re.IGNORECASE)
# Words that no sentence has, in a file of the package or on a page, and what says it.
SENTENCES = {
    "beside": "next to, alongside, in addition to, with",
    "told": "distinguished, known, configured",
    "whose it is": "the owner",
    "laid on": "what is done to it",
    "out of turn": "at once",
}
# The key of pins.toml.
KEYS = re.compile(r"`beside`|\"beside\"|\bbeside(?: {4}|: str|=| = )|\.beside\b")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def named(tree: ast.AST) -> Iterator[tuple[str, int, bool]]:
    """Every name that a module gives, with its line, and whether it is a class."""
    for each in ast.walk(tree):
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield each.name, each.lineno, isinstance(each, ast.ClassDef)
        elif isinstance(each, ast.arg):
            yield each.arg, each.lineno, False
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id, each.lineno, False
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.attr, each.lineno, False


def private(tree: ast.AST) -> list[str]:
    found = []
    for name, line, is_class in named(tree):
        word = name.strip("_").lower()
        parts = set(re.findall("[a-z]+", re.sub("(?<=[a-z])([A-Z])", r"_\1", name).lower()))
        if found_parts := parts & PARTS - {word}:
            found += [f"{line}: {name}: write {PRIVATE[each]}" for each in sorted(found_parts)]
        if word in PRIVATE and (is_class or word not in ONLY_CLASSES):
            found.append(f"{line}: {name}: write {PRIVATE[word]}")
    return found


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a module that are no docstrings."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = {
        id(each.body[0].value)
        for each in ast.walk(tree)
        if isinstance(each, documented) and each.body and isinstance(each.body[0], ast.Expr)
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in docstrings:
            yield each


def test_no_name_is_a_private_word() -> None:
    found = []
    for file in FILES:
        path = file.relative_to(SOURCE).as_posix()
        wrong = private(ast.parse(file.read_text()))
        found += [f"{path}:{each}" for each in wrong if (path, each.split(": ")[1]) not in FIELDS]
    assert found == []


def several(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """The public classes whose name another one has too, with their files."""
    found = defaultdict(list)
    for path, tree in trees.items():
        for each in tree.body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                found[each.name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def test_a_public_class_has_a_name_of_its_own() -> None:
    found = several({file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text()) for file in FILES})
    assert {name: paths for name, paths in found.items() if name not in SHARED} == {}, "say what each is of: FaultKind"
    assert found.keys() == SHARED.keys()


def test_classes_of_one_name_are_recognized() -> None:
    one = ast.parse("class Kind: ...\nclass _Own: ...\nclass Fault: ...")
    assert several({"a.py": one, "b.py": ast.parse("class Kind: ...\nclass _Own: ...")}) == {"Kind": ["a.py", "b.py"]}


def test_no_module_is_called_by_one() -> None:
    assert [each.relative_to(SOURCE).as_posix() for each in FILES if each.stem in PRIVATE] == []


def test_no_text_for_users_has_a_private_phrase() -> None:
    found = [
        f"{file.relative_to(SOURCE)}:{each.lineno}: {phrase[0]}"
        for file in FILES
        for each in texts(ast.parse(file.read_text()))
        if (phrase := PHRASES.search(str(each.value)))
    ]
    assert found == []


def private_words(text: str) -> list[str]:
    """The private words in a text, each with its line."""
    words = re.compile(rf"\b(?:{'|'.join(SENTENCES)})\b".replace(" ", r"\s+"), re.IGNORECASE)
    kept = KEYS.sub("", text)
    return [f"{kept[: each.start()].count(chr(10)) + 1}: {each[0]}" for each in words.finditer(kept)]


def test_no_sentence_has_a_private_word() -> None:
    pages = [each for each in PAGES if each.name != "CHANGELOG.md" and "runs" not in each.parts]
    found = [
        f"{file.relative_to(ROOT)}:{each}"
        for file in (*FILES, *sorted(SOURCE.rglob("pins.toml")), *pages)
        for each in private_words(file.read_text())
    ]
    assert found == [], SENTENCES


def test_private_words_are_recognized() -> None:
    code = "def turn(): ...\nclass Seen: ...\nclass _Way: ...\ndef f(whose): ...\na.told = 1\ngiven = {}"
    assert len(private(ast.parse(f"{code}\nclass ReplayBeside: ...\nBESIDE_OTHERS = 1"))) == 8
    for text in ("A file beside\nit", "Whose\nit is", '"the plugin is told"', "laid on it"):
        assert private_words(text)


def test_the_glossary_has_at_most_forty_words() -> None:
    glossary = (ROOT / "ARCHITECTURE.md").read_text().partition("## Words")[2].partition("\n\nBeside")[0]
    rows = [line for line in glossary.splitlines() if line.startswith("| ")][1:]
    assert 20 <= len(rows) <= 40
