"""The log: every event in the sources stands in the table of docs/operations.md, with its level and its pairs."""
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]
CALL = re.compile(r"(?<!void )\bad__log\(")


def arguments(text, at):
    """The arguments of a call whose parenthesis is open, split at commas."""
    out, depth, quoted = [""], 1, False
    while True:
        c = text[at]
        quoted ^= c == '"' and text[at - 1] != "\\"
        depth += 0 if quoted else (c == "(") - (c == ")")
        if depth == 0:
            return [re.sub(r"\s+", " ", a.strip()) for a in out]
        if c == "," and depth == 1 and not quoted:
            out.append("")
        else:
            out[-1] += c
        at += 1


def logged():
    """(file, levels, events, pairs) of every call."""
    for file in sorted((TOP / "server").rglob("*.c")):
        text = file.read_text()
        for call in CALL.finditer(text):
            level, event, pairs, *_ = arguments(text, call.end())
            events = re.findall(r'"([^"]*)"', event)
            if not events:  # passed on by a function of that file
                events = re.findall(r'\blog_failure\(\w+, "([^"]*)"[,)]', text)
            yield (file.relative_to(TOP), set(re.findall(r"AD_LOG_(\w+)", level)), events,
                   re.findall(r"([\w-]+)=%", "".join(re.findall(r'"([^"]*)"', pairs))))


def table():
    """Events of the page: their levels, and the pairs that are named."""
    rows = {}
    text = (TOP / "docs" / "operations.md").read_text()
    part = text[text.index("| event | level |"):]
    for names, levels, _, pairs in re.findall(r"^\| (`.*?`) \| (.*?) \| (.*) \| (.*?) \|$", part[:part.index("\n\n")], re.M):
        for name in re.findall(r"`(.*?)`", names):
            assert name not in rows, name
            rows[name] = set(levels.split(", ")), set(re.findall(r"`(.*?)`", pairs))
    return rows


def test_events_are_documented():
    documented, seen, levels = table(), set(), {}
    for file, level, events, pairs in logged():
        assert events and level, file
        for event in events:
            assert event in documented, f"{file}: event \"{event}\" is not in docs/operations.md"
            unknown = set(pairs) - documented[event][1]
            assert not unknown, f"{file}: {event}: {unknown} not in docs/operations.md"
            levels.setdefault(event, set()).update(word.lower() for word in level)
            seen.add(event)
    assert seen == set(documented), set(documented) - seen
    for event, there in levels.items():
        assert there <= documented[event][0], f"{event}: {there}, but {documented[event][0]} in docs/operations.md"
