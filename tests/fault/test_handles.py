"""Arrays by CUDA's handles (ndarray.ipc_handle), where a backend made for tests gives some: what is behind a handle, how
long it stays there, and what is refused."""
import os
import signal
import socket

import numpy as np
import pytest

from raw import Client, Failed, frame, message, wait_until
from test_exports import HELD, nothing_left, outcome, program

HANDLE = 1
X = np.arange(1000.0)
SEE = """
import mmap, os
def see(h):
    process, fd, size = (int.from_bytes(h.handle[8 * i:8 * i + 8], "little") for i in range(3))
    opened = os.open(f"/proc/{process}/fd/{fd}", os.O_RDWR)
    memory = mmap.mmap(opened, size)
    os.close(opened)
    return memory, np.ndarray(h.shape, h.dtype, memory, h.offset, h.strides)
"""


@pytest.fixture(params=[{}, {"ARRAYD_CPU_LATE": "1"}], ids=["at once", "later"])
def server(request, start, backend):
    """Start a server whose backend has completed operations when they return, or completes them later."""
    return start("--backend=cuda", f"--backend-path={backend}", env=request.param)


def run(server, code):
    assert outcome(program(SEE + code, f"unix:{server.path}")) == ""
    nothing_left(server)


def test_what_is_behind_a_handle(server):
    run(server, """
beside = [ad.full(500, -1.0) for _ in range(20)]
for size in (1, 1000, 70_000, 1_300_000):
    x = ad.arange(float(size))
    for _ in range(20):
        x += 1
    view = x[::-3] if size > 3 else x
    h, again = view.ipc_handle(), x.ipc_handle()
    assert h.handle == again.handle and len(h.handle) == 64 and h.device == 0 and again.offset == 0
    assert (h.shape, h.strides, h.dtype) == (view.shape, view.strides, view.dtype)
    memory, host = see(h)
    assert np.array_equal(host, view.get())
    assert not np.frombuffer(memory, "u1")[x.nbytes:].any()
    host[0] = -5
    assert float(view[0]) == -5
    x[...] = 7
    ad.sync()
    assert (host == 7).all() and ad.stat()["exports"] == 2
    assert "float64" in repr(h) and not h.closed
    again.close()
    assert again.closed and "closed" in repr(again)
    again.close()
    with h as same:
        assert same is h
    assert h.closed
assert all((b.get() == -1).all() for b in beside)
""")


def test_it_outlives_array_and_session(server):
    run(server, """
h = ad.arange(5000.0).ipc_handle()
memory, host = see(h)
for _ in range(10):
    ad.full(5000, -1.0)
ad.sync()
assert np.array_equal(host, np.arange(5000.0))
ad.connect(ad.session_info()["url"])
ad.full(5000, -1.0).get()
assert np.array_equal(host, np.arange(5000.0)) and ad.stat()["exports"] == 1
del h
""")


def test_memory_is_never_another_arrays(server):
    run(server, """
for size in (1000, 700_000):
    x = ad.arange(float(size))
    h = x.ipc_handle()
    memory, host = see(h)
    h.close()
    del x, h
    ad.sync()
    more = [ad.full(size, -1.0) for _ in range(8)]
    ad.sync()
    assert np.array_equal(host, np.arange(float(size)))
""")


def export(client, x, flags=0):
    """The lease, and how many bytes and descriptors came over it."""
    ours, theirs = socket.socketpair()
    client.flush()
    client.requests += 1
    with theirs:
        socket.send_fds(client.socket, [frame(message("export", client.requests, x[0], flags))], [theirs.fileno()])
    try:
        client.reply(client.requests)
    except Failed:
        assert ours.recv(1) == b""
        ours.close()
        raise
    data, fds, *_ = socket.recv_fds(ours, 200, 8)
    for fd in fds:
        os.close(fd)
    assert len(data) == 64 and any(data) == bool(flags)
    return ours, len(fds)


