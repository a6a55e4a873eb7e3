"""The log: each row of event.def is logged, stands in docs/operations.md, and is checked by the compiler."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
CALL = re.compile(r"\bad__log(?:_other\((.*?),|\() ?(\w+),")


@pytest.fixture(scope="module")
def events():
    sys.path.insert(0, str(TOP / "docs"))
    import events
    return events


def test_the_page_has_the_table(events):
    text = events.PAGE.read_text()
    assert events.replace(text) == text, "docs/events.py --write"
    assert events.replace(text.replace("| `session lost` | warn |", "| `session lost` | info |")) == text


def test_every_event_is_logged(events):
    """A row that nothing logs is of no use; and one with two levels is logged at both."""
    logged = [call for file in sorted((TOP / "server").rglob("*.c")) for call in CALL.findall(file.read_text())]
    assert {name for _, name in logged} == {name for name, *_ in events.rows()}
    for name, levels, *_ in events.rows():
        others = [condition for condition, each in logged if each == name]
        assert any(others) == (len(levels) == 2), f"{name}: levels {levels}"
        assert len(levels) == 1 or "" in others or set(others) != {"true"}, f"{name} is never logged as {levels[0]}"


def test_nothing_else_is_logged():
    """No file of the server writes lines of its own, but usage and errors of the command line."""
    for file in sorted((TOP / "server").rglob("*.c")):
        assert "ad__log_event(" not in file.read_text() or file.name == "log.c", file


@pytest.mark.parametrize("call, complaint", [
    ("ad__log(session_lost, 1ul, \"why\")", ""),
    ("ad__log_other(true, session_ends, 1ul, \"who\", 2ul, \"why\")", ""),
    ("ad__log(session_lost, \"why\", 1ul)", "-Werror=format"),
    ("ad__log(session_lost, 1ul)", "-Werror=format"),
    ("ad__log(session_vanished, 1ul, \"why\")", "session_vanished")])
def test_the_compiler_checks_what_is_logged(tmp_path, call, complaint):
    source = tmp_path / "call.c"
    source.write_text(f'#include "server/common/log.h"\nvoid f(void);\nvoid f(void) {{ {call}; }}\n')
    said = subprocess.run([os.environ.get("CC", "gcc"), "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                           f"-I{TOP}", source], capture_output=True, text=True).stderr
    assert complaint in said if complaint else not said
