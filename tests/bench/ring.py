"""Measure what the ring changes: ring.py [--build build/release] [--rounds N]; a table with and without it.

Two servers run, and programs of both are measured in turn, so that other load on the machine meets both alike. Of times
it shows the least median of all rounds, as other programs only ever add to it."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import bench

TOP = pathlib.Path(__file__).resolve().parents[2]
CLIENTS = 8
WAYS = "no", "auto"
TITLES = {"sum": ("`float(a.sum())`, p50", "us"), "sum99": ("the same, p99", "us"), "add": ("`a + b` returns in", "us"),
          "one": ("one client, round trips", "1000/s"), "many": (f"{CLIENTS} clients at once, in all", "1000/s"),
          "least": ("the slowest of these, of its share", "%")}


def times(call, least):
    """Seconds of each call, for at least so long."""
    found, begin = [], time.perf_counter()
    while time.perf_counter() - begin < least:
        before = time.perf_counter()
        call()
        found.append(time.perf_counter() - before)
    return found


def measure_one(seconds):
    """One client: us of a round trip (median and p99), and of an operation without an answer."""
    import numpy as np

    import arrayd as ad
    a, b = (ad.asarray(np.arange(16, dtype="float32")) for _ in range(2))
    assert float(a.sum()) == 120
    times(lambda: float(a.sum()), 0.1)
    trips = sorted(times(lambda: float(a.sum()), seconds))
    adds = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(20000):
            a + b
        adds.append((time.perf_counter() - begin) / 20000)
        ad.sync()
    return statistics.median(trips) * 1e6, trips[len(trips) * 99 // 100] * 1e6, statistics.median(adds) * 1e6


def measure_rate(begin, seconds):
    """Round trips a second of one of several clients, which begin at the same time."""
    import numpy as np

    import arrayd as ad
    a = ad.asarray(np.arange(16, dtype="float32"))
    times(lambda: float(a.sum()), 0.1)
    time.sleep(max(0, begin - time.time()))
    return len(times(lambda: float(a.sum()), seconds)) / seconds


def run_clients(count, *command):
    """Run so many programs at once, and return the numbers that each has printed."""
    running = [subprocess.Popen([sys.executable, __file__, *map(str, command)], stdout=subprocess.PIPE, text=True)
               for _ in range(count)]
    return [[float(x) for x in p.communicate()[0].split()] for p in running]


def measure_round(url, seconds):
    """All figures once, by name."""
    os.environ["ARRAYD_URL"] = url
    (one,) = run_clients(1, "--one", seconds)
    (alone,) = run_clients(1, "--rate", time.time() + 1, seconds)
    each = [rate for (rate,) in run_clients(CLIENTS, "--rate", time.time() + 3, seconds)]
    return dict(zip(TITLES, (*one, alone[0] / 1e3, sum(each) / 1e3, min(each) / (sum(each) / CLIENTS) * 100)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=TOP / "build/release", type=pathlib.Path)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--rate", nargs=2, type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return print(*measure_one(options.one))
    if options.rate:
        return print(measure_rate(*options.rate))
    build = options.build.resolve()
    bench.use(build)
    rounds, servers, urls = {way: [] for way in WAYS}, [], {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for way in WAYS:
                servers.append(bench.start_server(build / "bin/arrayd", f"{folder}/{way}", options.backend,
                                                  options=[f"--ring={way}"]))
                urls[way] = os.environ["ARRAYD_URL"]
            for _ in range(options.rounds):
                for way in WAYS:
                    rounds[way].append(measure_round(urls[way], 0.5))
        finally:
            for server in servers:
                server.terminate()
                server.wait(timeout=20)
    print(f"{bench.processor()}, {os.cpu_count()} processors, backend {options.backend}, {options.rounds} rounds")
    print(f"{'':<42}{'':>8}" + "".join(f"{'ring ' + way:>12}" for way in WAYS))
    for name, (title, unit) in TITLES.items():
        best = min if unit == "us" else max if unit == "1000/s" else statistics.median
        print(f"{title:<42}{unit:>8}" + "".join(f"{best(r[name] for r in rounds[way]):>12.2f}" for way in WAYS))


if __name__ == "__main__":
    main()
