"""Kernels of users on a GPU: what only a GPU does. The CPU's tests of modules (tests/ops/test_modules.py) run there too."""
import pathlib
import sys

import numpy as np
import pytest

import arrayd as ad
from arrayd import _core

sys.path.append(str(pathlib.Path(__file__).parents[1] / "fault"))
from wild import BYSTANDER, CULPRIT, client, unharmed  # noqa: E402

KERNEL = 'extern "C" __global__ void wild(int *x) {{ {} }}'
FAULTS = {
    "illegal address": "((volatile int *)16)[threadIdx.x] = 1;",
    "trap": '__trap();',
    "misaligned access": "*(volatile int *)((char *)x + 1) = 1;",
}


@pytest.fixture
def pair(own_server, tmp_path):
    """A server and a bystander in another domain: over TCP."""
    def make(*options):
        _, url = own_server("--tcp=127.0.0.1:0", "--tcp-open=yes", "--kernels-cache=none", *options)
        log = tmp_path / "log"
        port = log.read_text().split("tcp:127.0.0.1:")[1].split()[0].strip('"')
        bystander = client(f"tcp:127.0.0.1:{port}", BYSTANDER)
        return url, log, bystander, int(bystander.stdout.readline())
    return make


@pytest.mark.parametrize("what", FAULTS)
def test_a_kernel_that_faults_ends_its_worker_only(pair, what):
    url, log, bystander, pid = pair()
    culprit = client(url, CULPRIT, KERNEL.format(FAULTS[what]))
    out, err = culprit.communicate(timeout=120)
    assert culprit.returncode == 0, err
    _, failed, after = out.splitlines()
    print(failed)
    assert failed.startswith("DeviceLostError") and "kernels under way: wild" in failed
    assert after.split()[0] == "45.0"
    unharmed(bystander, pid)
    assert "status=3" in log.read_text()


def test_a_kernel_that_never_ends(pair):
    url, log, bystander, pid = pair("--kernel-time=2")
    culprit = client(url, CULPRIT, KERNEL.format("while (*(volatile int *)x == 0) {}"))
    out, err = culprit.communicate(timeout=120)
    assert culprit.returncode == 0, err
    assert "kernel wild ran longer than 2 s" in out.splitlines()[1]
    unharmed(bystander, pid)


def test_a_long_series_of_short_kernels_is_no_long_kernel(own_server):
    _, url = own_server("--kernel-time=1", "--kernels-cache=none")
    code = r"""
import time, arrayd as ad
from arrayd import _core
module = _core.build('extern "C" __global__ void f(int *x) { for (long long t = clock64(); clock64() - t < 20000000;) {} x[0]++; }', (), ())
x, begin = ad.zeros(1, dtype="int32"), time.monotonic()
for _ in range(300):
    module.launch("f", (1, 1, 1), (1, 1, 1), 0, (x,), 1)
assert x.get()[0] == 300 and time.monotonic() - begin > 1.5
"""
    done = client(url, code)
    _, err = done.communicate(timeout=120)
    assert done.returncode == 0, err


def test_attributes():
    module = _core.build(r"""
extern "C" __global__ void f(float *x) {
    __shared__ float s[256];
    extern __shared__ float more[];
    s[threadIdx.x] = x[threadIdx.x]; more[threadIdx.x] = 1;
    __syncthreads();
    x[threadIdx.x] = s[255 - threadIdx.x] + more[threadIdx.x];
}""", (), ())
    info = module.info("f")
    assert info["shared_size_bytes"] == 1024 and info["num_regs"] > 0 and info["max_threads_per_block"] == 1024
    assert info["binary_version"] >= 80 and info["max_dynamic_shared_size_bytes"] in (47 << 10, 48 << 10)
    x = ad.arange(256, dtype="float32")
    module.launch("f", (1, 1, 1), (256, 1, 1), 1024, (x,), 1)
    np.testing.assert_array_equal(x.get(), np.arange(256)[::-1] + 1)


def test_dynamic_shared_memory_above_48_kib():
    module = _core.build(r"""
extern "C" __global__ void f(int *x, int n) {
    extern __shared__ int s[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = s[n - 1 - i];
}""", (), ())
    n = 40 << 10  # 160 KiB
    x, arguments = ad.zeros(n, dtype="int32"), np.int32(n).tobytes()
    module.launch("f", (1, 1, 1), (256, 1, 1), 4 * n, (x, arguments), 1)
    with pytest.raises(ValueError, match="max_dynamic_shared_size_bytes"):
        ad.sync()
    module.set("f", max_dynamic_shared=4 * n)
    module.launch("f", (1, 1, 1), (256, 1, 1), 4 * n, (x, arguments), 1)
    np.testing.assert_array_equal(x.get(), np.arange(n)[::-1])


def test_launches_are_cheap():
    """A launch is sent, not waited for."""
    module = _core.build('extern "C" __global__ void f(int *x) { x[0]++; }', (), ())
    x, before = ad.zeros(1, dtype="int32"), ad.session_info()["round_trips"]
    for _ in range(10_000):
        module.launch("f", (1, 1, 1), (1, 1, 1), 0, (x,), 1)
    assert ad.session_info()["round_trips"] == before
    assert x.get()[0] == 10_000
