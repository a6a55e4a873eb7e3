"""Groups of processes (cupyx.distributed) at one server, at several servers and at embedded ones."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
from multiprocessing.connection import Client

import pytest

import arrayd as ad
from arrayd.cupyx import distributed
from conftest import start_server
from patience import PATIENCE

MEMBER = pathlib.Path(__file__).with_name("group_member.py")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def start_member(size, rank, port, program, **environment):
    return subprocess.Popen([sys.executable, MEMBER, str(size), str(rank), str(port), *program.split()], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})


def run_members(size, program, urls=(None,), **environment):
    """Return what the processes of a group print, when all have ended well."""
    port = free_port()
    urls = [os.environ["ARRAYD_URL"] if url is None else url for url in urls]
    members = [start_member(size, rank, port, program, ARRAYD_URL=urls[rank % len(urls)], **environment)
               for rank in reversed(range(size))]
    try:
        results = [each.communicate(timeout=PATIENCE) for each in members]
    finally:
        for each in members:
            each.kill()
    assert [each.returncode for each in members] == [0] * len(members), "\n".join(error for _, error in results)
    return {out.strip() for out, _ in results}


OPERATIONS = "types patterns large sparse "


def test_one_server():
    assert run_members(3, OPERATIONS + "mistakes end") == {"by handle"}
    assert not [row for row in ad.names() if "group" in row.name]
    assert ad.stat()["shared_bytes"] == 0


@pytest.mark.skipif(os.environ.get("ARRAYD_TEST_BACKEND", "cpu") != "cpu", reason="the CPU's devices are as many as wanted")
@pytest.mark.parametrize("size", [2, 3])
def test_a_device_for_each_process(tmp_path, size):
    process, url = start_server(str(tmp_path), "--cpu-devices", str(size))
    assert run_members(size, OPERATIONS, [url]) == {"by handle"}
    process.kill()
    process.wait()


def test_two_servers(tmp_path):
    process, url = start_server(str(tmp_path))
    assert run_members(2, OPERATIONS + "end", [os.environ["ARRAYD_URL"], url]) == {"by value"}
    process.kill()
    process.wait()


def test_embedded_servers():
    assert run_members(2, "patterns", ["embedded:cpu"]) == {"by value"}


def test_processes_of_mpi():
    """MPI starts the processes, which find each other by it."""
    pytest.importorskip("mpi4py")
    mpiexec = pathlib.Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("there is no mpiexec beside Python")
    done = subprocess.run([mpiexec, "-n", "3", sys.executable, MEMBER, "3", "0", "0", "patterns", "sparse"], capture_output=True,
                          text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "".join(done.stdout.split("\n")) == "by handle" * 3  # lines of several processes may run together


def test_group_of_one():
    assert run_members(1, OPERATIONS) == {"by handle"}


def test_key_of_the_group():
    """Strangers are turned away, and those with the key find each other all the same."""
    port = free_port()

    def member(rank, key):
        return start_member(2, rank, port, "patterns", ARRAYD_GROUP_KEY=key)

    first = member(0, "ours")
    stranger = member(1, "theirs")
    assert "AuthenticationError" in stranger.communicate(timeout=PATIENCE)[1]
    second = member(1, "ours")
    for each in (first, second):
        assert each.communicate(timeout=PATIENCE)[0].strip() == "by handle"


def test_strangers_and_taken_ranks():
    """A stranger's greeting ends the stranger's connection alone, and a second process of one rank is told so."""
    port = free_port()
    first = start_member(3, 0, port, "patterns")
    stranger = connect(lambda: socket.create_connection(("127.0.0.1", port)))
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    stranger.close()
    with Client(("127.0.0.1", port)) as taken:
        taken.send_bytes(json.dumps({"rank": 1, "size": 3, "address": ["127.0.0.1", 1]}).encode())
        for rank, size, text in ((1, 3, "rank 1 is taken already"), (2, 4, "n_devices is 4 here, and 3 at rank 0")):
            assert text in start_member(size, rank, port, "patterns").communicate(timeout=PATIENCE)[1]
    first.kill()
    first.communicate()


def connect(make):
    """A connection to somebody who will listen."""
    while True:
        try:
            return make()
        except ConnectionRefusedError:
            pass


# ---- NCCL ----

@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """A library that does what NCCL does, in memory of the host."""
    if os.environ.get("ARRAYD_TEST_BACKEND", "cpu") != "cpu" or not shutil.which("cc"):
        pytest.skip("the library is compiled, for the CPU backend")
    library = tmp_path_factory.mktemp("nccl") / "libnccl.so"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library,
                    MEMBER.with_name("nccl_stand_in.c"), "-lpthread"], check=True)
    return str(library)


@pytest.fixture
def second_url(tmp_path):
    process, url = start_server(str(tmp_path))
    yield url
    process.kill()
    process.wait()


def run_with(library, size, program, urls=(None,), transport="nccl", **environment):
    return run_members(size, program, urls, ARRAYD_NCCL_LIBRARY=library, ARRAYD_GROUP_TRANSPORT=transport, **environment)


@pytest.mark.parametrize("size", [2, 3])
def test_arrays_go_by_nccl(stand_in, size):
    assert run_with(stand_in, size, OPERATIONS + "direct refused") == {"by NCCL"}


def test_members_of_several_servers_choose_nccl(stand_in, second_url):
    urls = [None, second_url]
    assert run_with(stand_in, 2, "direct large sparse", urls, "auto") == {"by NCCL"}
    assert run_with(stand_in, 2, "patterns", urls, "links") == {"by value"}
    assert run_with(stand_in, 2, "why", [None], "auto") == {"all members use one server, which copies\nby handle"}


def test_why_there_is_no_nccl(stand_in, second_url, tmp_path):
    urls = [None, second_url]
    told, = run_with(str(tmp_path / "none.so"), 2, "why patterns", urls, "auto")
    assert "rank 0: " in told and "none.so" in told and told.endswith("by value")
    told, = run_with(stand_in, 2, "why patterns", urls, "auto", NCCL_STAND_IN="init")
    assert told == "rank 1: stand-in system error\nby value"
    told, = run_with(stand_in, 2, "why", urls, "auto", NCCL_STAND_IN="twins")
    assert told == "ranks 0 and 1 use one GPU\nby value"


def test_nccl_that_cannot_be_had_is_an_error(stand_in):
    with pytest.raises(AssertionError, match="transport='nccl' cannot be had: ranks 0 and 1 use one GPU; transport='links'"):
        run_with(stand_in, 2, "types", NCCL_STAND_IN="twins")


def test_a_member_that_is_killed_between_two_sums(stand_in):
    port, chosen = free_port(), {"ARRAYD_NCCL_LIBRARY": stand_in, "ARRAYD_GROUP_TRANSPORT": "nccl"}
    members = [start_member(2, rank, port, "killed", **chosen) for rank in range(2)]
    results = [each.communicate(timeout=PATIENCE) for each in members]
    assert [each.returncode for each in members] == [0, -9], results
    assert "rank 1 of the group has ended" in results[0][0]


@pytest.mark.parametrize("how, text", [("die", "rank 1 of the group has ended"), ("fail", "stand-in system error")])
def test_a_member_that_fails_in_the_middle(stand_in, how, text):
    port, fault = free_port(), {"NCCL_STAND_IN": how, "ARRAYD_NCCL_LIBRARY": stand_in, "ARRAYD_GROUP_TRANSPORT": "nccl"}
    members = [start_member(3, rank, port, "broken", **fault) for rank in range(3)]
    told = [each.communicate(timeout=PATIENCE)[0] for each in members]
    ended = 3 if how == "die" else 0
    assert [each.returncode for each in members] == [0, ended, 0]
    for rank, each in enumerate(told):
        lines = each.splitlines()
        if rank == 1:
            assert not lines if how == "die" else text in lines[0]
        else:
            assert len(lines) == 3 and "has ended" in lines[0] and "has ended" in lines[1], told


@pytest.mark.parametrize("size, rank, more, text", [
    (0, 0, {}, "n_devices must be 1 or more"), (2, 2, {}, "rank must be from 0 to 1"),
    (2, 0, {"backend": "gloo"}, "backend must be 'nccl'"),
    (2, 0, {"transport": "ucx"}, "transport must be one of auto, nccl, links, not 'ucx'")])
def test_wrong_arguments(size, rank, more, text):
    with pytest.raises(ValueError, match=text):
        distributed.init_process_group(size, rank, **more)
    with pytest.raises(TypeError, match="rank must be an int, not str"):
        distributed.init_process_group(2, "first")
