"""Run app.py with arrayd, then with NumPy in every worker, under the same load, and print the table.

compare.py [--items 50000] [--width 512] [--workers 4] [--requests 400] [--json FILE] [--arrayd PROGRAM]
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy

from load import generate

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 120  # seconds that a program may take to start


def make_index(path, items, width):
    """Rows of length 1, float32, so that products are cosines; the same every time."""
    rows = numpy.random.default_rng(7).standard_normal((items, width), dtype="float32")
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    numpy.save(path, rows)


def find_port():
    """A port that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_start(process, ready, what):
    """Wait until ready() is true; leave with a message when the program ends before, or takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"compare: {what} did not start")
        time.sleep(0.05)


@contextlib.contextmanager
def run_program(command, environment, ready, what):
    """A program with its children in a group of their own, for the time of the block."""
    process = subprocess.Popen(list(map(str, command)), env=environment, cwd=HERE, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        await_start(process, lambda: ready(process), what)
        yield process
    finally:
        process.terminate()  # its children end with it
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def listens(port):
    """Whether somebody takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def list_children(pid):
    """Ids of a process's children, and theirs."""
    with contextlib.suppress(FileNotFoundError):
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from list_children(child)


def read_memory(pid):
    """MiB of a process: its own and its part of what it shares with others."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss: +(\d+)", text, re.M)[1]) / 1024


def measure_service(environment, options, server=None):
    """Requests a second, times and memory of the service in that environment: a dict."""
    port = find_port()
    command = [sys.executable, "-m", "uvicorn", "app:app", "--workers", options.workers, "--port", port, "--log-level",
               "warning"]
    with run_program(command, environment, lambda _: listens(port), "uvicorn") as service:
        address = f"http://127.0.0.1:{port}"
        seen, deadline = set(), time.monotonic() + PATIENCE
        while len(seen) < options.workers and time.monotonic() < deadline:  # all workers are there, and warm
            seen |= set(generate(address, options.items, 4 * options.workers, 4 * options.workers)["processes"])
        result = generate(address, options.items, options.requests, options.connections)
        workers = [read_memory(pid) for pid in sorted(seen)]
        shared = [read_memory(pid) for pid in (server.pid, *list_children(server.pid))] if server else []
    return {**result, "worker_mib": sum(workers) / len(workers), "all_mib": sum(workers) + sum(shared),
            "workers": len(workers)}


def measure_arrayd(folder, environment, options):
    """The service over one published index."""
    path = folder / "arrayd.sock"
    environment = {**environment, "LIBRARY": "arrayd", "ARRAYD_URL": f"unix:{path}"}
    command = [options.arrayd, f"--socket={path}", "--log-level=warn"]
    with run_program(command, environment, lambda _: path.exists(), "arrayd") as server:
        subprocess.run([sys.executable, HERE / "publish.py", folder / "index.npy"], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        return measure_service(environment, options, server)


def measure_numpy(folder, environment, options):
    """Measure the service with the index in every worker."""
    return measure_service({**environment, "LIBRARY": "numpy", "INDEX": str(folder / "index.npy")}, options)


def count_differences(ours, theirs):
    """Items for which the two services found other neighbours."""
    return sum(sorted(ours[item]) != sorted(theirs[item]) for item in theirs)


def format_table(results):
    """The table as text."""
    lines = [f"{'service of ' + str(results['arrayd']['workers']) + ' workers':<26} {'requests/s':>10} {'p50 ms':>8} "
             f"{'p99 ms':>8} {'MiB a worker':>13} {'MiB in all':>11}"]
    for name, title in (("arrayd", "one index, by arrayd"), ("numpy", "NumPy in each worker")):
        r = results[name]
        lines.append(f"{title:<26} {r['per_second']:10.1f} {r['p50_ms']:8.0f} {r['p99_ms']:8.0f} {r['worker_mib']:13.0f} "
                     f"{r['all_mib']:11.0f}")
    return "\n".join(lines)


def parse_arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--arrayd", default="arrayd", help="the server's program")
    return parser.parse_args()


def main():
    """Measure both and print the table; 1 when they found other neighbours."""
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="service-") as place:
        folder = pathlib.Path(place)
        make_index(folder / "index.npy", options.items, options.width)
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        results = {"arrayd": measure_arrayd(folder, environment, options),
                   "numpy": measure_numpy(folder, environment, options)}
    print(format_table(results))
    different = count_differences(results["arrayd"].pop("answers"), results["numpy"].pop("answers"))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if different:
        print(f"compare: other neighbours for {different} items", file=sys.stderr)
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
