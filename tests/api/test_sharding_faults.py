"""Arrays over several devices on a server that loses its worker, or runs out of memory on one device."""
import contextlib
import os
import random
import signal
import threading

import numpy as np
import pytest

import arrayd as ad
from arrayd.sharding import Mesh, NamedSharding, PartitionSpec as P, _move, _products, _sorting
from conftest import end_servers, start_server

pytestmark = pytest.mark.skipif(os.environ.get("ARRAYD_TEST_BACKEND", "cpu") != "cpu", reason="the CPU's devices are as many as wanted")


KILLS = 5


@pytest.fixture
def serve(tmp_path):
    """A function that starts a server of four devices and connects to it."""
    before, processes = ad.session_info()["url"], []

    def start(*options, **variables):
        process, url = start_server(str(tmp_path), "--cpu-devices", "4", *options, **variables)
        processes.append(process)
        ad.connect(url)

    yield start
    ad.connect(before)
    end_servers(*processes)


def compute(h, x):
    """A program that computes on parts, adds up, reshards, sorts and multiplies: of NumPy's array and of one over devices."""
    for i in range(6):
        h, x = np.tanh(h @ h.T / 50 + h[::-1] * 0.5), np.tanh(x @ x.T / 50 + x[::-1] * 0.5)
        h, x = h - h.mean(axis=i % 2, keepdims=True), x - x.mean(axis=i % 2, keepdims=True)
        h, x = np.sort(h, axis=1 - i % 2), np.sort(x, axis=1 - i % 2)
        h, x = np.cumsum(h, axis=i % 2) * 0.1, np.cumsum(x, axis=i % 2) * 0.1
        order, places = np.argsort(h[:, 0], kind="stable"), np.argsort(x[:, 0])
        h, x = np.where(order % 3, h, np.sort(h[0])), np.where(places % 3, x, np.sort(x[0]))
    return h, x


@contextlib.contextmanager
def killing(moment):
    """Workers are killed at moments, which the list has: of eight in a row with one operation at hand that is left out."""
    done, kills, parent = threading.Event(), [], find_parent(ad.stat()["worker_pid"])

    def kill():
        while len(kills) < KILLS and not done.wait(moment.uniform(0, 0.05)):
            try:
                with open(f"/proc/{parent}/task/{parent}/children") as children:
                    workers = [int(pid) for pid in children.read().split()]
                os.kill(workers[0], signal.SIGKILL)
                kills.append(workers[0])
            except (IndexError, ProcessLookupError):
                continue
            done.wait(0.1)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield kills
    finally:
        done.set()
        killer.join()


@pytest.mark.parametrize("seed", range(4))
def test_killed_workers_lose_nothing(serve, seed, monkeypatch):
    """In odd runs operands and sections come as those of large arrays do: in pieces, on streams of their own."""
    serve()
    for module, name, value in ((_products, "_LARGE", 0), (_products, "_NARROW", 1), (_sorting, "_LARGE", 0),
                                (_move, "_LARGE", 0), (_move, "_CHUNK", 64)):
        monkeypatch.setattr(module, name, value if seed % 2 else getattr(module, name))
    rng = np.random.default_rng(seed)
    h = rng.standard_normal((60, 60))
    mesh = Mesh([[0, 1], [2, 3]], ("a", "b"))
    kept = ad.device_put(h, NamedSharding(mesh, P("b", "a")))
    x = ad.device_put(h, NamedSharding(mesh, P("a", "b")))
    with killing(random.Random(seed)) as kills:
        while len(kills) < KILLS:
            expected, found = compute(h, x)
            np.testing.assert_allclose(found.get(), expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(kept.get(), h)
    np.testing.assert_array_equal(x.get(), h)


@pytest.mark.parametrize("function", ["sum", "sort"])
def test_killed_workers_lose_no_chunks_on_a_late_backend(serve, function, monkeypatch):
    """A chunk is written beside others that have been read already. That is no change of what was read, so the operations
    since the checkpoint are executed again, and no array is lost."""
    serve(ARRAYD_CPU_LATE="1")
    for module, name, value in ((_sorting, "_LARGE", 0), (_move, "_LARGE", 0), (_move, "_CHUNK", 64)):
        monkeypatch.setattr(module, name, value)
    h = np.random.default_rng(3).integers(0, 100, (4, 500)).astype(float)
    x = ad.device_put(h if function == "sum" else h.ravel(), NamedSharding(Mesh([0, 1, 2, 3], "a"), P("a")))
    expected = h.sum(axis=0) if function == "sum" else np.sort(h, axis=None)
    with killing(random.Random(1)) as kills:
        while len(kills) < KILLS:
            np.testing.assert_array_equal(getattr(ad, function)(x, axis=0).get(), expected)


def find_parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def test_products_come_in_blocks(serve):
    """A device that has a quarter of a matrix needs no more than two further quarters at a time to multiply by all of it."""
    serve("--memory", "300M")
    rows = NamedSharding(Mesh([0, 1, 2, 3], "a"), P("a"))
    a, b = ad.ones((128, 4096), "float32", device=rows), ad.ones((4096, 16384), "float32", device=rows)
    before = ad.sharding.moved_bytes()
    product = a @ b
    assert ad.sharding.moved_bytes() - before == 3 * b.nbytes
    assert float(product.min()) == float(product.max()) == 4096
    with pytest.raises(MemoryError):
        (a @ ad.device_put(b, NamedSharding(rows.mesh, P()))).get()


def test_each_device_has_a_limit(serve):
    """The limit of memory is that of each device, and an array of four devices may be as large as four of them. Where a
    device has no memory left only what has parts there is lost."""
    serve("--memory", "64M")
    mesh = Mesh([0, 1, 2, 3], "a")
    x = ad.zeros(160 << 20, "uint8", device=NamedSharding(mesh, P("a")))
    assert int(x.sum(dtype="int64")) == 0
    with pytest.raises(MemoryError):
        ad.zeros(160 << 20, "uint8").get()
    del x
    with ad.cuda.Device(2):
        full = ad.zeros(50 << 20, "uint8")
    small = ad.ones(60 << 20, "uint8", device=NamedSharding(Mesh([0, 1, 3], "a"), P("a")))
    wide = ad.ones(80 << 20, "uint8", device=NamedSharding(mesh, P("a")))
    assert int((small + np.uint8(1)).sum(dtype="int64")) == 120 << 20
    with pytest.raises(MemoryError):
        wide.get()
    with pytest.raises(MemoryError):
        (wide + np.uint8(1)).sum().get()
    assert wide.addressable_shards[0].data.get().all()
    assert int(full.sum()) == 0 and int(small.sum(dtype="int64")) == 60 << 20
    del full, wide
    assert int(ad.ones(80 << 20, "uint8", device=NamedSharding(mesh, P("a"))).sum(dtype="int64")) == 80 << 20
