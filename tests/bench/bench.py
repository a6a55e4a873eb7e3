"""Measure arrayd beside NumPy: bench.py [--build build/release] [--markdown docs/performance.md] [--json FILE].

Starts its own server on a Unix socket, unless ARRAYD_URL names one. Everything is timed through the Python client,
on random data, after a warm-up; figures are medians. A column for CuPy is added where it can be imported.
"""
import argparse
import compileall
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

HERE = pathlib.Path(__file__).resolve().parent
BIG = 1 << 24
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


# ---- measuring ----

def median_time(function, least=0.3, rounds=5):
    """Median seconds of one call, over `rounds` samples of as many calls as `least` seconds hold together."""
    function()
    begin = time.perf_counter()
    function()
    once = max(time.perf_counter() - begin, 1e-7)
    calls = max(1, int(least / rounds / once))
    samples = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        samples.append((time.perf_counter() - begin) / calls)
    return statistics.median(samples)


class Library:
    """A column: numpy, arrayd or cupy, and how to wait until it has finished."""

    def __init__(self, name, module, wait):
        self.name, self.module, self.wait = name, module, wait

    def mark(self):
        """Record an event: what comes after is not done together with what came before."""
        if self.name != "NumPy":
            self.module.cuda.Event().record()

    def complete(self, function, **options):
        """Median seconds of a call until its work is complete. An array that nobody keeps is not computed: the result
        is."""
        def call():
            result = function()
            self.wait()
            return result
        return median_time(call, **options)


def libraries():
    import arrayd
    found = [Library("arrayd", arrayd, arrayd.sync), Library("NumPy", numpy, lambda: None)]
    try:
        import cupy
        found.append(Library("CuPy", cupy, cupy.cuda.Device().synchronize))
    except ImportError:
        pass
    return found


def random(shape, dtype="float32"):
    return numpy.random.default_rng(7).random(shape).astype(dtype)


# ---- small operations ----

def returns(lib):
    """Microseconds until `a + b` returns, with little in flight."""
    a, b = lib.module.asarray(random(16)), lib.module.asarray(random(16))
    samples = []
    for _ in range(200):
        results = [None] * 100
        begin = time.perf_counter()
        for i in range(100):
            results[i] = a + b
        samples.append((time.perf_counter() - begin) / 100)
        lib.wait()
    return statistics.median(samples) * 1e6


def sustained(lib, seconds=1.0):
    """Operations a second, until all are complete; their results are kept for a while."""
    a, b = lib.module.asarray(random(16)), lib.module.asarray(random(16))
    return rate(lib, lambda: a + b, seconds)


def rate(lib, function, seconds=1.0):
    results, done, begin = [None] * 1000, 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for i in range(1000):
            results[i] = function()
        done += 1000
    lib.wait()
    return done / (time.perf_counter() - begin)


def chain(x, y):
    """Ten operations, nine of whose results are gone when the next has been asked for."""
    return ((((((((x + y) * x) - y) * 0.5 + x) * y) - x) * x) + y) * 2.0


def formula(xp, x, y):
    return xp.sqrt(x * x + y * y) * 0.5 + xp.sin(x) * xp.exp(-y)


def small_rows(libs):
    yield "`a + b`, 16 float32, until it returns", "us", [returns(x) for x in libs]
    yield "`a + b`, 16 float32, sustained", "1000/s", [sustained(x) / 1e3 for x in libs]
    arrays = [x.module.asarray(random(16)) for x in libs]
    yield "ten operations, 16 float32, sustained", "us", [1e6 / rate(x, lambda a=a: chain(a, a))
                                                          for x, a in zip(libs, arrays)]
    yield "`a[2:8]`", "us", [median_time(lambda a=a: a[2:8]) * 1e6 for a in arrays]
    yield "`a.reshape(4, 4)`", "us", [median_time(lambda a=a: a.reshape(4, 4)) * 1e6 for a in arrays]
    yield "`float(a.sum())`, 16 float32", "us", [median_time(lambda a=a: float(a.sum())) * 1e6 for a in arrays]


# ---- large operations ----

