"""Count which branches of what strangers reach no test takes: coverage.py [--build build/coverage] [--no-run] [--list].

`make coverage` builds with counts of branches, runs the suites below and lets this script write the table of
docs/internals/testing.md. A branch that no test can take has a reason in tests/uncovered.txt.
"""
import argparse
import collections
import fnmatch
import json
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
PAGE = TOP / "docs" / "internals" / "testing.md"
BEGIN, END = "<!-- measured by tests/coverage.py -->\n", "<!-- end -->\n"
REASONS = TOP / "tests" / "uncovered.txt"
SUITES = ["unit", "native", "wire", "ops", "api", "fault", "sim"]
SEEDS = 200  # of the simulator, besides a failure of each of its resources
PLANS = [  # settings of which the simulator runs half as many more, as few seeds draw them together
    ["forks=1", "shares=1"], ["forks=1", "drops=1000000", "room=4096"], ["moves=1", "upgrades=3"],
    ["splits=400000", "room=4096"], ["delays=400000", "drops=500000"], ["no_descriptor=20000", "shares=1"],
    ["no_memory=3000"], ["events=1", "commons=1"]]
# Files that read bytes of strangers, by their name in the table.
SCOPE = {
    "the protocol": ["protocol/*.c"],
    "TLS and digests": ["protocol/tls/*.c"],
    "the front's handshake": ["server/front/net/*.c", "server/front/auth/*.c"],
    "HTTP, metrics and the control socket": ["server/front/observe/*.c"],
    "the client's readers": ["client-c/net/*.c", "client-c/resume/*.c"],
    "arrays of other servers": ["server/front/peers/*.c", "server/worker/sharing/pull.c", "client-c/pull/*.c"],
}


def read_counts(build):
    """{file: {line: [times that each branch of the line was taken]}}, of all objects together."""
    notes = sorted(p for p in (build / "obj").rglob("*.gcno") if "/obj/tests/" not in str(p))
    total = {}
    for at in range(0, len(notes), 50):
        told = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", *map(str, notes[at:at + 50])],
                              cwd=TOP, capture_output=True, text=True, check=True)
        for text in told.stdout.splitlines():
            for file in json.loads(text)["files"]:
                if file["file"].endswith(".c"):
                    add_file(total.setdefault(file["file"], {}), file["lines"])
    return total


def add_file(known, lines):
    """A line of a macro or of an inline function comes several times; its branches are counted each time."""
    for line in lines:
        counts = [branch["count"] for branch in line["branches"] if not branch["throw"]]
        if counts:
            before = known.setdefault((line.get("function_name", ""), line["line_number"]), [0] * len(counts))
            if len(before) == len(counts):
                before[:] = [a + b for a, b in zip(before, counts)]


def read_reasons():
    """[(pattern of files, text of the line, reason)] of tests/uncovered.txt."""
    rows = []
    for number, line in enumerate(REASONS.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            try:
                files, text, reason = line.split(" | ")
            except ValueError:
                sys.exit(f"tests/uncovered.txt:{number}: expected is `files | text of the line | reason`")
            rows.append((files, text, reason))
    return rows


def find_reason(reasons, file, text):
    return next((row for row in reasons if fnmatch.fnmatch(file, row[0]) and row[1] in text), None)


class Part:
    """One line of the table."""

    def __init__(self):
        self.branches = self.taken = self.explained = 0
        self.left = []


def measure(counts, reasons):
    """{part of the scope: what was found of it}, and the reasons that no line needs."""
    parts, used = collections.defaultdict(Part), set()
    for name, patterns in SCOPE.items():
        for file in sorted(f for f in counts if any(fnmatch.fnmatch(f, p) and f.count("/") == p.count("/") for p in patterns)):
            source = (TOP / file).read_text().splitlines()
            for (_, line), times in sorted(counts[file].items(), key=lambda item: item[0][1]):
                part, missed = parts[name], times.count(0)
                part.branches += len(times)
                part.taken += len(times) - missed
                row = find_reason(reasons, file, source[line - 1]) if missed else None
                if row:
                    used.add(row)
                    part.explained += missed
                elif missed:
                    part.left.append(f"{file}:{line}: {missed} of {len(times)}: {source[line - 1].strip()}")
    return parts, [row for row in reasons if row not in used]


def write_table(parts):
    rows = ["| what | branches | taken by tests | with a reason | left |", "| --- | ---: | ---: | ---: | ---: |"]
    total = Part()
    for name, part in parts.items():
        rows.append(format_row(name, part))
        for field in ("branches", "taken", "explained"):
            setattr(total, field, getattr(total, field) + getattr(part, field))
    return "\n".join([*rows, format_row("all", total)]) + "\n"


def format_row(name, part):
    share = 100 * part.taken / max(part.branches, 1)
    left = part.branches - part.taken - part.explained
    return f"| {name} | {part.branches:,} | {part.taken:,} ({share:.1f} %) | {part.explained:,} | {left:,} |"


def rewrite_page(table):
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}")


def run_suites(build, suites):
    for old in (build / "obj").rglob("*.gcda"):
        old.unlink()
    for folder in (build / "obj").rglob("*"):
        if folder.is_dir():
            os.chmod(folder, 0o1777)  # servers of the tests run as other users, too
    for suite in suites:
        if suite != "sim":
            subprocess.run([sys.executable, TOP / "tests" / "run.py", "--build", build, suite], check=False)
        for counts in (build / "obj").rglob("*.gcda"):
            counts.chmod(0o666)  # clients of the tests are other users, too
    if "sim" in suites:
        plans = [["--seeds", str(SEEDS // 2), "--from", "7000", "--set", "store_kills=0",
                  *(word for setting in plan for word in ("--set", setting))] for plan in PLANS]
        for what in (["--seeds", str(SEEDS)], ["--fail"], *plans):
            subprocess.run([build / "sim" / "sim", build, *what], check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/coverage", type=pathlib.Path)
    parser.add_argument("--no-run", action="store_true", help="read the counts that there are")
    parser.add_argument("--list", action="store_true", help="print each line with a branch that is left")
    parser.add_argument("suite", nargs="*", default=SUITES)
    options = parser.parse_args()
    build = options.build.resolve()
    if not options.no_run:
        run_suites(build, options.suite)
    parts, unused = measure(read_counts(build), read_reasons())
    table = write_table(parts)
    rewrite_page(table)
    print(table, end="")
    if options.list:
        print("\n".join(line for part in parts.values() for line in part.left))
    for row in unused:
        print(f"tests/uncovered.txt: every branch of `{row[1]}` in {row[0]} is taken, or there is none")


if __name__ == "__main__":
    main()
