"""How the code is laid out, in numbers: architecture.py [--write]. Writes the table of docs/internals/overview.md.

Lint calls check(), which says where the layout has become worse than it may be.
"""
import collections
import pathlib
import re
import sys

import prose

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "internals" / "overview.md"
BEGIN, END = "<!-- measured by tests/architecture.py -->", "<!-- end -->"
C_FOLDERS = ("protocol", "server", "client-c", "client-python/src")
# Rooms of the worker, from the bottom up: a room may call those before it.
ROOMS = ["base", "memory", "journal", "device", "spill", "io", "checkpoint", "engine", "modules", "exec", "fusion", "session",
         "sharing", "recover", "migrate", "."]
UPWARD_MOST = 0  # calls from a room to one above it
LOOPS_MOST = 0  # files of the worker that call each other in a loop
SENTENCE = 15  # words in a sentence of a comment, on average
MEMBERS = 30  # of a structure, above which it is named
LARGE = {"ad_backend": "a table of functions", "ad_fold": "the argument of kernels"}  # why these may be larger
# Words of a private language that the project once had, and what they are called: as names, in comments, pages and tests.
PRIVATE = {"estate": "arena", "ledger": "journal", "weave": "chain build", "verdict": "deferred check", "hush": "suppress replies",
           "foresee": "prefetch", "stillborn": "what it means", "heir": "successor", "bequeath": "hand over", "seat": "session entry",
           "parting": "migration", "wish": "request"}
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_STATIC = re.compile(r"^static (?:inline )?(?:[\w ]+?[ *]+)(\w+)\(", re.M)
_FUNCTION = re.compile(r"^(?!static)\w[\w *]*?\b(ad__\w+)\([^;{]*\)\s*\{", re.M)
_INLINE = re.compile(r"^static inline [\w *]+?\b(ad__\w+)\([^;{]*\)\s*\{", re.M)
_NOTE = re.compile(r"/\*((?:[^*]|\*(?!/))*)\*/|//[ \t]([^\n]*)")
_DRAWING = re.compile(r"[─│▶◀▼▲┌└┐┘├┤┬┴]|-->|<--|^    ")
_STRUCT = re.compile(r"^(?:typedef )?struct (\w+) \{\n(.*?)^\}", re.M | re.S)
_TYPE = re.compile(r"^(?:typedef )?(?:struct|union|enum) (ad_\w+) \{|^typedef (?!struct|union|enum)[^;{]*?\b(ad_\w+)(?:\)\([^;]*)?;"
                   r"|^\} (ad_\w+);", re.M)
_EXTERNAL = re.compile(r"^(?!static|typedef|extern)\w[\w *]*?\b(ad_\w+)\([^;{]*\)\s*\{", re.M)


def sources(folder, *kinds):
    """The files of those kinds below a folder, without examples."""
    return sorted(path for kind in kinds for path in (TOP / folder).rglob(f"*.{kind}") if "examples" not in path.parts)


def read_code(path):
    """The text of a file without its comments."""
    return _COMMENT.sub("", path.read_text())


def room_of(path):
    """The room of a file of the worker; "." for the worker's own files."""
    return path.relative_to(TOP / "server/worker").parts[0] if path.parent != TOP / "server/worker" else "."


def find_statics(*more):
    """Static functions by name: the files that have one. more: folders beside those of the programs."""
    found = collections.defaultdict(list)
    for folder in (*C_FOLDERS, *more):
        for path in sources(folder, "c"):
            for name in _STATIC.findall(read_code(path)):
                found[name].append(path)
    return found


def find_calls():
    """Calls between files of the worker: (from, to, name)."""
    code = {path: read_code(path) for path in sources("server/worker", "c", "h")}
    home = {name: path for path, text in code.items()
            for name in (_FUNCTION if path.suffix == ".c" else _INLINE).findall(text)}
    return [(path, home[name], name) for path, text in code.items() if path.suffix == ".c"
            for name in sorted(set(re.findall(r"\bad__\w+", text))) if name in home and home[name].with_suffix(".c") != path]


def find_upward(calls):
    """Calls from a room to one above it."""
    place = {room: i for i, room in enumerate(ROOMS)}
    return [call for call in calls if place[room_of(call[1])] > place[room_of(call[0])]]


