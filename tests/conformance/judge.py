"""Judge the results of the tests: rows and scores, the class of each failing test, and drops below the baseline.

A result is a dict with id, raw (pytest's own id), outcome ("passed", "failed", "skipped", "xfailed", "xpassed"), cause,
where and seconds.
"""
import collections
import json
import re
import tomllib

NOT_COUNTED = ("skipped", "xfailed", "xpassed")  # the last two: as CuPy expects them to fail, or against that


# ---- results ----

def normal_id(name):
    """The id of a test without what differs from run to run or between arrayd's cupy.testing and CuPy's."""
    name = re.sub(r"_param_(\d+)_\{.*?\}(?=\]|::|$)", r"_param_\1", name, flags=re.S)
    name = re.sub(r"0x[0-9a-f]{6,}", "0x", name).removeprefix("tests/")
    return name.replace("\n", " ").replace("\t", " ")


def folder_of(name):
    """The row of a test: its folder of cupy_tests, of cupyx_tests, or of cupyx_tests/scipy_tests."""
    parts = name.split("::")[0].split("/")[:-1]
    depth = 3 if parts[1:2] == ["scipy_tests"] else 2
    return "/".join(parts[:depth])


def read_results(lines):
    """Results from the lines that the plugin writes: one for each test, the worst of what came of it."""
    worst = {"passed": 0, "xfailed": 1, "xpassed": 1, "skipped": 2, "failed": 3}
    found = {}
    for line in lines:
        one = json.loads(line)
        cause, where = one["cause"] or ["", ""]
        result = {"id": normal_id(one["id"]), "outcome": one["outcome"], "cause": cause, "where": where,
                  "raw": one["id"], "seconds": one["seconds"]}
        before = found.get(one["id"])
        if before:
            result["seconds"] += before["seconds"]
            if worst[before["outcome"]] >= worst[result["outcome"]]:
                result = {**before, "seconds": result["seconds"]}
        found[one["id"]] = result
    return _number_twins(sorted(found.values(), key=lambda one: one["raw"]))


def _number_twins(results):
    """Ids that have become the same are told apart by numbers, in order of their originals."""
    seen, numbered = collections.Counter(), []
    for result in results:
        seen[result["id"]] += 1
        again = seen[result["id"]]
        numbered.append({**result, "id": f"{result['id']}#{again}"} if again > 1 else result)
    return numbered


# ---- rules ----

class Rules:
    """The classes and rules of rules.toml. The first rule that fits says what class a failing test is of."""

    def __init__(self, text):
        table = tomllib.loads(text)
        self.classes = table["class"]
        self.rules = table["rule"]
        self.used = set()
        for rule in self.rules:
            if rule["class"] not in self.classes:
                raise ValueError(f"rules.toml: a rule has the class {rule['class']!r}; there are {list(self.classes)}")
            if not rule.get("why") or not (rule.get("cause") or rule.get("test")):
                raise ValueError(f"rules.toml: {rule} needs why, and cause or test (regular expressions)")
            for key in ("cause", "test"):
                rule[key] = re.compile(rule[key], re.S) if key in rule else None

    def judge(self, result):
        """The rule for a failing test, or None."""
        for number, rule in enumerate(self.rules):
            if all(pattern is None or pattern.search(text) for pattern, text in
                   ((rule["cause"], result["cause"]), (rule["test"], result["id"]))):
                self.used.add(number)
                return rule
        return None

    def unused(self):
        return [rule for number, rule in enumerate(self.rules) if number not in self.used]


# ---- score ----

class Row:
    """The counts of a folder."""

    def __init__(self, name):
        self.name = name
        self.collected = self.passed = self.failed = 0
        self.meant = 0  # of the failed ones: of classes in which arrayd does what it means to do
        self.apart = collections.Counter()  # not counted: by class or outcome
        self.under_cupy = None  # its score, where it could run

    @property
    def counted(self):
        return self.passed + self.failed

    @property
    def score(self):
        return self.passed / self.counted if self.counted else None

    def add(self, outcome, apart, meant=False):
        self.collected += 1
        if apart:
            self.apart[apart] += 1
        elif outcome == "passed":
            self.passed += 1
        else:
            self.failed += 1
            self.meant += meant


def _rows_of(name, rows, sums):
    """The rows in which a test counts; made when they are not there."""
    folder = folder_of(name)
    yield rows.setdefault(folder, Row(folder))
    for title in (f"all of {folder.split('/')[0]}", "total"):
        yield sums.setdefault(title, Row(title))


def count_rows(results, rules, cupys=None):
    """Rows by folder, and the sums: of each of the two packages of tests, and of everything, which is the last.

    With the outcomes of CuPy itself, {id: outcome}, what it does not pass is not counted. Tests that its run has not
    reached are.
    """
    rows, sums = {}, {}
    for result in results:
        rule = rules.judge(result) if result["outcome"] == "failed" else None
        apart = result["outcome"] if result["outcome"] in NOT_COUNTED else None
        if rule and not rules.classes[rule["class"]]["counts"]:
            apart = rule["class"]
        if cupys is not None and cupys.get(result["id"], "passed") != "passed":
            apart = "not passed by CuPy"
        for row in _rows_of(result["id"], rows, sums):
            row.add(result["outcome"], apart, bool(rule and rules.classes[rule["class"]].get("meant")))
    if cupys is not None:
        ran = collections.defaultdict(list)
        for name, outcome in cupys.items():
            for row in _rows_of(name, rows, sums) if outcome in ("passed", "failed") else ():
                ran[row].append(outcome)
        for row, outcomes in ran.items():
            row.under_cupy = outcomes.count("passed") / len(outcomes)
    return [rows[name] for name in sorted(rows)], [sums[name] for name in sorted(sums)]


# ---- baseline ----

def _parts(name):
    """An id from the file down to the parameters."""
    plain, bracket, parameters = name.partition("[")
    return [*plain.split("::"), *([bracket + parameters] if bracket else [])]


def _join(parts):
    return "::".join(parts).replace("::[", "[")


def collapse_ids(failing, all_ids):
    """Lines that name the failing tests: an id, or `file::class::*` where all the ids below fail and there are two."""
    failing, sizes, fails = set(failing), collections.Counter(), collections.Counter()
    for name in all_ids:
        parts = _parts(name)
        for length in range(1, len(parts)):
            sizes[tuple(parts[:length])] += 1
            fails[tuple(parts[:length])] += name in failing
    lines = set()
    for name in failing:
        parts = _parts(name)
        whole = next((tuple(parts[:length]) for length in range(1, len(parts))
                      if 1 < sizes[tuple(parts[:length])] == fails[tuple(parts[:length])]), None)
        lines.add(_join(whole) + "::*" if whole else name)
    return sorted(lines)


class Baseline:
    """The tests that are known to fail."""

    def __init__(self, lines):
        self.lines = [line.rstrip("\n") for line in lines if line.strip() and not line.startswith("# ")]
        self.single = {line for line in self.lines if not line.endswith("::*")}
        self.whole = {line.removesuffix("::*") for line in self.lines if line.endswith("::*")}

    def holds(self, name):
        parts = _parts(name)
        return name in self.single or any(_join(parts[:length]) in self.whole for length in range(1, len(parts)))

    def compare(self, results):
        """Ids of drops (failing and not listed) and of gains (listed and passing)."""
        drops = sorted(r["id"] for r in results if r["outcome"] == "failed" and not self.holds(r["id"]))
        gains = sorted(r["id"] for r in results if r["outcome"] == "passed" and self.holds(r["id"]))
        return drops, gains
