"""Users' modules at the level of the extension: building, launching, attributes, variables, errors. The classes that
programs use are tested in test_raw_kernels.py."""
import os
import struct

import numpy as np
import pytest

import arrayd as ad
from arrayd import _core

CPU = os.environ.get("ARRAYD_TEST_BACKEND", "cpu") == "cpu"
ALL = -1


def launch(module, name, grid, block, *arguments, shared=0, written=ALL):
    three = [tuple(v) + (1,) * (3 - len(v)) for v in (grid, block)]
    module.launch(name, *three, shared, arguments, written)


def i32(value):
    return np.int32(value).tobytes()


def build(source, *names, options=()):
    return _core.build(source, options, names)


def test_a_kernel_with_arrays_and_values():
    module = build(r"""
extern "C" __global__ void axpy(const float *x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}""")
    x, y = ad.arange(1000, dtype="float32"), ad.ones(1000, dtype="float32")
    before = ad.session_info()["round_trips"]
    launch(module, "axpy", (4,), (256,), x, y, np.float32(3).tobytes(), i32(1000), written=2)
    assert ad.session_info()["round_trips"] == before
    np.testing.assert_array_equal(y.get(), np.arange(1000, dtype="float32") * 3 + 1)
    np.testing.assert_array_equal(x.get(), np.arange(1000, dtype="float32"))


def test_views_are_where_they_begin():
    module = build('extern "C" __global__ void f(int *x) { x[threadIdx.x] += 100; }')
    x = ad.arange(20, dtype="int32")
    launch(module, "f", (1,), (5,), x[7:12])
    expected = np.arange(20, dtype="int32")
    expected[7:12] += 100
    np.testing.assert_array_equal(x.get(), expected)


def test_indices_of_three_dimensions():
    module = build(r"""
extern "C" __global__ void where(int *out) {
    int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[b * blockDim.x * blockDim.y * blockDim.z + t] = ((b * 100 + threadIdx.x) * 100 + threadIdx.y) * 100 + threadIdx.z;
}""")
    grid, block = (2, 3, 4), (5, 3, 2)
    out = ad.zeros(24 * 30, dtype="int32")
    launch(module, "where", grid, block, out)
    b, z, y, x = np.meshgrid(np.arange(24), np.arange(2), np.arange(3), np.arange(5), indexing="ij")
    np.testing.assert_array_equal(out.get(), (((b * 100 + x) * 100 + y) * 100 + z).ravel())


def test_structs_by_value():
    module = build(r"""
struct point { double x; float y; int n; };
extern "C" __global__ void f(point p, double2 v, double *out) {
    out[0] = p.x; out[1] = p.y; out[2] = p.n; out[3] = v.x + v.y;
}""")
    out = ad.zeros(4)
    launch(module, "f", (1,), (1,), struct.pack("dfi", 1.5, 2.5, 7), struct.pack("dd", 3, 4), out)
    assert out.get().tolist() == [1.5, 2.5, 7, 7]


def test_shared_memory_and_barriers():
    module = build(r"""
extern "C" __global__ void sums(const float *x, float *out) {
    extern __shared__ __align__(16) float part[];
    __shared__ float fixed[2];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * blockDim.x + t];
    if (t == 0) fixed[0] = fixed[1] = 0.5f;
    __syncthreads();
    for (int h = blockDim.x / 2; h > 0; h /= 2) {
        if (t < h) part[t] += part[t + h];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0] + fixed[0] - fixed[1];
}""")
    x = np.random.default_rng(1).integers(0, 100, 512 * 33).astype("float32")
    out = ad.zeros(33, dtype="float32")
    launch(module, "sums", (33,), (512,), ad.asarray(x), out, shared=2048)
    np.testing.assert_array_equal(out.get(), x.reshape(33, 512).sum(1))


def test_early_returns_do_not_keep_a_barrier_waiting():
    module = build(r"""
extern "C" __global__ void f(int *out, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t >= n) return;
    s[t] = t;
    __syncthreads();
    out[t] = s[n - 1 - t] + __syncthreads_count(t & 1);
}""")
    out = ad.zeros(64, dtype="int32")
    launch(module, "f", (1,), (64,), out, i32(40))
    np.testing.assert_array_equal(out.get()[:40], 39 - np.arange(40) + 20)


