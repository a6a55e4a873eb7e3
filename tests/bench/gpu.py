"""Measure arrayd on a GPU beside CuPy: gpu.py [--build build/release] [--markdown FILE] [--plot FILE] [--only GROUPS].

Everything of arrayd's runs through its Python client and a real server over a Unix socket, in the same run as the
others, which run inside this process. Random data, warm-up, medians; figures are until the work is complete unless the
row says otherwise. The last column is what arrayd means to reach on an H200.
"""
import argparse
import datetime
import functools
import importlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import bench

N = 1 << 28
BYTES = 4 * N
SLOW = 3  # seconds
BEGIN, END = "<!-- gpu: begin -->", "<!-- gpu: end -->"


def libraries():
    """Return arrayd, and CuPy if it is here."""
    import arrayd
    found = [bench.Library("arrayd", arrayd, arrayd.sync)]
    try:
        import cupy
        found.append(bench.Library("CuPy", cupy, cupy.cuda.Device().synchronize))
    except ImportError:
        pass
    return found


def timed(libs, functions, least=0.15, rounds=5):
    """Median seconds of one of several calls of each library's function, until all are complete. They take turns, so
    that one does not run on a device that the other has made hot. Calls that take longer than SLOW are made twice."""
    def calls(lib, function, count):
        lib.wait()
        begin = time.perf_counter()
        for _ in range(count):
            result = function()
            lib.mark()  # without marks the last of several results that replace each other would do
        lib.wait()
        del result
        return (time.perf_counter() - begin) / count

    both = list(zip(libs, functions))
    for lib, function in both:
        calls(lib, function, 1)
    warm = [calls(lib, function, 1) for lib, function in both]
    if max(warm) > SLOW:
        return warm
    counts = [max(3, int(least / rounds / calls(lib, function, 3))) for lib, function in both]
    taken = [[calls(*pair, count) for pair, count in zip(both, counts)] for _ in range(rounds)]
    return [statistics.median(times) for times in zip(*taken)]


# ---- small operations ----

def chain(xp, x, y):
    return xp.sqrt(x * x + y * y) * 0.5 + xp.sin(x) * xp.exp(-y)


def repeated(lib, function, count=5000):
    """Microseconds of one of many calls, until all are complete; results are kept, else they need not be computed."""
    samples, results = [], [None] * 1000
    begin = time.perf_counter()
    while time.perf_counter() - begin < 1:  # kernels are compiled meanwhile
        for i in range(1000):
            results[i] = function()
        lib.wait()
    for _ in range(5):
        lib.wait()
        begin = time.perf_counter()
        for i in range(count):
            results[i % 1000] = function()
        lib.wait()
        samples.append((time.perf_counter() - begin) / count)
    return statistics.median(samples) * 1e6


def small_rows(libs):
    arrays = [(lib, lib.module.asarray(bench.random(16)), lib.module.asarray(bench.random(16))) for lib in libs]
    yield "`a + b`, 16 float32, until it returns", "us", [bench.returns(lib) for lib in libs], 1.5
    yield "`a + b`, 16 float32, sustained", "us", [repeated(lib, lambda: a + b) for lib, a, b in arrays], 3
    yield "chain of 8 on 16 float32, sustained", "us", [repeated(lib, lambda: chain(lib.module, a, b), 1000)
                                                         for lib, a, b in arrays], 8
    yield "`a[2:8]`", "us", [bench.median_time(lambda: a[2:8]) * 1e6 for _, a, _ in arrays], 0.5
    yield "`a.reshape(4, 4)`", "us", [bench.median_time(lambda: a.reshape(4, 4)) * 1e6 for _, a, _ in arrays], 0.5
    yield "`float(a.sum())`, 16 float32", "us", [bench.median_time(lambda: float(a.sum())) * 1e6
                                                 for _, a, _ in arrays], 20


# ---- large operations ----

