"""How long the sentences of the project's pages are: prose.py [PAGE...] prints each that is longer than LONGEST words.

Code, tables, headings and what is made from the code do not count.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
LONGEST = 40  # words of a sentence, between its semicolons
AVERAGE = 20
MADE = {"conformance.md", "coverage.md"}  # by the tests and from docstrings
_BLOCK = re.compile(r"^( *)```.*?^\1```", re.M | re.S)
_ASIDE = re.compile(r"<!--.*?-->", re.S)
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.M)
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