def large_rows(libs):
    x, y = random(BIG), random(BIG)
    inputs = [(lib, lib.module.asarray(x), lib.module.asarray(y), lib.module.empty(BIG, dtype="float32")) for lib in libs]

    def times(function):
        return [lib.complete(lambda: function(lib.module, a, b, out)) * 1e3 for lib, a, b, out in inputs]

    for name in ("add", "multiply"):
        yield f"`{name}`, out=, 2^24 float32", "ms", times(lambda xp, a, b, out: getattr(xp, name)(a, b, out=out))
    for name in ("exp", "sin", "sqrt"):
        yield f"`{name}`, out=, 2^24 float32", "ms", times(lambda xp, a, b, out: getattr(xp, name)(a, out=out))
    yield "`a + b`, new result, 2^24 float32", "ms", times(lambda xp, a, b, out: a + b)
    yield "ten operations, 2^24 float32", "ms", times(lambda xp, a, b, out: chain(a, b))
    yield "`sqrt(x*x + y*y)*0.5 + sin(x)*exp(-y)`, 2^24 float32", "ms", times(
        lambda xp, a, b, out: formula(xp, a, b))
    yield "`a.sum()`, 2^24 float32", "ms", times(lambda xp, a, b, out: a.sum())
    for axis in (0, 1):
        yield f"`sum(axis={axis})`, 4096 x 4096 float32", "ms", times(
            lambda xp, a, b, out: a.reshape(4096, 4096).sum(axis=axis))


def matmul_rows(libs):
    for dtype in ("float32", "float64"):
        for n in (1024, 2048):
            figures = []
            for lib in libs:
                a, b = lib.module.asarray(random((n, n), dtype)), lib.module.asarray(random((n, n), dtype))
                figures.append(lib.complete(lambda: a @ b, least=1.0) * 1e3)
            yield f"`a @ b`, {n} x {n} {dtype}", "ms", figures


def transfer_rows(libs):
    host = random(1 << 26)
    gigabytes = host.nbytes / 1e9

    def upload(lib):
        return gigabytes / lib.complete(lambda: lib.module.array(host), rounds=3)

    def download(lib):
        a = lib.module.asarray(host)
        get = getattr(lib.module, "asnumpy", numpy.array)
        return gigabytes / median_time(lambda: get(a), rounds=3)

    yield "host to server, 256 MiB", "GB/s", [upload(x) for x in libs]
    yield "server to host, 256 MiB", "GB/s", [download(x) for x in libs]
    if libs[0].module.session_info()["backend"] == "cpu":
        first, again = hand_over_times(libs[0].module, host, lambda a: numpy.from_dlpack(a, copy=False))
        yield "256 MiB to another library by DLPack, first time", "ms", [first]
        yield "again", "ms", [again]


def hand_over_times(ad, host, take):
    """Milliseconds until another library has an array's memory, not yet exported and exported before."""
    def once(a):
        begin = time.perf_counter()
        take(a)
        return (time.perf_counter() - begin) * 1e3

    samples = []
    for _ in range(5):
        a = ad.asarray(host)
        ad.sync()
        samples.append((once(a), once(a)))
        del a
    return [statistics.median(column) for column in zip(*samples)]


def take_in_times(ad, tensor):
    """Milliseconds until another library's tensor is an array, without a copy: when the server has nothing of it, and
    while it has."""
    def once():
        begin = time.perf_counter()
        a = ad.from_dlpack(tensor, copy=False)
        return a, (time.perf_counter() - begin) * 1e3

    samples = []
    for _ in range(5):
        (a, first), (b, again) = once(), once()
        samples.append((first, again))
        del a, b
        while ad.stat()["imports"]:
            pass
    return [statistics.median(column) for column in zip(*samples)]


# ---- processes ----

