"""One array over several GPUs: skipped where there are fewer than two. The tests of arrays over several devices
(tests/api/test_sharding*.py with ARRAYD_TEST_BACKEND=cuda) run on one, too, which stands in a mesh several times."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import arrayd as ad
import chains
from arrayd.sharding import Mesh, NamedSharding, PartitionSpec as P
from conftest import gpus

pytestmark = pytest.mark.skipif(gpus() < 2, reason="there are fewer than two GPUs")


@pytest.fixture
def rows():
    return NamedSharding(Mesh("all", "a"), P("a"))


def test_parts_lie_on_their_gpus_and_peers_read_them(rows):
    """Large parts, so that copies between GPUs and work on them are under way at one time."""
    n = ad.session_info()["devices"]
    rng = np.random.default_rng(1)
    h, k = (rng.standard_normal((n * 700 + 1, 513)).astype("float32") for _ in range(2))
    x, y = ad.device_put(h, rows), ad.device_put(k, NamedSharding(rows.mesh, P(None, "a")))
    assert [shard.data.device.id for shard in x.addressable_shards] == list(range(n))
    for _ in range(5):
        np.testing.assert_allclose((x * 2 + y).get(), h * 2 + k, rtol=1e-6)
        np.testing.assert_allclose((x - y).sum(axis=0).get(), (h - k).sum(axis=0), rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose((x @ y.T).get(), h @ k.T, rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose(np.fft.fft(x, axis=0).get(), np.fft.fft(h, axis=0), rtol=1e-3, atol=1e-2)
    assert ad.sharding.moved_bytes() > 0


def test_runs_of_elements_are_copied_between_gpus():
    """The copy engine takes long runs, and kernels short ones and those that lie otherwise."""
    h = np.random.default_rng(7).standard_normal((1500, 4096)).astype("float32")
    with ad.cuda.Device(0):
        x = ad.asarray(h)
    with ad.cuda.Device(1):
        for index in (np.s_[:], np.s_[5:], np.s_[3:, 1000:3001], np.s_[::2, 7:], np.s_[:, :300], np.s_[:, ::2], np.s_[::-1]):
            np.testing.assert_array_equal(x[index].copy().get(), h[index])
            y = ad.zeros(h.shape, "float32")
            y[index] = x[index]
            expected = np.zeros_like(h)
            expected[index] = h[index]
            np.testing.assert_array_equal(y.get(), expected)
        x[10:, 96:4000] = y[10:, 96:4000] * 0 + 2
    h[10:, 96:4000] = 2
    np.testing.assert_array_equal(x.get(), h)


def test_large_parts_come_while_others_are_computed(rows):
    """Transforms and products in blocks, sums in chunks: beside NumPy, and again, when memory has been used before."""
    rng = np.random.default_rng(8)
    h = (rng.standard_normal((8192, 2048)) + 1j * rng.standard_normal((8192, 2048))).astype("complex64")
    a, b = (rng.standard_normal((4096, 4096)).astype("float32") for _ in range(2))
    z, x, y = (ad.device_put(each, rows) for each in (h, a, b))
    spectrum, product = np.fft.fft(h, axis=0), a @ b
    parts = rng.random((rows.mesh.size, 100_000_000), dtype="float32")
    sums = ad.device_put(parts, rows)
    for _ in range(3):
        np.testing.assert_allclose(np.fft.fft(z, axis=0).get(), spectrum, rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose((x @ y).get(), product, rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose(sums.sum(axis=0).get(), parts.sum(axis=0), rtol=1e-6)


def test_sorting_over_gpus(rows):
    h = np.random.default_rng(2).standard_normal(3_000_001).astype("float32")
    x = ad.device_put(h, rows)
    made = np.sort(x)
    np.testing.assert_array_equal(made.get(), np.sort(h))
    np.testing.assert_array_equal(np.argsort(x).get(), np.argsort(h, kind="stable"))
    large = np.random.default_rng(9).integers(0, 1 << 20, 34_000_000).astype("float32")
    x = ad.device_put(large, rows)
    np.testing.assert_array_equal(np.sort(x).get(), np.sort(large))
    np.testing.assert_array_equal(np.argsort(x).get(), np.argsort(large, kind="stable"))
    sizes = [shard.data.size for shard in made.addressable_shards]
    assert max(sizes) < 1.1 * h.size / len(sizes)


def test_sums_over_gpus_have_equal_bits(rows):
    n = rows.mesh.size
    h = np.random.default_rng(3).standard_normal((n, 1_000_003)).astype("float32")
    made = ad.device_put(h, rows).sum(axis=0)
    np.testing.assert_allclose(made.get(), h.sum(axis=0), rtol=1e-4, atol=1e-4)
    assert len({shard.data.get().tobytes() for shard in made.addressable_shards}) == 1


def test_chains_fuse_on_each_gpu(rows):
    x = ad.random.default_rng(4).random((8 * rows.mesh.size, 1 << 16), device=rows)

    def chain():
        return (x * x + 1) * 0.5 - x

    kept, counters = chains.together(lambda: [chain() for _ in range(20)], fused_ops=1)
    assert counters["fused_ops"] > 0
    np.testing.assert_allclose(kept[0].get(), (x.get() ** 2 + 1) * 0.5 - x.get(), rtol=1e-12)


def test_another_gpu_reads_zeros_that_were_not_written_yet():
    """The device that first needs them sets them, also in the memory of another one."""
    for n in (5, 1000, 3_000_001):
        with ad.cuda.Device(0):
            x = ad.zeros(n, "int8")
        with ad.cuda.Device(1):
            y = x + ad.ones(n, "int8")
        assert y.device.id == 1 and y.get().sum(dtype=int) == n and not x.get().any()


def test_random_numbers_are_those_of_one_gpu(rows):
    one, several = ad.random.default_rng(5), ad.random.default_rng(5)
    np.testing.assert_array_equal(several.random((999, 31), device=rows).get(), one.random((999, 31)).get())


WILD = """
import arrayd as ad
with ad.cuda.Device(0):
    bystander = ad.arange(1000.0)
