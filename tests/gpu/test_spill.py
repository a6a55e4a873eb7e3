"""Arrays do not fit a GPU: they take four times a limit of 8 GiB, in pinned host memory. Results are NumPy's.

The memory of one server is given by its own option, so these need no large GPU; the host needs some 40 GiB."""
import os
import time

import numpy as np
import pytest

import arrayd as ad

GIB = 1 << 30
N, SIZE = 64, GIB // 2  # 32 GiB
ELEMENTS = SIZE // 4


@pytest.fixture
def small(own_server):
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 48 * GIB:
        pytest.skip("the host has less than 48 GiB")
    before = os.environ["ARRAYD_URL"]
    _, url = own_server("--memory=8G", "--host-memory=36G")
    ad.connect(url)
    yield url
    ad.connect(before)


def first(i):
    """The elements that array i begins with, and their step."""
    return np.float32(i), np.float32(1 + i % 3)


def made(i):
    start, step = first(i)
    return (ad.arange(ELEMENTS, dtype="int32") % 1024).astype("float32") * step + start


def expected(i, at):
    start, step = first(i)
    return (at % 1024).astype("float32") * step + start


def test_swept_again_and_again(small):
    """Sweeps are in place, into new arrays, and reduced. Each moves everything out and in."""
    at = np.r_[0:1000, ELEMENTS // 2:ELEMENTS // 2 + 1000, ELEMENTS - 1000:ELEMENTS]
    arrays = [made(i) for i in range(N)]
    began = time.monotonic()
    for _ in range(3):
        for x in arrays:
            x += 1
    ad.sync()
    took = time.monotonic() - began
    counters = ad.stat()
    print(f"{counters['moved_out'] / GIB:.0f} GiB out, {counters['moved_in'] / GIB:.0f} GiB in; "
          f"3 sweeps {took:.1f} s, {6 * N * SIZE / took / GIB:.1f} GiB/s both ways")
    assert counters["ops_failed"] == 0
    assert counters["slab_bytes"] <= 8 * GIB and counters["buffer_bytes"] == N * SIZE
    assert counters["host_bytes"] >= (N - 16) * SIZE and counters["moved_in"] >= 3 * (N - 16) * SIZE
    for i in range(0, N, 7):
        np.testing.assert_array_equal(arrays[i][ad.array(at)].get(), expected(i, at) + 3)
    sums = [float(x[:1 << 20].sum(dtype="float64")) for x in arrays]
    for i, total in enumerate(sums):
        assert total == (expected(i, np.arange(1 << 20)).astype("float64") + 3).sum()
    del arrays
    ad.sync()
    assert ad.stat()["host_bytes"] == 0


def test_matmul_with_two_streams(small):
    """Products of matrices that lie in host memory, while another stream sweeps what is left."""
    n, count = 8192, 80  # 256 MiB each, 20 GiB
    random = np.random.default_rng(1)
    row = [random.integers(-3, 4, n).astype("float32") for _ in range(count)]
    matrices = [ad.array(v)[:, None] * ad.ones((1, n), dtype="float32") for v in row]
    streams = [ad.cuda.Stream(non_blocking=True) for _ in range(2)]
    total = ad.zeros((n, n), dtype="float32")
    for i in range(count - 1):
        with streams[0]:
            total += matrices[i] @ matrices[i + 1]  # row i times the sum of row i + 1, in each column
        with streams[1]:
            matrices[i - 2] += 0
    ad.sync()
    wanted = sum(row[i].astype("float64") * row[i + 1].sum(dtype="float64") for i in range(count - 1))
    np.testing.assert_array_equal(total[:, 17].get(), wanted.astype("float32"))
    for i in range(0, count, 9):
        np.testing.assert_array_equal(matrices[i][:, -1].get(), row[i])


def test_two_sessions_on_streams_of_their_own(small):
    """Each session has as much as fits, cut from slabs, with small arrays in between."""
    one = [ad.full(1 << 21, float(i), dtype="float32") for i in range(1000)]
    little = [x[:5].sum() for x in one]
    ad.connect(small)
    two = [ad.full(1 << 26, float(i), dtype="float32") for i in range(40)]
    for _ in range(2):
        for i in range(1000):
            one[i] += 1
            if i % 25 == 0:
                two[i // 25] *= 2
    assert [float(x[-1]) for x in one[::50]] == [i + 2.0 for i in range(0, 1000, 50)]
    assert [float(x[-1]) for x in two] == [4.0 * i for i in range(40)]
    assert [float(s) for s in little[::50]] == [5.0 * i for i in range(0, 1000, 50)]
