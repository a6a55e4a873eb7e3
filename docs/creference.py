"""The reference of the C library, from arrayd.h, the tables of protocol/ and the names that the man pages have."""
import dataclasses
import pathlib
import re
import textwrap

TOP = pathlib.Path(__file__).resolve().parent.parent
HEADER = TOP / "client-c" / "include" / "arrayd.h"
MANUAL = TOP / "client-c" / "man"

# A comment that stands on lines of its own, or lines of code up to an empty line or such a comment.
PIECE = re.compile(r"^/\*.*?\*/[ ]*$|(?:^(?!/\*)[^\n]+\n?)+", re.M | re.S)
FUNCTION = re.compile(r"\b(ad_[a-z_]+)\(")
TYPE = re.compile(r"^typedef (?:struct|enum) (ad_\w+)", re.M)
MACRO = re.compile(r"^#define (AD_\w+)", re.M)


@dataclasses.dataclass
class Entry:
    """Declarations with the comment above them."""
    code: str
    text: str
    names: list


@dataclasses.dataclass
class Section:
    title: str
    text: str
    entries: list


def plain(comment):
    """A comment's text, with lists and examples as they stand."""
    first, *rest = comment.strip().removeprefix("/*").removesuffix("*/").splitlines() or [""]
    lines = [first.strip(), *(re.sub(r"^ ?\* ?", "", line) for line in rest)]
    text = textwrap.dedent("\n".join(lines)).strip()
    text = re.sub(r"(?m)^(?! {4}).*", lambda m: re.sub(r"[*<]", r"\\\g<0>", m[0]), text)
    return re.sub(r"(?m)^((?: {4}.*\n?)+)", lambda m: "```c\n" + textwrap.dedent(m[1]).rstrip() + "\n```\n", text)


def names(code):
    """Return what code declares: types, functions and macros."""
    found, code = [], re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    for start in re.finditer(r"^(?:AD_API|static inline|typedef|#define)\b", code, re.M):
        rest = code[start.start():]
        pattern = {"typedef": TYPE, "#define": MACRO}.get(start[0], FUNCTION)
        found += pattern.findall(rest)[:1]
    return list(dict.fromkeys(found))


def parts(code):
    """Declarations by subject: a type after functions begins a new one, with the functions that follow it."""
    found = [""]
    for line in code.splitlines(True):
        if line.startswith("typedef") and re.search(r"^(AD_API|static inline)", found[-1], re.M):
            found.append("")
        found[-1] += line
    return found


def declared(code):
    """Declarations as they are shown: without the macro of visibility, and without the bodies of inline functions."""
    code = re.sub(r"^(static inline [^{;]*?) ?\{.*?(?:^\}|\}$)", r"\1;", code, flags=re.M | re.S)
    return re.sub(r"^AD_API ", "", code, flags=re.M).rstrip()


def sections():
    """The sections of the header; the first has what stands at its top."""
    source = HEADER.read_text()
    body = source[:source.index("/* One function for every row")]
    found, comment = [], ""
    for piece in PIECE.finditer(body):
        text = piece[0]
        heading = re.match(r"/\* ---- (.+?) ----\s*(.*)\*/\s*$", text, re.S)
        if heading:
            found.append(Section(heading[1][0].upper() + heading[1][1:], plain("/*\n" + heading[2] + "*/"), []))
            comment = ""
        elif text.startswith("/*"):
            if not found:
                found.append(Section("Conventions", plain(text), []))
            comment = plain(text)
        elif len(found) > 1:
            for part in parts(text):
                if new := names(part):
                    found[-1].entries.append(Entry(declared(part), comment, new))
                comment = ""
    return found


def manuals():
    """The man page that each name is in."""
    found = {}
    for page in sorted(MANUAL.glob("*.3")):
        for name in re.findall(r"^\.Nm (ad_\w+)", page.read_text(), re.M):
            found[name] = page.stem
    return found


def entry_text(entry, manual):
    pages = sorted({manual[name] for name in entry.names if name in manual})
    title = ", ".join(f"`{name}`" for name in entry.names)
    see = f"\n\nMan page: {', '.join(f'{page}(3)' for page in pages)}" if pages else ""
    return f"### {title}\n\n```c\n{entry.code}\n```\n\n{entry.text}{see}\n".replace("\n\n\n", "\n\n")


def page():
    """The header as a page."""
    manual, out = manuals(), []
    for section in sections():
        out.append(f"## {section.title}\n\n{section.text}".rstrip() + "\n")
        out += [entry_text(entry, manual) for entry in section.entries]
    return "\n".join(out)


def _inputs(n):
    return ", ".join(f"ad_in {name}" for name in "xyz"[:n])


def functions(ufuncs, reductions):
    """A row for each function that the tables make: prototype and what it gives."""
    for row in ufuncs:
        outs = "ad_array **out" if row[3] == "1" else "ad_array **out0, ad_array **out1"
        yield f"`int ad_{row[1]}({_inputs(int(row[2]))}, {outs})`", f"`AD_UFUNC_{row[1]}`", row[9]
    for row in reductions:
        yield f"`int ad_{row[1]}(ad_in x, ad_array **out)`", f"`AD_REDUCTION_{row[1]}`", row[10]


def constants(dtypes, errors, calls):
    """Tables of names: title, names of columns, rows."""
    yield "Element types", ["constant", "type", "bytes"], [[f"`AD_{r[1]}`", f"`{r[2]}`", r[3]] for r in dtypes]
    yield "Status", ["constant", "text"], [[f"`AD_E_{r[1]}`", r[3]] for r in errors]
    yield "Library calls, for `ad_call_call` and `ad_call_shaped`", ["constant", "inputs", "outputs", "what it does"], [
        [f"`AD_CALL_{r[1]}`", r[3] if r[3] == r[4] else f"{r[3]} to {r[4]}", r[2], r[-1]] for r in calls]
