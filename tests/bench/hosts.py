"""Arrays between two hosts, which are two network namespaces of this machine: from server to server, and through programs.

    sudo hosts.py [--repeat=N]                            build/venv has distributed

Prints rows of tables: seconds, and the time of processors that servers and programs use together, which other work on the
machine changes less. Both ways take turns. Programs use TCP connections without encryption, servers TLS.
"""
import argparse
import contextlib
import itertools
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

API = pathlib.Path(__file__).resolve().parents[1] / "api"
sys.path.insert(0, str(API))
from conftest import start_server  # noqa: E402
from hosts import NETWORK, make_hosts, start_peers  # noqa: E402

GIVE = """
import pickle, socket, sys
import arrayd as ad
a = ad.arange(int(sys.argv[1]), dtype="float64")
ad.sync()
for line in sys.stdin:
    if line == "handle\\n":
        print(pickle.dumps(ad.share(a, uses=1)).hex(), flush=True)
    else:
        with socket.create_connection((sys.argv[2], 9000)) as s:
            data = pickle.dumps(a, 5)
            s.sendall(len(data).to_bytes(8, "big"))
            s.sendall(data)
"""
TAKE = """
import pickle, socket, sys, time
import arrayd as ad
listener = socket.create_server((sys.argv[1], 9000))
ad.zeros(3).get()
def receive(s, n):
    data = bytearray(n)
    view = memoryview(data)
    while view:
        view = view[s.recv_into(view):]
    return data
for line in sys.stdin:
    begun, used = time.perf_counter(), time.process_time()
    if line.strip():
        a = ad.attach(pickle.loads(bytes.fromhex(line)))
    else:
        print(flush=True)
        s, _ = listener.accept()
        a = pickle.loads(receive(s, int.from_bytes(receive(s, 8), "big")))
    float(a[-1])
    del a
    print(time.perf_counter() - begun, time.process_time() - used, flush=True)
"""
REDUCE = """
import sys, time
import arrayd as ad
from arrayd.cupyx import distributed
group = distributed.init_process_group(2, int(sys.argv[1]), port=int(sys.argv[4]))
a, out = ad.arange(int(sys.argv[2]), dtype="float64"), ad.zeros(int(sys.argv[2]))
def measure():
    group.barrier()
    begun = time.perf_counter()
    group.all_reduce(a, out)
    float(out[-1])
    print(time.perf_counter() - begun, flush=True)
measure()
sys.stdin.readline()
for _ in range(int(sys.argv[3])):
    measure()
"""
DASK = """
import sys, time
from distributed import Client
import dask_work as work
with Client(sys.argv[1], timeout=120) as client:
    client.wait_for_workers(2, timeout=120)
    for i in range(int(sys.argv[3]) + 2):
        made = client.submit(work.ramp, int(sys.argv[2]), float(i), workers=["a"], pure=False)
        client.submit(work.last, made, workers=["a"], pure=False).result()
        print(flush=True)
        sys.stdin.readline()
        begun = time.perf_counter()
        client.submit(work.last, made, workers=["b"], pure=False).result()
        print(time.perf_counter() - begun, flush=True)
"""


def environment(folder):
    return {**os.environ, "ARRAYD_URL": f"unix:{folder}/arrayd.sock", "CUPYX_DISTRIBUTED_HOST": f"{NETWORK}.1", "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(API), *sys.path]), "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}


