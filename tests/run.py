"""Run the tests and count them: run.py [--build build/release] [--sample N] [suite ...].

The last line is "N passed, N failed", and with a sample the seed that chose it. --measure reads the reports of a run
without one and writes tests/long.txt from them.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

from sampling import LONG, read_long

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent
SUITES = ["unit", "native", "wire", "ops", "api", "late", "fault", "build"]  # in this order; gpu only when asked for
# The programs of tests/unit that take real kernels, compilers and servers. The others are the suite unit, which takes
# seconds.
NATIVE = {"kernels", "service", "embedded"}
# The ops suite again, on a backend that completes operations later than it is asked to, as a GPU does, and has two devices.
LATE = ["core_sessions", "core_index", "indexing", "errors", "reductions", "sorting", "threads", "roundtrips", "cuda",
        "windows", "decompositions", "fft", "priority", "modules", "fusion", "fusion_scans", "sharing",
        "sharing_kernels"]
# Suites of which no test depends on what else the machine does: some of their tests run at once.
AT_ONCE = {"wire", "ops", "api", "late", "fault"}
WAITING = {"fault"}  # Suites of which many tests wait, so that more of them run at once than there are processors.
SAMPLED = {"wire", "ops", "api", "late", "fault"}  # of which a sample leaves something out
REST = {"build"}  # what needs all that `make all` builds, which `make test` does not: none of it is in a sample
AGAIN = {"native/kernels"}  # of which the rest has more: kernels for the instruction sets that `make test` leaves out
SHORT = 0.1  # seconds for a test of which it leaves nothing out
LONGEST = 4 * 3600  # seconds for one command of a suite, on the busiest machine; each test has a limit of its own
NOTHING_TO_RUN = 5  # pytest's exit status where the rest of a suite is nothing
UNITS = 5  # seconds of processor time that all of the suite unit may take: it is run after every change
# The words with which a sanitizer begins a report. Criterion does not look at the exit status of a test that has passed.
SANITIZER_REPORT = re.compile(r"ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|:[0-9]+: runtime error: ")
HANGS = 900  # seconds for one test: several times what it waits for one thing (patience.py)
# For NumPy's BLAS in every process: threads of several processes that wait for each other by spinning take up to forty
# times the processor time that small matrices need.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
# A user's kernel that has faulted leaves its fiber from within the handler of the signal, and never returns to it. The
# thread sanitizer takes all that comes after for a part of the handler. Backends of tests that crash must end by the signal
# that tests wait for.
TSAN = "halt_on_error=1 die_after_fork=0 report_signal_unsafe=0 report_thread_leaks=0 handle_segv=0"


def commands(suite, build, report, options):
    """Yield the commands of a suite: (name, command, report file, additions to the environment)."""
    def pytest(name, paths, **environment):
        xml = report / f"{name}.xml"
        more = ["-n", str(min(os.cpu_count() * (1 + (name in WAITING)), 4)), "--dist=worksteal"] if name in AT_ONCE else []
        if options.sample and suite in SAMPLED:
            more += ["-p", "tests.sampling", f"--sample={options.sample}", f"--sample-seed={name} {options.seed}",
                     *(["--sample-rest"] if options.rest else [])]
        return name, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={HANGS}",
                      f"--rootdir={HERE}", f"--junitxml={xml}", *more, *paths], xml, environment

    if suite in ("unit", "native"):
        for program in sorted(p for p in (build / "tests").glob("*") if p.is_file() and os.access(p, os.X_OK)):
            if (program.name in NATIVE) != (suite == "native"):
                continue
            if options.rest and f"{suite}/{program.name}" not in AGAIN:
                continue
            xml = report / f"{suite}-{program.name}.xml"
            yield f"{suite}/{program.name}", [program, f"--xml={xml}", f"--timeout={HANGS}"], xml, {}
    elif options.sample and suite in REST and not options.rest or options.rest and suite not in SAMPLED | REST:
        return
    elif suite == "late":
        yield pytest("late", [HERE / "ops" / f"test_{name}.py" for name in LATE], ARRAYD_CPU_LATE="1", ARRAYD_CPU_DEVICES="2")
    elif suite == "gpu":
        yield pytest("gpu-ops", [HERE / "ops"], ARRAYD_TEST_BACKEND="cuda")
        yield pytest("gpu", [HERE / "gpu"], ARRAYD_TEST_BACKEND="cuda")
    elif (HERE / suite).is_dir() and any((HERE / suite).glob("test_*.py")):
        yield pytest(suite, [HERE / suite])


def count(xml):
    """Count passed, failed and skipped in a JUnit report (pytest's and Criterion's dialects)."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(xml).iter("testcase"):
        tags = {child.tag for child in case}
        if tags & {"failure", "error"} or case.get("status") in ("FAILED", "ERRORED"):
            failed += 1
        elif "skipped" in tags or case.get("status") == "SKIPPED":
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def watch(process, log):
    """Wait for a process; on a terminal, show how far pytest says in its log that it is. Its exit status."""
    end = time.monotonic() + LONGEST
    while sys.stdout.isatty() and time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(1)
        told = re.findall(r"\[ *(\d+)%\]", log.read_text(errors="replace")[-1000:])
        if told:
            print(f"{told[-1]:>3} %\b\b\b\b\b", end="", flush=True)
    return process.wait(max(0, end - time.monotonic()))


