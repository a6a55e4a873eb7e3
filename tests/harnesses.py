"""How much is tested by what, in numbers: harnesses.py [--write]. Writes the table of docs/internals/testing.md.

All numbers are counted in the sources. The findings of long runs are on the page by hand, with their dates.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "internals" / "testing.md"
BEGIN, END = "<!-- counted by tests/harnesses.py -->", "<!-- end -->"
CODE = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".py", ".def", ".pml"}
PRODUCT = ["protocol", "kernels", "server", "client-c", "client-python"]
PYTHON_SUITES = ["wire", "ops", "api", "fault", "build", "gpu"]
TABLES = {"ufunc": "functions of each element", "reduction": "reductions", "call": "calls of libraries",
          "distribution": "random distributions", "request": "messages"}


def count_lines(folders):
    """Lines that are not empty, of all code below the folders."""
    return sum(bool(line.strip()) for folder in folders for path in (TOP / folder).rglob("*")
               if path.suffix in CODE and path.is_file() for line in path.read_text().splitlines())


def count_matches(pattern, *globs):
    """How often a pattern begins a line in the files."""
    return sum(len(re.findall(pattern, path.read_text(), re.M)) for each in globs for path in TOP.glob(each))


def count():
    """The rows of the table: (what, how much)."""
    product, tests = count_lines(PRODUCT), count_lines(["tests"])
    yield "lines of the product", f"{product:,}"
    yield "lines of tests", f"{tests:,}"
    for table, what in TABLES.items():
        yield f"rows of `{table}.def`, each with its tests: {what}", count_matches(r"^AD_[A-Z]+\(", f"protocol/{table}.def")
    yield "units in C (`tests/unit`)", count_matches(r"^(?:Test|ParameterizedTest|Theory)\(", "tests/unit/**/*.c", "tests/unit/**/*.cpp")
    for suite in PYTHON_SUITES:
        yield f"test functions of `tests/{suite}`", count_matches(r"^ *def test_", f"tests/{suite}/test_*.py")
    yield "targets of the fuzzer (`tests/fuzz`)", len(list(TOP.glob("tests/fuzz/fuzz_*.c")))
    yield "attacks by another user (`tests/fault/attacks.py`)", count_matches(r"^def \w+\((?:path|c, x), round", "tests/fault/attacks.py")
    yield "mutants of the model that the checker finds", len(set(re.findall(r"MUTANT_\w+", (TOP / "protocol/resume.pml").read_text())))


def table():
    """The table of the page."""
    rows = "\n".join(f"| {what} | {value} |" for what, value in count())
    return f"{BEGIN}\n| counted | |\n| --- | ---: |\n{rows}\n{END}"


def read_numbers(text):
    """The numbers of a table by what they count."""
    return {what: int(value.replace(",", "").split()[0]) for what, value in
            re.findall(r"^\| ([^|]+) \| ([\d,]+)[^|]*\|$", text, re.M)}


def check(tolerance=0.1):
    """Return what of the page has become untrue: rows that differ from what is counted now by more than a tenth."""
    now, then = read_numbers(table()), read_numbers(PAGE.read_text().split(BEGIN)[1].split(END)[0])
    return [f"{what}: {then.get(what)} on the page, {value} now" for what, value in now.items()
            if what not in then or abs(then[what] - value) > max(2, tolerance * value)]


def main():
    if "--write" in sys.argv:
        PAGE.write_text(re.sub(f"{BEGIN}.*?{END}", lambda _: table(), PAGE.read_text(), flags=re.S))
    print("\n".join(f"{what}: {value}" for what, value in count()))


if __name__ == "__main__":
    main()
