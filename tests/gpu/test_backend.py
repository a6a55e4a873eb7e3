"""libarrayd-cuda.so by itself, through its table: a worker relies on this, and it must survive that."""
import ctypes
import mmap
import os
import signal
import socket
import subprocess
import sys
import time

import numpy
import pytest
from backend_table import Backend, Check, Failed, Op, Run, Slab, load

MIB = 1 << 20


cuda = load()
pytestmark = pytest.mark.skipif(cuda is None, reason="no GPU")


def address(array):
    return array.ctypes.data


class Owner:
    """A device with a stream, a slab and pinned memory."""

    def __init__(self, backend, size, index=0):
        self.backend, self.size = backend, size
        self.device = backend.open(index)
        self.stream = backend.stream(self.device)
        self.slab = backend.slab(self.device, size)
        self.memory = backend.pinned(self.device, size)
        self.host = numpy.ctypeslib.as_array(ctypes.cast(self.memory, ctypes.POINTER(ctypes.c_uint8)), (size,))

    def get(self, offset, size):
        self.backend.download(self.stream, self.memory, self.slab.base + offset, size)
        self.backend.stream_wait(self.stream)
        return self.host[:size].copy()

    def close(self):
        self.backend.host_free(self.device, self.memory)
        self.backend.slab_close(self.device, ctypes.byref(self.slab))
        self.backend.stream_close(self.stream)
        self.backend.device_close(self.device)


@pytest.fixture(scope="module")
def gpu():
    owner = Owner(cuda, 64 * MIB)
    yield owner
    owner.close()


def pattern(size, seed):
    return numpy.random.default_rng(seed).integers(0, 256, size, dtype=numpy.uint8)


def test_devices(gpu):
    info = cuda.info(gpu.device)
    assert cuda.name == "cuda" and cuda.asynchronous
    assert info.name and info.id.startswith(b"GPU-") and len(info.id) == 40
    assert info.memory > info.free > 0 and info.major >= 8 and info.multiprocessors > 0
    assert info.peers & 1 == 0 and info.peers < 1 << cuda.count()


@pytest.mark.parametrize("index", [-1, 64, 1 << 30])
def test_a_device_that_is_not_there(index):
    with pytest.raises(Failed, match=f"VALUE.*no device {index}"):
        cuda.open(index)