x = ad.arange(1_000_000.0, device="all")
for _ in range(60):
    assert float((x + 1).sum()) == 500000500000.0
    assert float(bystander.sum()) == 499500.0
print([shard.data.device.id for shard in x.addressable_shards] == list(range(ad.session_info()["devices"])))
"""


def test_an_illegal_address_on_one_gpu_loses_nothing_on_any(own_server, monkeypatch, tmp_path):
    """Each device counts its operations, so the kernel that writes where nothing is runs on both in turn."""
    monkeypatch.setenv("ARRAYD_FAULT", "wild:40")
    process, url = own_server()
    monkeypatch.delenv("ARRAYD_FAULT")
    done = subprocess.run([sys.executable, "-c", WILD], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "ARRAYD_URL": url})
    assert done.stdout == "True\n", done.stderr
    assert process.poll() is None
    assert "event=recovered" in pathlib.Path(tmp_path / "log").read_text()


KILLED = """
import os, signal
import numpy as np
import arrayd as ad
from arrayd.sharding import Mesh, NamedSharding, PartitionSpec as P
h = np.random.default_rng(6).standard_normal((64, 100_000))
rows = NamedSharding(Mesh("all", "a"), P("a"))
x, workers = ad.device_put(h, rows), set()
expected = h.copy()
for i in range(6):
    y = x * 2 + i
    workers.add(ad.stat()["worker_pid"])
    os.kill(ad.stat()["worker_pid"], signal.SIGKILL)
    x, expected = y - x, expected + i
    assert np.allclose(y.get(), expected * 2 - i) and np.allclose(x.get(), expected)
print(len(workers))
"""


def test_a_killed_worker_loses_nothing_on_any_gpu(own_server):
    """The worker is killed while operations on all devices are under way, again and again."""
    process, url = own_server()
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=240,
                          env={**os.environ, "ARRAYD_URL": url})
    assert done.stdout == "6\n", done.stderr
    assert process.poll() is None
