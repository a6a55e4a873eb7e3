"""CuPy's own tests on arrayd: run.py [--build build/release] [--update] [folder ...], such as core_tests.

Where CuPy runs, too, its tests run on it as well. With ARRAYD_TEST_BACKEND=cuda the page, the baseline and the results
are those of that backend. --resume goes on with what an earlier run, such as one that was stopped, has left.

Exit status: 0; 1 when a test fails that failures.txt does not list or no rule has a class for; 2 when the tests are not
to be had.
"""
import argparse
import collections
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import resource
import shutil
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
BACKEND = os.environ.get("ARRAYD_TEST_BACKEND", "cpu")
_SUFFIX = "" if BACKEND == "cpu" else f"-{BACKEND}"
RULES, BASELINE = HERE / "rules.toml", HERE / f"failures{_SUFFIX}.txt"
PAGE = TOP / "docs" / f"conformance{_SUFFIX}.md"
LIMIT = 60  # seconds for a test
MEMORY = "2G"  # of a server
WHOLE = 5400  # for all of them
# NumPy's and SciPy's BLAS in each process: threads of several processes that wait for each other by spinning take the
# processors from all, up to forty times what a small matrix needs.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# Plugins that none of the tests needs, which take a sixth of the time of short ones.
WITHOUT = [word for name in ("hypothesispytest", "anyio", "logging") for word in ("-p", "no:" + name)]
AGAIN = 200  # drops that are run once more at most, by themselves: a drop fails twice


def folders_of(tests):
    """The folders with tests, one for each row of the table."""
    found = {judge.folder_of(str(path.relative_to(tests))) for top in ("cupy_tests", "cupyx_tests")
             for path in (tests / top).rglob("test_*.py")}
    return sorted(found)


def paths_of(tests, folder, folders):
    """Return what pytest is given for a row: the folder, or its own files where folders below are rows of their own."""
    if any(other.startswith(folder + "/") for other in folders):
        return sorted((tests / folder).glob("test_*.py"))
    return [tests / folder]