def test_without_a_gpu_there_are_no_devices():
    done = subprocess.run([sys.executable, __file__, "count"], env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
                          capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["0", "VALUE"]


def test_a_new_slab_is_zero(gpu):
    for size in (1, 5 * MIB, 300 * MIB):
        slab = cuda.slab(gpu.device, size)
        assert slab.size >= size and slab.size % (2 * MIB) == 0 and slab.base % (2 * MIB) == 0
        cuda.download(gpu.stream, gpu.memory, slab.base, min(slab.size, gpu.size))
        cuda.stream_wait(gpu.stream)
        assert not gpu.host[:min(slab.size, gpu.size)].any()
        gpu.host[:] = 255
        cuda.upload_pinned(gpu.stream, slab.base, gpu.memory, min(slab.size, gpu.size))
        cuda.stream_wait(gpu.stream)
        cuda.slab_close(gpu.device, ctypes.byref(slab))
        assert slab.fd == -1 and slab.base is None


def test_more_memory_than_there_is(gpu):
    for size in (1 << 50, (1 << 64) - 1, 1 << 63):
        with pytest.raises(Failed, match="MEMORY"):
            cuda.slab(gpu.device, size)
    cuda.zero(gpu.stream, gpu.slab.base, 4096)
    cuda.stream_wait(gpu.stream)  # no error of the refused slab is left


@pytest.mark.parametrize("size", [1, 3, 4096, 65535, 65536, 65537, MIB + 1, 4 * MIB, 4 * MIB + 7, 40 * MIB + 13])
@pytest.mark.parametrize("offset", [0, 1, 513])
def test_uploads(gpu, size, offset):
    before = pattern(size + 2, 1)
    cuda.upload(gpu.stream, gpu.slab.base + offset, address(before), size + 2)
    host = pattern(size + offset, 2)
    wanted = host[offset:].copy()
    cuda.upload(gpu.stream, gpu.slab.base + offset + 1, address(host) + offset, size)
    host[:] = 0  # ours again
    got = gpu.get(offset, size + 2)
    assert got[0] == before[0] and got[-1] == before[-1]
    assert numpy.array_equal(got[1:-1], wanted)


def test_uploads_of_many_streams_share_the_ring(gpu):
    streams = [cuda.stream(gpu.device) for _ in range(3)]
    size = 6 * MIB + 5
    wanted = [pattern(size, seed) for seed in range(9)]
    for i, block in enumerate(wanted):
        scratch = block.copy()
        cuda.upload(streams[i % 3], gpu.slab.base + i * 7 * MIB, address(scratch), size)
        scratch[:] = 0
    for stream in streams:
        cuda.stream_wait(stream)
        cuda.stream_close(stream)
    for i, block in enumerate(wanted):
        assert numpy.array_equal(gpu.get(i * 7 * MIB, size), block)


def test_nothing_is_copied_from_nowhere(gpu):
    for copy in (cuda.upload, cuda.upload_pinned, cuda.download, cuda.move):
        copy(gpu.stream, None, None, 0)
    cuda.zero(gpu.stream, None, 0)
    cuda.stream_wait(gpu.stream)


def test_move_and_zero(gpu):
    block = pattern(3 * MIB + 1, 3)
    cuda.upload(gpu.stream, gpu.slab.base, address(block), block.size)
    cuda.move(gpu.stream, gpu.slab.base + 8 * MIB + 3, gpu.slab.base, block.size)
    cuda.zero(gpu.stream, gpu.slab.base + 1, 1000)
    assert numpy.array_equal(gpu.get(8 * MIB + 3, block.size), block)
    assert not gpu.get(1, 1000).any() and numpy.array_equal(gpu.get(1001, 1000), block[1001:2001])


@pytest.mark.parametrize("protection", ["rw", "r"])
def test_a_window_is_registered(gpu, protection):
    fd = os.memfd_create("window")
    os.ftruncate(fd, 4 * MIB)
    writable = mmap.mmap(fd, 4 * MIB)
    block = pattern(4 * MIB, 4)
    writable[:] = block.tobytes()
    if protection == "rw":
        window = numpy.frombuffer(writable, numpy.uint8)
    else:
        window = numpy.frombuffer(mmap.mmap(fd, 4 * MIB, prot=mmap.PROT_READ), numpy.uint8)
    cuda.host_register(gpu.device, address(window), 4 * MIB)
    cuda.upload_pinned(gpu.stream, gpu.slab.base, address(window), 4 * MIB)
    assert numpy.array_equal(gpu.get(0, 4 * MIB), block)
    if protection == "rw":
        cuda.zero(gpu.stream, gpu.slab.base, MIB)
        cuda.download(gpu.stream, address(window), gpu.slab.base, 2 * MIB)
        cuda.stream_wait(gpu.stream)
        assert not window[:MIB].any() and numpy.array_equal(window[MIB:], block[MIB:])
    cuda.host_unregister(gpu.device, address(window))
    cuda.host_unregister(gpu.device, address(window))  # once too often: no harm, and nothing is left of it
    cuda.zero(gpu.stream, gpu.slab.base, 16)
    os.close(fd)


def busy(gpu, stream, times=200):
    """A stream that has work for some milliseconds."""
    for _ in range(times):
        cuda.move(stream, gpu.slab.base + 32 * MIB, gpu.slab.base, 30 * MIB)


def test_events_and_streams_in_order(gpu):
    first, second = cuda.stream(gpu.device), cuda.stream(gpu.device, -1)
    begin, end, plain = cuda.event(gpu.device, True), cuda.event(gpu.device, True), cuda.event(gpu.device)
    milliseconds = ctypes.c_float()
    assert cuda.event_done(plain) == 1
    with pytest.raises(Failed, match="never recorded"):
        cuda.event_elapsed(begin, end, ctypes.byref(milliseconds))
    cuda.event_record(begin, first)
    busy(gpu, first)
    cuda.event_record(end, first)
    cuda.event_record(plain, first)
    assert cuda.event_done(plain) == 0
    cuda.stream_follow(second, plain)
    after = cuda.event(gpu.device)
    cuda.event_record(after, second)
    cuda.stream_wait(second)
    assert cuda.event_done(plain) == cuda.event_done(end) == cuda.event_done(after) == 1
    cuda.event_elapsed(begin, end, ctypes.byref(milliseconds))
    assert 0.5 < milliseconds.value < 10000
    for event in (begin, end, plain, after):
        cuda.event_close(event)
    cuda.stream_close(first)
    cuda.stream_close(second)


def test_checks_are_zero_and_say_what_is_in_them(gpu):
    checks = ctypes.POINTER(Check)()
    cuda.check_open(gpu.device, 1000, ctypes.byref(checks))
    assert all(checks[i].code == checks[i].what == 0 for i in range(1000))
    assert cuda.check_fault(ctypes.byref(checks[7])) == 0
    checks[7].code, checks[7].what = -4, 1
    checks[7].value[:] = (9, 0, 5)
    with pytest.raises(Failed, match="INDEX: index 9 is out of bounds for axis 0 with size 5"):
        cuda.check_fault(ctypes.byref(checks[7]))
    cuda.check_close(gpu.device, checks)


def test_a_plain_slab_is_zero_and_has_a_handle(gpu):
    handles = set()
    for size in (1, 5 * MIB, 64 * MIB):
        slab = cuda.made("slab_create_plain", gpu.device, size, type=Slab)
        handle = ctypes.create_string_buffer(64)
        assert slab.fd == -1 and slab.size >= size and slab.size % (2 * MIB) == 0 and slab.base % (2 * MIB) == 0
        cuda.slab_handle(gpu.device, ctypes.byref(slab), handle)
        handles.add(handle.raw)
        cuda.download(gpu.stream, gpu.memory, slab.base, min(slab.size, gpu.size))
        cuda.stream_wait(gpu.stream)
        assert not gpu.host[:min(slab.size, gpu.size)].any()
        cuda.slab_close(gpu.device, ctypes.byref(slab))
        assert slab.fd == -1 and slab.base is None
    assert len(handles) == 3 and bytes(64) not in handles
    with pytest.raises(Failed, match="MEMORY"):
        cuda.made("slab_create_plain", gpu.device, 1 << 50, type=Slab)


# ---- slabs of other processes ----

def child(what, fault=None):
    """A process that runs this file: it has a slab with a pattern in it, and sends us the descriptor."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    environment = {**os.environ, **({"ARRAYD_FAULT": fault} if fault else {})}
    process = subprocess.Popen([sys.executable, __file__, what, str(theirs.fileno())], pass_fds=[theirs.fileno()],
                               env=environment)
    theirs.close()
    ours.settimeout(120)
    said, fds, _, _ = socket.recv_fds(ours, 100, 1)
    return process, said.decode(), fds, ours


@pytest.mark.parametrize("end", ["killed", "wild"])
def test_a_slab_outlives_its_process(gpu, end):
    process, said, fds, link = child("make", "wild:1" if end == "wild" else None)
    assert said.startswith("made"), said
    if end == "killed":
        process.send_signal(signal.SIGKILL)
    else:
        link.send(b"x")
        assert link.recv(100) == b"DEVICE_LOST"
    process.wait(60)
    with pytest.raises(Failed, match="EXTENT"):
        cuda.attach(gpu.device, fds[0], 1 << 40)
    slab = cuda.attach(gpu.device, fds[0], 20 * MIB)
    assert slab.size == 20 * MIB and slab.fd not in (-1, fds[0])
    os.close(fds[0])
    cuda.download(gpu.stream, gpu.memory, slab.base, slab.size)
    cuda.stream_wait(gpu.stream)
    assert numpy.array_equal(gpu.host[:slab.size], pattern(slab.size, 7))
    cuda.slab_close(gpu.device, ctypes.byref(slab))


def test_what_is_no_slab(gpu, tmp_path):
    pipe = os.pipe()
    with open(tmp_path / "file", "wb") as file:
        file.truncate(4 * MIB)
        for fd in (file.fileno(), pipe[0], os.memfd_create("m")):
            with pytest.raises(Failed, match="VALUE: the descriptor is no slab"):
                cuda.attach(gpu.device, fd, 2 * MIB)
    with pytest.raises(Failed, match="SYSTEM"):
        cuda.attach(gpu.device, -1, 2 * MIB)
    cuda.zero(gpu.stream, gpu.slab.base, 16)
    cuda.stream_wait(gpu.stream)


def test_slabs_leave_no_memory_behind(gpu):
    def cycle():
        slab = cuda.slab(gpu.device, 512 * MIB)
        again = cuda.attach(gpu.device, slab.fd, 512 * MIB)
        cuda.slab_close(gpu.device, ctypes.byref(slab))
        cuda.slab_close(gpu.device, ctypes.byref(again))
    cycle()
    before, fds = cuda.info(gpu.device).free, len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        cycle()
    assert cuda.info(gpu.device).free > before - 64 * MIB
    assert len(os.listdir("/proc/self/fd")) == fds


# ---- faults ----

def test_a_wild_kernel_loses_the_device():
    """The kernel runs in a process of its own, of which nothing can be used afterwards."""
    done = subprocess.run([sys.executable, __file__, "wild"], env={**os.environ, "ARRAYD_FAULT": "wild:2"},
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert said.pop("before") == "ok"
    assert said.pop("seconds") < "1"
    assert {name.split(":")[0] for name in said.values()} == {"DEVICE_LOST"}, said
    assert "illegal" in said["stream_wait"]


@pytest.mark.parametrize("text", ["run", "run:0", "tiger:1"])
def test_unreadable_faults_are_refused(text):
    done = subprocess.run([sys.executable, __file__, "count"], env={**os.environ, "ARRAYD_FAULT": text},
                          capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split()[1] == "VALUE"


def test_failures_on_demand(monkeypatch):
    monkeypatch.setenv("ARRAYD_FAULT", "slab_create:2,upload:1:memory,stream_wait:1")
    owner = Owner(cuda, 2 * MIB)
    with pytest.raises(Failed, match="MEMORY"):
        cuda.slab(owner.device, MIB)
    for fails in (True, False):
        if fails:
            with pytest.raises(Failed, match="MEMORY"):
                cuda.upload(owner.stream, owner.slab.base, owner.memory, 100)
            with pytest.raises(Failed, match="DEVICE"):
                cuda.stream_wait(owner.stream)
        else:
            cuda.upload(owner.stream, owner.slab.base, owner.memory, 100)
            cuda.stream_wait(owner.stream)
    owner.close()


# ---- two devices ----

@pytest.mark.skipif(cuda is None or cuda.count() < 2, reason="needs two GPUs")
def test_peers_reach_slabs_whoever_was_first(gpu):
    block = pattern(10 * MIB + 3, 8)
    cuda.upload(gpu.stream, gpu.slab.base, address(block), block.size)
    cuda.stream_wait(gpu.stream)
    other = Owner(cuda, 16 * MIB, 1)  # opened after the first one's slab was made
    try:
        assert cuda.info(gpu.device).peers & 2 and cuda.info(other.device).peers & 1
        for stream in (other.stream, gpu.stream):
            cuda.zero(stream, other.slab.base, 16 * MIB)
            cuda.move(stream, other.slab.base, gpu.slab.base, block.size)
            cuda.stream_wait(stream)
            assert numpy.array_equal(other.get(0, block.size), block)
        late = cuda.slab(other.device, 16 * MIB)
        cuda.move(gpu.stream, late.base, gpu.slab.base, block.size)
        cuda.stream_wait(gpu.stream)
        event = cuda.event(other.device)
        cuda.move(other.stream, other.slab.base + MIB, late.base, MIB)
        cuda.event_record(event, other.stream)
        cuda.stream_follow(gpu.stream, event)  # across devices
        cuda.move(gpu.stream, gpu.slab.base + 20 * MIB, other.slab.base + MIB, MIB)
        assert numpy.array_equal(gpu.get(20 * MIB, MIB), block[:MIB])
        with pytest.raises(Failed, match="VALUE: the slab is of device 1, not 0"):
            cuda.attach(gpu.device, late.fd, 16 * MIB)
        cuda.event_close(event)
        cuda.slab_close(other.device, ctypes.byref(late))
    finally:
        other.close()


@pytest.mark.skipif(cuda is None or cuda.count() < 2, reason="needs two GPUs")
def test_peers_reach_plain_slabs_whoever_was_first(gpu):
    """cudaMalloc's memory is let out for a whole device at once."""
    block = pattern(10 * MIB + 3, 9)
    first = cuda.made("slab_create_plain", gpu.device, 16 * MIB, type=Slab)
    cuda.upload(gpu.stream, first.base, address(block), block.size)
    cuda.stream_wait(gpu.stream)
    other = Owner(cuda, 16 * MIB, 1)
    late = cuda.made("slab_create_plain", other.device, 16 * MIB, type=Slab)
    try:
        for stream in (other.stream, gpu.stream):
            cuda.zero(stream, late.base, 16 * MIB)
            cuda.move(stream, late.base, first.base, block.size)
            cuda.move(stream, other.slab.base, late.base, block.size)
            cuda.stream_wait(stream)
            assert numpy.array_equal(other.get(0, block.size), block)
    finally:
        cuda.slab_close(other.device, ctypes.byref(late))
        cuda.slab_close(gpu.device, ctypes.byref(first))
        other.close()


# ---- what other processes do ----

def main_count():
    print(cuda.count() if cuda else Backend("cuda").count())
    try:
        Backend("cuda").open(0)
    except Failed as failed:
        print(failed.name)


def nonsense(owner):
    """An operation that no backend has; before it the site `run` and the site `wild` count."""
    with pytest.raises(Failed, match="INTERNAL"):
        cuda.run(owner.stream, ctypes.byref(Op(opcode=255)), ctypes.byref(Run()))


def main_make(link):
    owner = Owner(cuda, 20 * MIB)
    block = pattern(owner.slab.size, 7)
    cuda.upload(owner.stream, owner.slab.base, address(block), block.size)
    cuda.stream_wait(owner.stream)
    socket.send_fds(link, [b"made"], [owner.slab.fd])
    link.recv(1)
    nonsense(owner)
    try:
        cuda.stream_wait(owner.stream)
    except Failed as failed:
        link.send(failed.name.encode())
        os._exit(3)
    link.send(b"nothing happened")


def main_wild():
    owner = Owner(cuda, 4 * MIB)
    event, bystander = cuda.event(owner.device), cuda.stream(owner.device)
    nonsense(owner)
    cuda.stream_wait(owner.stream)
    print("before ok")
    nonsense(owner)
    cuda.event_record(event, owner.stream)
    begin = time.monotonic()
    tries = [("event_done", lambda: any(cuda.event_done(event) for _ in iter(int, 1))),
             ("stream_wait", lambda: cuda.stream_wait(owner.stream)),
             ("bystander", lambda: cuda.stream_wait(bystander)),
             ("slab_create", lambda: cuda.slab(owner.device, MIB)),
             ("upload", lambda: cuda.upload(bystander, owner.slab.base, owner.memory, MIB)),
             ("zero", lambda: cuda.zero(bystander, owner.slab.base, 4))]
    for name, attempt in tries:
        try:
            attempt()
            print(name, "nothing")
        except Failed as failed:
            print(name, str(failed))
    print("seconds", round(time.monotonic() - begin, 3), flush=True)
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        main_make(socket.socket(fileno=int(sys.argv[2])))
    else:
        {"count": main_count, "wild": main_wild}[sys.argv[1]]()