def begin(host, folder, *command):
    return subprocess.Popen(host.command(sys.executable, *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env=environment(folder), stderr=None if "-c" in command else subprocess.DEVNULL)


def tell(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()


class Meter:
    """The time of processors that servers have used, and programs with what they have started, since it was made."""

    def __init__(self, servers, programs):
        self.servers = servers
        self.wait()
        self.pids = [pid for server in servers for pid in (server, *children(server))]
        self.pids += [pid for program in programs for pid in (program.pid, *children(program.pid))]
        self.before = self.total()

    def wait(self):
        """Return when no program fetches any more: its time counts as its server's from then on."""
        while any(name(pid) == "arrayd-pull" for server in self.servers for pid in children(server)):
            time.sleep(0.01)

    def total(self):
        """The processes' own time and that of children that have ended, in seconds."""
        fields = [pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15] for pid in self.pids]
        return sum(map(int, itertools.chain(*fields))) / os.sysconf("SC_CLK_TCK")

    def read(self):
        self.wait()
        return self.total() - self.before


def name(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def find_servers(folders):
    """Process ids of the servers that have their sockets in those folders."""
    found = []
    for folder in folders:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
            s.connect(f"{folder}/arrayd.sock")
            found.append(struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
    return found


def move(hosts, folders, n, repeat):
    """For the way from server to server and for that through programs: seconds, processor time of the receiving program, and
    that of all processes."""
    giver, taker = begin(hosts[0], folders[0], "-c", GIVE, str(n), f"{NETWORK}.2"), begin(hosts[1], folders[1], "-c", TAKE, f"{NETWORK}.2")
    found, servers = ([], []), find_servers(folders)
    for turn in range(2 * repeat + 2):
        meter = Meter(servers, (giver, taker))
        if turn % 2 == 0:
            tell(giver, "handle")
            tell(taker, giver.stdout.readline().strip())
        else:
            tell(taker, "")
            taker.stdout.readline()
            tell(giver, "value")
        times = [float(x) for x in taker.stdout.readline().split()]
        if turn > 1:  # the first arrays load libraries
            found[turn % 2].append([*times, meter.read()])
    for process in (giver, taker):
        process.stdin.close()
        process.wait()
    return [[statistics.median(column) for column in zip(*rows)] for rows in found]


def reduce(hosts, folders, n, repeat, port):
    """Seconds of an all-reduce of two processes, and processor time of all."""
    members = [begin(host, folder, "-c", REDUCE, str(rank), str(n), str(repeat), str(port))
               for rank, (host, folder) in enumerate(zip(hosts, folders))]
    for member in members:
        member.stdout.readline()  # the first array has loaded libraries
    meter = Meter(find_servers(folders), members)
    for member in members:
        tell(member, "go")
    times = [[float(member.stdout.readline()) for member in members] for _ in range(repeat)]
    used = meter.read() / repeat
    for member in members:
        member.communicate()
    return statistics.median(map(max, times)), used


def dask(hosts, folders, n, repeat, port):
    """Seconds in which a chunk comes from a worker of one host to one of the other, and processor time of all."""
    scheduler = f"tcp://{NETWORK}.1:{port}"
    running = [begin(hosts[0], folders[0], "-m", "distributed.cli.dask_scheduler", f"--host={NETWORK}.1", f"--port={port}", "--no-dashboard")]
    for name, host, folder, number in zip("ab", hosts, folders, (1, 2)):
        running.append(begin(host, folder, "-m", "distributed.cli.dask_worker", scheduler, f"--host={NETWORK}.{number}", f"--name={name}",
                             "--nthreads=1", "--no-nanny", "--no-dashboard"))
    client = begin(hosts[0], folders[0], "-c", DASK, scheduler, str(n), str(repeat))
    servers, found = find_servers(folders), []
    for turn in range(repeat + 2):
        client.stdout.readline()
        meter = Meter(servers, (*running, client))
        tell(client, "go")
        found.append((float(client.stdout.readline()), meter.read()))
    client.communicate()
    for process in running:
        process.kill()
        process.wait()
    return [statistics.median(column) for column in zip(*found[2:])]  # the first chunks ask


@contextlib.contextmanager
def start_plain(folder):
    """Two servers that know nothing of each other: their folders."""
    with contextlib.ExitStack() as stack:
        folders = [folder / "first", folder / "second"]
        for own in folders:
            own.mkdir()
            process, _ = start_server(str(own))
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield folders


def compare_moves(hosts, peers, repeat):
    row("array", "by servers", "through programs", "processors, by servers", "through programs", "of the receiving program", "through programs")
    for mebibytes in (1, 8, 64, 256):
        (a, mine, all_a), (b, theirs, all_b) = move(hosts, peers, mebibytes << 17, repeat)
        row(f"{mebibytes} MiB", *(f"{each * 1e3:.0f} ms, {rate(mebibytes, each)} GB/s" for each in (a, b)),
            *(f"{each * 1e3:.0f} ms" for each in (all_a, all_b, mine, theirs)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    ports = itertools.count(20000)
    with make_hosts() as hosts, tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other, \
            start_peers(hosts, pathlib.Path(one)) as peers, start_plain(pathlib.Path(other)) as plain:
        compare_moves(hosts, peers, repeat)
        row("what", "array", "by servers", "through programs", "processors, by servers", "through programs")
        for what, measure in (("all-reduce of two servers", reduce), ("a chunk of Dask's", dask)):
            for mebibytes in (64, 256):
                (a, all_a), (b, all_b) = [measure(hosts, folders, mebibytes << 17, repeat, next(ports)) for folders in (peers, plain)]
                row(what, f"{mebibytes} MiB", *(f"{each * 1e3:.0f} ms" for each in (a, b, all_a, all_b)))


def rate(mebibytes, seconds):
    return f"{mebibytes * 1.048576e-3 / seconds:.2f}"


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
