"""Count the instructions of a small operation by callgrind: instructions.py [BUILD...], build/release unless given.

Time on the clock depends on what else runs; instructions hardly do. Each figure is the difference of two runs of different
length, divided by the operations between them. So starting and ending do not count.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import bench

HERE = pathlib.Path(__file__).resolve().parent
SHORT, LONG = 2000, 12000  # operations of a run
WORK = {"`a + b`, 16 float32": "kept[i % 1000] = a + b", "`float(a.sum())`, 16 float32": "float(a.sum())"}
CLIENT = """
import sys, arrayd as ad
a, b = ad.ones(16, 'float32'), ad.ones(16, 'float32')
kept = [None] * 1000
for i in range(int(sys.argv[1])):
    {work}
ad.sync()
"""
VALGRIND = ["valgrind", "--tool=callgrind", "--trace-children=no"]


def link_programs(build, folder):
    """Make a folder a place of the server's programs, with the worker below callgrind."""
    for program in (build / "bin").iterdir():
        if program.name == "arrayd":  # arrayd starts the worker that lies beside it
            shutil.copy(program, folder)
    worker = folder / "arrayd-worker"
    command = " ".join([*VALGRIND, f"--callgrind-out-file={folder}/worker.out", str(build / "bin" / "arrayd-worker")])
    worker.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    worker.chmod(0o755)


def read_total(file):
    """Instructions that callgrind counted."""
    return int(re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.M)[1])


def count_run(build, work, operations):
    """(of the client, of the worker): instructions of a run."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        link_programs(build, folder)
        server = bench.start_server(folder / "arrayd", str(folder / "socket"))
        environment = {**os.environ, "PYTHONPATH": str(build / "python"), "PYTHONHASHSEED": "0"}
        try:
            subprocess.run([*VALGRIND, f"--callgrind-out-file={folder}/client.out", sys.executable, "-c",
                            CLIENT.format(work=work), str(operations)], check=True, env=environment,
                           stderr=subprocess.DEVNULL, timeout=500)
        finally:
            server.terminate()
            server.wait(timeout=120)
        return read_total(folder / "client.out"), read_total(folder / "worker.out")


def main():
    for build in [pathlib.Path(name).resolve() for name in sys.argv[1:]] or [HERE.parents[1] / "build/release"]:
        for name, work in WORK.items():
            few, many = count_run(build, work, SHORT), count_run(build, work, LONG)
            client, worker = ((b - a) / (LONG - SHORT) for a, b in zip(few, many))
            print(f"{build}: {name}: client {client:.0f}, worker {worker:.0f}", flush=True)


if __name__ == "__main__":
    main()
