"""The attacks of tests/fault by one user, beside another one who looks at its arrays all the time, as a table:
attack_table.py [--backend cuda] [--build build/release] [--only ROW,...] [--times 1] [--seconds 220] [--row 30] [--limit 60].

Needs root, to be two other users. --only names the rows to run, by patterns such as "flip *,long_*,kill"; --list prints
their names. --times makes each attack so many times as long. Attacks that --seconds leave no time for are said to be
left out. Operands are flipped for at most --row seconds; the case that was then to come is named at the end of the
line. An attack that takes --limit seconds is ended, and its line says where it was. Exits with 1 when an answer was wrong, a worker died that should not, or an end took too long.
"""
import argparse
import contextlib
import fnmatch
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

FAULT = pathlib.Path(__file__).resolve().parents[1] / "fault"
BY_INDICES = ("gather", "scatter", "compress", "place", "nonzero", "bincount")
OTHERS = ("sort", "argsort", "argpartition", "searchsorted", "lu", "random", "matmul", "spmm", "sptrsm", "sample", "label", "rank_filter")
REDUCTIONS = ("argmax", "argmin", "sum")
UFUNCS = ("add", "where", "power")
ATTACKS = {"sizes": 3, "windows": 2, "requests": 3, "room": 1}  # how often each is made
LONG = ("long_total", "long_product", "long_integer_product", "long_scatter", "long_count", "long_decomposition",
        "many_decompositions", "long_sort", "long_functions")
# Seconds in which the client of a session that is killed must know, and a server that is stopped must be gone: a GPU's
# operation ends by itself, or with its worker, which the server kills after 5 s.
ENDS = {"kill": {"cpu": 1.0, "cuda": 1.0}, "SIGTERM": {"cpu": 1.0, "cuda": 6.0}}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--build", default=pathlib.Path("build/release"), type=pathlib.Path)
    parser.add_argument("--only", default="*", help="rows to run, by names or patterns with commas between them")
    parser.add_argument("--times", default=1, type=int, help="as often as usual each attack is made")
    parser.add_argument("--seconds", default=220, type=float, help="no row begins afterwards")
    parser.add_argument("--row", default=30, type=int, help="seconds for which operands are flipped in each row")
    parser.add_argument("--limit", default=60, type=float, help="seconds after which a row has failed")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and run none")
    return parser.parse_args()


def row_names():
    """The names of all rows, in their order."""
    flips = [*BY_INDICES, *OTHERS, *REDUCTIONS, " ".join(UFUNCS)]
    return [*(f"flip {name}" for name in flips), *ATTACKS, *LONG, *ENDINGS, "crash"]


def chosen_names(patterns):
    """The rows that --only names; SystemExit for a pattern that no row has."""
    names = row_names()
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            sys.exit(f"attack_table.py: --only: no row is named {pattern!r}; --list prints the names")
    return {name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}


def is_wrong(found, seen):
    return bool(seen["wrong"] or found.get("wrong") or not seen["looks"])


def write_row(found, seen, wrong, seconds):
    done = found.get("done", found.get("sent", 0))
    print(f"{done:>7} {found['refused'] + found.get('lost', 0):>8} {seen['answers']:>8} {'WRONG' if wrong else '0':>6} "
          f"{seen['p50_ms']:>8.2f} {seen['p99_ms']:>8.2f} {seen['slowest_ms']:>8.1f} {seconds:>6.1f} {found.get('ended', '')}",
          flush=True)


class Table:
    """Runs attacks, each with a server of its own, and prints a line for each."""

    def __init__(self, raw, attacking, options):
        self.raw, self.attacking, self.options = raw, attacking, options
        self.chosen = chosen_names(options.only.split(","))
        self.until, self.bad, self.left_out = time.monotonic() + options.seconds, [], []
        print(f"{'attack':<24} {'done':>7} {'refused':>8} {'answers':>8} {'wrong':>6} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8} "
              f"{'s':>6}", flush=True)

    def wants(self, name):
        if name not in self.chosen:
            return False
        if time.monotonic() > self.until:
            self.left_out.append(name)
            return False
        return True

    def begin_row(self, name):
        """False: it is left out."""
        wanted = self.wants(name)
        if wanted:
            print(f"{name:<24} ", end="", flush=True)
        return wanted

    def run(self, name, program, *arguments, dies=False, server_options=(), env=None):
        """One line: what the attacker has found, and what the other user has seen."""
        if not self.begin_row(name):
            return
        begun = time.monotonic()
        with self.raw.Server("--kernels=none", "--socket-mode=0666", *server_options, env=env) as server:
            os.chmod(server.folder, 0o755)
            workers = self.raw.children(server.pid)
            try:
                found, seen = self.attack(server, program, *(server.path if a is PATH else a for a in arguments))
            except (AssertionError, subprocess.TimeoutExpired) as error:
                server.kill()
                print(f"FAILED: {error}", flush=True)
                self.bad.append(f"{name} failed")
                return
            wrong = is_wrong(found, seen) or (self.raw.children(server.pid) != workers and not dies)
        write_row(found, seen, wrong, time.monotonic() - begun)
        if wrong:
            self.bad.append(f"{name}: {json.dumps(found.get('wrong', ''))} {seen['wrong']} wrong answers beside it")

    def attack(self, server, program, *arguments):
        """The findings of both users."""
        limit = self.options.limit
        other = self.attacking.start_program(server, "meanwhile.py", "watch", self.attacking.OTHER)
        try:
            assert select.select([other.stdout], [], [], limit)[0], "the other user waits for its first answers"
            assert other.stdout.readline() == "ready\n", other.communicate()[1]
            found = self.attacking.read_findings(self.attacking.start_program(server, program, *arguments), limit)
            return found, self.attacking.read_findings(other, limit)
        finally:
            other.kill()
            other.wait()

    def flip(self, rows, rounds):
        """Operands of these rows of the tables, such as call:sort, are written over while they are used."""
        names = " ".join(row.partition(":")[2] for row in rows)
        self.run(f"flip {names}", "meanwhile.py", "attack", self.attacking.ATTACKER, ",".join(rows),
                 rounds * self.options.times, self.options.row)

    def end(self, name, stop):
        """One line: how long it takes to end a session, or the server, whose operation is under way."""
        if not self.begin_row(name):
            return
        with self.raw.Server("--kernels=none") as server:
            client = self.raw.Client(server.path)
            send_long(self.raw, client)
            seconds = stop(server, client)
        late = seconds > ENDS[name][self.options.backend]
        print(f"{seconds:.2f} s{' TOO LATE' * late}", flush=True)
        if late:
            self.bad.append(f"{name} took {seconds:.2f} s")


