"""The pages about the inside: short, a drawing first, and the files that they name are there."""
import pathlib
import re
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests"))
import harnesses  # noqa: E402 (where it is had to be said first)
import prose  # noqa: E402

PAGES = sorted((TOP / "docs" / "internals").glob("*.md"))
LISTS = {"glossary.md", "measured.md"}  # tables, which need no drawing
LONGEST = 1500  # words
TERMS = 30
ROOMS = ["", "server/worker", "server/front", "server", "kernels", "kernels/cpu", "kernels/cuda", "client-c", "client-python",
         "client-python/arrayd", "protocol"]
FILE = re.compile(r"(?<![\w/.*-])((?:[\w-]+/)*[\w-]+\.(?:c|h|cpp|cu|cuh|py|def|md))(?![\w(])")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_page_is_short_and_begins_with_a_drawing(page):
    text = page.read_text()
    assert len(text.split()) <= LONGEST
    title, first = text.split("\n\n", 2)[:2]
    assert title.startswith("# ")
    if page.name not in LISTS:
        assert first.startswith("```"), f"{page.name} begins with text: draw first, then describe"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_that_a_page_names_are_there(page):
    names = {path.name for folder in ("server", "kernels", "client-c", "client-python", "protocol", "docs", "tests")
             for path in (TOP / folder).rglob("*.*") if path.is_file()}
    missing = [name for name in sorted(set(FILE.findall(page.read_text())))
               if not ((page.parent / name).exists() or any((TOP / room / name).exists() for room in ROOMS)
                       if "/" in name else name in names)]
    assert not missing


def test_what_shows_a_promise_is_there():
    """Tests, and attacks of them, that SECURITY.md names."""
    text = (TOP / "SECURITY.md").read_text()
    paths = set(re.findall(r"`(tests/[\w/.]+)`", text))
    assert len(paths) > 20
    assert not [path for path in paths if not (TOP / path).exists()]
    attacks = {name for names in re.findall(r"test_attacks\.py` \(([^)]*)\)", text) for name in re.findall(r"\w+", names)}
    listed = re.search(r"^ATTACKS = \{(.*)\}$", (TOP / "tests/fault/test_attacks.py").read_text(), re.M)[1]
    assert attacks == set(re.findall(r'"(\w+)"', listed))


def test_the_path_of_an_operation_names_functions_where_they_are():
    path = (TOP / "docs/internals/overview.md").read_text().split("## The path of `a + b`")[1].split("##")[0]
    steps = re.findall(r"^.*? ([\w./-]+\.(?:c|cpp)) +(\w+)\(\)", path, re.M)
    named = re.findall(r"(?:server|client-c|client-python|protocol|kernels)/[\w./-]+\.(?:c|cpp) ", path)
    assert len(steps) > 10 and len(steps) == len(named), "each line of the drawing that names a file names a function"
    assert not [folder for folder in re.findall(r"kernels/\w+/\w+(?![\w/.])", path) if not (TOP / folder).is_dir()]
    for file, function in steps:
        assert re.search(rf"^\w[^\n;]*\b{function}\([^;]*\{{", (TOP / file).read_text(), re.M), (file, function)


def test_what_tests_there_are_is_counted():
    assert not harnesses.check()


def test_the_glossary_is_short():
    rows = re.findall(r"^\| .*\*\w", (TOP / "docs/internals/glossary.md").read_text(), re.M)
    assert 0 < len(rows) <= TERMS


def test_each_room_is_on_the_map():
    overview = (TOP / "docs/internals/overview.md").read_text()
    rooms = [path for path in (TOP / "server/worker").iterdir() if path.is_dir()]
    assert rooms and not [path.name for path in rooms if f"`server/worker/{path.name}`" not in overview]


# Sentences that may be long: they are lists of names, which are read at a glance.
LISTED = re.compile(r"all of arrayd's own")


@pytest.mark.parametrize("page", prose.find_pages(), ids=lambda p: str(p.relative_to(TOP)))
def test_sentences_are_short(page):
    sentences = prose.find_sentences(page.read_text())
    words = [len(each.split()) for each in sentences]
    assert sum(words) <= prose.AVERAGE * len(words)
    assert not [each for each in sentences if len(each.split()) > prose.LONGEST and not LISTED.search(each)]
    assert not [each for each in sentences if prose.has_clause_for_subject(each)]


def test_docstrings_and_comments_of_python_begin_with_their_subject():
    assert not list(prose.check_notes())


def test_comments_beside_code_stand_alone(tmp_path):
    assert not list(prose.check_short_notes())
    (tmp_path / "a.py").write_text('x = "# no comment"  # which x needs\n')
    (tmp_path / "a.h").write_text("int a; /* first */\nint b; /* ... and last */\n")
    found = [text for name in ("a.py", "a.h") for _, text in prose.find_short_notes(tmp_path / name)]
    assert [bool(prose._GOING_ON.match(text)) for text in found] == [True, False, True]


@pytest.mark.parametrize("text", ["The same.", "It stops.", "What is kept is safe.", "Tests it. Who has it keeps it.", " ".join(["a"] * 41) + "."])
def test_notes_that_lean_are_found(text):
    assert list(prose.judge_note(text))


@pytest.mark.parametrize("text", ["The server stops.", "Return what is kept.", "What is kept?", "Item of `It`.", "Italics are not used."])
def test_notes_that_stand_alone_are_left(text):
    assert not list(prose.judge_note(text))


def test_sentences_are_counted():
    text = """# Title

One two three four. Five six `a b c` eight, e.g. nine; ten eleven twelve:

```c
int not_counted;
```
- a [b c](d.md) e.

| no | table |
"""
    assert prose.find_sentences(text) == ["One two three four.", "Five six `c` eight, e.g. nine;", "ten eleven twelve:", "a b c e."]
