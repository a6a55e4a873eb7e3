"""Dask and groups of processes over two hosts, which are two network namespaces with a cable between them. Each has a server, whose socket the other does
not know, and a worker; arrays go from host to host over Dask's own connections."""
import functools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

from conftest import end_servers, start_server
from hosts import NETWORK, make_hosts, refusal, start_peers
from patience import PATIENCE

PROGRAM = """
import json, sys
import dask, dask.array as da, numpy as np
from distributed import Client
import arrayd as ad
import dask_work as work

with Client(sys.argv[1], timeout=120) as client:
    client.wait_for_workers(2, timeout=120)
    def on(worker, function, *arguments):
        return client.submit(function, *arguments, workers=[worker], pure=False)
    moved = [on(b, work.total, on(a, work.ramp, 100_000)).result() for a, b in ("ab", "ba", "ab")]
    x = np.random.default_rng(5).random((400, 400))
    chunks = da.from_array(x, chunks=100).map_blocks(ad.asarray)
    program = lambda x: ((x @ x.T) / x.sum(axis=1) - x.mean(axis=0)).std(axis=0)
    difference = abs(client.compute(program(chunks)).result().get() - program(x)).max()
    addresses = [worker["host"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    print(json.dumps([moved, float(difference), sorted(addresses)]))
"""

FETCHING = """
import json, sys
from distributed import Client
import dask_work as work

with Client(sys.argv[1], timeout=120) as client:
    client.wait_for_workers(2, timeout=120)
    def on(worker, function, *arguments):
        return client.submit(function, *arguments, workers=[worker], pure=False)
    moved = [on(b, work.total, on(a, work.ramp, n)).result()[0] for n in (8_400_000, 8_400_000, 100_000, 8_400_000) for a, b in ("ab", "ba")]
    print(json.dumps(moved))
"""

BREAKING = """
import json, subprocess, sys, urllib.parse
from distributed import Client
import dask_work as work

ROUNDS, MOST, N = 8, 2, 8_000_000
with Client(sys.argv[1], timeout=120) as client:
    client.wait_for_workers(2, timeout=120)
    port = next(urllib.parse.urlparse(address).port for address, worker in client.scheduler_info(n_workers=-1)["workers"].items()
                if worker["name"] == "a")
    def list_connections(*options):
        done = subprocess.run(["ss", "-Htn", *options, "sport", "=", str(port), "and", "dst", sys.argv[2]], capture_output=True, text=True)
        return [line.split() for line in done.stdout.splitlines()]
    def cut():  # if anything is being sent
        return any(int(unsent) > 0 for _, _, unsent, *_ in list_connections()) and len(list_connections("-K"))
    totals, broken = [], 0
    for i in range(ROUNDS):
        made = client.submit(work.made_once, N, float(i), workers=["a"], pure=False)
        total = client.submit(work.total, made, workers=["b"], pure=False)
        cuts = 0
        while not total.done() and cuts < MOST:
            cuts += cut()
        broken += cuts
        totals.append(total.result()[0] - sum(range(N)) - i * N)
    print(json.dumps([totals, broken, list(client.run(work.times, workers=[a for a, w in client.scheduler_info(n_workers=-1)["workers"].items()
                                                                          if w["name"] == "a"]).values())]))
"""


@functools.cache
def refusal_to_cut():
    """Why no connection can be cut here; None: it can."""
    if not shutil.which("ss"):
        return "ss is not installed"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        subprocess.run(["ss", "-K", "dport", "=", str(server.getsockname()[1])], capture_output=True)
        try:
            connection.send(b"x")
        except OSError:
            return None
    return "the kernel does not end connections for ss"


@pytest.fixture
def hosts():
    why = refusal()
    if why:
        pytest.skip(f"no network namespaces: {why}")
    with make_hosts() as two:
        yield two


@pytest.fixture
def peers(hosts, tmp_path):
    with start_peers(hosts, tmp_path) as folders:
        yield folders


@pytest.fixture
def servers(tmp_path):
    """The urls of two servers: of Unix sockets, which have nothing to do with networks."""
    started = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        started.append(start_server(str(tmp_path / name)))
    yield [url for _, url in started]
    end_servers(*(process for process, _ in started))


def fetched(folder):
    """How many arrays a server has fetched from the other one."""
    return sum("event=pulled" in line and "level=debug" in line for line in (folder / "log").read_text().splitlines())


