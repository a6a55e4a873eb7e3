"""The table of the log's events in docs/operations.md, from server/common/event.def: events.py [--write].

Without --write it says whether the page has the table. tests/build/test_events.py asks the same.
"""
import pathlib
import re
import sys

import generate

PAGE = pathlib.Path(__file__).resolve().parent / "operations.md"
HEAD = ("event", "level", "what it means", "besides")


def rows():
    """Each row of event.def: id, levels, event, names of its pairs, what it means."""
    for name, level, other, event, pairs, doc in generate.rows("event", generate.SERVER / "common"):
        levels = [level.lower()] + ([other.lower()] if other != "NONE" else [])
        yield name, levels, event, re.findall(r"([\w-]+)=%", pairs), doc


def table():
    """The lines of the table."""
    return generate.table(HEAD, [[f"`{event}`", ", ".join(levels), doc, ", ".join(f"`{pair}`" for pair in pairs)]
                                 for _, levels, event, pairs, doc in rows()])


def replace(text):
    """The page with the table of today."""
    begin = text.index("| " + " | ".join(HEAD) + " |")
    return text[:begin] + table() + text[text.index("\n\n", begin) + 1:]


def main():
    text = PAGE.read_text()
    if "--write" in sys.argv:
        PAGE.write_text(replace(text))
    elif replace(text) != text:
        sys.exit(f"{PAGE.name}: the table of events is not what docs/events.py --write makes")


if __name__ == "__main__":
    main()
