"""The harness of CuPy's own tests, tests/conformance: fetching by hash, rules, counting, the baseline, placeholders."""
import argparse
import hashlib
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

import pytest

from commands import COMMAND

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", TOP / "build" / "release"))
HERE = TOP / "tests" / "conformance"
sys.path.append(str(HERE))
import fetch  # noqa: E402
import helpers  # noqa: E402
import judge  # noqa: E402
import report  # noqa: E402

RULES = """
[class.private]
counts = false
about = "inside"
[class.wrong]
counts = true
about = "defects"
[[rule]]
class = "private"
cause = "no cupy\\\\._core"
why = "inside of CuPy"
[[rule]]
class = "wrong"
cause = "not equal"
test = "test_sum"
why = "sums"
"""


def result(name, outcome="failed", cause=""):
    return {"id": name, "raw": name, "outcome": outcome, "cause": cause, "where": "", "seconds": 0.0}


# ---- fetching ----

def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_only_the_tests_are_unpacked(tmp_path):
    digest = archive(tmp_path / "x.tar.gz", {"x-1/tests/test_a.py": "a", "x-1/x/core.py": "b",
                                             "x-1/pyproject.toml": "c", "x-1/tests/../../out.py": "d"})
    fetch.unpack(tmp_path / "x.tar.gz", digest, tmp_path / "made" / "it")
    assert sorted(str(p.relative_to(tmp_path / "made")) for p in (tmp_path / "made").rglob("*") if p.is_file()) == [
        "it/pyproject.toml", "it/tests/test_a.py"]
    assert not (tmp_path / "out.py").exists()


def test_another_hash_is_refused(tmp_path):
    archive(tmp_path / "x.tar.gz", {"x-1/tests/test_a.py": "a"})
    with pytest.raises(fetch.NotFetched, match="is refused: its SHA-256 is"):
        fetch.unpack(tmp_path / "x.tar.gz", "0" * 64, tmp_path / "made")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("inside", ["", "archives"])
def test_an_archive_that_lies_there_is_not_fetched(tmp_path, inside):
    digest = archive(tmp_path / "x.tar.gz", {"thing-1/tests/test_a.py": "a"})
    (tmp_path / "there" / inside).mkdir(parents=True)
    (tmp_path / "x.tar.gz").rename(tmp_path / "there" / inside / "thing-1.0.tar.gz")
    source = {"name": "thing", "version": "1.0", "sha256": digest}
    folder = fetch.tests_of(source, tmp_path / "cache", [tmp_path / "empty", tmp_path / "there"])
    assert folder == tmp_path / "cache" / digest and any(folder.rglob("*.py"))
    with pytest.raises(fetch.NotFetched, match="is refused: its SHA-256 is"):
        fetch.tests_of({**source, "sha256": "0" * 64}, tmp_path / "cache", [tmp_path / "there"])


def test_what_is_cached_is_not_fetched(tmp_path):
    (tmp_path / ("1" * 64)).mkdir()
    source = {"name": "nothing-of-the-kind", "version": "1", "sha256": "1" * 64}
    assert fetch.tests_of(source, tmp_path) == tmp_path / ("1" * 64)


def test_pips_settings_go_before_each_other_as_pip_has_them():
    text = ("global.index-url='a'\n:env:.index-url='c'\ndownload.index-url='b'\nglobal.cert='d'\n"
            ":env:.find-links='e f'\n")
    assert fetch.deploy.pip_settings(text) == {"index-url": "c", "cert": "d", "find-links": "e f"}


def test_an_archive_comes_from_where_pip_looks(tmp_path):
    (tmp_path / "links").mkdir()
    digest = archive(tmp_path / "links" / "some-thing-1.0.tar.gz", {"some-thing-1.0/tests/test_a.py": "a"})
    pytest.importorskip("unearth")
    settings = {"no-index": "true", "find-links": str(tmp_path / "links")}
    assert hashlib.sha256(fetch.deploy.find_file("some-thing", "1.0", digest, settings)).hexdigest() == digest
    with pytest.raises(fetch.NotFetched, match="has a source distribution of some-thing 1.0"):
        fetch.deploy.find_file("some-thing", "1.0", "0" * 64, settings)


