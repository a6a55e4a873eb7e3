"""One dialect for statuses and pointers in C, C++ and CUDA: dialect.py prints where another one is spoken.

A status is 0 or negative, in a variable called `status`. It is tested as it is, and so is a pointer: `if (status)`,
`if (f(x))`, `if (!p)`. A number that may also be positive is called otherwise, and is compared. `!= NULL` stands
where the answer is the value: `there = p != NULL`.
"""
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("protocol", "server", "client-c", "client-python/src", "kernels")
KINDS = {".c", ".h", ".cpp", ".cu", ".cuh"}
_UNREAD = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
_GETS_STATUS = re.compile(r"\bstatus = (?:\w+(?:::|->))*(\w+)(?:<[^;{}()]*>)?\(")
_COMPARED = re.compile(r" (==|!=|<|<=|>|>=) (0|NULL|nullptr)(?![\w.])")
_NAME = re.compile(r"(?<!\.)\b(\w+)(?:<[^;{}()]*>)?$")
_TESTED_BEFORE = re.compile(r"(?:\b(?:if|while)(?: constexpr)? \(+|&&|\|\||!\(+|\bfor \([^;]*;)\s*$")
_TESTED_AFTER = re.compile(r"\)*\s*(?:&&|\|\||\?)")


def blank_texts(text):
    """The code with comments blank, and strings and characters without contents, all of it where it was."""
    return _UNREAD.sub(lambda match: re.sub(r"[^\n]", " " if match[0][0] == "/" else "_", match[0]), text)


def read_sources():
    """The text of each file by its path."""
    return {path: blank_texts(path.read_text()) for folder in FOLDERS for path in sorted((TOP / folder).rglob("*"))
            if path.suffix in KINDS and "examples" not in path.parts}


def find_opening(text, end):
    """Where the bracket opens that is closed just before end."""
    depth, at = 1, end - 1
    while depth and at:
        at -= 1
        depth += (text[at] in ")]") - (text[at] in "([")
    return at


def find_operand(text, end):
    """Where the operand of a comparison begins that ends at end: names, members, indices, calls."""
    at = end
    while at:
        if text[at - 1] in ")]":
            at = find_opening(text, at)
            if re.search(r"(?:\b(?:if|while|return)|[^\w\])>]) ?$", text[:at]):
                break
        elif re.match(r"[\w.*]", text[at - 1]):
            at -= 1
        elif text[at - 2:at] in ("->", "::"):
            at -= 2
        else:
            break
    return at


def find_status_functions(sources):
    """Names of functions whose results somebody takes for a status."""
    return {name for text in sources.values() for name in _GETS_STATUS.findall(text)}


def judge_comparison(text, match, functions):
    """Return what to write instead of a comparison, or None where it may stand."""
    begin = find_operand(text, match.start())
    operand, before = text[begin:match.start()], text[:begin]
    tested = _TESTED_BEFORE.search(before[-200:]) or _TESTED_AFTER.match(text, match.end())
    if match[2] != "0":
        return "test a pointer as it is: p, !p" if match[1] == "==" or tested else None
    called = operand.endswith(")") and _NAME.search(text[:find_opening(text, match.start())])
    if not (operand == "status" or operand.startswith("(status = ") or called and called[1] in functions):
        return None
    if match[1] == "!=" and not tested:
        return None
    return "test a status as it is: status, !status; what may also be positive has another name"


def check(sources=None):
    """Yield what speaks another dialect."""
    sources = sources or read_sources()
    functions = find_status_functions(sources)
    for path, text in sources.items():
        found = [(match.start(), "a status is called status") for match in re.finditer(r"\brc\b", text)]
        found += [(match.start(), judge_comparison(text, match, functions)) for match in _COMPARED.finditer(text)]
        for at, what in sorted(each for each in found if each[1]):
            line = text.count("\n", 0, at) + 1
            yield f"{path.relative_to(TOP)}:{line}: {text.splitlines()[line - 1].strip()}: {what}"


if __name__ == "__main__":
    print("\n".join(check()))