def bandwidth_rows(libs):
    x, y = bench.random(N), bench.random(N)

    def prepared(lib, function):
        a, b = lib.module.asarray(x), lib.module.asarray(y)
        out, square = lib.module.empty(N, dtype="float32"), a.reshape(16384, 16384)
        return lambda: function(lib.module, a, b, out, square)

    def row(title, function, moved, goal):
        seconds = timed(libs, [prepared(lib, function) for lib in libs])
        return title, "GB/s", [moved / s / 1e9 for s in seconds], goal

    yield row("add, out=, 2^28 float32", lambda xp, a, b, out, m: xp.add(a, b, out=out), 3 * BYTES, 4100)
    yield row("sum of 2^28 float32", lambda xp, a, b, out, m: a.sum(), BYTES, 4100)
    yield row("sum(axis=0) of 16384^2 float32", lambda xp, a, b, out, m: m.sum(axis=0), BYTES, 4100)
    yield row("sum(axis=1) of 16384^2 float32", lambda xp, a, b, out, m: m.sum(axis=1), BYTES, 4100)
    yield row("transposed copy of 16384^2 float32", lambda xp, a, b, out, m: xp.ascontiguousarray(m.T), 2 * BYTES, 3000)


def time_rows(libs):
    x = bench.random(N)
    index = numpy.random.default_rng(1).integers(0, N, 1 << 26)

    def prepared(lib, function, prepare):
        a = lib.module.asarray(x)
        more = prepare(lib.module, a)
        return lambda: function(lib.module, a, more)

    def row(title, function, goal, prepare=lambda xp, a: None):
        seconds = timed(libs, [prepared(lib, function, prepare) for lib in libs])
        return title, "ms", [s * 1e3 for s in seconds], goal

    yield row("chain of 8 on 2^28 float32", lambda xp, a, b: chain(xp, a, b), 0.80, lambda xp, a: a * 2)
    yield row("cumsum of 2^28 float32", lambda xp, a, _: xp.cumsum(a), 0.65)
    yield row("sort of 2^28 float32", lambda xp, a, _: xp.sort(a), 7.0)
    yield row("`x[i]`, 2^26 random of 2^28 float32", lambda xp, a, i: a[i], 1.9, lambda xp, a: xp.asarray(index))
    yield row("`x[x > 0.5]`, 2^28 float32", lambda xp, a, _: a[a > 0.5], 1.5)
    yield row("uniform, 2^28 float32", lambda xp, a, g: g.random(N, dtype="float32"), 0.35,
              lambda xp, a: xp.random.default_rng(1))
    yield row("normal, 2^28 float32", lambda xp, a, g: g.standard_normal(N, dtype="float32"), 0.55,
              lambda xp, a: xp.random.default_rng(1))
    yield row("FFT of 2^26 complex128", lambda xp, a, z: xp.fft.fft(z), 1.85,
              lambda xp, a: a[:1 << 26].astype("complex128"))
    yield row("solve, 4096 float64", lambda xp, a, m: xp.linalg.solve(m, m[:, :1]), None,
              lambda xp, a: a[:1 << 24].reshape(4096, 4096).astype("float64"))
    yield row("eigvalsh, 2048 float64", lambda xp, a, m: xp.linalg.eigvalsh(m), None,
              lambda xp, a: (lambda m: m + m.T)(a[:1 << 22].reshape(2048, 2048).astype("float64")))


