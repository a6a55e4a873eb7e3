"""Measure functions of SciPy and numpy.linalg on the CPU backend beside those, one thread each: functions.py [--build build/release]
[--markdown PAGE]. Figures are processor time, as in fft.py, the median of several rounds in turn."""
import argparse
import datetime
import importlib
import itertools
import os
import pathlib
import statistics
import tempfile
import time

import numpy
import scipy
import scipy.sparse

import bench
from fft import TOP, worker_time

BEGIN, END = "<!-- functions: begin -->", "<!-- functions: end -->"
ROUNDS = 7


def random_matrix(generator, rows, each):
    """A sparse matrix with so many entries in each row, at random."""
    places = generator.integers(0, rows, (2, rows * each))
    return scipy.sparse.csr_matrix((numpy.ones(rows * each), places), shape=(rows, rows))


def list_cases():
    """Yield the title, the module, a function of the module and the operands, and these."""
    generator = numpy.random.default_rng(0)
    image, small = generator.random((2048, 2048)), generator.random((512, 512))
    wave = generator.standard_normal(1 << 20)
    for part in 0.45, 0.8:
        yield f"label of 2048^2, {1 - part:.0%} true", "ndimage", lambda m, a: m.label(a), [image > part]
    yield "label of 128^3, 30% true", "ndimage", lambda m, a: m.label(a), [generator.random((128,) * 3) > 0.7]
    yield "gaussian_filter of 2048^2, sigma 2", "ndimage", lambda m, a: m.gaussian_filter(a, 2), [image]
    yield "median_filter 3x3 of 512^2", "ndimage", lambda m, a: m.median_filter(a, 3), [small]
    yield "map_coordinates of 2^20 points, order 1", "ndimage", lambda m, a, c: m.map_coordinates(a, c, order=1), [
        image, generator.uniform(0, 2047, (2, 1 << 20))]
    yield "map_coordinates of 2^18 points, order 3", "ndimage", lambda m, a, c: m.map_coordinates(a, c), [
        image, generator.uniform(0, 2047, (2, 1 << 18))]
    yield "zoom of 512^2 by 2, order 3", "ndimage", lambda m, a: m.zoom(a, 2), [small]
    for name, low, high in ("erf", -3, 3), ("gammaln", 0.5, 30):
        for dtype in "float32", "float64":
            yield f"{name} of 2^20 {dtype}", "special", lambda m, a, name=name: getattr(m, name)(a), [
                generator.uniform(low, high, 1 << 20).astype(dtype)]
    yield "betainc of 2^16 float64", "special", lambda m, a, b, x: m.betainc(a, b, x), [
        generator.uniform(0.5, 20, 1 << 16), generator.uniform(0.5, 20, 1 << 16), generator.random(1 << 16)]
    yield "sum_labels of 1024^2, 50 labels", "ndimage", lambda m, a, labels: m.sum_labels(a, labels, numpy.arange(1, 50)), [
        generator.random((1024, 1024)), generator.integers(0, 50, (1024, 1024))]
    yield "pdist of 1000 points of 8", "spatial.distance", lambda m, a: m.pdist(a), [generator.random((1000, 8))]
    yield "cdist of 1000 and 1000 points of 8", "spatial.distance", lambda m, a, b: m.cdist(a, b), [
        generator.random((1000, 8)), generator.random((1000, 8))]
    yield "sosfilt of 2^20, 2 sections", "signal", lambda m, a, x: m.sosfilt(a, x), [
        numpy.array([[0.02, 0.04, 0.02, 1, -1.48, 0.56]] * 2), wave]
    yield "lfilter of 2^20, order 2", "signal", lambda m, b, a, x: m.lfilter(b, a, x), [
        numpy.array([0.02, 0.04, 0.02]), numpy.array([1, -1.48, 0.56]), wave]
    yield "fftconvolve of 2^20 and 4097", "signal", lambda m, a, b: m.fftconvolve(a, b), [wave, numpy.hanning(4097)]
    diagonals = scipy.sparse.diags([1.0, -4.0, 1.0], [-300, 0, 1], (1 << 17, 1 << 17), format="csr")
    for title, a in (("3 diagonals of 2^17", diagonals), ("10 a row, 20,000 rows", random_matrix(generator, 20_000, 10)),
                     ("100 a row, 2,000 rows", random_matrix(generator, 2000, 100))):
        yield f"sparse product, {title}", "sparse", multiply_and_sort, [a]


