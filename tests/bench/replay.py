"""Measure loops of 80 small launches that come again and again: replay.py [BUILD...], build/release unless given.

Builds take turns on one machine. Each loop runs in a client of its own beside a server, on the CPU unless --backend says
otherwise. Figures are microseconds for one iteration of 80 operations: the clock's, and the processor's of the client and of
the worker, which depend less on what else runs. The least of the turns counts.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import bench

HERE = pathlib.Path(__file__).resolve().parent
ITERATIONS = 1000
TICK = 1e6 / os.sysconf("SC_CLK_TCK")


# ---- the loops: each makes a function that asks for 80 operations ----

def multiply_adds(ad):
    """Forty multiplications and forty additions, each of the result before: a chain."""
    state = {"x": ad.ones(1000, "float32")}
    a, b = ad.full(1000, 0.5, "float32"), ad.ones(1000, "float32")

    def step():
        x = state["x"]
        for _ in range(40):
            x = x * a + b
        state["x"] = x
    return step


def products(ad):
    """Eighty products of 8 x 8, each of the result before: nothing to fuse."""
    state = {"x": ad.eye(8, dtype="float64")}
    turn = ad.asarray(bench.numpy.linalg.qr(bench.random((8, 8), "float64"))[0])

    def step():
        x = state["x"]
        for _ in range(80):
            x = x @ turn
        state["x"] = x
    return step


def stepper(ad):
    """Ten times: a product, two views that are written, a reduction, a maximum along an axis, and sums of the shapes."""
    state = {"x": ad.ones((8, 8), "float64"), "t": 0}
    turn = ad.asarray(bench.numpy.linalg.qr(bench.random((8, 8), "float64"))[0])
    field = ad.asarray(bench.random(1000, "float64"))

    def step():
        x = state["x"]
        for _ in range(10):
            state["t"] += 1
            y = x @ turn               # 1
            y[0, :] = x[1, :]          # 2
            y[:, 0] = state["t"]       # 3, a number that changes
            s = y.sum(axis=0)          # 4
            m = ad.maximum.reduce(field)  # 5
            field[16:32] += m          # 6
            field[100:108] = s         # 7
            x = y * 0.25               # 8
        state["x"] = x
    return step


def optimiser(ad):
    """Adam on five parameters of 16 to 1000 elements, of sixteen operations each."""
    shapes = [(16,), (8, 8), (1000,), (20, 20), (100,)]
    state = {"t": 0, "p": [[ad.ones(s, "float32") * k for k in (1.0, 0.1, 0.0, 0.0)] for s in shapes]}

    def step():
        state["t"] += 1
        c1, c2 = 1 - 0.9 ** state["t"], 1 - 0.999 ** state["t"]
        for q in state["p"]:
            p, g, m, v = q
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * (g * g)
            q[0] = p - 0.001 * (m / c1) / (ad.sqrt(v / c2) + 1e-8) - p * 1e-4
            q[2], q[3] = m, v
    return step


def graph(ad):
    """Eighty products and sums of 8 x 8 into the same arrays, recorded once and launched."""
    x, y = ad.ones((8, 8), "float64"), ad.zeros((8, 8), "float64")
    turn = ad.asarray(bench.numpy.linalg.qr(bench.random((8, 8), "float64"))[0])
    stream = ad.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for _ in range(40):
            ad.matmul(x, turn, out=y)
            ad.matmul(y, turn, out=x)
        recorded = stream.end_capture()

    def step():
        with stream:
            recorded.launch()
    return step


def additions(ad):
    """Eighty sums of the same two arrays of 16 elements, of which none needs another."""
    a, b = ad.ones(16, "float32"), ad.ones(16, "float32")
    kept = [None] * 80

    def step():
        for i in range(80):
            kept[i] = a + b
    return step


LOOPS = {f.__name__: f for f in (multiply_adds, products, stepper, optimiser, graph, additions)}


# ---- measuring ----

def processor_time(pid):
    """Microseconds of the processor that a process has used, in the kernel or not."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK


def nanoseconds_run(pid):
    """Microseconds that the scheduler has let all threads of a process run."""
    return sum(int((t / "schedstat").read_text().split()[0]) for t in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e3


def find_worker(server):
    """The worker of the server whose process id is given."""
    children = pathlib.Path(f"/proc/{server}/task/{server}/children").read_text().split()
    for child in children:
        if "worker" in pathlib.Path(f"/proc/{child}/comm").read_text():
            return int(child)
    raise SystemExit("replay: the server has no worker")


def client(name, server, iterations):
    """Run one loop in this process, and print what an iteration took."""
    import arrayd as ad
    step = LOOPS[name](ad)
    for _ in range(50):
        step()
    ad.sync()
    worker = find_worker(server)
    used, own, begin = nanoseconds_run(worker), time.process_time(), time.perf_counter()
    for _ in range(iterations):
        step()
    ad.sync()
    wall = (time.perf_counter() - begin) * 1e6
    print(json.dumps([x / iterations for x in (wall, (time.process_time() - own) * 1e6,
                                               nanoseconds_run(worker) - used)]))


def measure(build, name, server, iterations):
    environment = {**os.environ, "PYTHONPATH": str(build / "python")}
    command = [sys.executable, __file__, "--client", name, str(server), str(iterations)]
    return json.loads(subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout)


def measure_builds(builds, loops, turns, iterations, backend):
    """{(build, loop): [wall, client, worker]}, the least of the turns."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(turns):
            for n, build in enumerate(builds):
                server = bench.start_server(build / "bin" / "arrayd", f"{folder}/{turn}.{n}", backend)
                try:
                    for name in loops:
                        figures = measure(build, name, server.pid, iterations)
                        least = found.setdefault((build, name), figures)
                        found[build, name] = [min(a, b) for a, b in zip(least, figures)]
                finally:
                    server.terminate()
                    server.wait(timeout=20)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("builds", nargs="*", type=pathlib.Path, default=[HERE.parents[1] / "build/release"])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--loops", nargs="*", default=list(LOOPS))
    parser.add_argument("--backend", default="cpu", help="auto, cpu or cuda")
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return client(options.client[0], int(options.client[1]), int(options.client[2]))
    builds = [b.resolve() for b in options.builds]
    found = measure_builds(builds, options.loops, options.turns, options.iterations, options.backend)
    print(f"{'us for 80 operations':<24}{'build':>40}{'wall':>9}{'client':>9}{'worker':>9}")
    for name in options.loops:
        for build in builds:
            print(f"{name:<24}{str(build)[-38:]:>40}" + "".join(f"{x:>9.1f}" for x in found[build, name]))


if __name__ == "__main__":
    sys.exit(main())
