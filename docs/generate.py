"""Pages that follow from the tables of protocol/: generate.py OUT VERSION [--python].

Writes the reference (Markdown; that of the C library in OUT/c), arrayd.conf, arrayd.8 and arrayd.conf.5 into OUT; with
--python also OUT/reference, the pages of the Python package's modules, and docs/coverage.md, for which `arrayd` must be importable.
"""
import argparse
import pathlib
import re
import textwrap

import completion
import creference

HERE = pathlib.Path(__file__).resolve().parent
PROTOCOL = HERE.parent / "protocol"
SERVER = HERE.parent / "server"
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|[(),]|[^"\'(),]+')


# The loops of distribution.def.
DISTRIBUTED = {"REAL": "float32, float64", "BITS": "uint32, uint64", "WHOLE": "every integer type", "COUNT": "int64"}


def rows(table, folder=PROTOCOL):
    """The rows of a .def file, each a list of its arguments; strings without their quotes."""
    text = re.sub(r"/\*.*?\*/", "", (folder / f"{table}.def").read_text(), flags=re.S)
    for start in re.finditer(r"^AD_\w+\(", text, re.M):
        arguments, depth = [""], 1
        for token in TOKEN.finditer(text, start.end()):
            t = token.group()
            depth += (t == "(") - (t == ")")
            if depth == 0:
                break
            if t == "," and depth == 1:
                arguments.append("")
            else:
                arguments[-1] += t
        yield [a.strip()[1:-1].replace('\\"', '"') if a.strip().startswith('"') else a.strip() for a in arguments]


def table(header, lines):
    out = ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    out += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join(out) + "\n"


def reference():
    """The pages of the reference: file name, title, text."""
    types = {r[0]: r[1].replace("AD_M_", "").replace(" | ", ", ").lower() for r in rows("rule")}
    yield "ufuncs.md", "Universal functions", "One input type is computed in the loop type that NumPy 2 would take.\n\n" + table(
        ["function", "inputs", "outputs", "loop types", "what it gives", "wire id"],
        [[f"`{r[1]}`", r[2], r[3], types[r[4]], r[9], r[0]] for r in rows("ufunc")])
    yield "reductions.md", "Reductions", "All take `axis`, `keepdims`, `where`, `out` and `dtype`.\n\n" + table(
        ["function", "loop types", "what it gives", "wire id"],
        [[f"`{r[1]}`", types[r[2]], r[10], r[0]] for r in rows("reduction")])
    yield "calls.md", "Library calls", table(
        ["call", "what it does", "wire id"], [[f"`{r[1]}`", r[11], r[0]] for r in rows("call")])
    yield "distributions.md", "Distributions of random numbers", table(
        ["distribution", "types", "parameters", "what it is", "wire id"],
        [[f"`{r[1]}`", DISTRIBUTED[r[3]], ", ".join(p for p, d in zip(r[4:10:2], r[5:10:2]) if d != "NONE"), r[10], r[0]]
         for r in rows("distribution")])
    yield "dtypes.md", "Element types", table(
        ["type", "bytes", "NumPy's character", "wire id"], [[f"`{r[2]}`", r[3], r[5].strip("'"), r[0]] for r in rows("dtype")])
    yield "errors.md", "Errors", table(
        ["C", "Python", "text", "code on the wire"], [[f"`AD_E_{r[1]}`", f"`{r[2]}`", r[3], r[0]] for r in rows("error")])
    yield "options.md", "Options of arrayd", table(
        ["option", "type", "default", "meaning"], [[f"`{r[0]}`", kind_of(r), f"`{r[3]}`" if r[3] else "", r[4]] for r in rows("option")])
    yield "counters.md", "Counters", table(
        ["counter", "meaning"], [[f"`{r[1]}`", r[7]] for r in rows("counter")])
    yield "metrics.md", "Metrics of counters", (
        "Those of principals have the labels `domain` and `principal`, those of workers `domain`.\n\n") + table(
        ["metric", "type", "of each", "meaning"],
        [[f"`arrayd_{r[4]}`", r[3].lower(), "principal" if r[2] == "SESSION" else "worker", r[7]]
         for r in rows("counter") if r[4]])


WORDS = {"AUTO_SIZE": "SIZE or auto"}


def kind_of(option):
    """How people call an option's type."""
    return WORDS.get(option[2], option[2]).lower()


def c_reference():
    """The pages of the C library: file name, title, text."""
    yield "c/arrayd.md", "The C library: arrayd.h", creference.page()
    yield "c/functions.md", "The C library: a function for each operation", (
        "Each has defaults for everything and makes new arrays. `ad_ufunc_call` and `ad_reduce_call` take the constant "
        "and `ad_options`. Reductions reduce all axes.\n\n" + table(
            ["function", "constant", "what it gives"], creference.functions(rows("ufunc"), rows("reduction"))))
    yield "c/constants.md", "The C library: constants", "\n".join(
        f"## {title}\n\n{table(columns, lines)}" for title, columns, lines in
        creference.constants(rows("dtype"), rows("error"), rows("call")))


def configuration():
    """An arrayd.conf in which every option stands with its default, commented out. Lines are short: the parser takes what
    is behind 200 characters for a line of its own."""
    text = "# Configuration of arrayd; see arrayd.conf(5). Every option is shown with its default.\n"
    for option in rows("option"):
        name, _, _, default, doc = option
        text += "\n" + textwrap.fill(f"{doc} ({kind_of(option)})", 118, initial_indent="# ", subsequent_indent="# ")
        text += f"\n#{name} = {default}\n"
    return text


def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def manual(name, version):
    """A man page from its .in file: @VERSION@, @OPTIONS@ or @KEYS@ for the table of options, @COMMANDS@ of arrayctl."""
    options = keys = ""
    for row in rows("option"):
        option, _, kind, default, doc = row
        note = f" (default: {roff(default)})" if default else ""
        options += f".TP\n.BI \\-\\-{roff(option)}= \"{WORDS.get(kind, kind)}\"\n{roff(doc)}{note}.\n"
        variable = "ARRAYD_" + option.upper().replace("-", "_")
        keys += f".TP\n.B {roff(option)}\n{roff(doc)}{note}. Environment: {variable}. Type: {kind_of(row)}.\n"
    commands = "".join(f".TP\n.B {command}\n{roff(arguments)}\n.br\n{roff(doc[0].upper() + doc[1:])}.\n"
                       if arguments else f".TP\n.B {command}\n{roff(doc[0].upper() + doc[1:])}.\n"
                       for command, arguments, doc in rows("command", SERVER / "ctl"))
    text = (HERE / "man" / f"{name}.in").read_text().replace("@COMMANDS@\n", commands)
    return text.replace("@VERSION@", version).replace("@OPTIONS@\n", options).replace("@KEYS@\n", keys)


def write_aliases(folder):
    """A manual page for every function of the C library that has none of its name: it includes the one that tells of it.
    Those of the tables' rows are told of by the pages of their callers."""
    pages = {path.stem for path in creference.MANUAL.glob("*.3")}
    names = dict(creference.manuals())
    names.update({f"ad_{row[1]}": "ad_ufunc_call" for table in ("ufunc", "reduction") for row in rows(table)})
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.3"):
        old.unlink()
    for name, page in names.items():
        if name not in pages:
            (folder / f"{name}.3").write_text(f".so man3/{page}.3\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("version")
    parser.add_argument("--python", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "c").mkdir(exist_ok=True)
    pages = [*reference(), *c_reference()]
    if options.python:
        import covered
        from reference import pages as python_pages
        covered.PAGE.write_text(covered.page())
        (options.out / "reference").mkdir(exist_ok=True)
        pages += [(f"reference/{file}", title, text) for file, title, text in python_pages()]
    for file, title, text in pages:
        (options.out / file).write_text(f"# {title}\n\n{text}")
    index = "".join(f"- [{title}]({file})\n" for file, title, _ in pages)
    (options.out / "index.md").write_text(f"# Reference of arrayd {options.version}\n\n{index}")
    (options.out / "arrayd.conf").write_text(configuration())
    write_aliases(options.out / "man3")
    for path, text in completion.files(rows, SERVER):
        file = options.out / "completion" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name in ("arrayd.conf.5", "arrayd.8", "arrayctl.1"):  # the last: make looks whether it is there
        (options.out / name).write_text(manual(name, options.version))


if __name__ == "__main__":
    main()