def test_one_way_at_a_time(server):
    """A program with a descriptor would not see the array move, and neither would one with a handle."""
    client = Client(server.path)
    x = client.put(X)
    for first, second, text in ((HANDLE, 0, "by a handle.*by a descriptor.*copy"),
                                (0, HANDLE, "by a descriptor.*by a handle.*copy"), (HANDLE, 0, "by a handle")):
        lease, descriptors = export(client, x, first)
        other, _ = export(client, x, first)
        assert descriptors == (first == 0)
        for _ in range(2):
            with pytest.raises(Failed, match=text) as refused:
                export(client, x, second)
            assert refused.value.error == "value"
            other.close()
        assert np.array_equal(client.get(x), X)
        lease.close()
    with pytest.raises(Failed, match="flags 3"):
        export(client, x, 3)
    client.close()
    nothing_left(server)


def test_refusals(server):
    run(server, """
import pickle
def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError("not refused")
refused(NotImplementedError, "no elements", ad.zeros(0).ipc_handle)
ad.publish("handles", ad.arange(5))
refused(ValueError, "read-only", ad.attach("handles").ipc_handle)
ad.unpublish("handles")
bad = ad.arange(3)[ad.asarray([7])]
refused(IndexError, "", bad.ipc_handle)
x = ad.arange(5)
h = x.ipc_handle()
refused(TypeError, "pickle", lambda: pickle.dumps(h))
del bad, x, h
""")


def test_without_the_grant(start, backend, tmp_path):
    principals = tmp_path / "principals"
    principals.write_text(f"uid:{os.getuid()} exports=no\n")
    server = start("--backend=cuda", f"--backend-path={backend}", f"--principals={principals}")
    run(server, """
try:
    ad.arange(5).ipc_handle()
except PermissionError as error:
    assert "grant exports" in str(error)
else:
    raise AssertionError("not refused")
""")


def test_on_the_cpu(start):
    """On the CPU neither the library nor the server has a handle, and the array is as it was."""
    server = start()
    run(server, """
x = ad.arange(5)
try:
    x.ipc_handle()
except NotImplementedError as error:
    assert "no GPU" in str(error)
else:
    raise AssertionError("not refused")
""")
    client = Client(server.path)
    x = client.put(X)
    with pytest.raises(Failed, match="no handle"):
        export(client, x, HANDLE)
    assert client.stat()["exports"] == 0 and np.array_equal(client.get(x), X)
    client.close()
    nothing_left(server)


def test_a_handle_that_is_not_to_be_had(start, backend):
    """The failure shows only when the memory has moved already."""
    server = start("--backend=cuda", f"--backend-path={backend}", env={"AD_TEST_NO_HANDLES": "1"})
    client = Client(server.path)
    x = client.put(X)
    with pytest.raises(Failed, match="not today"):
        export(client, x, HANDLE)
    assert client.stat()["exports"] == 0 and np.array_equal(client.get(x), X)
    lease, _ = export(client, x)
    assert np.array_equal(client.get(x), X)
    lease.close()
    client.close()
    nothing_left(server)


def test_a_program_is_killed(server):
    holder = program(SEE + "h = ad.arange(50_000.0).ipc_handle()\nprint(1, flush=True)\ninput()",
                     f"unix:{server.path}")
    assert holder.stdout.readline() == "1\n"
    watcher = Client(server.path)
    assert watcher.stat()["exports"] == 1
    holder.kill()
    holder.communicate()
    wait_until(lambda: not any(watcher.stat()[name] for name in HELD), "all memory is back")
    watcher.close()


def test_the_worker_is_killed(server):
    """Plain memory goes with it: the array says so, and others do not suffer."""
    holder = program("""
x, y = ad.arange(1000.0), ad.arange(1000.0)
h = x.ipc_handle()
print(1, flush=True)
input()
for a in (y, x):
    try:
        print(float(a.sum()), flush=True)
    except ad.DeviceLostError as error:
        print("memory was not kept" in str(error), flush=True)
    except ConnectionError:
        print("over", flush=True)
""", f"unix:{server.path}")
    assert holder.stdout.readline() == "1\n"
    os.kill(server.worker, signal.SIGKILL)
    wait_until(lambda: server.said("worker exited"), "it has been noticed")
    said = holder.communicate("\n")[0].split()
    assert said in (["499500.0", "True"], ["over", "over"]) and holder.returncode == 0
