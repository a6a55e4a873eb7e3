"""Show what arrayd is for: a web service of four workers that share one index, and three processes that share one
server for a photograph.

demo.py [--build build/release] [--out build/demo] [--quick]: prints tables beside NumPy's and writes PNGs. Exits with 1 when
a result differs from NumPy's.
"""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from PIL import Image
from tqdm import tqdm

from steps import STEPS

HERE = pathlib.Path(__file__).resolve().parent
SERVICE = HERE.parent / "examples" / "service" / "compare.py"


@contextlib.contextmanager
def server(program, path):
    """An arrayd that listens at path, for the time of the block."""
    process = subprocess.Popen([program, "--socket", path, "--log-level", "warn"], stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        with socket.socket(socket.AF_UNIX) as probe:
            while probe.connect_ex(path) != 0:
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit("demo: arrayd did not start")
                time.sleep(0.01)
        yield process
    finally:
        process.terminate()
        process.wait(timeout=20)


class Worker:
    """A process of the demo with its step."""

    def __init__(self, name, out, environment):
        self.name = name
        self.process = subprocess.Popen([sys.executable, HERE / "worker.py", name, out], text=True, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def begin(self, which):
        print(which, file=self.process.stdin, flush=True)

    def end(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"demo: the process for {self.name} died")
        return json.loads(line)

    def run(self, which):
        self.begin(which)
        return self.end()

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)


def measure(workers, rounds, bar):
    """The table's rows: each step alone under NumPy and under arrayd, then all three on the one server at once."""
    rows = {}
    for worker in workers:
        numpy_ms, arrayd_ms = [], []
        for which, times in [("numpy", numpy_ms), ("arrayd", arrayd_ms)]:
            for _ in range(rounds + 1):  # the first one warms up
                bar.set_postfix_str(f"{worker.name} under {which}")
                times.append(worker.run(which)["ms"])
                bar.update()
        rows[worker.name] = {"numpy": statistics.median(numpy_ms[1:]), "arrayd": statistics.median(arrayd_ms[1:])}
    shared = {worker.name: [] for worker in workers}
    for _ in range(rounds):
        bar.set_postfix_str("all three at once")
        for worker in workers:
            worker.begin("arrayd")
        for worker in workers:
            shared[worker.name].append(worker.end())
            bar.update()
    for name, answers in shared.items():
        rows[name]["shared"] = statistics.median(a["ms"] for a in answers)
        rows[name]["difference"] = max(a["difference"] for a in answers)
        rows[name]["same"] = all(a["same"] for a in answers)
    return rows


def print_table(rows):
    print(f"\n{'step':<10} {'NumPy ms':>10} {'arrayd ms':>10} {'three at once':>14} {'max difference':>15}  same")
    for name, row in rows.items():
        print(f"{name:<10} {row['numpy']:10.1f} {row['arrayd']:10.1f} {row['shared']:14.1f} "
              f"{row['difference']:15d}  {'yes' if row['same'] else 'NO'}")


def show_service(build, quick):
    """Run the service with arrayd and with NumPy, which prints the table; whether their answers were the same."""
    size = ["--items", "2000", "--width", "64", "--workers", "2", "--requests", "40"] if quick else ["--requests", "200"]
    print("A web service that finds the ten most similar of "
          f"{'2,000' if quick else '50,000'} items, under load:\n", flush=True)
    path = os.pathsep.join(filter(None, [str(build / "python"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run([sys.executable, SERVICE, "--arrayd", build / "bin" / "arrayd", *size],
                          env={**os.environ, "PYTHONPATH": path})
    return done.returncode == 0


def show_photograph(build, out, rounds):
    """Have three processes work on the photograph, print the table and write the pictures; whether all was the same."""
    print("\nA photograph, by three processes that share one server:", flush=True)
    Image.open(HERE / "photograph.jpg").save(out / "photograph.png")
    with tempfile.TemporaryDirectory() as folder, server(build / "bin" / "arrayd", f"{folder}/arrayd.sock"):
        path = os.pathsep.join(filter(None, [str(build / "python"), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "ARRAYD_URL": f"unix:{folder}/arrayd.sock", "PYTHONPATH": path}
        workers = [Worker(name, out, environment) for name in STEPS]
        total = len(workers) * (2 * (rounds + 1) + rounds)
        with tqdm(total=total, unit="run", disable=not sys.stderr.isatty()) as bar:
            rows = measure(workers, rounds, bar)
        for worker in workers:
            worker.close()
    print_table(rows)
    print(f"\nThe photograph before and after is in {os.path.relpath(out)}.")
    return all(row["same"] for row in rows.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--out", default="build/demo", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="a small service, and one round of each step")
    options = parser.parse_args()
    build, out = options.build.resolve(), options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    good = show_service(build, options.quick)
    return not (show_photograph(build, out, 1 if options.quick else 5) and good)


if __name__ == "__main__":
    sys.exit(main())
