"""Make the n-th use of a system call or allocation fail, for every n that a small scenario reaches, in either program.

The client concerned may be refused, failed or closed; the server must survive it, or not start and say so, and serve
the next client as if nothing had been."""
import shutil
import socket

import numpy as np
import pytest

from raw import Client, Closed, Failed, Server, wait_until

MOST = 400
CALLS = ["malloc", "calloc", "realloc", "recv", "send", "sendmsg", "recvmsg", "accept", "socketpair", "dup"]


def scenario(server):
    """A little of everything; raises when anything is amiss."""
    client = Client(server.path)
    try:
        data = np.arange(3000, dtype=np.float32)
        x = client.put(data)
        y = client.ufunc("add", "float32", [3000], x, x)
        client.ufunc("multiply", "float32", [2999], [y[0], 11, 0, [2999]], 2.0, out=[y[0], 11, 4, [2999]])
        expected = data * 2
        expected[1:] = (data * 2)[:-1] * 2
        np.testing.assert_array_equal(client.get(y), expected)
        assert client.get(client.sum("float32", x)) == data.sum()
        np.testing.assert_array_equal(client.get([x[0], 11, 11996, [3000], [-4]]), data[::-1])
        large = client.put(np.ones(1 << 20, np.uint8))
        client.free(large, x)
        if client.stat("ops_failed"):
            raise Closed(0, "an operation failed whose result nobody asked for")
        client.sync()
    finally:
        client.close()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("program", ["arrayd", "arrayd-worker"])
def test_sweep(program, call, tmp_path):
    reached = 0
    for n in range(1, MOST):
        server = Server("--slab=1M", folder=str(tmp_path),
                        env={"ARRAYD_FAULT_OS": f"{program}:{call}:{n}", "ARRAYD_FAULT_ONCE": str(tmp_path / f"{n}")})
        try:
            scenario(server)
        except (Closed, Failed, ConnectionError, FileNotFoundError, socket.timeout) as error:
            assert not isinstance(error, socket.timeout), f"{call} {n}: hung"
            wait_until(lambda: server.said("fault injected"), f"a reason for {error!r} at {call} {n}")
        if not (tmp_path / f"{n}").exists():
            assert server.stop() == 0, "\n".join(server.lines)
            break
        if server.process.poll() is None:
            scenario(server)
            assert server.stop() == 0, "\n".join(server.lines)
        else:
            assert server.wait() in (1, 2), "\n".join(server.lines)
            assert server.said("level=error") or server.said("arrayd: ")
        reached += 1
    else:
        raise AssertionError("the scenario never got through")
    shutil.rmtree(tmp_path)
    print(f"{program} {call}: {reached} sites")


def test_who_cannot_be_handed_on_is_told_at_once(tmp_path):
    """The client is told at once, but not when the worker has not answered for long, as one whose worker is dying."""
    server = Server("--slab=1M", folder=str(tmp_path), env={"ARRAYD_FAULT_OS": "arrayd:dup:1"})
    with pytest.raises(Closed, match="out of descriptors or host memory: try again"):
        Client(server.path)
    scenario(server)
    assert server.stop() == 0


def test_several_faults_in_a_row(tmp_path):
    """Each fault comes after a worker has begun: a server whose first worker cannot begin ends."""
    faults = ",".join(f"arrayd-worker:{call}:{n}" for call, n in (("malloc", 60), ("calloc", 16), ("sendmsg", 5)))
    server = Server("--slab=1M", folder=str(tmp_path),
                    env={"ARRAYD_FAULT_OS": faults, "ARRAYD_FAULT_ONCE": str(tmp_path / "there")})
    for _ in range(12):
        try:
            scenario(server)
        except (Closed, Failed):
            pass
    scenario(server)
    assert server.stop() == 0