def find_report(log):
    """The line of a log at which a sanitizer's first report begins. None: there is no report."""
    with open(log, errors="replace") as lines:
        return next((i for i, line in enumerate(lines) if SANITIZER_REPORT.search(line)), None)


def run(name, command, xml, log, environment):
    """Run one command; its counts. One failure is counted where no test failed, but the run ended badly or a sanitizer
    reported something.
    """
    xml.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="t", ignore_cleanup_errors=True) as folder, open(log, "wb") as out:
        os.chmod(folder, 0o1777)  # tests are other users as well
        environment = {**environment, "TMPDIR": folder}
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, env=environment, cwd=TOP, start_new_session=True)
        try:
            status = watch(process, log)
        except subprocess.TimeoutExpired:
            status = "time-out"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what a broken test has left running
            process.wait()
    try:
        passed, failed, skipped = count(xml)
    except (OSError, ElementTree.ParseError):
        passed, failed, skipped = 0, 0, 0
    if not failed and (status not in (0, NOTHING_TO_RUN) or find_report(log) is not None):
        failed = 1
    return passed, failed, skipped, status


def show_log(log, status):
    """Print what is worth reading of a failed command's log."""
    lines, report = log.read_text(errors="replace").splitlines(), find_report(log)
    what, part = ("the end of", lines[-60:]) if report is None else \
        ("a sanitizer's first report, in", lines[report:][:60])
    print(f"---- status {status}; {what} {os.path.relpath(log, TOP)}:")
    print("\n".join(part), flush=True)


def count_seconds():
    """Processor time of all that has been run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report_units(seconds):
    """Say what the suite unit took. Processor time hardly depends on what else the machine does, but it is no test."""
    print(f"unit, in all: {seconds:.1f} s of processor time{'' if seconds <= UNITS else f', MORE THAN {UNITS}: profile it'}", flush=True)


def seed_of_commit():
    """A sample changes with each commit, or, where there is no repository, with each day."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        return subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=TOP, capture_output=True, text=True,
                              check=True).stdout.strip()
    return time.strftime("%Y-%m-%d", time.gmtime())


def write_long(report):
    """Write tests/long.txt from the reports of the suites that there are. Lines of other suites stay."""
    seconds = read_long() if LONG.exists() else {}
    for suite in sorted(SAMPLED - {"late"}):  # late has the tests of ops
        cases = collections.defaultdict(list)
        with contextlib.suppress(FileNotFoundError):
            for case in ElementTree.parse(report / f"{suite}.xml").iter("testcase"):
                name = f"{case.get('classname').replace('.', '/')}.py::{case.get('name').split('[')[0]}"
                cases[name].append(float(case.get("time")))
        seconds = {name: value for name, value in seconds.items() if not cases or not name.startswith(f"{suite}/")}
        seconds.update((name, sum(values) / len(values)) for name, values in cases.items())
    rows = "".join(f"{value:.1f} {name}\n" for name, value in sorted(seconds.items()) if value >= SHORT)
    LONG.write_text("# Seconds that a case of a test takes: tests/run.py --measure writes this.\n" + rows)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--sample", type=int, default=0, help="of the tests that take long, one part of so many")
    parser.add_argument("--seed", help="which part; otherwise it is the commit's")
    parser.add_argument("--rest", action="store_true", help="what the sample leaves out")
    parser.add_argument("--measure", action="store_true", help="run nothing, write tests/long.txt")
    parser.add_argument("suite", nargs="*", default=SUITES)
    options = parser.parse_args()
    options.seed = options.seed or seed_of_commit()
    if options.rest and not options.sample:
        parser.error("--rest: of which sample? Give --sample, too")
    return options


def main():
    options = parse_options()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    build = options.build.resolve()
    report = build / "report"
    report.mkdir(parents=True, exist_ok=True)
    if options.measure:
        write_long(report)
        return 0
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ARRAYD_", "MAKE", "MFLAGS"))}
    package = build.parent / "release" if build.name in ("asan", "tsan") else build  # Python cannot load a sanitizer's
    environment.update(ARRAYD_BUILD=str(build), ARRAYD_TEST_BIN=str(build / "bin"), PYTHONPATH=str(package / "python"),
                       ARRAYD_KERNELS_CACHE=str(build / "kernels"), PYTHONUNBUFFERED="1", ASAN_OPTIONS="detect_leaks=1",
                       UBSAN_OPTIONS="print_stacktrace=1", TSAN_OPTIONS=TSAN, **ONE_THREAD)
    total = [0, 0, 0]
    for suite in options.suite:
        before = count_seconds()
        for name, command, xml, more in commands(suite, build, report, options):
            print(f"{name:<16} ", end="", flush=True)
            begin = time.monotonic()
            log = report / f"{name.replace('/', '-')}.log"
            *counts, status = run(name, command, xml, log, {**environment, **more})
            total = [a + b for a, b in zip(total, counts)]
            print(f"{counts[0]:6} passed {counts[1]:5} failed {counts[2]:5} skipped "
                  f"{time.monotonic() - begin:8.1f} s", flush=True)
            if counts[1]:
                show_log(log, status)
        if suite == "unit":
            report_units(count_seconds() - before)
    skipped = f", {total[2]} skipped" if total[2] else ""
    chosen = f"; {'the rest of ' * options.rest}the sample of --seed={options.seed}" if options.sample else ""
    print(f"{total[0]} passed, {total[1]} failed{skipped}{chosen}")
    return total[1] != 0 or total[0] == 0


if __name__ == "__main__":
    sys.exit(main())