def find_loops(calls):
    """Files that call each other in a loop, by their strongly connected components."""
    graph = collections.defaultdict(set)
    for path, other, _ in calls:
        graph[path].add(other.with_suffix(".c"))
    reach = {}
    for start in list(graph):
        seen, todo = set(), [start]
        while todo:
            for other in graph[todo.pop()] - seen:
                seen.add(other)
                todo.append(other)
        reach[start] = seen
    return [path for path in reach if path in reach[path]]


def count_members(body):
    """Members of a structure's body; a structure inside it is one member."""
    while "{" in body:
        body = re.sub(r"\{[^{}]*\}", "", body)
    return sum(line.count(",") + 1 for line in re.sub(r"\([^()]*\)", "", body).split(";") if line.strip())


def find_large_structs():
    """(members, name, file) of structures above MEMBERS."""
    found = []
    for folder in C_FOLDERS + ("kernels",):
        for path in sources(folder, "c", "h"):
            found += [(count_members(body), name, path) for name, body in _STRUCT.findall(read_code(path))
                      if count_members(body) > MEMBERS]
    return sorted(found, key=lambda each: (-each[0], each[1]))


def find_twice():
    """Types and external functions that two programs define each for itself. The backends implement the same ones, which
    is meant."""
    homes = collections.defaultdict(set)
    for folder in (*C_FOLDERS, "kernels"):
        for path in sources(folder, "c", "h", "cpp", "cu", "cuh"):
            code = read_code(path)
            names = {name for each in _TYPE.findall(code) for name in each if name}
            for name in names | set(_EXTERNAL.findall(code)):
                homes[name].add("/".join(path.relative_to(TOP).parts[:2 if folder == "server" else 1]))
    return sorted(name for name, where in homes.items() if len(where) > 1)


def find_sentences():
    """Sentences of the comments of C, C++ and CUDA, of three words or more, without drawings and code."""
    found = []
    for folder in ("protocol", "server", "client-c", "client-python/src", "kernels"):
        for path in sources(folder, "c", "h", "cpp", "cu", "cuh"):
            for block, line in _NOTE.findall(path.read_text()):
                lines = [re.sub(r"^\s*\* ?", "", each) for each in (block or line).split("\n")]
                text = " ".join(each.strip() for each in lines if not _DRAWING.search(each))
                found += [each for each in re.split(r"(?<=[.!?])\s+(?=[A-Z0-9*`\"(])", text) if len(each.split()) >= 3]
    return found


def find_private_words():
    """(file, word): words of PRIVATE in code, comments, pages and tests."""
    word = re.compile(rf"(?<![A-Za-z])({'|'.join(PRIVATE)})(?:s|ed|es)?(?![A-Za-z])")
    paths = [path for folder in (*C_FOLDERS, "kernels", "tests") for path in sources(folder, "c", "h", "cpp", "cu", "cuh", "py", "def")]
    paths += [TOP / "protocol/wire.md", *sources("docs/internals", "md"), *sources("docs/guide", "md"), TOP / "docs/operations.md"]
    return [(path, each) for path in paths if path != pathlib.Path(__file__).resolve()
            for each in sorted(set(word.findall(path.read_text())))]


def find_rebuilt(table="protocol/ufunc.def"):
    """(objects that a row of a table rebuilds, all) by the last build's dependencies; None without one."""
    notes = sorted((TOP / "build/release/obj").rglob("*.d"))
    notes = [path for path in notes if (TOP / path.relative_to(TOP / "build/release/obj").parent).is_dir()]
    return (sum(table in path.read_text() for path in notes), len(notes)) if notes else None


def find_opcodes():
    """(file, decision) by a message's opcode: switches anywhere, and comparisons in the worker."""
    found = [(path, text) for folder in C_FOLDERS for path in sources(folder, "c")
             for text in re.findall(r"switch \([^)]*\)?[^)]*opcode\)", read_code(path))]
    return found + [(path, text) for path in sources("server/worker", "c", "h")
                    for text in re.findall(r"\b(?:m|msg|message)(?:->|\.)opcode [=!<>]=?[^;]*?AD_REQ_\w+", read_code(path))]


def find_largest_folder():
    """(files, folder) of the folder with most files of C, C++, CUDA and Python outside the tests."""
    count = collections.Counter(path.parent.relative_to(TOP) for folder in (*C_FOLDERS, "kernels", "client-python/arrayd")
                                for path in sources(folder, "c", "h", "cpp", "cu", "cuh", "py"))
    folder, files = max(count.items(), key=lambda each: (each[1], str(each[0])))
    return files, folder