def test_shuffles_votes_and_matches():
    module = build(r"""
extern "C" __global__ void f(const double *x, double *out, unsigned *bits) {
    int t = threadIdx.x, lane = t % 32;
    double v = x[t];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    double all = __shfl_sync(0xffffffffu, v, 0);
    double up = __shfl_up_sync(0xffffffffu, x[t], 1), swapped = __shfl_xor_sync(0xffffffffu, x[t], 3, 8);
    out[3 * t] = all; out[3 * t + 1] = up; out[3 * t + 2] = swapped;
    bits[4 * t] = __ballot_sync(0xffffffffu, lane % 3 == 0);
    bits[4 * t + 1] = __any_sync(0xffffffffu, t == 40) * 2 + __all_sync(0xffffffffu, t < 64);
    bits[4 * t + 2] = __match_any_sync(0xffffffffu, lane / 8);
    unsigned half = 0xffffu << (lane / 16 * 16);
    bits[4 * t + 3] = __reduce_max_sync(half, (unsigned)t);
}""")
    x = np.random.default_rng(2).integers(0, 1000, 64).astype(float)
    out, bits = ad.zeros((64, 3)), ad.zeros((64, 4), dtype="uint32")
    launch(module, "f", (1,), (64,), ad.asarray(x), out, bits)
    t = np.arange(64)
    np.testing.assert_array_equal(out.get()[:, 0], np.repeat(x.reshape(2, 32).sum(1), 32))
    np.testing.assert_array_equal(out.get()[:, 1], x[np.where(t % 32 == 0, t, t - 1)])
    np.testing.assert_array_equal(out.get()[:, 2], x[t ^ 3])
    b = bits.get()
    assert set(b[:, 0]) == {sum(1 << i for i in range(0, 32, 3))}
    np.testing.assert_array_equal(b[:, 1], np.where(t < 32, 1, 3))
    np.testing.assert_array_equal(b[:, 2], 0xFF << (t % 32 // 8 * 8))
    np.testing.assert_array_equal(b[:, 3], t // 16 * 16 + 15)


def test_atomics():
    module = build(r"""
extern "C" __global__ void f(int *i, unsigned *u, float *f, double *d, unsigned long long *l) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&i[0], 2); atomicSub(&i[1], 1); atomicMin(&i[2], -t); atomicMax(&i[3], t);
    atomicAnd(&u[0], ~(1u << (t % 32))); atomicOr(&u[1], 1u << (t % 32)); atomicXor(&u[2], (unsigned)t);
    atomicInc(&u[3], 6u);
    atomicAdd(&f[0], 0.5f); atomicAdd(d, 0.25); atomicAdd(l, 1ull << 33);
    if (atomicCAS(&i[4], 0, t + 1) == 0) atomicExch(&i[5], 77);
}""")
    i, u = ad.zeros(6, dtype="int32"), ad.asarray(np.array([0xFFFFFFFF, 0, 0, 0], dtype="uint32"))
    f, d, wide = ad.zeros(1, dtype="float32"), ad.zeros(1), ad.zeros(1, dtype="uint64")
    launch(module, "f", (16,), (256,), i, u, f, d, wide)
    assert i.get()[:4].tolist() == [8192, -4096, -4095, 4095] and i.get()[4] > 0 and i.get()[5] == 77
    assert u.get().tolist() == [0, 0xFFFFFFFF, np.bitwise_xor.reduce(np.arange(4096)), 4096 % 7]
    assert f.get()[0] == 2048 and d.get()[0] == 1024 and wide.get()[0] == 4096 << 33


def test_templates_by_name_expressions():
    names = ("mine::scale<float, 3>", "mine::scale<double, 4>", "plain")
    module = build(r"""
namespace mine { template <class T, int N> __global__ void scale(T *x) { x[threadIdx.x] *= N; } }
__global__ void plain(int *x) { x[threadIdx.x] = 5; }""", *names)
    for name, dtype, factor in zip(names, ("float32", "float64"), (3, 4)):
        x = ad.arange(8, dtype=dtype)
        launch(module, name, (1,), (8,), x)
        np.testing.assert_array_equal(x.get(), np.arange(8) * factor)
    y = ad.zeros(3, dtype="int32")
    launch(module, "plain", (1,), (3,), y)
    assert y.get().tolist() == [5, 5, 5]


def test_variables_are_arrays():
    module = build(r"""
__constant__ float table[4];
__device__ int calls;
extern "C" __global__ void f(float *out) { out[threadIdx.x] = table[threadIdx.x] * 2; if (threadIdx.x == 0) calls++; }""")
    table = module.get_global("table").view("float32")
    assert table.shape == (4,)
    table[...] = ad.asarray(np.array([1, 2, 3, 4], dtype="float32"))
    out = ad.zeros(4, dtype="float32")
    launch(module, "f", (1,), (4,), out)
    launch(module, "f", (1,), (4,), out)
    calls = module.get_global("calls").view("int32")
    del module  # the variables keep it
    assert out.get().tolist() == [2, 4, 6, 8] and calls.get().tolist() == [2]
    with pytest.raises(ValueError, match="no variable"):
        build("__device__ int x;").get_global("y")


def test_variables_are_written_when_their_array_is_dropped():
    """The array is a temporary, what it stands for is not: the write happens, however much is queued."""
    module = build(r"""
__constant__ double factor;
extern "C" __global__ void f(double *out) { out[threadIdx.x] = factor; }""")
    wrong = 0
    for value in range(1, 201):
        module.get_global("factor").view("float64")[...] = ad.full(1, float(value))
        out = ad.zeros(4)
        launch(module, "f", (1,), (4,), out)
        wrong += out.get().tolist() != [value] * 4
    assert wrong == 0


def test_complex_and_half():
    module = build(r"""
#include <cupy/complex.cuh>
#include <cuda_fp16.h>
extern "C" __global__ void f(const complex<double> *z, complex<double> *w, const float *x, half *h, float *back) {
    int t = threadIdx.x;
    w[6 * t] = exp(z[t]); w[6 * t + 1] = sqrt(z[t]); w[6 * t + 2] = z[t] * conj(z[t]) / (z[t] + 1.0);
    w[6 * t + 3] = pow(z[t], 3); w[6 * t + 4] = tan(z[t]); w[6 * t + 5] = asin(z[t]);
    h[t] = __float2half(x[t]);
    back[t] = __half2float(h[t] + h[t]);
}""")
    rng = np.random.default_rng(3)
    z = rng.normal(size=64) + 1j * rng.normal(size=64)
    x = np.concatenate([rng.normal(size=56) * 10.0 ** rng.integers(-9, 6, 56), [0, -0.0, 65504, 65520, 1e-7, 6e-8, 3e-8,
                        np.inf]]).astype("float32")
    w, h, back = ad.zeros((64, 6), dtype="complex128"), ad.zeros(64, dtype="float16"), ad.zeros(64, dtype="float32")
    launch(module, "f", (1,), (64,), ad.asarray(z), w, ad.asarray(x), h, back)
    expected = np.stack([np.exp(z), np.sqrt(z), z * z.conj() / (z + 1), z ** 3, np.tan(z), np.arcsin(z)], 1)
    np.testing.assert_allclose(w.get(), expected, rtol=1e-12)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(h.get(), x.astype("float16"))
        np.testing.assert_array_equal(back.get(), (x.astype("float16") * np.float16(2)).astype("float32"))


def test_attributes():
    module = build('extern "C" __global__ void f(float *x) { extern __shared__ float s[]; x[0] = s[0]; }')
    info = module.info("f")
    assert info["max_threads_per_block"] >= 256 and info["max_dynamic_shared_size_bytes"] == 48 << 10
    module.set("f", max_dynamic_shared=100 << 10)
    assert module.info("f")["max_dynamic_shared_size_bytes"] == 100 << 10
    launch(module, "f", (1,), (1,), ad.zeros(1, dtype="float32"), shared=100 << 10)
    ad.sync()


def test_options():
    module = build('extern "C" __global__ void f(int *x) { x[0] = N; }', options=("-DN=42",))
    x = ad.zeros(1, dtype="int32")
    launch(module, "f", (1,), (1,), x)
    assert x.get()[0] == 42
    with pytest.raises((ValueError, PermissionError), match="create-pch"):
        build("", options=("--create-pch=x",))


def test_what_does_not_compile():
    with pytest.raises(ad.CompileError) as error:
        build('extern "C" __global__ void f(int *x) {\n    x[0] = missing;\n}\n')
    text = str(error.value)
    assert "missing" in text and ("kernel.cu:2" in text or "kernel.cu(2)" in text) and "prelude" not in text
    with pytest.raises(ad.CompileError):
        build("template <class T> __global__ void f(T *x) {}", "g<int>")


SMALL = 'extern "C" __global__ void f(int *x, int n) { x[0] = n; }'


@pytest.mark.parametrize(("kernel", "grid", "block", "arguments", "shared", "message"), [
    ("g", (1, 1, 1), (1, 1, 1), "xi", 0, "no kernel g"),
    ("f", (1, 1, 1), (1, 1, 1), "x", 0, "2 parameters, not 1"),
    ("f", (1, 1, 1), (1, 1, 1), "xl", 0, "parameter 2 has 4 bytes, not 8"),
    ("f", (1, 1, 1), (2048, 1, 1), "xi", 0, "blockDim.x is 2048"),
    ("f", (1, 1, 1), (64, 32, 1), "xi", 0, "at most 1024 threads, not 2048"),
    ("f", (1, 70000, 1), (1, 1, 1), "xi", 0, "gridDim.y is 70000"),
    ("f", (0, 1, 1), (1, 1, 1), "xi", 0, "gridDim.x is 0"),
    ("f", (1, 1, 1), (1, 1, 1), "xi", 100000, "dynamic shared memory"),
])
def test_launches_that_cannot_be(kernel, grid, block, arguments, shared, message):
    module = build(SMALL)
    x = ad.arange(3, dtype="int32")
    values = {"x": x, "i": i32(7), "l": np.int64(2**40).tobytes()}
    module.launch(kernel, grid, block, shared, tuple(values[a] for a in arguments), ALL)
    with pytest.raises(ValueError, match=message):
        ad.sync()
    np.testing.assert_array_equal(x.get(), np.arange(3))  # nothing has been changed
    launch(module, "f", (1,), (1,), x, i32(9))
    assert x.get()[0] == 9


def test_arguments_behind_the_last_parameter():
    """Surplus arguments go nowhere, as with CUDA's driver: programs that pass too many run there."""
    x = ad.arange(3, dtype="int32")
    launch(build(SMALL), "f", (1,), (1,), x, i32(9), x, i32(5), np.float64(2).tobytes())
    assert x.tolist() == [9, 1, 2]


def test_errors_of_inputs_spread():
    module = build('extern "C" __global__ void f(const int *x, int *y) { y[0] = x[0]; }')
    bad = ad.take(ad.arange(3), ad.asarray([5])).astype("int32")
    y = ad.zeros(1, dtype="int32")
    launch(module, "f", (1,), (1,), bad, y, written=2)
    with pytest.raises(IndexError):
        y.get()


@pytest.mark.skipif(not CPU, reason="a GPU may well go on, or hang")
@pytest.mark.parametrize("body", ["if (threadIdx.x < 3) __syncthreads(); else __syncwarp();",
                                  "if (threadIdx.x < 3) __syncwarp(0xff); else __syncthreads();",
                                  "x[0] = __shfl_sync(0xf0, 1, 0);"])
def test_barriers_that_are_never_complete_are_errors(body):
    module = build(f'extern "C" __global__ void f(int *x) {{ {body} }}')
    x = ad.zeros(8, dtype="int32")
    launch(module, "f", (1,), (8,), x)
    with pytest.raises(ValueError, match="kernel f: .*wait"):
        x.get()


def test_modules_of_the_same_names_stand_beside_each_other():
    sources = [f'__device__ int k = {i};\nextern "C" __global__ void f(int *x) {{ x[0] = k++; }}' for i in (10, 20, 30)]
    modules = [build(s) for s in sources] + [build(sources[0])]
    x = [ad.zeros(1, dtype="int32") for _ in modules]
    for _ in range(2):
        for module, y in zip(modules, x):
            launch(module, "f", (1,), (1,), y)
    assert [int(y.get()[0]) for y in x] == [11, 21, 31, 11]


def test_streams_keep_the_order():
    module = build('extern "C" __global__ void f(double *x) { x[threadIdx.x] = x[threadIdx.x] * 2 + 1; }')
    x, expected = ad.arange(100.0), np.arange(100.0)
    streams = [ad.cuda.Stream() for _ in range(3)]
    for i in range(30):
        with streams[i % 3]:
            launch(module, "f", (1,), (100,), x)
            x += 1
        expected = expected * 2 + 2
    np.testing.assert_array_equal(x.get(), expected)


def test_sources_of_odd_forms():
    module = build(r"""
/* extern "C" __global__ void no(int *x) {} */
#if 0
extern "C" __global__ void neither(int *x) { syntax error
#endif
#define TEXT "extern \"C\" __global__ void nor(int *x) {"
extern "C" {
__global__ void first(int *x);
__global__ __launch_bounds__(64) void first(int *x) { for (int i = 0; i < 1; i++) { x[0] = 1; } }
static __device__ int two() { return 2; }
__global__ void
second(int *x)
{ const char *t = TEXT; x[0] = two() + (t[0] == '}'); }
}
extern "C" void __global__ third(int *x) { static __shared__ int s; s = 3; x[0] = s; }
""")
    for i, name in enumerate(("first", "second", "third")):
        x = ad.zeros(1, dtype="int32")
        launch(module, name, (1,), (1,), x)
        assert x.get()[0] == i + 1