PATH = object()  # stands for the server's socket


def send_long(raw, client):
    """A sum that takes seconds; the server has begun it when this returns."""
    import numpy as np
    from observing import see
    x, d = client.put(np.ones(1, np.float32)), raw.DTYPES.index("float32")
    endless = 1 << 43 if raw.BACKEND == "cuda" else 1 << 45
    client.op("reduce", raw.REDUCTION["sum"], d, [[client.fresh(), d, []]], [[x[0], d, 0, [endless], [0]]], [1, None, None])
    client.ask("sync")
    server_of = type("At", (), {"path": client.socket.getpeername()})
    raw.wait_until(lambda: see(server_of, "sessions")[0]["counters"]["queued_bytes"] == 0, "the operation has begun")


def kill_session(server, client):
    """Seconds until the client has bye, or the end of the connection."""
    from raw import Closed, REQUEST
    from observing import ctl
    begun = time.monotonic()
    ctl(server, "kill", str(client.welcome[3]))
    with contextlib.suppress(Closed):
        while client.receive_message()[0] != REQUEST["bye"]:
            pass
    return time.monotonic() - begun


def stop_server(server, client):
    begun = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.wait()
    return time.monotonic() - begun


ENDINGS = {"kill": kill_session, "SIGTERM": stop_server}


def build_crashing(raw, folder):
    """A backend that dies of some operations, around the one that is tested."""
    try:
        subprocess.run(["cc", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", f"-I{raw.TOP}",
                        f'-DCPU_BACKEND="{raw.BUILD}/bin/libarrayd-{raw.BACKEND}.so"', "-o",
                        folder / f"libarrayd-{raw.BACKEND}.so", raw.TOP / "tests/fault/crashing.c",
                        raw.TOP / "protocol/fault.c", "-ldl"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"left out, as its backend cannot be compiled: {getattr(error, 'stderr', error)}")
        return False
    return True


def attack_all(table):
    for call in BY_INDICES:
        table.flip([f"call:{call}"], 40)
    for call in OTHERS:
        table.flip([f"call:{call}"], 3)
    for reduction in REDUCTIONS:
        table.flip([f"reduction:{reduction}"], 1)
    table.flip([f"ufunc:{name}" for name in UFUNCS], 5)
    for name, rounds in ATTACKS.items():
        table.run(name, "attacks.py", table.attacking.ATTACKER, PATH, name, rounds * table.options.times)
    os.environ["AD_TEST_ENDLESS"] = "34" if table.raw.BACKEND == "cuda" else "45"  # a GPU refuses more than it has bytes
    for name in LONG:
        table.run(name, "attacks.py", table.attacking.ATTACKER, PATH, name, 2 * table.options.times)
    for name, stop in ENDINGS.items():
        table.end(name, stop)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if table.wants("crash") and build_crashing(table.raw, folder):
            table.run("crash", "attacks.py", table.attacking.ATTACKER, PATH, "crash", 2, dies=True,
                      server_options=[f"--backend-path={folder}"],
                      env={"AD_TEST_CRASHES": str(folder), "ASAN_OPTIONS": "handle_segv=0"})


def main():
    options = parse_options()
    if options.list:
        print("\n".join(row_names()))
        return 0
    os.environ["ARRAYD_TEST_BACKEND"] = options.backend
    os.environ["ARRAYD_BUILD"] = str(options.build.resolve())
    sys.path.insert(0, str(FAULT))
    import attacking
    import raw
    begun = time.monotonic()
    table = Table(raw, attacking, options)
    attack_all(table)
    raw.leave_nothing()
    print(f"{time.monotonic() - begun:.0f} s; left out: {', '.join(table.left_out) or 'nothing'}; "
          f"bad: {'; '.join(table.bad) or 'nothing'}")
    return 1 if table.bad else 0


if __name__ == "__main__":
    sys.exit(main())
