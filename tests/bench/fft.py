"""Measure Fourier transforms beside scipy.fft, one thread each: fft.py [--build build/release] [--markdown PAGE].

Starts a server with one thread for transforms. Both libraries do the same work in turn, and a figure is processor time, the
best of several rounds, so other load on the machine shows little. The processor time is that of arrayd's worker, which includes
the protocol, or that of the thread that calls SciPy. Several transforms are asked for together and waited for once.
"""
import argparse
import datetime
import os
import pathlib
import tempfile
import time

import numpy
import scipy

import bench

TOP = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- fft: begin -->", "<!-- fft: end -->"
ROUNDS = 5
SAMPLE = 0.02 # seconds of work in a sample, if it is not a single transform
LENGTHS = (1 << 10, 1 << 14, 1 << 18, 1 << 22, 1009, 10007, 1_000_003)
SHAPES = {f"{n:,} points": ((n,), (0,)) for n in LENGTHS} | {
    "1000 lines of 1024": ((1000, 1024), (1,)), "1000 columns of 1024": ((1024, 1000), (0,)),
    "100,000 lines of 16": ((100_000, 16), (1,)), "1024 x 1024": ((1024, 1024), (0, 1)), "128 x 128 x 128": ((128,) * 3, (0, 1, 2))}
KINDS = {"fft": ("fftn", False, "complex"), "fft of real": ("fftn", False, "real"), "rfft": ("rfftn", False, "real"),
         "irfft": ("irfftn", True, "complex")}


def make_input(shape, axes, kind, halved, wide):
    """Random numbers; of what becomes real the half that is not redundant."""
    generator = numpy.random.default_rng(5)
    if halved:
        shape = tuple(n // 2 + 1 if axis == axes[-1] else n for axis, n in enumerate(shape))
    x = generator.random(shape) - 0.5
    if kind == "complex":
        x = x + 1j * (generator.random(shape) - 0.5)
    return x.astype({("real", True): "f8", ("real", False): "f4", ("complex", True): "c16", ("complex", False): "c8"}[kind, wide])


def worker_time(server):
    """Nanoseconds of processor time that the server's worker has used."""
    (worker,) = pathlib.Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{worker}/task").glob("*/schedstat"))


def best_times(arrayd, server, name, x, sizes, axes):
    """Seconds of one transform by arrayd and by SciPy."""
    remote = arrayd.asarray(x)
    theirs, ours = getattr(scipy.fft, name), getattr(arrayd.fft, name)

    def sample_scipy(count):
        begin = time.thread_time_ns()
        for _ in range(count):
            theirs(x, sizes, axes)
        return (time.thread_time_ns() - begin) / count / 1e9

    def sample_arrayd(count):
        begin = worker_time(server)
        kept = [ours(remote, sizes, axes) for _ in range(count)] # what nobody keeps would not be computed
        arrayd.sync()
        taken = worker_time(server) - begin
        del kept
        arrayd.sync()
        return taken / count / 1e9

    sample_arrayd(1), sample_scipy(1)
    count = max(1, min(1000, int(SAMPLE / sample_scipy(1)), int(1e8 / x.nbytes)))
    rounds = [(sample_arrayd(count), sample_scipy(count)) for _ in range(ROUNDS)]
    return [min(column) for column in zip(*rounds)]


def measure(server):
    """Yield the shape, the kind and the times, for float32 and float64, of each."""
    import arrayd
    for title, (shape, axes) in SHAPES.items():
        for kind, (name, halved, numbers) in KINDS.items():
            figures = []
            for wide in (False, True):
                x = make_input(shape, axes, numbers, halved, wide)
                sizes = [shape[axis] for axis in axes]
                figures.append(best_times(arrayd, server, name, x, sizes, axes))
            yield title, kind, figures


def format_time(seconds):
    """Microseconds to three digits."""
    return bench.cell(seconds * 1e6)


def format_table(rows):
    """The table of the page."""
    lines = [f"{datetime.date.today()}, {bench.processor()}, {os.cpu_count()} processors, NumPy {numpy.__version__}, "
             f"SciPy {scipy.__version__}; microseconds of processor time.", "",
             "| lines | transform | arrayd, float32 | SciPy | ratio | arrayd, float64 | SciPy | ratio |",
             "| --- | --- |" + " ---: |" * 6]
    for title, kind, figures in rows:
        cells = [cell for ours, theirs in figures
                 for cell in (format_time(ours), format_time(theirs), f"{ours / theirs:.2f}")]
        lines.append(f"| {title} | {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    """Print the figures as they come, and write the table where a page is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    bench.use(build)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        server = bench.start_server(build / "bin/arrayd", f"{folder}/arrayd.sock", options=("--threads=1",))
        try:
            for title, kind, figures in measure(server.pid):
                print(f"{title:<22}{kind:<14}" + "".join(
                    f"{format_time(a):>10}{format_time(b):>10}{a / b:>7.2f}" for a, b in figures), flush=True)
                rows.append((title, kind, figures))
        finally:
            server.terminate()
            server.wait(timeout=20)
    if options.markdown:
        bench.replace(options.markdown, BEGIN, END, format_table(rows))


if __name__ == "__main__":
    main()
