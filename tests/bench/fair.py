"""Measure what a client feels of others that flood its device: fair.py [--build build/release] [--backend auto]
[--floods 1]
[--apart].

A small client asks for float(a.sum()) of 16 numbers, alone and beside others that have work done without end. Their work
is products of n x n, sines of n x n, each to an array of its own, which are queued by dozens, and sums of 4 x 4. The goal, at the
99th percentile: three times what it takes alone, and one operation of the others, which is not interrupted. The last column is
the part of their own rate that the others keep beside the small client. With --apart they work on the server's last
device, and the small client on the first. --sm-share says how many multiprocessors of a GPU are reserved for the small client.
Starts its own server on a Unix socket, unless ARRAYD_URL names one.
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import bench

SIZES = {False: (256, 512, 1024, 2048), True: (1024, 4096, 8192)}  # on a GPU?
SMALL = {"sums": (4,)}
WORK = {"products": "ad.matmul(a, a, out=outs[0])", "sines": "ad.sin(a, out=outs[i % 32])",
        "sums": "outs[i % 32] = a + a"}
PREPARE = """
import itertools, sys
import arrayd as ad
n = int(sys.argv[1])
ad.cuda.Device(int(sys.argv[2])).use()
a = ad.ones((n, n), "float32") / n
outs = [ad.zeros_like(a) for _ in range(32)]
ad.sync()
"""
FLOOD = """
print("ready", flush=True)
for i in itertools.count():
    {}
"""
ALONE = """
import time
for i in itertools.count():
    begin = time.perf_counter()
    {}
    ad.sync()
    print(time.perf_counter() - begin, flush=True)
"""


def percentiles(samples):
    """The 50th and 99th, in ms."""
    samples = sorted(samples)
    return samples[len(samples) // 2] * 1e3, samples[int(len(samples) * 0.99)] * 1e3


def sample(function, seconds, least=20):
    """Seconds of each call, or what it returns, for so long and so many times at least."""
    samples, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples) < least:
        begin = time.perf_counter()
        said = function()
        samples.append(time.perf_counter() - begin if said is None else said)
    return samples


@contextlib.contextmanager
def others(code, work, n, device, count=1):
    """Run so many other clients that execute the code on a device."""
    code = PREPARE + code.format(WORK[work])
    running = [subprocess.Popen([sys.executable, "-c", code, str(n), str(device)], stdout=subprocess.PIPE, text=True)
               for _ in range(count)]
    try:
        yield running
    finally:
        for other in running:
            other.kill()
            other.communicate()


def measure_one(work, n, device, seconds):
    """Measure one operation of the others' by itself: ms at the 50th and 99th percentile."""
    with others(ALONE, work, n, device) as (alone,):
        for _ in range(5):
            alone.stdout.readline()
        return percentiles(sample(lambda: float(alone.stdout.readline()), seconds))


def count_done(build):
    """Return how many operations of the others are complete, and when that was."""
    import arrayd as ad
    ctl = [build / "bin" / "arrayctl", "status", "--json", "--socket=" + os.environ["ARRAYD_URL"].removeprefix("unix:")]
    sessions = json.loads(subprocess.run(ctl, capture_output=True, text=True, check=True).stdout)["sessions"]
    own = str(ad.session_info()["session"])
    return sum(s["counters"]["ops_done"] for s in sessions if s["session"] != own), time.perf_counter()


def compute_rate(before, after):
    """Return operations a second between two results of count_done."""
    return (after[0] - before[0]) / (after[1] - before[1])


def measure(work, n, device, floods, seconds, build):
    """Return ms: quiet p50 and p99, p50 and p99 beside the others, p50 and p99 of one operation; and how much of their
    rate the others keep."""
    import arrayd as ad
    a = ad.asarray(bench.random(16))

    def small():
        float(a.sum())

    one = measure_one(work, n, device, seconds / 2)
    sample(small, 0.2)
    quiet = percentiles(sample(small, seconds / 2))
    with others(FLOOD, work, n, device, floods) as flood:
        for other in flood:
            if other.stdout.readline() != "ready\n":
                sys.exit("fair: a client that was to flood the server did not start")
        time.sleep(0.5)
        begin = count_done(build)
        time.sleep(seconds / 2)
        alone = compute_rate(begin, count_done(build))
        sample(small, 0.5, 3)
        begin = count_done(build)
        beside = percentiles(sample(small, seconds, 100))
        kept = compute_rate(begin, count_done(build)) / alone if alone else 1
    return *quiet, *beside, *one, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--backend", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--floods", default=1, type=int, help="clients that flood the server")
    parser.add_argument("--apart", action="store_true", help="they work on the server's last device")
    parser.add_argument("--sm-share", default=8, type=int, help="multiprocessors that are reserved")
    parser.add_argument("--seconds", default=8.0, type=float, help="of one measurement")
    parser.add_argument("sizes", nargs="*", type=int, help="n of the products")
    options = parser.parse_args()
    build = options.build.resolve()
    bench.use(build)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        if "ARRAYD_URL" not in os.environ:
            server = bench.start_server(build / "bin" / "arrayd", f"{folder}/arrayd.sock", options.backend,
                                        options=[f"--sm-share={options.sm_share}"])
            ends.callback(server.wait, timeout=20)
            ends.callback(server.terminate)
        import arrayd as ad
        device = ad.session_info()["devices"] - 1 if options.apart else 0
        print(f"float(a.sum()) on device 0 beside {options.floods} that flood device {device}, ms")
        print(f"{'work':<9}{'n':>6}{'quiet p50':>11}{'p99':>9}{'beside p50':>12}{'p99':>9}{'one p50':>9}{'p99':>9}{'goal':>9}"
              f"{'kept':>7}")
        for work in WORK:
            for n in SMALL.get(work) or options.sizes or SIZES[ad.cuda.is_available()]:
                row = measure(work, n, device, options.floods, options.seconds, build)
                goal = 3 * row[1] + row[5]
                print(f"{work:<9}{n:>6}{row[0]:>11.3f}{row[1]:>9.3f}{row[2]:>12.3f}{row[3]:>9.3f}{row[4]:>9.3f}"
                      f"{row[5]:>9.3f}{goal:>9.3f}{row[6]:>7.0%}", "" if row[3] < goal else " missed", flush=True)


if __name__ == "__main__":
    sys.exit(main())