def run_program(program, protocol, hosts, servers, tmp_path, *arguments):
    """What a program prints last that has a scheduler and two workers: a at the first host, b at the second."""
    scheduler = f"{protocol}://{NETWORK}.1:8786"
    paths = os.pathsep.join([str(pathlib.Path(__file__).parent), *filter(None, sys.path)])
    environment = [{**os.environ, "ARRAYD_URL": url, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
                    "DASK_TEMPORARY_DIRECTORY": str(tmp_path), "UCX_TLS": "tcp", "UCX_NET_DEVICES": "cable"} for url in servers]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    hosts[0].begin(sys.executable, "-m", "distributed.cli.dask_scheduler", f"--host={NETWORK}.1", "--port=8786", "--no-dashboard",
                   f"--protocol={protocol}", env=environment[0], **quiet)
    for name, host, number, variables in (("a", hosts[0], 1, environment[0]), ("b", hosts[1], 2, environment[1])):
        host.begin(sys.executable, "-m", "distributed.cli.dask_worker", scheduler, f"--host={NETWORK}.{number}", f"--name={name}",
                   f"--protocol={protocol}", "--nthreads=1", "--no-nanny", "--no-dashboard", env=variables, cwd=tmp_path, **quiet)
    done = subprocess.run(hosts[0].command(sys.executable, "-c", program, scheduler, *arguments), capture_output=True, text=True,
                          timeout=2 * PATIENCE, env=environment[0], stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("protocol, module", [("tcp", "distributed"), ("ucxx", "distributed_ucxx")])
def test_arrays_go_between_hosts(protocol, module, hosts, servers, tmp_path):
    pytest.importorskip(module)
    moved, difference, addresses = run_program(PROGRAM, protocol, hosts, servers, tmp_path)
    wanted = float(sum(range(100_000)))
    assert moved == [[wanted, True, servers[1], False], [wanted, True, servers[0], False], [wanted, True, servers[1], False]]
    assert difference < 1e-12 and addresses == [f"{NETWORK}.1", f"{NETWORK}.2"]


def test_servers_fetch_from_each_other(hosts, peers, tmp_path):
    """The first large array asks by a probe; those that follow come from server to server, and small ones as before."""
    pytest.importorskip("distributed")
    urls = [f"unix:{folder}/arrayd.sock" for folder in peers]
    moved = run_program(FETCHING, "tcp", hosts, urls, tmp_path)
    assert moved == [float(sum(range(n))) for n in (8_400_000, 8_400_000, 100_000, 8_400_000) for _ in "ab"]
    assert [fetched(folder) for folder in peers] == [3, 3]


def test_a_group_whose_servers_fetch(hosts, peers):
    """Large arrays of a group go from server to server."""
    member = pathlib.Path(__file__).with_name("group_member.py")
    members = [subprocess.Popen(host.command(sys.executable, member, 2, rank, 13333, "patterns", "fetched", "end"), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**os.environ, "ARRAYD_URL": f"unix:{folder}/arrayd.sock",
                                                                        "CUPYX_DISTRIBUTED_HOST": f"{NETWORK}.1"})
               for rank, (host, folder) in enumerate(zip(hosts, peers))]
    try:
        results = [each.communicate(timeout=PATIENCE) for each in members]
    finally:
        for each in members:
            each.kill()
    assert [each.returncode for each in members] == [0, 0], "\n".join(error for _, error in results)
    assert [out.strip() for out, _ in results] == ["by servers"] * 2
    assert all(fetched(folder) > 2 for folder in peers)


def test_broken_connections_between_hosts(hosts, servers, tmp_path):
    """Connections of workers are cut while they carry arrays. Those come again, and what made them has run once."""
    pytest.importorskip("distributed")
    if refusal_to_cut():
        pytest.skip(f"connections cannot be cut: {refusal_to_cut()}")
    differences, broken, times = run_program(BREAKING, "tcp", hosts, servers, tmp_path, f"{NETWORK}.2")
    assert differences == [0.0] * 8 and times == [8]
    assert broken > 0


def test_a_group_over_two_hosts(hosts, servers):
    """Three processes: two at the first host, whose addresses the third one reaches, and a server at each host."""
    member = pathlib.Path(__file__).with_name("group_member.py")
    members = []
    for rank, host in ((2, 1), (1, 0), (0, 0)):
        environment = {**os.environ, "ARRAYD_URL": servers[host], "CUPYX_DISTRIBUTED_HOST": f"{NETWORK}.1"}
        members.append(subprocess.Popen(hosts[host].command(sys.executable, member, 3, rank, 13333, "patterns", "large", "sparse", "end"),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment))
    try:
        results = [each.communicate(timeout=PATIENCE) for each in members]
    finally:
        for each in members:
            each.kill()
    assert [each.returncode for each in members] == [0] * 3, "\n".join(error for _, error in results)
    assert [out.strip() for out, _ in results] == ["by value", "by handle", "by handle"]