def list_matrices():
    """Cases of many small matrices, as list_cases has them."""
    generator = numpy.random.default_rng(1)
    for name, sizes in (("cholesky", (2, 4, 16)), ("det", (2, 4, 16)), ("slogdet", (8,)), ("solve", (4, 16)), ("inv", (4,)),
                        ("eigh", (4, 32)), ("svd", (4, 32)), ("qr", (4, 32))):
        for n in sizes:
            a = generator.standard_normal((1000, n, n))
            a = a @ a.swapaxes(1, 2) + numpy.eye(n)
            yield f"{name} of 1000 of {n} x {n}", "numpy.linalg", lambda m, *a, name=name: getattr(m, name)(*a), [a] * (
                1 + (name == "solve"))


def find_modules(name):
    """Ours, and theirs."""
    if name.startswith("numpy."):
        return [importlib.import_module(one) for one in (name.replace("numpy", "arrayd"), name)]
    return [importlib.import_module(f"{library}.{name}") for library in ("arrayd.scipy", "scipy")]


def multiply_and_sort(_, a):
    """The product with sorted indices, which arrayd's are anyway."""
    c = a @ a
    c.sort_indices()
    return c


def measure_case(arrayd, server, module, function, operands):
    """Seconds of the function by arrayd and by SciPy."""
    ours, theirs = find_modules(module)
    remote = [ours.csr_matrix(x) if scipy.sparse.issparse(x) else arrayd.asarray(x) for x in operands]
    rounds = []
    for _ in range(1 + ROUNDS):
        begin = worker_time(server)
        result = function(ours, *remote)
        arrayd.sync()
        taken = worker_time(server) - begin
        begin = time.thread_time_ns()
        function(theirs, *operands)
        rounds.append((taken / 1e9, (time.thread_time_ns() - begin) / 1e9))
        del result
    return [statistics.median(column) for column in zip(*rounds[1:])]


def format_table(rows):
    """The table of the page."""
    lines = [f"{datetime.date.today()}, {bench.processor()}, {os.cpu_count()} processors, NumPy {numpy.__version__}, "
             f"SciPy {scipy.__version__}; milliseconds of processor time.", "", "| function | arrayd | SciPy or NumPy | ratio |",
             "| --- | ---: | ---: | ---: |"]
    return "\n".join(lines + [f"| {title} | {bench.cell(a * 1e3)} | {bench.cell(b * 1e3)} | {a / b:.2f} |" for title, a, b in rows])


def main():
    """Print the figures as they come, and write the table where a page is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--only", default="", help="a part of the cases' titles")
    options = parser.parse_args()
    build = options.build.resolve()
    bench.use(build)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        server = bench.start_server(build / "bin/arrayd", f"{folder}/arrayd.sock", options=("--threads=1",))
        try:
            import arrayd
            for title, module, function, operands in itertools.chain(list_cases(), list_matrices()):
                if options.only not in title:
                    continue
                rows.append((title, *measure_case(arrayd, server.pid, module, function, operands)))
                print(f"{title:<44}{rows[-1][1] * 1e3:>9.2f} ms{rows[-1][2] * 1e3:>9.2f} ms{rows[-1][1] / rows[-1][2]:>7.2f}", flush=True)
        finally:
            server.terminate()
            server.wait(timeout=20)
    if options.markdown:
        bench.replace(options.markdown, BEGIN, END, format_table(rows))


if __name__ == "__main__":
    main()
