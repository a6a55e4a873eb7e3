"""What a client feels of others that flood its device: fair.py [--build build/release] [--backend auto] [--floods 1].

A small client asks for float(a.sum()) of 16 numbers, alone and beside others that have products of n x n computed
without end. The goal: at the 99th percentile three times what it takes alone, and one product, as that is not
interrupted. Starts its own server on a Unix socket, unless ARRAYD_URL names one.
"""
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import bench

SIZES = {"cpu": (256, 512, 1024), "cuda": (1024, 4096, 8192)}
FLOOD = """
import sys
import arrayd as ad
n = int(sys.argv[1])
a = ad.ones((n, n), "float32") / n
ad.sync()
print("ready", flush=True)
while True:
    a @ a
"""


def percentiles(samples):
    """The 50th and 99th, in ms."""
    samples = sorted(samples)
    return samples[len(samples) // 2] * 1e3, samples[int(len(samples) * 0.99)] * 1e3


def sample(function, seconds, least=20):
    """Seconds of each call, for so long and so many times at least."""
    samples, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples) < least:
        begin = time.perf_counter()
        function()
        samples.append(time.perf_counter() - begin)
    return samples


@contextlib.contextmanager
def flooded(n, count):
    """So many other clients that flood the server."""
    others = [subprocess.Popen([sys.executable, "-c", FLOOD, str(n)], stdout=subprocess.PIPE, text=True)
              for _ in range(count)]
    try:
        for other in others:
            if other.stdout.readline() != "ready\n":
                sys.exit("fair: a client that was to flood the server did not start")
        yield
    finally:
        for other in others:
            other.kill()
            other.communicate()


def measure(n, floods, seconds):
    """Quiet p50 and p99, beside p50 and p99, one product: ms."""
    import arrayd as ad
    a = ad.asarray(bench.random(16))
    b = ad.asarray(bench.random((n, n)))

    def product():
        b @ b
        ad.sync()

    def small():
        float(a.sum())

    sample(small, 0.2)
    sample(product, 0, 3)
    kernel, _ = percentiles(sample(product, seconds / 4))
    quiet = percentiles(sample(small, seconds / 2))
    with flooded(n, floods):
        sample(small, 0.3, 3)
        beside = percentiles(sample(small, seconds, 100))
    return *quiet, *beside, kernel


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--backend", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--floods", default=1, type=int, help="clients that flood the server")
    parser.add_argument("--seconds", default=8.0, type=float, help="of one measurement")
    parser.add_argument("sizes", nargs="*", type=int, help="n of the products")
    options = parser.parse_args()
    build = options.build.resolve()
    sys.path.insert(0, str(build / "python"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(build / "python"), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        if "ARRAYD_URL" not in os.environ:
            server = bench.start_server(build / "bin" / "arrayd", f"{folder}/arrayd.sock", options.backend)
            ends.callback(server.wait, timeout=20)
            ends.callback(server.terminate)
        import arrayd as ad
        backend = ad.server().backend if hasattr(ad, "server") else options.backend
        sizes = options.sizes or SIZES.get(backend, SIZES["cpu"])
        print(f"float(a.sum()) beside {options.floods} flooding with n x n products, ms")
        print(f"{'n':>6} {'quiet p50':>10} {'p99':>8} {'beside p50':>11} {'p99':>8} {'one product':>12} {'goal':>8}")
        for n in sizes:
            row = measure(n, options.floods, options.seconds)
            goal = 3 * row[1] + row[4]
            print(f"{n:>6} {row[0]:>10.3f} {row[1]:>8.3f} {row[2]:>11.3f} {row[3]:>8.3f} {row[4]:>12.3f} {goal:>8.3f}",
                  "" if row[3] < goal else " missed", flush=True)


if __name__ == "__main__":
    sys.exit(main())