def test_no_registry_is_told_in_a_line(tmp_path):
    pytest.importorskip("unearth")
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import fetch\n"
            "try: fetch.download('cupy', '14.2.0', '0' * 64)\n"
            "except fetch.NotFetched as error: print(error); sys.exit(2)")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    environment |= {"PIP_INDEX_URL": "http://127.0.0.1:1/simple", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run([sys.executable, "-c", code, HERE], env=environment, capture_output=True, text=True,
                          timeout=COMMAND)
    assert done.returncode == 2 and "the package registry does not give cupy 14.2.0" in done.stdout, done.stderr


# ---- rules ----

def test_the_first_rule_that_fits_is_the_one():
    rules = judge.Rules(RULES)
    assert rules.judge(result("a.py::test_sum", cause="arrayd has no cupy._core.x; not equal"))["class"] == "private"
    assert rules.judge(result("a.py::test_sum", cause="not equal"))["class"] == "wrong"
    assert rules.judge(result("a.py::test_mean", cause="not equal")) is None
    assert rules.unused() == []


def test_rules_that_fit_nothing_are_named():
    rules = judge.Rules(RULES)
    rules.judge(result("a.py::test_sum", cause="not equal"))
    assert [rule["why"] for rule in rules.unused()] == ["inside of CuPy"]


@pytest.mark.parametrize("change", [('class = "wrong"', 'class = "odd"'), ('why = "sums"', ""),
                                    ('cause = "not equal"\ntest = "test_sum"', "")])
def test_rules_are_checked(change):
    with pytest.raises(ValueError, match="rules.toml"):
        judge.Rules(RULES.replace(*change))


def test_the_rules_that_are_there_are_sound():
    rules = judge.Rules((HERE / "rules.toml").read_text())
    assert set(rules.classes) == {"private", "device", "allocators", "oracle", "scipys", "numpys", "late", "differs", "missing",
                                  "wrong"}
    meant = {name for name, of in rules.classes.items() if of.get("meant")}
    assert meant == {"scipys", "numpys", "late", "differs"} and all(rules.classes[name]["counts"] for name in meant)
    assert not rules.classes["private"]["counts"] and rules.classes["wrong"]["counts"]


# ---- counting ----

MIXED = [result("cupy_tests/math_tests/test_a.py::test_sum[1]", "passed"),
         result("cupy_tests/math_tests/test_a.py::test_sum[2]", cause="not equal"),
         result("cupy_tests/math_tests/test_a.py::test_core", cause="no cupy._core.y"),
         result("cupy_tests/math_tests/test_a.py::test_skip", "skipped"),
         result("cupyx_tests/scipy_tests/fft_tests/test_b.py::test_b", "passed"),
         result("cupyx_tests/test_c.py::test_c", "xfailed")]


def test_scores():
    rows, sums = judge.count_rows(MIXED, judge.Rules(RULES))
    total = sums[-1]
    assert [row.name for row in sums] == ["all of cupy_tests", "all of cupyx_tests", "total"]
    assert [row.score for row in sums[:2]] == [0.5, 1.0]
    assert [row.name for row in rows] == ["cupy_tests/math_tests", "cupyx_tests", "cupyx_tests/scipy_tests/fft_tests"]
    math, cupyx, fft = rows
    assert (math.collected, math.passed, math.failed, math.score) == (4, 1, 1, 0.5)
    assert dict(math.apart) == {"private": 1, "skipped": 1}
    assert cupyx.score is None and fft.score == 1.0
    assert (total.collected, total.passed, total.failed, total.score) == (6, 2, 1, pytest.approx(2 / 3))


def test_scores_beside_cupy():
    cupys = {one["id"]: "passed" for one in MIXED} | {MIXED[0]["id"]: "failed", MIXED[3]["id"]: "skipped"}
    rows, sums = judge.count_rows(MIXED, judge.Rules(RULES), cupys)
    math, total = rows[0], sums[-1]
    assert (math.passed, math.failed, math.apart["not passed by CuPy"]) == (0, 1, 2)
    assert math.under_cupy == pytest.approx(2 / 3)
    assert total.under_cupy == pytest.approx(4 / 5) and total.score == 0.5
    del cupys[MIXED[0]["id"]]  # its run has not reached this one
    assert judge.count_rows(MIXED, judge.Rules(RULES), cupys)[0][0].passed == 1


def test_the_worst_that_came_of_a_test_counts():
    lines = [json.dumps({"id": name, "when": when, "outcome": outcome, "cause": cause, "seconds": 1}) for
             name, when, outcome, cause in [("tests/a.py::x", "call", "passed", None),
                                            ("tests/a.py::x", "teardown", "failed", ["E: gone", ""]),
                                            ("tests/a.py::y", "call", "passed", None)]]
    x, y = judge.read_results(lines)
    assert (x["id"], x["outcome"], x["cause"], x["seconds"]) == ("a.py::x", "failed", "E: gone", 2)
    assert (y["id"], y["outcome"], y["raw"]) == ("a.py::y", "passed", "tests/a.py::y")


def test_ids_are_those_of_any_run():
    assert judge.normal_id("tests/a.py::T_param_3_{f=<x at 0x7f0012345678>, g={1: 2}}::x") == "a.py::T_param_3::x"
    assert judge.normal_id("tests/a.py::T::test_x[_param_12_{s='a::b'}]") == "a.py::T::test_x[_param_12]"
    assert judge.normal_id("a.py::test_x[<f at 0x7f0012345678>]") == "a.py::test_x[<f at 0x>]"


# ---- the baseline ----

def test_what_fails_as_a_whole_is_one_line():
    ids = ["a.py::T::x[1]", "a.py::T::x[2]", "a.py::T::y", "a.py::u[1]", "a.py::u[2]", "b.py::v", "c.py::W::z"]
    failing = ["a.py::T::x[1]", "a.py::T::x[2]", "a.py::u[2]", "b.py::v"]
    assert judge.collapse_ids(failing, ids) == ["a.py::T::x::*", "a.py::u[2]", "b.py::v"]
    assert judge.collapse_ids(ids, ids) == ["a.py::*", "b.py::v", "c.py::W::z"]


def test_a_drop_is_a_failing_test_that_is_not_listed():
    baseline = judge.Baseline(["# head", "a.py::T::x::*", "a.py::u[2]", ""])
    results = [result("a.py::T::x[1]"), result("a.py::T::x[2]", "passed"), result("a.py::T::xy"), result("a.py::u[2]"),
               result("a.py::u[3]"), result("a.py::u[1]", "passed"), result("a.py::u[4]", "skipped")]
    assert baseline.compare(results) == (["a.py::T::xy", "a.py::u[3]"], ["a.py::T::x[2]"])


def test_a_drop_fails():
    """In make test-all, too."""
    spec = importlib.util.spec_from_file_location("conformance_run", HERE / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    options = argparse.Namespace(folder=["math_tests"], reuse=True, update=False, check=True)
    failing = [one["id"] for one in MIXED if one["outcome"] == "failed"]
    for known, status in ((failing, 0), (failing[1:], 1), ([], 1)):
        assert run.conclude(options, None, None, None, judge.Rules(RULES), judge.Baseline(known), [], MIXED, None, []) == status
    recipe = (TOP / "Makefile").read_text().partition("\ntest-all:")[2].partition("\n\n")[0]
    assert "tests/conformance/run.py --build $B --check" in recipe


def test_a_baseline_holds_what_it_was_made_from():
    ids = [f"a.py::T{i}::test_{j}[{k}]" for i in range(3) for j in range(3) for k in range(2)]
    failing = [name for i, name in enumerate(ids) if i % 3 != 1 or i < 6]
    baseline = judge.Baseline(judge.collapse_ids(failing, ids))
    assert [name for name in ids if baseline.holds(name)] == failing


# ---- the page ----

def test_the_page():
    rules = judge.Rules(RULES)
    about = {"version": "1", "sha256": "2", "date": "3", "machine": "4", "software": "5", "took": "6", "jobs": 7,
             "oracle": "", "server": "2G", "limit": 60, "baseline": "failures-8.txt"}
    rows, sums = judge.count_rows(MIXED, rules)
    text = report.write_page(about, [*rows, judge.Row("cupyx_tests/late_tests")], sums, rules, MIXED)
    assert "| cupyx_tests/late_tests |  |  |  |  |  | left out of this run |" in text
    assert text.count("failures-8.txt`") == 2
    assert "| cupy_tests/math_tests | 4 | 1 | 1 |  | 50.0 % | private 1, skipped 1 |" in text and "Meant." not in text
    rules.classes["wrong"]["meant"] = True
    text = report.write_page(about, *judge.count_rows(MIXED, rules), rules, MIXED)
    assert "| cupy_tests/math_tests | 4 | 1 | 1 | 1 | 50.0 % | private 1, skipped 1 |" in text and "defects Meant." in text
    assert "| sums | 1 | test_a::test_sum 1 |" in text and "### private: 1 tests" in text


def test_the_front_page_promises_what_the_page_says():
    total = re.search(r"^\| total \|.*?\| ([\d.]+ %) \|", (TOP / "docs/conformance.md").read_text(), re.MULTILINE)
    assert f"{total[1]} pass without a GPU" in (TOP / "README.md").read_text()


# ---- what stands in for CuPy ----

def test_repetitions():
    import unittest

    class Case(unittest.TestCase):
        runs = 0

        def count(self):
            type(self).runs += 1
            self.assertEqual(self.runs % 3, 0)

        test_some = helpers.repeat_with_success_at_least(9, 3)(count)
        test_all = helpers.repeat(2)(count)

    assert unittest.TestResult.wasSuccessful(Case("test_some").run()) and Case.runs == 9
    assert not Case("test_all").run().wasSuccessful() and Case.runs == 10


def test_a_test_whose_rounds_all_skip_is_skipped():
    import unittest

    def looping(names, values):
        def decorator(test):
            def run():
                for one in values:
                    try:
                        test(**one)
                    except unittest.SkipTest:
                        pass
            return run
        return decorator

    def skip(x):
        if x < 3:
            raise unittest.SkipTest

    loop = helpers.skip_with_all(looping)
    loop(["x"], [{"x": 2}, {"x": 3}])(skip)()
    with pytest.raises(unittest.SkipTest, match="every round"):
        loop(["x"], [{"x": 1}, {"x": 2}])(skip)()


PROBE = """
import pytest
import cupy
from cupy import _environment
from cupy._core import _accelerator
from cupy.nothing import there
from cupy.testing import _condition, numpy_cupy_equal

@numpy_cupy_equal()
def test_runs(xp):
    return float(xp.arange(3).sum())

def test_done():
    pass

def test_helper():
    assert _accelerator.ACCELERATOR_CUB == 1

def test_private():
    assert _environment.check_array is not None

def test_expects_any():
    with pytest.raises(Exception):
        _environment.check_array()

@there
def test_decorated():
    pass

@there.at_all(3)
class TestClass:
    def test_within(self):
        pass

@pytest.mark.filterwarnings("ignore::cupy._util.PerformanceWarning")
def test_filter():
    assert not hasattr(cupy, "nothing")

@numpy_cupy_equal()
def test_wrong(xp):
    return 1 if xp is cupy else 2
"""


@pytest.mark.skipif(BUILD.name != "release", reason="the package is imported")
def test_placeholders_fail_the_tests_that_touch_them(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_probe.py").write_text(PROBE)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    results = tmp_path / "results"
    path = os.pathsep.join([str(BUILD / "python"), str(HERE)])
    environment = {key: value for key, value in os.environ.items() if key != "ARRAYD_URL"}
    environment |= {"PYTHONPATH": path, "ARRAYD_BUILD": str(BUILD), "ARRAYD_CONFORMANCE_RESULTS": str(results),
                    "ARRAYD_CONFORMANCE_DONE": str(tmp_path / "done")}
    (tmp_path / "done").write_text('["tests/test_probe.py::test_done"]')  # an earlier run has its result
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "stand_in", "-p", "no:cacheprovider", "tests"],
                          cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=COMMAND)
    assert results.exists(), done.stdout + done.stderr
    found = {one["id"].split("::", 1)[1]: one for one in judge.read_results(results.read_text().splitlines())}
    assert {name: one["outcome"] for name, one in found.items()} == {
        "test_runs": "passed", "test_helper": "passed", "test_private": "failed", "test_expects_any": "failed",
        "test_decorated": "failed", "TestClass::test_within": "failed", "test_filter": "passed", "test_wrong": "failed"}, done.stdout
    assert "arrayd has no cupy._environment" in found["test_private"]["cause"]
    assert "arrayd has no cupy.nothing.there" in found["test_decorated"]["cause"]
    assert "arrayd has no cupy.nothing.there.at_all" in found["TestClass::test_within"]["cause"]
    assert found["test_wrong"]["cause"].startswith("AssertionError")
