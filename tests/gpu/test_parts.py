"""Multiprocessors that are kept free for light sessions while another one keeps the GPU busy (option sm-share)."""
import contextlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import arrayd as ad
from conftest import BUILD

N = 4096
FLOOD = f"""
import arrayd as ad
a = ad.ones(({N}, {N}), "float32") / {N}
out = ad.zeros_like(a)
ad.matmul(a, a, out=out)
ad.sync()
print("begun", flush=True)
while True: ad.matmul(a, a, out=out)
"""
LIGHT = """
import arrayd as ad
a = ad.ones(16)
assert float(a.sum()) == 16
print("begun", flush=True)
while True: assert float(a.sum()) == 16
"""
COOPERATIVE = r"""
#include <cooperative_groups.h>
extern "C" __global__ void meet(int *x) {
    atomicAdd(x, 1);
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) x[1] = x[0];
}
"""


@contextlib.contextmanager
def another(url, code):
    """Run another session, which does not end by itself."""
    program = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "ARRAYD_URL": url}, text=True,
                               stdout=subprocess.PIPE)
    try:
        assert program.stdout.readline() == "begun\n"
        yield program
        assert program.poll() is None, "the other session has failed"
    finally:
        program.kill()
        program.communicate()


@pytest.fixture
def divided(own_server):
    """Start a server whose GPU is divided, and connect to it."""
    before = ad.session_info()["url"]
    _, url = own_server("--sm-share=8")
    ad.connect(url)
    yield url
    ad.connect(before)


def ask(url, *words):
    """Return what arrayctl says."""
    ctl = [BUILD / "bin" / "arrayctl", *words, "--socket=" + url.removeprefix("unix:")]
    return subprocess.run(ctl, capture_output=True, text=True, check=True).stdout


def count_reserved(url):
    """Return how many multiprocessors are reserved now."""
    status = json.loads(ask(url, "status", "--json"))
    return sum(device["reserved_multiprocessors"] for worker in status["workers"] for device in worker["devices"])


def compare_with_numpy(rng):
    """Compute a round of what a notebook does, and compare each result with that of NumPy."""
    n = int(rng.integers(2, 200))
    h = rng.standard_normal((n, n))
    x = ad.asarray(h)
    spread = h + n * np.eye(n)
    y = ad.asarray(spread)
    np.testing.assert_allclose((x @ x).get(), h @ h, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose((ad.sin(x) * 2 + x).get(), np.sin(h) * 2 + h, rtol=1e-12)
    np.testing.assert_allclose(x.sum(axis=0).get(), h.sum(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ad.fft.fft(x).get(), np.fft.fft(h), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(ad.sort(x, axis=-1).get(), np.sort(h, axis=-1))
    np.testing.assert_allclose(ad.linalg.solve(y, x).get(), np.linalg.solve(spread, h), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ad.linalg.svd(y, compute_uv=False).get(), np.linalg.svd(spread, compute_uv=False), rtol=1e-9)
    np.testing.assert_allclose(ad.linalg.eigvalsh(y @ y.T).get(), np.linalg.eigvalsh(spread @ spread.T), rtol=1e-7)
    assert float((ad.ones(1 << 22, "float32") * 3).sum()) == 3 << 22


@pytest.fixture
def busy():
    """A function that gives the GPU some 20 ms to do, without waiting for it."""
    a = ad.ones((N, N), "float32") / N
    out = ad.zeros_like(a)

    def enqueue():
        for _ in range(8):
            ad.matmul(a, a, out=out)
        return out

    return enqueue


def test_everything_works_beside_what_is_reserved(divided, busy):
    """A heavy session leaves multiprocessors alone: its results are those of the whole device."""
    rng, reserved = np.random.default_rng(1), []
    with another(divided, LIGHT):
        for _ in range(20):
            out = busy()
            compare_with_numpy(rng)
            reserved.append(count_reserved(divided))
    assert max(reserved) >= 8, "the other one was never served in time"
    np.testing.assert_allclose(out[0, :8].get(), 1 / N, rtol=1e-4)


def test_blocks_that_wait_for_each_other_have_the_whole_device(divided, busy):
    """A cooperative launch of as many blocks as the GPU has multiprocessors succeeds beside what is reserved."""
    blocks = ad.cuda.Device(0).attributes["MultiProcessorCount"]
    kernel = ad.RawKernel(COOPERATIVE, "meet", enable_cooperative_groups=True)
    with another(divided, LIGHT):
        for _ in range(5):
            busy()
            met = ad.zeros(2, "int32")
            kernel((blocks,), (1024,), (met,))
            assert met[1] == 1024 * blocks


def test_they_are_reserved_while_both_are_there(divided):
    a = ad.ones(16)
    for _ in range(100):
        assert float(a.sum()) == 16
    assert count_reserved(divided) == 0, "nobody else is there"
    with another(divided, FLOOD):
        for _ in range(1000):
            assert float(a.sum()) == 16
        given = count_reserved(divided)
        assert given >= 8
        assert f", {given} multiprocessors reserved" in ask(divided, "top", "--count=1", "--interval=0.05")
