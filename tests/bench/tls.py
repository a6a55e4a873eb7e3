"""Measure what carrying TLS costs: tls.py [--build build/release]; a table, by transport, of times and of processor
time."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

TOP = pathlib.Path(__file__).resolve().parents[2]
MIB = 128
ROUNDS = 8


def seconds(pid):
    """Processor time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def round_trip(ad, b):
    """Return us of float(b.sum()): the best of many medians, because other programs only ever add to it."""
    medians = []
    for _ in range(30):
        times = []
        for _ in range(200):
            begin = time.perf_counter()
            float(b.sum())
            times.append(time.perf_counter() - begin)
        medians.append(np.median(times))
    return min(medians) * 1e6


def transfers(ad, host, front):
    """GB/s up and down, and the front's processor time for each, in s a GB."""
    out, gigabytes = np.empty_like(host), ROUNDS * host.nbytes / 1e9
    a = ad.asarray(host)
    a.get(out=out)
    for move in (lambda: (ad.asarray(host), ad.sync()), lambda: a.get(out=out)):
        begin, before = time.perf_counter(), seconds(front)
        for _ in range(ROUNDS):
            move()
        yield gigabytes / (time.perf_counter() - begin)
        yield (seconds(front) - before) / gigabytes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=TOP / "build/release", type=pathlib.Path)
    build = parser.parse_args().build.resolve()
    os.environ["ARRAYD_BUILD"] = str(build)
    sys.path[1:1] = [str(build / "python"), str(TOP / "tests/fault")]
    import arrayd as ad
    import raw
    from certificates import Authority

    host = np.random.default_rng(1).random(MIB << 17)
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(pathlib.Path(folder))
        out = subprocess.run([raw.PROGRAM, "--make-token", "bench"], capture_output=True, text=True, check=True).stdout
        token, line = re.fullmatch(r"token  (\S+)\nline   (.+)\n", out).groups()
        (pathlib.Path(folder) / "tokens").write_text(line + "\n")
        (pathlib.Path(folder) / "tokens").chmod(0o600)
        with raw.Server(f"--tokens={folder}/tokens", "--tcp=127.0.0.1:0", "--tls=127.0.0.1:0",
                        f"--tls-cert={authority.issue('127.0.0.1')}") as server:
            ready = next(line for line in server.lines if "event=ready" in line)
            print(f"{'':6}{'sum, us':>10}{'up, GB/s':>10}{'front, s/GB':>13}{'down, GB/s':>12}{'front, s/GB':>13}")
            for way in ("tcp", "tls"):
                port = re.search(rf"\b{way}:127\.0\.0\.1:(\d+)", ready)[1]
                ad.connect(f"{way}:127.0.0.1:{port}", token=token, ca=authority.ca)
                figures = [round_trip(ad, ad.arange(16.0)), *transfers(ad, host, server.pid)]
                print(f"{way:6}{figures[0]:10.1f}{figures[1]:10.2f}{figures[2]:13.2f}{figures[3]:12.2f}{figures[4]:13.2f}")
            ad._core.close()


if __name__ == "__main__":
    main()
