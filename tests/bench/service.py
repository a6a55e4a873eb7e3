"""Measure docs/examples/service and put the table into a page: service.py --build build/release [--markdown PAGE]"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

import bench

TOP = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- service: begin -->", "<!-- service: end -->"
ROWS = (("requests a second", "1/s", "per_second"), ("a request, p50", "ms", "p50_ms"), ("a request, p99", "ms", "p99_ms"),
        ("memory of a worker", "MiB", "worker_mib"), ("memory in all, the server's included", "MiB", "all_mib"))


def format_table(results):
    """The table of the page."""
    lines = [f"{datetime.date.today()}, {bench.processor()}, {os.cpu_count()} processors, NumPy {numpy.__version__}.", "",
             "| service of four workers | unit | arrayd | NumPy |", "| --- | --- | ---: | ---: |"]
    lines += [f"| {title} | {unit} | {bench.cell(results['arrayd'][key])} | {bench.cell(results['numpy'][key])} |"
              for title, unit, key in ROWS]
    return "\n".join(lines)


def main():
    """Run the example and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    path = os.pathsep.join(filter(None, [str(build / "python"), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "results.json")
        subprocess.run([sys.executable, TOP / "docs/examples/service/compare.py", "--arrayd", build / "bin/arrayd",
                        "--json", out], check=True, env={**os.environ, "PYTHONPATH": path})
        results = json.loads(out.read_text())
    if options.markdown:
        bench.replace(options.markdown, BEGIN, END, format_table(results))


if __name__ == "__main__":
    main()
