"""tests/dialect.py finds what is tested in another way than the rest, and leaves what is compared for its value."""
import pathlib
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests"))
import dialect  # noqa: E402 (where it is had to be said first)

GIVES_STATUS = "status = send(x);\n"
OTHER = ["if (status == 0) f();", "if (status < 0) return;", "while (!done && status != 0) f();", "return status == 0;",
         "if ((status = send(x)) < 0) return status;", "if (send(a[i], (b)) != 0) f();", "x = send(y) == 0 && z;",
         "if (p == NULL) f();", "if (p->next[i] != NULL) f();", "f(a, p != nullptr ? 1 : 0);", "return *p == nullptr;",
         "for (p = q; a.b(c) != NULL && d;) f();", "int rc = f();"]
SAME = ["if (status) f();", "if (!send(x)) f();", "if (result < 0) return result;", "s->refused += status != 0;",
        "if (count(x) == 0) return;", "good = p != NULL;", "f(x, p != NULL);", "if (s->status < 0) f();",
        "if (file.send(x) == 0) f();", "/* if (p == NULL) */", 'f("status == 0");']


def judge(text):
    path = TOP / "server" / "example.c"
    return list(dialect.check({path: dialect.blank_texts(GIVES_STATUS + text)}))


@pytest.mark.parametrize("text", OTHER)
def test_another_way_is_found(text):
    assert len(judge(text)) == 1


@pytest.mark.parametrize("text", SAME)
def test_what_is_right_is_left(text):
    assert not judge(text)


def test_the_code_speaks_one_dialect():
    assert not list(dialect.check())