def order_rows(libs):
    """Functions that choose, count or put in order. CuPy has no where= of sums: its array is masked first."""
    x = bench.random(N)
    ours = libs[0].module

    def row(title, function, goal, moved=None, prepare=lambda xp, a: None):
        def prepared(lib):
            a = lib.module.asarray(x)
            more = prepare(lib.module, a)
            return lambda: function(lib.module, a, more)

        seconds = timed(libs, [prepared(lib) for lib in libs])
        return title, "GB/s" if moved else "ms", [moved / s / 1e9 if moved else s * 1e3 for s in seconds], goal

    def masked(xp, a, m):
        return a.sum(where=m) if xp is ours else xp.where(m, a, 0).sum()

    yield row("sum, where= a random mask, 2^28 float32", masked, 3500, 5 * N, lambda xp, a: a * 65536 % 2 > 1)
    yield row("argmax of 2^28 float32", lambda xp, a, _: a.argmax(), 4100, BYTES)
    yield row("histogram of 2^28 float32, 100 bins", lambda xp, a, _: xp.histogram(a, 100), None)
    yield row("the same, range=", lambda xp, a, _: xp.histogram(a, 100, range=(0.0, 1.0)), 0.5)
    yield row("argsort of 2^28 float32", lambda xp, a, _: xp.argsort(a), 8)
    yield row("partition of 2^28 float32", lambda xp, a, _: xp.partition(a, 1000), 0.8)
    yield row("the same, at the middle", lambda xp, a, _: xp.partition(a, N // 2), 0.8)
    yield row("argpartition of 2^28 float32", lambda xp, a, _: xp.argpartition(a, 1000), None)
    yield row("unique of 2^26 int32 below 2^16", lambda xp, a, i: xp.unique(i), None,
              prepare=lambda xp, a: (a[:1 << 26] * 65536).astype("int32"))
    yield row("lexsort of 2 x 2^25 int32", lambda xp, a, i: xp.lexsort(i), None,
              prepare=lambda xp, a: (a[:1 << 26] * 65536).astype("int32").reshape(2, -1))
    for before, after in (("float32", "int8"), ("int64", "float16"), ("bool", "complex64")):
        size = numpy.dtype(before).itemsize + numpy.dtype(after).itemsize
        yield row(f"2^26 {before} to {after}", lambda xp, a, i, to=after: i.astype(to), None, size << 26,
                  lambda xp, a, kind=before: (a[:1 << 26] * 100).astype(kind))


# ---- SciPy's functions ----

def scipy_of(lib, name):
    """The library's module of SciPy's functions of that name."""
    return importlib.import_module({"arrayd": "arrayd.scipy.", "CuPy": "cupyx.scipy."}[lib.name] + name)


def scipy_row(libs, title, name, hosts, function, goal=None):
    """Milliseconds of function(module, *arrays) of each library; of arrayd's alone, where the other's fails."""
    def prepared(lib):
        module, arrays = scipy_of(lib, name), [lib.module.asarray(host) for host in hosts]
        return lambda: function(module, *arrays)

    functions = [prepared(lib) for lib in libs]
    try:
        seconds = timed(libs, functions)
    except Exception as error:
        if len(libs) == 1:
            raise
        print(f"{title}: {error!r}", file=sys.stderr)
        seconds = timed(libs[:1], functions[:1])
    return title, "ms", [s * 1e3 for s in seconds], goal


def image_rows(libs):
    row = functools.partial(scipy_row, libs)
    volume, plane = bench.random((512, 512, 512)), bench.random((8192, 8192))
    where = numpy.random.default_rng(1).uniform(0, 8191, (2, 1 << 26)).astype("float32")
    yield row("gaussian_filter of 512^3 float32, sigma 2", "ndimage", [volume], lambda nd, a: nd.gaussian_filter(a, 2), 1.0)
    yield row("median_filter 3x3 of 8192^2 float32", "ndimage", [plane], lambda nd, a: nd.median_filter(a, 3))
    yield row("label of 8192^2", "ndimage", [plane > 0.45], lambda nd, a: nd.label(a))
    yield row("map_coordinates, order 1, of 2^26 points", "ndimage", [plane, where],
              lambda nd, a, c: nd.map_coordinates(a, c, order=1))


def special_rows(libs):
    row = functools.partial(scipy_row, libs)
    x = bench.random(N)
    yield row("erf of 2^28 float32", "special", [x], lambda sp, a: sp.erf(a))
    yield row("gammaln of 2^28 float32", "special", [x + 0.5], lambda sp, a: sp.gammaln(a))
    yield row("betainc of 2^28 float32", "special", [3 * x + 1, x[::-1] + 2, x], lambda sp, a, b, c: sp.betainc(a, b, c))
    yield row("erf(x) * exp(-x * x), 2^28 float32", "special", [x], lambda sp, a: sp.erf(a) * numpy.exp(-a * a))


def signal_rows(libs):
    row = functools.partial(scipy_row, libs)
    x = numpy.random.default_rng(1).standard_normal(1 << 26)
    kernel = numpy.hanning(4097)
    sections = numpy.array([[0.02, 0.04, 0.02, 1, -1.48, 0.56], [1, 2, 1, 1, -1.61, 0.73], [1, 2, 1, 1, -1.8, 0.9]])
    yield row("lfilter of 2^26 float64, order 2", "signal", [sections[0, :3], sections[0, 3:], x],
              lambda sg, b, a, x: sg.lfilter(b, a, x))
    yield row("sosfilt of 2^26 float64, 3 sections", "signal", [sections, x], lambda sg, sos, x: sg.sosfilt(sos, x))
    yield row("fftconvolve of 2^26 and 4097 float64", "signal", [x, kernel], lambda sg, x, k: sg.fftconvolve(x, k))
    lines, volume = bench.random((1 << 16, 1 << 10)), bench.random((256, 512, 512))
    yield row("dct of 2^16 lines of 2^10 float32", "fft", [lines], lambda ft, a: ft.dct(a))
    yield row("dctn of 256 x 512 x 512 float32", "fft", [volume], lambda ft, a: ft.dctn(a))


def matmul_rows(libs):
    host = bench.random((8192, 8192))

    def prepared(lib):
        a = lib.module.asarray(host)
        return lambda: a @ a

    seconds = timed(libs, [prepared(lib) for lib in libs])
    yield "float32 matmul 8192^3", "TFLOP/s", [2 * 8192**3 / s / 1e12 for s in seconds], 51


# ---- sparse matrices ----

def scattered_matrix(lib, rows, each):
    """A float32 matrix in CSR format with so many entries in each row, in columns all over it."""
    xp = lib.module
    place = xp.arange(rows * each)
    columns = ((place * 7919 + place // each) % rows).astype("int32")
    return scipy_of(lib, "sparse").csr_matrix((xp.ones(rows * each, "float32"), columns, xp.arange(rows + 1, dtype="int32") * each),
                                     shape=(rows, rows))


def banded_matrix(lib, rows, each):
    """A float32 matrix in CSR format with so many entries in each row, around the diagonal."""
    xp = lib.module
    place = xp.arange(rows * each)
    columns = xp.clip(place // each + place % each - each // 2, 0, rows - 1).astype("int32")
    return scipy_of(lib, "sparse").csr_matrix((xp.ones(rows * each, "float32"), columns, xp.arange(rows + 1, dtype="int32") * each),
                                     shape=(rows, rows))


def sparse_rows(libs):
    def row(title, unit, prepare, figure, goal):
        return title, unit, [figure(s) for s in timed(libs, [prepare(lib) for lib in libs])], goal

    for make, rows, each in ((scattered_matrix, 1_000_000, 100), (scattered_matrix, 10_000_000, 10), (banded_matrix, 4_000_000, 25)):
        def product(lib, make=make, rows=rows, each=each):
            a, x = make(lib, rows, each), lib.module.ones(rows, "float32")
            return lambda: a @ x

        moved = 8 * rows * each + 12 * rows  # entries with their columns; pointers, x and y once
        how = make.__name__.split("_")[0]
        yield row(f"CSR @ vector, 10^8 float32, {each} a row, {how}", "GB/s", product, lambda s, n=moved: n / s / 1e9, 3840)

    def panel(lib):
        a, x = scattered_matrix(lib, 1_000_000, 20), lib.module.ones((1_000_000, 16), "float32")
        return lambda: a @ x

    def square(lib):
        a = scipy_of(lib, "sparse").diags([1.0, -4.0, 1.0], [-1024, 0, 1], (1 << 20, 1 << 20), format="csr", dtype="float32")
        return lambda: a @ a

    yield row("CSR @ 16 columns, 2*10^7 float32", "ms", panel, lambda s: s * 1e3, None)
    def union(lib):
        a, b = (scipy_of(lib, "sparse").diags([1.0, 2.0, 1.0], [-k, 0, k], (1 << 20, 1 << 20), format="csr", dtype="float32") for k in (1, 1024))
        return lambda: a + b

    def turned(lib):
        a = scattered_matrix(lib, 1_000_000, 20)
        return a.tocsc

    yield row("CSR @ CSR, 3 diagonals of 2^20", "ms", square, lambda s: s * 1e3, None)
    yield row("CSR + CSR, 3 diagonals of 2^20", "ms", union, lambda s: s * 1e3, None)
    yield row("CSR to CSC, 2*10^7 float32", "ms", turned, lambda s: s * 1e3, None)


# ---- transfers ----

def transfer_rows(libs):
    host = bench.random(1 << 27)
    gigabytes = host.nbytes / 1e9
    yield "NumPy array to device, 512 MiB", "GB/s", [
        gigabytes / s for s in timed(libs, [functools.partial(lib.module.array, host) for lib in libs])], 12
    arrayd = libs[0].module
    pinned = arrayd.empty_pinned(host.shape, "float32")
    pinned[...] = host
    yield "array in a window to device, 512 MiB", "GB/s", [
        gigabytes / timed(libs[:1], [lambda: arrayd.array(pinned)])[0]], 45
    devices = [lib.module.asarray(host) for lib in libs]
    yield "device to NumPy array, 512 MiB", "GB/s", [
        gigabytes / bench.median_time(lambda: lib.module.asnumpy(a), rounds=5) for lib, a in zip(libs, devices)], 45
    small = bench.random(256)
    if len(libs) > 1: # CuPy
        first, again = bench.hand_over_times(arrayd, bench.random(1 << 28), libs[1].module.from_dlpack)
        yield "1 GiB to CuPy by DLPack, first time", "ms", [first], None
        yield "again", "ms", [again], None
        first, again = bench.take_in_times(arrayd, libs[1].module.ones(1 << 28, "float32"))
        yield "1 GiB of CuPy's by DLPack, first time", "ms", [first], None
        yield "again, while it is there", "ms", [again], None
    yield "1 KiB to device", "us", [repeated(lib, lambda: lib.module.array(small), 500) for lib in libs], 14


SWEEP = """
import time
import arrayd as ad
arrays = [ad.full(1 << 27, i, dtype="float32") for i in range(16)]
for _ in range(4):
    ad.sync()
    before, begin = ad.stat(), time.perf_counter()
    for x in arrays:
        x += 1
    ad.sync()
    took, now = time.perf_counter() - begin, ad.stat()
    moved = sum(now[k] - before[k] for k in ("moved_out", "moved_in"))
print(moved / took / 1e9)
"""


def spill_rows(build, folder):
    """Measure on a server of its own, whose device may hold a quarter."""
    url = os.environ["ARRAYD_URL"]
    server = bench.start_server(build / "bin" / "arrayd", f"{folder}/small.sock", "cuda",
                                options=("--memory=2G", "--host-memory=12G"))
    try:
        yield "`x += 1` of 16 x 512 MiB on 2 GiB, out and in", "GB/s", [float(bench.python(SWEEP))], None
    finally:
        os.environ["ARRAYD_URL"] = url
        server.terminate()
        server.wait(timeout=20)


# ---- processes ----

def first_result_rows():
    """Process start to the first result, with the server running."""
    def total(code):
        begin = time.perf_counter()
        bench.python(code)
        return (time.perf_counter() - begin) * 1e3

    ours = "import arrayd as ad; print(float((ad.arange(16, dtype='f4') + 1).sum()))"
    theirs = "import cupy as cp; print(float((cp.arange(16, dtype='f4') + 1).sum()))"
    *figures, numpys = [statistics.median(total(code) for _ in range(5)) for code in (ours, theirs, "import numpy")]
    yield "process start to first result", "ms", figures, 300
    yield "of this `import numpy`", "ms", [numpys], None
    yield "memory of a client above NumPy's", "MiB", [bench.memory_above_numpy()], 10


FLOOD = """
import arrayd as ad, sys
n = int(sys.argv[1])
a = ad.ones((n, n), "float32") / n
print("ready", flush=True)
for _ in range(int(3e13 / (2 * n**3))):
    a @ a
ad.sync()
"""


def beside(n, seconds=4):
    """Return p50 and p99 in us of `float(a.sum())` while another client floods the device with products of n x n."""
    import arrayd
    a = arrayd.asarray(bench.random(16))
    float(a.sum())
    samples = []
    other = subprocess.Popen([sys.executable, "-c", FLOOD, str(n)], stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end and other.poll() is None:
        begin = time.perf_counter()
        float(a.sum())
        samples.append((time.perf_counter() - begin) * 1e6)
    other.kill()
    other.wait()
    samples.sort()
    return samples[len(samples) // 2], samples[int(len(samples) * 0.99)]


def together_rows():
    alone, total, _ = bench.together()
    yield "`a + b` on 16 float32, one process", "1000/s", [alone / 1e3], None
    yield "the same, eight processes, total", "1000/s", [total / 1e3], 400
    for n, goals in ((1024, (30, 45)), (8192, (30, 1500))):
        p50, p99 = beside(n)
        yield f"`float(a.sum())` beside {n}^3 products, p50", "us", [p50], goals[0]
        yield f"`float(a.sum())` beside {n}^3 products, p99", "us", [p99], goals[1]


# ---- the report ----

# Groups of measurements that --only names; "scipy" is all of SciPy's.
GROUPS = {"small": small_rows, "start": lambda libs: first_result_rows(), "together": lambda libs: together_rows(),
          "bandwidth": bandwidth_rows, "time": time_rows, "order": order_rows, "images": image_rows, "special": special_rows,
          "signal": signal_rows, "matmul": matmul_rows, "sparse": sparse_rows, "transfer": transfer_rows}
SCIPY = ("images", "special", "signal", "sparse")


def relative_speed(unit, figures):
    """How many times as fast as the second library the first is; None where there is but one."""
    if len(figures) < 2 or not all(figures[:2]):
        return None
    return figures[0] / figures[1] if unit in ("GB/s", "TFLOP/s", "1000/s") else figures[1] / figures[0]


def mean_row(title, rows):
    """The geometric mean of the relative speeds of rows, as a row; None where no row has one."""
    speeds = [speed for _, unit, figures, _ in rows if (speed := relative_speed(unit, figures))]
    return (title, "times", [statistics.geometric_mean(speeds)], None) if speeds else None


def markdown(names, rows, machine):
    lines = [f"{datetime.date.today()}, {machine}, NumPy {numpy.__version__}.", "",
             "| work | unit | " + " | ".join(names) + " | goal |", "| --- | --- |" + " ---: |" * (len(names) + 1)]
    for title, unit, figures, goal in rows:
        cells = [bench.cell(f) for f in figures] + [""] * (len(names) - len(figures)) + [f"{goal:g}" if goal else ""]
        lines.append(f"| {title} | {unit} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(names, rows, path):
    """Draw arrayd's speed relative to CuPy's, a bar for each row that both have."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    both = [(title, relative_speed(unit, f)) for title, unit, f, _ in rows if relative_speed(unit, f)]
    figure, axes = pyplot.subplots(figsize=(8, 0.3 * len(both) + 1), layout="constrained")
    axes.barh([t.replace("`", "") for t, _ in both][::-1], [v for _, v in both][::-1], color="#4477aa")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel(f"{names[0]}'s speed, {names[1]}'s being 1")
    figure.savefig(path)


def run_groups(groups, libs, build, folder):
    """The rows of some groups, and means of them, each printed as it comes."""
    names, rows, of_scipy = [lib.name for lib in libs], [], []
    print(f"{'':<46}{'':>8}" + "".join(f"{n:>11}" for n in names) + f"{'goal':>9}")

    def show(row):
        title, unit, figures, goal = row
        shown = "".join(f"{bench.cell(f):>11}" for f in figures) + " " * 11 * (len(names) - len(figures))
        print(f"{title:<46}{unit:>8}{shown}{goal or '':>9}", flush=True)
        rows.append(row)
        return row

    for group in groups:
        made = [show(row) for row in (spill_rows(build, folder) if group == "spill" else GROUPS[group](libs))]
        of_scipy += made if group in SCIPY else []
    for mean in (mean_row("geometric mean of speed, SciPy's functions", of_scipy),
                 mean_row("geometric mean of speed, all", rows)):
        if mean:
            show(mean)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path, help="page whose table is replaced, or file for the table")
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--only", help=f"some of {', '.join(GROUPS)}, spill and scipy, with commas between them")
    options = parser.parse_args()
    build = options.build.resolve()
    bench.use(build)
    groups = options.only.replace("scipy", ",".join(SCIPY)).split(",") if options.only else [*GROUPS, "spill"]
    with tempfile.TemporaryDirectory() as folder:
        server = bench.start_server(build / "bin" / "arrayd", f"{folder}/arrayd.sock", "cuda")
        try:
            libs = libraries()
            rows = run_groups(groups, libs, build, folder)
            machine = libs[0].module.session_info()["device_name"]
        finally:
            server.terminate()
            server.wait(timeout=20)
    if options.markdown:
        bench.replace(options.markdown, BEGIN, END, markdown([lib.name for lib in libs], rows, machine))
    if options.plot:
        plot([lib.name for lib in libs], rows, options.plot)


if __name__ == "__main__":
    sys.exit(main())
