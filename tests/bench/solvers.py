"""Measure iterative solvers of sparse systems beside SciPy: solvers.py [--build build/release] [--processors 1]
[--markdown PAGE]. Client and server share the processors. Figures are the least wall-clock time of several rounds in turn."""
import argparse
import datetime
import os
import pathlib
import tempfile
import time

import numpy
import scipy
import scipy.sparse.linalg

import bench
from fft import TOP

BEGIN, END = "<!-- solvers: begin -->", "<!-- solvers: end -->"
SOLVERS, SIZES, ROUNDS = ("cg", "cgs", "bicgstab", "gmres", "minres"), (100, 300, 1000, 10_000), 60


def make_system(name, n):
    """A grid's matrix of five diagonals, symmetric for those that ask for it, and a right side."""
    side = int(n ** 0.5)
    one = scipy.sparse.diags([-1.0, 2.1, -1.0 if name in ("cg", "minres") else -0.8], [-1, 0, 1], (side, side))
    a = scipy.sparse.kronsum(one, one, format="csr")
    return a, numpy.random.default_rng(n).standard_normal(a.shape[0])


def count_iterations(solve, a, b, name):
    """How many iterations the callback is told of, and the info."""
    calls = []
    options = {"callback_type": "pr_norm"} if name == "gmres" else {}
    info = solve(a, b, callback=lambda _: calls.append(1), **options)[1]
    return len(calls), info


def measure_case(arrayd, name, n):
    """Iterations and seconds of a solution, by arrayd and by SciPy."""
    a, b = make_system(name, n)
    ours, theirs = getattr(arrayd.scipy.sparse.linalg, name), getattr(scipy.sparse.linalg, name)
    remote = arrayd.scipy.sparse.csr_matrix(a), arrayd.asarray(b)
    counts = count_iterations(ours, *remote, name), count_iterations(theirs, a, b, name)
    rounds = []
    for _ in range(1 + ROUNDS):
        begin = time.perf_counter()
        ours(*remote)[0].get()
        middle = time.perf_counter()
        theirs(a, b)
        rounds.append((middle - begin, time.perf_counter() - middle))
    return a.shape[0], counts, [min(column) for column in zip(*rounds[1:])]


def format_row(name, n, counts, times):
    iterations = [str(count) + ("" if info == 0 else f" ({info})") for count, info in counts]
    return f"| {name} | {n} | {' | '.join(iterations)} | {bench.cell(times[0] * 1e3)} | {bench.cell(times[1] * 1e3)} | " \
           f"{times[0] / times[1]:.2f} |"


def main():
    """Print the rows as they come, and write the table where a page is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--processors", type=int, default=1)
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.processors])
    build = options.build.resolve()
    bench.use(build)
    lines = [f"{datetime.date.today()}, {bench.processor()}, {options.processors} of {os.cpu_count()} processors, load "
             f"{os.getloadavg()[0]:.0f}, NumPy {numpy.__version__}, SciPy {scipy.__version__}; milliseconds.", "",
             "| solver | unknowns | iterations | SciPy's | arrayd | SciPy | ratio |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    with tempfile.TemporaryDirectory() as folder:
        server = bench.start_server(build / "bin/arrayd", f"{folder}/arrayd.sock", options=("--threads=1",))
        try:
            import arrayd
            import arrayd.scipy.sparse.linalg
            for name in SOLVERS:
                for n in SIZES:
                    lines.append(format_row(name, *measure_case(arrayd, name, n)))
                    print(lines[-1], flush=True)
        finally:
            server.terminate()
            server.wait(timeout=20)
    if options.markdown:
        bench.replace(options.markdown, BEGIN, END, "\n".join(lines))


if __name__ == "__main__":
    main()
