"""How plain the project's prose is: prose.py [PAGE...] prints each sentence that is longer than LONGEST words.

Code, tables, headings and pages that are made from the code do not count. check_notes() judges the docstrings and comments of
Python: each begins with its own subject, so that it makes sense without its neighbour.
"""
import ast
import io
import itertools
import pathlib
import re
import sys
import tokenize

TOP = pathlib.Path(__file__).resolve().parent.parent
LONGEST = 40  # words of a sentence, between its semicolons
AVERAGE = 20
MADE = {"conformance.md", "conformance-cuda.md", "coverage.md"}  # by the tests and from docstrings
_BLOCK = re.compile(r"^( *)```.*?^\1```", re.M | re.S)
_ASIDE = re.compile(r"<!--.*?-->", re.S)
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.M)
# Beginnings that lean on what stands before: on a name, a sentence, another function.
_LEANING = re.compile(r"(?:It|They|That|These|Those|Such|So|And|But|Or|Then|Also|Likewise|Ditto|The same|As above|Another|"
                      r"Others|Both|Neither|Nor|Not|Its|Their|Which|This (?:in|as|with))\b")
# Beginnings of comments beside code or in a line of their own that go on with another comment or with the code.
_GOING_ON = re.compile(r"\.\.\. |(?:which|whose|else|and|but|nor)\b")
_C_NOTE = re.compile(r"/\* ?(.*)")
# A clause in the place of a subject: "What is there is kept." Questions and headings of lists may begin so.
_CLAUSE = re.compile(r"(?:Who|Whoever|What|Whatever|Whose)\b(?!.*(?:\?$|:(?: |$)))")
_FIELDS = re.compile(r"^\s*(?:Parameters|Returns|Raises|Source|Attributes|Differs|Example)s?:", re.M)
_END = re.compile(r"(?<=[.!?;])(?<!e\.g\.)(?<!i\.e\.)[)\"*]*\s+|:\s+(?=[A-Z0-9`*\"(\[])")


def find_pages():
    """Every page that a person reads."""
    pages = [TOP / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "protocol/wire.md")]
    return pages + sorted(page for page in (TOP / "docs").rglob("*.md") if page.name not in MADE)


def read_paragraphs(text):
    """The paragraphs and the items of lists of a page, each as one line; code in it is one word."""
    text = _LINK.sub(r"\1", _ASIDE.sub("", _BLOCK.sub("\n", text)))
    text = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(("|", "#")))
    text = _CODE.sub("`c`", _ITEM.sub("\n\n", text))
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def find_sentences(text):
    """The sentences of a page of three words or more."""
    return [each for part in read_paragraphs(text) for each in _END.split(part) if len(each.split()) >= 3]


def find_notes(path):
    """(line, text) of the docstrings of a file, without fields and examples, and of its comments that have lines of their own."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            example = re.compile(rf"^ {{{node.body[0].col_offset + 4}}}.*$", re.M)
            yield getattr(node, "lineno", 1), _FIELDS.split(example.sub("", ast.get_docstring(node, clean=False)))[0].strip()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [(token.start[0], token.string.lstrip("#").strip()) for token in tokens
                if token.type == tokenize.COMMENT and not token.line[:token.start[1]].strip()]
    for _, lines in itertools.groupby(enumerate(comments), lambda each: each[1][0] - each[0]):
        lines = [each for _, each in lines]
        yield lines[0][0], " ".join(line for _, line in lines)


def find_short_notes(path):
    """(line, text) of the comments of a file of Python, C or C++, by lines: also of those beside code."""
    text = path.read_text()
    if path.suffix != ".py":
        return [(number, each[1]) for number, line in enumerate(text.splitlines(), 1) for each in _C_NOTE.finditer(line)]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.start[0], token.string.lstrip("# ")) for token in tokens
            if token.type == tokenize.COMMENT and token.line[:token.start[1]].strip()]


def has_clause_for_subject(sentence):
    """Whether a clause stands in the place of the subject, as in "What is there is kept"."""
    return bool(_CLAUSE.match(sentence))


def judge_note(text):
    """Mistakes of a docstring or a comment."""
    sentences = find_sentences(text)
    if _LEANING.match(text):
        yield "begins with a word that needs what stands before"
    yield from (f"a clause is the subject of: {each}" for each in sentences if has_clause_for_subject(each))
    yield from (f"{len(each.split())} words: {each}" for each in sentences if len(each.split()) > LONGEST)


def check_notes():
    """Yield the mistakes of all docstrings and comments of Python."""
    for folder in ("client-python", "tests", "docs", "deploy"):
        for path in sorted((TOP / folder).rglob("*.py")):
            yield from (f"{path.relative_to(TOP)}:{line}: {mistake}"
                        for line, text in find_notes(path) for mistake in judge_note(text))


def check_short_notes():
    """Yield the comments that go on with another one or with the code."""
    for folder in ("protocol", "server", "client-c", "client-python", "kernels", "tests", "docs", "deploy"):
        for path in sorted((TOP / folder).rglob("*")):
            if path.suffix in (".py", ".c", ".h", ".cpp", ".cu", ".cuh"):
                yield from (f"{path.relative_to(TOP)}:{line}: goes on with what stands before: {text}"
                            for line, text in find_short_notes(path) if _GOING_ON.match(text))


def main():
    for page in [pathlib.Path(name).resolve() for name in sys.argv[1:]] or find_pages():
        sentences = find_sentences(page.read_text())
        words = [len(each.split()) for each in sentences]
        print(f"{page.relative_to(TOP)}: {len(words)} sentences of {sum(words) / max(len(words), 1):.1f} words,"
              f" {sum(n > LONGEST for n in words)} above {LONGEST}")
        for each in sentences if sys.argv[1:] else []:
            if len(each.split()) > LONGEST:
                print(f"  {len(each.split())}: {each}")


if __name__ == "__main__":
    main()
