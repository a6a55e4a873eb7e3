"""CuPy's own tests on arrayd: run.py [--build build/release] [--update] [folder ...], such as core_tests.

Exit status: 0; 1 when a test fails that failures.txt does not list or no rule has a class for; 2 when the tests are not
to be had.
"""
import argparse
import datetime
import importlib.metadata
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

import fetch
import judge
import report

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
RULES, BASELINE, PAGE = HERE / "rules.toml", HERE / "failures.txt", TOP / "docs" / "conformance.md"
LIMIT = 60  # seconds for a test
MEMORY = "2G"  # of a server
FOLDER = 1800  # for all of a folder
AGAIN = 200  # so many drops are run once more, by themselves: a drop fails twice


def folders_of(tests):
    """The folders with tests, one for each row of the table."""
    found = {judge.folder_of(str(path.relative_to(tests))) for top in ("cupy_tests", "cupyx_tests")
             for path in (tests / top).rglob("test_*.py")}
    return sorted(found)


def paths_of(tests, folder, folders):
    """What pytest is given for a row: the folder, or its own files where folders below are rows of their own."""
    if any(other.startswith(folder + "/") for other in folders):
        return sorted((tests / folder).glob("test_*.py"))
    return [tests / folder]


def run_pytest(source, paths, results, under, jobs, log, build):
    """Run tests; the plugin appends what comes of each to the file results."""
    ours = ("ARRAYD_URL", "MAKE", "MFLAGS")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    environment.update(PYTHONPATH=os.pathsep.join([str(build / "python"), str(HERE)]), ARRAYD_BUILD=str(build),
                       ARRAYD_CONFORMANCE_RESULTS=str(results), ARRAYD_CONFORMANCE_UNDER=under,
                       ARRAYD_CONFORMANCE_MEMORY=MEMORY,
                       ARRAYD_KERNELS_CACHE=str(build / "kernels"), PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable, "-m", "pytest", "-c", str(source / "pyproject.toml"), "-p", "stand_in", "-p",
               "no:cacheprovider", "-q", "--tb=no", "--continue-on-collection-errors", f"--timeout={LIMIT}", "-m",
               "not slow", *(["-n", str(jobs)] if jobs else []), *map(str, paths)]
    with tempfile.TemporaryDirectory(prefix="t", ignore_cleanup_errors=True) as folder, open(log, "w") as out:
        process = subprocess.Popen(command, cwd=source, env={**environment, "TMPDIR": folder}, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait(FOLDER)
        except subprocess.TimeoutExpired:
            return "time-out"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # what a broken test has left running
            except ProcessLookupError:
                pass
            process.wait()


def run_folders(options, source, work, folders, under):
    """The results of all folders, and the folders whose run broke off."""
    found, broken, all_folders = [], [], folders_of(source / "tests")
    for folder in folders:
        name = f"{folder.replace('/', '.')}.{under}"
        results, log = work / f"{name}.jsonl", work / f"{name}.log"
        begin = time.monotonic()
        if not (options.reuse and results.exists()):
            results.unlink(missing_ok=True)
            results.touch()
            status = run_pytest(source, paths_of(source / "tests", folder, all_folders), results, under, options.jobs,
                                log, options.build)
            if status not in (0, 1, 5):  # all passed, some failed, none were there
                broken.append(f"{folder} under {under}: pytest ended with {status}, see {log}")
        with results.open() as lines:
            of_folder = judge.read_results(lines)
        passed = sum(one["outcome"] == "passed" for one in of_folder)
        print(f"{folder:<44} {under:<7} {len(of_folder):6} tests {passed:6} passed {time.monotonic() - begin:7.1f} s",
              flush=True)
        found += of_folder
    return found, broken


def has_cupy():
    """Whether CuPy itself can run here."""
    code = "import cupy; assert cupy.cuda.runtime.getDeviceCount() and cupy.arange(3).sum() == 3"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def describe_machine():
    model = next((line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    backend = os.environ.get("ARRAYD_TEST_BACKEND", "cpu").upper()
    return f"{model}, {os.cpu_count()} processors, {gigabytes:.0f} GiB; the {backend} backend"


def about_run(source, seconds, jobs, oracle):
    names = ("numpy", "scipy", "pytest")
    text = ("CuPy itself ran here, too: what it does not pass is not counted, and its own score stands beside.\n"
            if oracle else "CuPy itself could not run there, so nothing says which of the tests it would pass.\n")
    return {"version": source["version"], "sha256": source["sha256"], "date": datetime.date.today().isoformat(),
            "machine": describe_machine(), "seconds": seconds, "jobs": jobs, "oracle": text,
            "software": f"Python {platform.python_version()}, " + ", ".join(
                f"{name} {importlib.metadata.version(name)}" for name in names),
            "server": MEMORY, "limit": LIMIT}


def settle(results, drops, source, work, options):
    """The drops that fail once more when they run by themselves."""
    if not drops or len(drops) > AGAIN or options.reuse:
        return drops
    originals = {one["id"]: one["raw"] for one in results}
    results_file, log = work / "again.jsonl", work / "again.log"
    results_file.unlink(missing_ok=True)
    results_file.touch()
    run_pytest(source, [originals[name] for name in drops], results_file, "arrayd", 0, log, options.build)
    with results_file.open() as lines:
        passed = {one["raw"] for one in judge.read_results(lines) if one["outcome"] == "passed"}
    for name in drops:
        if originals[name] in passed:
            print(f"passes when it runs by itself: {name}")
    return [name for name in drops if originals[name] not in passed]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=TOP / "build/release", type=pathlib.Path)
    parser.add_argument("--jobs", default=min(os.cpu_count(), 8), type=int, help="processes with tests and servers")
    parser.add_argument("--update", action="store_true", help="write what fails now to failures.txt")
    parser.add_argument("--reuse", action="store_true", help="judge the results of the last run again")
    parser.add_argument("folder", nargs="*", help="part of its name; without any all, and the page is written")
    options = parser.parse_args()
    options.build = options.build.resolve()
    source_of = tomllib.loads(RULES.read_text())["source"]
    cache = options.build.parent / "conformance"
    try:
        source = fetch.tests_of(source_of, cache)
    except fetch.NotFetched as error:
        print(f"conformance: there are no tests to run: {error}", file=sys.stderr)
        return 2
    rules = judge.Rules(RULES.read_text())
    baseline = judge.Baseline(BASELINE.read_text().splitlines() if BASELINE.exists() else [])
    folders = [folder for folder in folders_of(source / "tests")
               if not options.folder or any(part in folder for part in options.folder)]
    work = cache / "results"
    work.mkdir(exist_ok=True)
    begin = time.monotonic()
    results, broken = run_folders(options, source, work, folders, "arrayd")
    cupys = None
    if has_cupy():
        theirs, more = run_folders(options, source, work, folders, "cupy")
        cupys, broken = {one["id"]: one["outcome"] for one in theirs}, broken + more
    took = work / "seconds"
    if not options.reuse and not options.folder:
        took.write_text(str(time.monotonic() - begin))
    seconds = float(took.read_text()) if took.exists() else 0
    return conclude(options, source_of, source, work, rules, baseline, results, cupys, broken, seconds)


def conclude(options, source_of, source, work, rules, baseline, results, cupys, broken, seconds):
    """Judge, compare, write; the exit status."""
    rows, sums = judge.count_rows(results, rules, cupys)
    undeclared = [one for one in results if one["outcome"] == "failed" and rules.judge(one) is None]
    drops, gains = baseline.compare(results)
    drops = settle(results, drops, source, work, options)
    if not options.folder and not broken:
        about = about_run(source_of, seconds, options.jobs, cupys is not None)
        PAGE.write_text(report.write_page(about, rows, sums, rules, results))
        for rule in rules.unused():
            print(f"a rule that fits no failing test any more: {rule['class']}: {rule['why']}")
        if options.update:
            failing = [one["id"] for one in results if one["outcome"] == "failed"]
            ran = [one["id"] for one in results if one["outcome"] in ("passed", "failed")]
            BASELINE.write_text("".join(line + "\n" for line in [
                "# The tests of CuPy that fail on arrayd; run.py --update writes it. `::*`: all below that run.",
                *judge.collapse_ids(failing, ran)]))
            drops, gains = [], []
    for one in undeclared:
        print(f"undeclared: {one['id']}: {one['cause'].splitlines()[0] if one['cause'] else ''}")
    for title, names in (("fails, and is not in failures.txt", drops), ("passes, and is in failures.txt", gains)):
        for name in names:
            print(f"{title}: {name}")
    for line in broken:
        print(line)
    if not results:
        print("no tests were run")
        return 1
    total = sums[-1]
    print(f"{total.collected} collected, {total.passed} passed, {total.failed} failed, "
          f"{sum(total.apart.values())} not counted: {report.percent(total.score)}; {len(drops)} drops, "
          f"{len(gains)} gains, {len(undeclared)} undeclared")
    return int(bool(undeclared or drops or broken))


if __name__ == "__main__":
    sys.exit(main())