def measure():
    """Rows of the table: (what, value)."""
    statics, calls = find_statics(), find_calls()
    total = sum(map(len, statics.values()))
    one = sum(len(paths) for name, paths in statics.items() if "_" not in name)
    many = sum(len(paths) for paths in statics.values() if len(paths) >= 3)
    loops, upward, large = find_loops(calls), find_upward(calls), find_large_structs()
    worker = len(sources("server/worker", "c"))
    files, folder = find_largest_folder()
    words = [len(each.split()) for each in find_sentences()]
    return [("largest folder", f"{files} files (`{folder}`)"),
            ("files of the worker that call each other in a loop", f"{len(loops)} of {worker}"),
            ("calls between the worker's files that go up a room", f"{len(upward)} of {len(calls)}"),
            ("static functions named by one word", f"{one} of {total}"),
            ("static functions whose name three files or more have", f"{many} of {total}"),
            (f"structures above {MEMBERS} members", ", ".join(f"`{name}` {n} ({LARGE.get(name, '?')})" for n, name, _ in large) or "none"),
            ("types and external functions that two programs define", ", ".join(find_twice()) or "none"),
            ("decisions by a message's opcode", str(len(find_opcodes()))),
            ("words in a sentence of a comment, on average",
             f"{sum(words) / len(words):.0f}; {sum(each > 30 for each in words)} of {len(words)} sentences have more than 30")]


def check(whole=False):
    """Yield what has become worse than it may be. whole: also whether the page's table is that of today."""
    for name, paths in sorted(find_statics("tests").items()):
        if "_" not in name and (len(paths) > 1 or paths[0].relative_to(TOP).parts[0] != "tests"):
            where = ", ".join(str(path.relative_to(TOP)) for path in paths)
            yield f"static {name}() stands in {where}: name what it does to what"
    for path, text in find_opcodes():
        yield f"{path.relative_to(TOP)}: {text}: what a message decides stands in its row of request.def"
    for path, word in find_private_words():
        yield f"{path.relative_to(TOP)}: {word}: say {PRIVATE[word]}, or another word of the field"
    upward = find_upward(find_calls())
    if len(upward) > UPWARD_MOST:
        yield (f"{len(upward)} calls of the worker go up a room, {UPWARD_MOST} may: "
               f"e.g. {upward[-1][0].relative_to(TOP)} calls {upward[-1][2]}")
    for name in find_twice():
        yield f"{name} is defined by two programs: name what each of them means"
    loops = find_loops(find_calls())
    if len(loops) > LOOPS_MOST:
        yield (f"{len(loops)} files of the worker call each other in a loop, {LOOPS_MOST} may: "
               + ", ".join(str(path.relative_to(TOP / "server/worker")) for path in sorted(loops)))
    for members, name, path in find_large_structs():
        if name not in LARGE:
            yield f"{path.relative_to(TOP)}: {name} has {members} members, {MEMBERS} may be: make parts of it"
    for each in find_sentences():
        if prose.has_clause_for_subject(each):
            yield f"a comment: {each[:100]}: name the subject"
    words = sum(len(each.split()) for each in find_sentences()) / len(find_sentences())
    if words > SENTENCE:
        yield f"comments have {words:.1f} words in a sentence on average, {SENTENCE} may be"
    if whole and leave_out_totals(table()) not in leave_out_totals(PAGE.read_text()):
        yield f"{PAGE.relative_to(TOP)}: the table is not what tests/architecture.py --write makes"


def leave_out_totals(text):
    """The text without the totals that every change of code changes."""
    return re.sub(r"\d+ of \d+ sentences|of \d+", "", text)


def table():
    """The table of the page."""
    rows = "\n".join(f"| {what} | {value} |" for what, value in measure())
    return f"{BEGIN}\n| measured | |\n| --- | --- |\n{rows}\n{END}"


def main():
    if "--write" in sys.argv:
        text = PAGE.read_text()
        PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: table(), text, flags=re.S))
    rebuilt = find_rebuilt()
    print("\n".join(f"{what}: {value}" for what, value in measure()))
    if rebuilt:
        print(f"objects that one row of ufunc.def rebuilds: {rebuilt[0]} of {rebuilt[1]}")


if __name__ == "__main__":
    main()
