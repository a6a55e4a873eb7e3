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


# ---- what a source includes of CUDA's toolkit, in the jail ----

BLOCK = 128


def run(source, name, arrays, threads=BLOCK, **options):
    ad.RawKernel(source, name, **options)((1,), (threads,), arrays)


@pytest.mark.parametrize("backend", ["nvrtc", "nvcc"])
def test_cub(backend):
    x = np.random.default_rng(5).integers(0, 100, BLOCK).astype("int32")
    sums, scan, warp = ad.zeros(1, "int32"), ad.zeros(BLOCK, "int32"), ad.zeros(BLOCK // 32, "int32")
    run(r"""
#include <cstdint>
#include <climits>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
extern "C" __global__ void f(const int32_t *x, int32_t *sums, int32_t *scan, int32_t *warp) {
    typedef cub::BlockReduce<int32_t, 128> reduce;
    typedef cub::BlockScan<int32_t, 128> prefix;
    typedef cub::WarpReduce<int32_t> of_warp;
    __shared__ typename reduce::TempStorage a;
    __shared__ typename prefix::TempStorage b;
    __shared__ typename of_warp::TempStorage c[4];
    const int i = threadIdx.x, sum = reduce(a).Sum(x[i]), all = of_warp(c[i / 32]).Sum(x[i]);
    prefix(b).InclusiveSum(x[i], scan[i]);
    if (i == 0) sums[0] = sum;
    if (i % 32 == 0) warp[i / 32] = all;
}""", "f", (ad.asarray(x), sums, scan, warp), backend=backend)
    assert int(sums[0]) == x.sum()
    np.testing.assert_array_equal(scan.get(), x.cumsum())
    np.testing.assert_array_equal(warp.get(), x.reshape(-1, 32).sum(1))


def test_cuda_std_beside_cupys_headers():
    y = ad.zeros(3)
    run(r"""
#include <cuda/std/limits>
#include <cuda/std/complex>
#include <cuda/std/tuple>
#include <cuda/atomic>
#include <cupy/complex.cuh>
#include <cupy/float16.cuh>
#include <cupy/bfloat16.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/tuple.cuh>
#include <cupy/type_dispatcher.cuh>
#include <cupy/math_constants.h>
#include <cupy/cuda_workaround.h>
#include <thrust/complex.h>
#include <stdio.h>
#include <math.h>
extern "C" __global__ void f(double *y) {
    y[0] = cuda::std::numeric_limits<float>::max();
    y[1] = cuda::std::get<1>(cuda::std::make_tuple(1, 2.5));
    y[2] = thrust::abs(thrust::complex<double>(3, 4)) + float(bfloat16(1.0f));
}""", "f", (y,), 1)
    assert y.tolist() == [float(np.finfo("f4").max), 2.5, 6]


def test_curand():
    y = ad.zeros((2, BLOCK), "float32")
    run(r"""
#include <curand_kernel.h>
extern "C" __global__ void f(float *y) {
    curandStatePhilox4_32_10_t philox;
    curandState xorwow;
    curand_init(7, threadIdx.x, 0, &philox);
    curand_init(7, threadIdx.x, 0, &xorwow);
    y[threadIdx.x] = curand_uniform(&philox);
    y[blockDim.x + threadIdx.x] = curand_uniform(&xorwow);
}""", "f", (y,))
    got = y.get()
    assert ((0 < got) & (got <= 1)).all() and len(np.unique(got)) > 1.9 * BLOCK
    assert abs(got.mean(1) - 0.5).max() < 6 / (12 * BLOCK) ** 0.5


def test_tensor_cores():
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-3, 4, (16, 16)).astype("float16") for _ in range(2))
    c = ad.zeros((16, 16), "float32")
    run(r"""
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void f(const half *a, const half *b, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}""", "f", (ad.asarray(a), ad.asarray(b), c), 32)
    np.testing.assert_array_equal(c.get(), a.astype("f4") @ b.astype("f4"))


def test_cooperative_groups():
    x = ad.arange(BLOCK, dtype="int32")
    run(r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void f(int *x) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    x[threadIdx.x] = cg::reduce(tile, x[threadIdx.x], cg::plus<int>());
}""", "f", (x,))
    np.testing.assert_array_equal(x.get(), np.arange(BLOCK).reshape(-1, 32).sum(1).repeat(32))


def test_functions_that_are_not_marked_are_the_devices_with_nvcc():
    source = 'int twice(int x) { return 2 * x; } extern "C" __global__ void f(int *x) { *x = twice(*x); }'
    x = ad.ones(1, "int32") * 21
    run(source, "f", (x,), 1, backend="nvcc", options=("-gencode", "arch=compute_80,code=sm_80", "-Xcompiler=-O2",
                                                       "--expt-relaxed-constexpr", "-lineinfo", "-O3"))
    assert int(x[0]) == 42
    with pytest.raises(ad.CompileError, match="host function"):
        ad.RawKernel(source, "f").compile()


def test_thrust_is_refused_with_the_reason():
    kernel = ad.RawKernel("""
#include <thrust/sort.h>
#include <thrust/execution_policy.h>
extern "C" __global__ void f(float *x) { thrust::sort(thrust::seq, x, x + 5); }""", "f", backend="nvcc")
    with pytest.raises(ad.CompileError, match="cannot compile Thrust's headers; .*jit.thrust"):
        kernel.compile()


def test_complex_division_is_that_of_arrays():
    rng = np.random.default_rng(8)
    for dtype, c in (("complex64", "cuFloatComplex"), ("complex128", "cuDoubleComplex")):
        a, b = (ad.asarray((rng.normal(size=256) + 1j * rng.normal(size=256)).astype(dtype)) for _ in range(2))
        y = ad.empty_like(a)
        run(f"""#include <cuComplex.h>
extern "C" __global__ void f(const {c} *a, const {c} *b, {c} *y) {{
    y[threadIdx.x] = cuCdiv{"f" if dtype == "complex64" else ""}(a[threadIdx.x], b[threadIdx.x]);
}}""", "f", (a, b, y), 256, translate_cucomplex=True)
        assert bool((y == a / b).all())
