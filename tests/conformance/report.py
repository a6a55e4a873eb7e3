"""The page docs/conformance.md, made of rows, rules and results."""
import collections

MOST = 8  # groups of tests that a cause names

_HEAD = """# CuPy's own tests

*`make conformance` writes this page; `tests/conformance/{baseline}` has all the ids.*

The tests of CuPy {version}, as its source distribution has them, with `arrayd.cupy` as their `cupy`. Nothing of them is
in this repository: they are fetched from where pip is configured to look, by their SHA-256,
`{sha256}`.

Run on {date} with {jobs} processes: {machine}; {software}.
It took {took}.
{oracle}
## By folder

The score is passed / (passed + failed). Of the failed ones those are *meant* in which arrayd does what NumPy 2 or SciPy
do and CuPy does not, or what its own documentation says: the classes of which that is said below. They count as failed.

Some tests are not counted: those of CuPy's private parts, those that need a GPU or CUDA's libraries in the process
itself, and those that skip themselves. Nor are those that CuPy expects to fail, whether they do (xfailed) or not
(xpassed). Those that CuPy marks `slow`, with arrays of several GiB, are not run.

"""
_HOW = """
## How a test is judged

- A test module that takes a name from `cupy` that arrayd does not have is imported with a placeholder for it. A test
  that touches the placeholder fails, and says which name; the others run. A function with such a decorator fails, too.
- A test that loops over types and skips itself for each is skipped. CuPy's loops would let it pass.
- A test that returns before it has called anything passes, as with CuPy. Most tests that pass while their part of
  `cupyx.scipy` is missing are of this kind, such as transforms of no elements.
- arrayd's own `cupy.testing` compares. The tests also use its private helpers, which the harness has
  (`tests/conformance/helpers.py`): loops, repetitions and a chi-squared test. They also answer questions that tests ask
  before they test something else, such as whether this is AMD's platform.
- Every process of tests has a server of its own with {server} of memory, and each test {limit} s.
- A failing test has a class by the first rule of `tests/conformance/rules.toml` that fits it. `make conformance` fails
  when a test has none, or fails and is not in `{baseline}`. It names tests of that list that pass, which
  `tests/conformance/run.py --update` removes from it.
- Not part of it: array-api-tests, of which the package registry has no release.
"""


def percent(score):
    return "" if score is None else f"{100 * score:.1f} %"


def _table(head, rows):
    """A table with texts in the first and the last column and numbers between them."""
    marks = ["---", *["---:"] * (len(head) - 2), "---"]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in (head, marks, *rows)) + "\n"


def _row_line(row, cupy):
    if not row.collected:
        return [row.name, *[""] * (6 if cupy else 5), "left out of this run"]
    apart = ", ".join(f"{name} {count}" for name, count in row.apart.most_common())
    return [row.name, row.collected, row.passed, row.failed, row.meant or "", percent(row.score),
            *([percent(row.under_cupy)] if cupy else []), apart]


def group_of(name):
    """Return module::class of an id, without parameters."""
    parts = name.partition("[")[0].split("::")
    group = parts[1].partition("_param_")[0] if len(parts) > 2 else parts[1] if len(parts) > 1 else ""
    return f"{parts[0].rpartition('/')[2].removesuffix('.py')}::{group}".removesuffix("::")


def _cause_line(rule, ids):
    groups = collections.Counter(map(group_of, ids)).most_common()
    named = ", ".join(f"{name} {count}" for name, count in groups[:MOST])
    more = f" and {len(groups) - MOST} more" if len(groups) > MOST else ""
    return [rule["why"].replace("|", "\\|"), len(ids), named + more]


def write_page(about, rows, sums, rules, results):
    """The text of the page."""
    cupy = any(row.under_cupy is not None for row in rows)
    head = ["folder", "collected", "passed", "failed", "meant", "score", *(["CuPy's own score"] if cupy else []), "not counted"]
    text = _HEAD.format(**about) + _table(head, [_row_line(row, cupy) for row in [*rows, *sums]])
    found = collections.defaultdict(list)
    for result in results:
        if result["outcome"] == "failed":
            found[id(rules.judge(result))].append(result["id"])
    text += "\n## The failing tests, by class and cause\n"
    for name, of in rules.classes.items():
        of_class = [rule for rule in rules.rules if rule["class"] == name and id(rule) in found]
        tests = sum(len(found[id(rule)]) for rule in of_class)
        text += f"\n### {name}: {tests} tests\n\n{of['about']}{' Meant.' if of.get('meant') else ''}\n\n"
        if of_class:
            causes = sorted((_cause_line(rule, found[id(rule)]) for rule in of_class), key=lambda line: -line[1])
            text += _table(["cause", "tests", "where"], causes)
    return text + _HOW.format(**about)
