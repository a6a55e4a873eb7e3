"""Measure one array on one device, and over several: devices.py [--build build/release] [--backend auto] [--devices N]
[--elements 2147483648] [--matrix 16384].

Rates are of all devices together: GB/s of what is read and written, of all-reduce its bus bandwidth (2 (n - 1) / n times the
array's bytes), TFLOP/s of products. Random data, warm-up, the median of several rounds, until the work is complete. With the
CPU backend the devices share the machine, so figures of several say what dividing costs. The sizes for eight GPUs of
141 GB are the defaults. Where PyTorch has two GPUs, NCCL's all-reduce by torch.distributed and its copy between GPUs stand
beside, measured before arrayd's server is started.
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


def time_call(ad, function, rounds, warm):
    """Median seconds of a call, until it is complete, and how many calls there were. warm: seconds of calls before those that
    count; the kernel of a chain is compiled meanwhile."""
    taken, end = [], time.perf_counter() + warm
    while time.perf_counter() < end or len(taken) < 2 + rounds:
        ad.sync()
        begin = time.perf_counter()
        result = function()
        ad.sync()
        taken.append(time.perf_counter() - begin)
        del result
    return statistics.median(taken[-rounds:]), len(taken)


PEER = """
import json, os, statistics, sys, time
import torch, torch.distributed as dist, torch.multiprocessing as processes

def median(function, wait, rounds):
    taken = []
    for _ in range(rounds + 2):
        wait()
        begin = time.perf_counter()
        function()
        wait()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken[2:])

def copy(size, rounds):
    x, y = torch.rand(size, device="cuda:0"), torch.empty(size, device="cuda:1")
    def wait():
        torch.cuda.synchronize(0), torch.cuda.synchronize(1)
    return 4 * size / median(lambda: y.copy_(x), wait, rounds) / 1e9

def reduce(rank, count, size, rounds):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29531", rank=rank, world_size=count)
    x = torch.rand(size, device=f"cuda:{rank}")
    seconds = median(lambda: dist.all_reduce(x), torch.cuda.synchronize, rounds)
    if not rank:
        print(json.dumps({"all-reduce": 2 * (count - 1) / count * 4 * size / seconds / 1e9}), flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    count, size, rounds = map(int, sys.argv[1:])
    if torch.cuda.device_count() >= count:
        print(json.dumps({"copy to the next device": copy(size, rounds)}), flush=True)
        processes.spawn(reduce, (count, size, rounds), nprocs=count)
"""


def measure_torch(devices, size, rounds):
    """{what: GB/s} of PyTorch's copy between two GPUs and NCCL's all-reduce over so many; nothing where it has not got them."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "peer.py")
        program.write_text(PEER)
        done = subprocess.run([sys.executable, program, str(devices), str(size), str(rounds)], capture_output=True, text=True,
                              env={**os.environ, "NCCL_NVLS_ENABLE": "0"})
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line))
    return found


def chain(ad, x, y):
    return ad.sqrt(x * x + y * y) * 0.5 + x


def list_rows(ad, mesh, elements, side):
    """(what, unit, amount of work in the unit times a second, a function): made one after the other, as all at once take
    too much memory."""
    P, rng = ad.sharding.PartitionSpec, ad.random.default_rng(1)
    rows = ad.sharding.NamedSharding(mesh, P("devices"))
    count = mesh.size
    x, y = (rng.random(elements, dtype="float32", device=rows) for _ in range(2))
    yield "add", "GB/s", 12 * elements / 1e9, lambda: x + y
    yield "sum", "GB/s", 4 * elements / 1e9, lambda: x.sum()
    yield "chain of 6 operations", "GB/s", 12 * elements / 1e9, lambda: chain(ad, x, y)
    del y
    few = rng.random(elements // 4, dtype="float32", device=rows)  # a part of x would lie on the first devices
    yield "sort", "M elements/s", few.size / 1e6, lambda: ad.sort(few)
    yield "argsort", "M elements/s", few.size / 1e6, lambda: ad.argsort(few)
    del few
    if count > 1:
        one = x.addressable_shards[0].data[:elements // 4].copy()
        yield "copy to the next device", "GB/s", one.nbytes / 1e9, lambda: ad.device_put(one, 1)
        del one
        parts = rng.random((count, elements // 2), dtype="float32", device=rows)
        yield "all-reduce", "GB/s", 2 * (count - 1) / count * 2 * elements / 1e9, lambda: parts.sum(axis=0)
        del parts
    del x
    a, b = (rng.random((side, side), dtype="float32", device=rows) for _ in range(2))
    yield f"matmul {side}^3, rows and rows", "TFLOP/s", 2 * side**3 / 1e12, lambda: a @ b
    whole = ad.device_put(b, ad.sharding.NamedSharding(mesh, P()))
    yield f"matmul {side}^3, rows and replicas", "TFLOP/s", 2 * side**3 / 1e12, lambda: a @ whole
    del whole, b
    z = a.astype("complex64")
    yield f"FFT of {side} rows", "GB/s", 16 * side**2 / 1e9, lambda: ad.fft.fft(z, axis=1)
    yield f"FFT of {side} columns", "GB/s", 16 * side**2 / 1e9, lambda: ad.fft.fft(z, axis=0)


def measure(ad, devices, elements, side, rounds, warm=0):
    """{what: (unit, rate, bytes moved by one call)} on so many devices."""
    found = {}
    mesh = ad.sharding.Mesh(list(range(devices)), "devices")
    for what, unit, work, function in list_rows(ad, mesh, elements, side):
        before = ad.sharding.moved_bytes()
        seconds, calls = time_call(ad, function, rounds, warm)
        found[what] = unit, work / seconds, (ad.sharding.moved_bytes() - before) // calls
    return found


def tabulate(one, several, devices, torch):
    """The table in Markdown."""
    lines = [f"| | 1 device | {devices} devices | times | PyTorch | MB moved | |",
             "| --- | --: | --: | --: | --: | --: | --- |"]
    for what, (unit, rate, moved) in several.items():
        alone = one.get(what)
        first, times = (f"{alone[1]:.4g}", f"{rate / alone[1]:.2f}") if alone else ("", "")
        beside = f"{torch[what]:.4g}" if what in torch else ""
        lines.append(f"| {what} | {first} | {rate:.4g} | {times} | {beside} | {moved / 1e6:.4g} | {unit} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--devices", type=int, help="all, unless given; of the CPU backend 4")
    parser.add_argument("--elements", type=int, default=1 << 31)
    parser.add_argument("--matrix", type=int, default=16384)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=float, default=1.5, help="seconds of calls before each measurement")
    options = parser.parse_args()
    bench.use(options.build.resolve())
    torch = measure_torch(options.devices or 2, options.elements // 2, options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        server = bench.start_server(options.build.resolve() / "bin" / "arrayd", f"{folder}/arrayd.sock", options.backend,
                                    options=["--cpu-devices", str(options.devices or 4)])
        try:
            import arrayd as ad
            devices = options.devices or ad.session_info()["devices"]
            print(ad.session_info()["device_name"])
            arguments = options.elements, options.matrix, options.rounds, options.warm
            print(tabulate(measure(ad, 1, *arguments), measure(ad, devices, *arguments), devices, torch), end="")
        finally:
            server.terminate()
            server.wait(timeout=20)


if __name__ == "__main__":
    sys.exit(main())