def run_pytest(source, paths, results, under, jobs, log, options):
    """Run tests, except those whose ids options.done has; the plugin appends what comes of each to the file results."""
    build = options.build
    ours = ("ARRAYD_URL", "MAKE", "MFLAGS")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    path = [str(build / "python"), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment.update(PYTHONPATH=os.pathsep.join(path), ARRAYD_BUILD=str(build),
                       ARRAYD_CONFORMANCE_RESULTS=str(results), ARRAYD_CONFORMANCE_UNDER=under,
                       ARRAYD_CONFORMANCE_MEMORY=MEMORY, ARRAYD_CONFORMANCE_DONE=str(options.done),
                       ARRAYD_KERNELS_CACHE=str(build / "kernels"), PYTHONDONTWRITEBYTECODE="1", **ONE_THREAD)
    command = [sys.executable, "-m", "pytest", "-c", str(source / "pyproject.toml"), "-p", "stand_in", "-p",
               "no:cacheprovider", *WITHOUT, "-q", "--tb=no", "--continue-on-collection-errors", f"--timeout={LIMIT}", "-m",
               "not slow", *(["-n", str(jobs)] if jobs else []), *map(str, paths)]
    with tempfile.TemporaryDirectory(prefix="t", ignore_cleanup_errors=True) as folder, open(log, "w") as out:
        process = subprocess.Popen(command, cwd=source, env={**environment, "TMPDIR": folder}, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait(options.seconds)
        except subprocess.TimeoutExpired:
            return "time-out"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # what a broken test has left running
            except ProcessLookupError:
                pass
            process.wait()


def processor_seconds():
    """Return what all processes that have ended took of the processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def add_times(path, under, options, *seconds):
    """Keep what a run of all folders took, wall and processors; one that goes on adds to what came before."""
    if options.folder:
        return
    times = json.loads(path.read_text()) if path.exists() else {}
    before = times.get(under, [0, 0]) if options.resume else [0, 0]
    times[under] = [old + new for old, new in zip(before, seconds)]
    path.write_text(json.dumps(times))


def keep_results(path, folders):
    """Drop from the file of results what it has of these folders, which are to run anew."""
    kept = [line for line in path.read_text().splitlines(keepends=True)
            if judge.folder_of(judge.normal_id(json.loads(line)["id"])) not in folders] if path.exists() else []
    path.write_text("".join(kept))


def print_folders(results, under):
    """A line for each folder; the seconds are those of all its processes."""
    rows = collections.defaultdict(list)
    for one in results:
        rows[judge.folder_of(one["id"])].append(one)
    for folder, of_folder in sorted(rows.items()):
        passed = sum(one["outcome"] == "passed" for one in of_folder)
        print(f"{folder:<44} {under:<7} {len(of_folder):6} tests {passed:6} passed "
              f"{sum(one['seconds'] for one in of_folder):7.1f} s", flush=True)


def run_folders(options, source, work, folders, under):
    """The results of the folders by one run of pytest, and why it broke off, if it did.

    The file of results also has those of other folders, from earlier runs.
    """
    broken, all_folders = [], folders_of(source / "tests")
    name = under if under == "cupy" else under + _SUFFIX
    results, log = work / f"{name}.jsonl", work / f"{name}.log"
    if not options.reuse:
        keep_results(results, [] if options.resume else folders)
        paths = [path for folder in folders for path in paths_of(source / "tests", folder, all_folders)]
        options.done.write_text(json.dumps([json.loads(line)["id"] for line in results.open()]))
        begin = time.monotonic(), processor_seconds()
        status = run_pytest(source, paths, results, under, options.jobs, log, options)
        add_times(work / f"times{_SUFFIX}.json", under, options,
                  time.monotonic() - begin[0], processor_seconds() - begin[1])
        if status not in (0, 1, 5):  # all passed, some failed, none were there
            broken.append(f"under {under} pytest ended with {status}, see {log}")
    with results.open() as lines:
        found = [one for one in judge.read_results(lines) if judge.folder_of(one["id"]) in folders]
    print_folders(found, under)
    return found, broken


def has_cupy():
    """Tell whether CuPy itself can run here."""
    code = "import cupy; assert cupy.cuda.runtime.getDeviceCount() and cupy.arange(3).sum() == 3"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def describe_machine():
    model = next((line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{model}, {os.cpu_count()} processors, {gigabytes:.0f} GiB{describe_gpu()}; the {BACKEND.upper()} backend"


def describe_gpu():
    if BACKEND != "cuda" or not shutil.which("nvidia-smi"):
        return ""
    listed = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
    return ", " + listed.stdout.partition("\n")[0]


def about_run(source, times, jobs, reached):
    """The page's head. reached: how many of the tests CuPy itself has run; None: it cannot run here."""
    names = ("numpy", "scipy", "pytest")
    took = ", ".join(f"{'CuPy' if under == 'cupy' else under} {wall:.0f} s ({processors:.0f} s of the processors)"
                     for under, (wall, processors) in sorted(times.items())) or "several runs, one for some folders each"
    text = (f"CuPy itself ran {reached} of them there, too: what it does not pass is not counted, and its own score stands "
            "beside.\n" if reached is not None else
            "CuPy itself could not run there, so nothing says which of the tests it would pass.\n")
    return {"version": source["version"], "sha256": source["sha256"], "date": datetime.date.today().isoformat(),
            "machine": describe_machine(), "took": took, "jobs": jobs, "oracle": text,
            "software": f"Python {platform.python_version()}, " + ", ".join(
                f"{name} {importlib.metadata.version(name)}" for name in names),
            "server": MEMORY, "limit": LIMIT, "baseline": BASELINE.name}


def settle(results, drops, source, work, options):
    """The drops that fail once more when they run by themselves."""
    if not drops or len(drops) > AGAIN or options.reuse:
        return drops
    originals = {one["id"]: one["raw"] for one in results}
    results_file, log = work / "again.jsonl", work / "again.log"
    results_file.unlink(missing_ok=True)
    results_file.touch()
    options.done.write_text("[]")
    run_pytest(source, [originals[name] for name in drops], results_file, "arrayd", 0, log, options)
    with results_file.open() as lines:
        passed = {one["raw"] for one in judge.read_results(lines) if one["outcome"] == "passed"}
    for name in drops:
        if originals[name] in passed:
            print(f"passes when it runs by itself: {name}")
    return [name for name in drops if originals[name] not in passed]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=TOP / "build/release", type=pathlib.Path)
    parser.add_argument("--jobs", default=min(os.cpu_count(), 16), type=int, help="processes with tests and servers")
    parser.add_argument("--update", action="store_true", help="write what fails now, of the folders that run, to failures.txt")
    parser.add_argument("--resume", action="store_true", help="run what the last run has left, and judge all")
    parser.add_argument("--check", action="store_true", help="write no page, and pass where the tests are not to be had")
    parser.add_argument("--seconds", default=WHOLE, type=int, help="for all tests of a package; the rest is left")
    parser.add_argument("--reuse", action="store_true", help="judge the results of the last run again")
    parser.add_argument("--sources", action="append", default=[TOP / "build/fetched"], type=pathlib.Path,
                        help="folder in which the source distribution (cupy-VERSION.tar.gz) lies already, for machines without "
                        "a network; beside build/fetched and its folder archives")
    parser.add_argument("folder", nargs="*", help="part of its name; without any all, and the page is written")
    options = parser.parse_args()
    options.build = options.build.resolve()
    source_of = tomllib.loads(RULES.read_text())["source"]
    cache = options.build.parent / "conformance"
    try:
        source = fetch.tests_of(source_of, cache, options.sources)
    except fetch.NotFetched as error:
        print(f"conformance: there are no tests to run: {error}", file=sys.stderr)
        return 0 if options.check else 2
    rules = judge.Rules(RULES.read_text())
    baseline = judge.Baseline(BASELINE.read_text().splitlines() if BASELINE.exists() else [])
    folders = [folder for folder in folders_of(source / "tests")
               if not options.folder or any(part in folder for part in options.folder)]
    work = cache / "results"
    work.mkdir(exist_ok=True)
    options.done = work / f"done{_SUFFIX}"
    results, broken = run_folders(options, source, work, folders, "arrayd")
    cupys = None
    if has_cupy():
        theirs, more = run_folders(options, source, work, folders, "cupy")
        cupys, broken = {one["id"]: one["outcome"] for one in theirs}, broken + more
    return conclude(options, source_of, source, work, rules, baseline, folders, results, cupys, broken)


def conclude(options, source_of, source, work, rules, baseline, folders, results, cupys, broken):
    """Judge, compare, write; the exit status."""
    rows, sums = judge.count_rows(results, rules, cupys)
    rows = sorted([*rows, *map(judge.Row, set(folders) - {row.name for row in rows})], key=lambda row: row.name)
    undeclared = [one for one in results if one["outcome"] == "failed" and rules.judge(one) is None]
    drops, gains = baseline.compare(results)
    drops = settle(results, drops, source, work, options)
    if not options.folder and not broken and not options.check:
        path = work / f"times{_SUFFIX}.json"
        times = json.loads(path.read_text()) if path.exists() else {}
        reached = None if cupys is None else sum(one["id"] in cupys for one in results)
        about = about_run(source_of, times, options.jobs, reached)
        PAGE.write_text(report.write_page(about, rows, sums, rules, results))
        for rule in rules.unused():
            print(f"a rule that fits no failing test any more: {rule['class']}: {rule['why']}")
    if options.update and not broken:
        failing = [one["id"] for one in results if one["outcome"] == "failed"]
        ran = [one["id"] for one in results if one["outcome"] in ("passed", "failed")]
        judged = {judge.folder_of(one["id"]) for one in results}
        of_others = [line for line in baseline.lines if judge.folder_of(line) not in judged]
        BASELINE.write_text("".join(line + "\n" for line in [
            "# The tests of CuPy that fail on arrayd; run.py --update writes it. `::*`: all below that run.",
            *sorted([*of_others, *judge.collapse_ids(failing, ran)])]))
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