def python(code, environment=None):
    """Return what a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], text=True, check=True, stdout=subprocess.PIPE,
                          env={**os.environ, **(environment or {})}).stdout


def import_times():
    """Milliseconds of `import numpy`, and of `import arrayd` after it."""
    code = ("import time; t = time.perf_counter(); import numpy; u = time.perf_counter(); import arrayd;"
            "print((u - t) * 1e3, (time.perf_counter() - u) * 1e3)")
    samples = [tuple(map(float, python(code).split())) for _ in range(9)]
    return [statistics.median(column) for column in zip(*samples)]


def first_array_times():
    """Milliseconds from the start of the interpreter to the first result that a program prints: with the server that
    runs, and with one of its own."""
    code = "import arrayd as ad; print(ad.arange(5).sum().item())"

    def once(url):
        begin = time.perf_counter()
        if python(code, {"ARRAYD_URL": url}) != "10\n":
            raise RuntimeError("the first array is wrong")
        return (time.perf_counter() - begin) * 1e3

    return [statistics.median(once(url) for _ in range(7)) for url in (os.environ["ARRAYD_URL"], "embedded:cpu")]


def memory_above_numpy():
    """MiB that a process which has computed something with arrayd needs above one that has imported NumPy."""
    peak = "; print(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1])"
    work = "; import arrayd; x = arrayd.asarray(numpy.ones(16)); [x + x for _ in range(1000)]; float((x + x).sum())"
    base, with_arrayd = (statistics.median(int(python(f"import numpy{code}{peak}")) for _ in range(3))
                         for code in ("", work))
    return (with_arrayd - base) / 1024


def together(clients=8, seconds=2.0):
    """Operations a second of one client alone; of `clients` at once; and of the slowest of these."""
    def start(count, begin):
        command = [sys.executable, __file__, "--client", str(begin), str(seconds)]
        return [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]

    def rates(count):
        running = start(count, time.time() + 1.5 + 0.2 * count)
        return [float(p.communicate()[0]) for p in running]

    alone = rates(1)[0]
    each = rates(clients)
    return alone, sum(each), min(each)


def client(begin, seconds):
    """Run one of several processes: operations from `begin` on, for `seconds`. It prints its rate."""
    import arrayd
    lib = Library("arrayd", arrayd, arrayd.sync)
    sustained(lib, 0.1)
    while time.time() < begin:
        pass
    print(sustained(lib, seconds))


def process_rows():
    base, added = import_times()
    yield "`import arrayd`, after `import numpy`", "ms", [added, base]
    yield "memory of a client above NumPy's", "MiB", [memory_above_numpy()]
    alone, total, least = together()
    yield "`a + b` in one process", "1000/s", [alone / 1e3]
    yield "`a + b` in eight processes at once, total", "1000/s", [total / 1e3]
    yield "the slowest of the eight, of its share", "%", [least / (total / 8) * 100]
    first, alone = first_array_times()
    yield "a new program's first array, from a server that runs", "ms", [first]
    yield "the same with a server of its own", "ms", [alone]
    import fair  # here, as fair imports this module
    _, _, p50, p99, _, _ = fair.measure("sums", 4, 4, 2.0)
    yield "`float(a.sum())` beside four processes that add, p50", "us", [p50 * 1e3]
    yield "`float(a.sum())` beside four processes that add, p99", "us", [p99 * 1e3]


# ---- the report ----

def processor():
    found = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else platform.processor()


def cell(value):
    return "" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def markdown(libs, rows):
    names = [x.name for x in libs]
    lines = [f"{datetime.date.today()}, {processor()}, {os.cpu_count()} processors, NumPy {numpy.__version__}, "
             f"Python {platform.python_version()}.", "",
             "| work | unit | " + " | ".join(names) + " |", "| --- | --- |" + " ---: |" * len(names)]
    for title, unit, figures in rows:
        cells = [cell(f) for f in figures] + [""] * (len(names) - len(figures))
        lines.append(f"| {title} | {unit} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measure(libs):
    rows = []
    print(f"{'':<46}{'':>8}" + "".join(f"{x.name:>11}" for x in libs))
    import event_loop
    for group in (small_rows(libs), process_rows(), event_loop.rows(libs), large_rows(libs), matmul_rows(libs),
                  transfer_rows(libs)):
        for title, unit, figures in group:
            print(f"{title:<46}{unit:>8}" + "".join(f"{cell(f):>11}" for f in figures), flush=True)
            rows.append((title, unit, figures))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path, help="page whose table is replaced")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--client", nargs=2, type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return client(*options.client)
    build = options.build.resolve()
    sys.path.insert(0, str(HERE))
    use(build)
    with tempfile.TemporaryDirectory() as folder:
        server = None
        if "ARRAYD_URL" not in os.environ:
            server = start_server(build / "bin" / "arrayd", f"{folder}/arrayd.sock")
        try:
            libs = libraries()
            rows = measure(libs)
        finally:
            if server:
                server.terminate()
                server.wait(timeout=20)
    if options.json:
        options.json.write_text(json.dumps([{"work": t, "unit": u, **dict(zip((x.name for x in libs), f))}
                                            for t, u, f in rows], indent=1))
    if options.markdown:
        replace(options.markdown, BEGIN, END, markdown(libs, rows))


def replace(path, begin, end, table):
    """Put a table between two marks of a page; a page without them becomes the table."""
    page = path.read_text() if path.exists() else ""
    if begin not in page:
        page = f"{begin}\n{end}\n"
    before, rest = page.split(begin)
    path.write_text(f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}")


def use(build):
    """Import arrayd from this build, here and in what is started from here: compiled, as installers leave packages."""
    package = build / "python"
    compileall.compile_dir(package, quiet=2)
    sys.path.insert(0, str(package))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))


def start_server(program, path, backend="cpu", below=(), options=()):
    """An arrayd at path, started by the command `below` if that is given; sets ARRAYD_URL."""
    server = subprocess.Popen([*below, program, "--socket", path, "--backend", backend, "--log-level", "warn", *options],
                              stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + (60 if below else 20)
    while not os.path.exists(path):
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit("bench: arrayd did not start")
        time.sleep(0.01)
    os.environ["ARRAYD_URL"] = f"unix:{path}"
    return server


if __name__ == "__main__":
    sys.exit(main())
