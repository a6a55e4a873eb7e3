"""RawKernel and RawModule: the examples of CuPy's guide with other numbers, what is passed by value, errors."""
import io
import pickle

import numpy as np
import pytest

import arrayd as ad
from arrayd import cuda
from arrayd.cuda.compiler import CompileException

RNG = np.random.default_rng(51)
ADD = r"""
extern "C" __global__
void my_add(const float *x1, const float *x2, float *y) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    y[tid] = x1[tid] + x2[tid];
}
"""


def same(array, expected):
    got, expected = array.get(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)


def test_add():
    kernel = ad.RawKernel(ADD, "my_add")
    x1, x2 = RNG.normal(size=(2, 6, 7)).astype("float32")
    y = ad.zeros((6, 7), "float32")
    assert kernel((6,), (7,), (ad.asarray(x1), ad.asarray(x2), y)) is None
    same(y, x1 + x2)
    assert (kernel.name, kernel.code, kernel.options, kernel.backend) == ("my_add", ADD, (), "nvrtc")
    kernel.compile()
    assert isinstance(kernel.kernel, cuda.Function)
    z = ad.zeros((6, 7), "float32")
    kernel.kernel.linear_launch(42, (ad.asarray(x1), ad.asarray(x2), z), block_max_size=21)
    same(z, x1 + x2)
    kernel(6, 7, [y, y, y])
    same(y, (x1 + x2) * 2)


def test_views_go_by_their_first_element():
    kernel = ad.RawKernel(ADD, "my_add")
    x = RNG.normal(size=30).astype("float32")
    a, y = ad.asarray(x), ad.zeros(30, "float32")
    kernel((1,), (10,), (a[5:], a[20:], y[10:20]))
    expected = np.zeros(30, "float32")
    expected[10:20] = x[5:15] + x[20:30]
    same(y, expected)


def test_launches_do_not_wait():
    kernel = ad.RawKernel(ADD, "my_add")
    x, y = ad.ones(64, "float32"), ad.zeros(64, "float32")
    kernel((1,), (64,), (x, x, y))
    before = ad.session_info()["round_trips"]
    for _ in range(10):
        kernel((1,), (64,), (x, y, y))
    assert ad.session_info()["round_trips"] == before
    same(y, np.full(64, 12, "float32"))


def test_complex():
    kernel = ad.RawKernel(r"""
#include <cupy/complex.cuh>
extern "C" __global__
void axpy(const complex<float> *x1, const complex<float> *x2, complex<float> *y, float a) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    y[tid] = x1[tid] + a * x2[tid];
}""", "axpy")
    x1, x2 = np.arange(20, dtype="complex64"), 1j * np.arange(20, dtype="complex64")
    y = ad.zeros(20, "complex64")
    kernel((4,), (5,), (ad.asarray(x1), ad.asarray(x2), y, ad.float32(3)))
    same(y, x1 + 3 * x2)


@pytest.mark.parametrize("include", ["#include <cuComplex.h>\n", ""])
def test_cucomplex_translated(include):
    kernel = ad.RawKernel(include + r"""
extern "C" __global__ void f(const cuDoubleComplex *x, cuDoubleComplex *y, cuFloatComplex one) {
    int i = threadIdx.x;
    y[i] = cuCadd(cuCmul(x[i], make_cuDoubleComplex(0, 2)), cuComplexFloatToDouble(one));
    y[i] = cuConj(y[i]);
    if (cuCabs(x[i]) > 100) y[i] = make_cuDoubleComplex(cuCreal(x[i]), cuCimag(x[i]));
}""", "f", translate_cucomplex=True)
    x = RNG.integers(-9, 9, 16) + 1j * RNG.integers(-9, 9, 16)
    y = ad.zeros(16, "complex128")
    kernel((1,), (16,), (ad.asarray(x), y, np.complex64(1 + 1j)))
    same(y, (x * 2j + 1 + 1j).conj())


def test_numbers_by_value():
    kernel = ad.RawKernel(r"""
#include <cupy/complex.cuh>
extern "C" __global__ void f(double *y, long long i, double d, bool b, complex<double> z, signed char c,
                             unsigned short h, float f, unsigned long long u, const float *nothing) {
    y[0] = i, y[1] = d, y[2] = b, y[3] = z.real(), y[4] = z.imag(), y[5] = c, y[6] = h, y[7] = f, y[8] = u == ~0ull;
    y[9] = nothing == 0;
}""", "f")
    y = ad.zeros(10)
    kernel((1,), (1,), (y, -5, 2.5, True, 1 - 2j, np.int8(-3), np.uint16(65535), np.float32(0.5), 2**64 - 1, None))
    same(y, np.array([-5, 2.5, 1, 1, -2, -3, 65535, 0.5, 1, 1]))


def test_structures_are_laid_out_as_in_cuda():
    """Sizes and offsets of CuPy's documentation and of the compiler's own."""
    inner = ad.make_aligned_dtype([("a", "c8"), ("b", "?")])
    outer = ad.make_aligned_dtype([("flag", "?"), ("in", inner), ("z", "c8", 3), ("raw", "V3"), ("d", "f8")])
    kernel = ad.RawKernel(r"""
struct inner { complex<float> a; bool b; };
struct outer { bool flag; inner in; complex<float> z[3]; unsigned char raw[3]; double d; };
extern "C" __global__ void f(long long *y, outer s) {
    const char *begin = (const char *)&s;
    y[0] = sizeof(inner), y[1] = sizeof(outer), y[2] = (const char *)&s.in - begin;
    y[3] = (const char *)s.z - begin, y[4] = (const char *)s.raw - begin, y[5] = (const char *)&s.d - begin;
    y[6] = s.flag + 10 * s.in.a.imag() + 100 * s.z[2].real() + 1000 * s.d;
}""", "f", translate_cucomplex=True)
    value = np.zeros(1, outer)
    value["flag"], value["in"]["a"], value["z"][0, 2], value["d"] = True, 2j, 3, 4
    y = ad.zeros(7, "int64")
    kernel((1,), (1,), (y, value))
    offsets = [outer.fields[name][1] for name in ("in", "z", "raw", "d")]
    assert y.tolist() == [inner.itemsize, outer.itemsize, *offsets, 1 + 20 + 300 + 4000]
    wide = ad.make_aligned_dtype("i,i", alignment=16)
    assert wide.itemsize == 16 and ad.make_aligned_dtype([("c", "?"), ("w", wide)]).itemsize == 32
    for wrong, options in (("c16", {}), ("V3", {}), ("f8,i4", {"alignment": 4}), ("i4,i4", {"alignment": 12}), ("i4,O", {})):
        with pytest.raises(ValueError, match="aligned_dtype|alignment"):
            ad.make_aligned_dtype(wrong, **options)


def test_structures_by_value():
    float3 = np.dtype({"names": ["x", "y", "z"], "formats": [np.float32] * 3})
    matrix = np.dtype({"names": ["all"], "formats": [(np.float32, (5, 5))]})
    mixed = np.dtype([("i", "i4"), ("d", "f8"), ("c", "i1", 3)], align=True)
    kernel = ad.RawKernel(r"""
struct matrix { float all[5][5]; };
struct mixed { int i; double d; signed char c[3]; };
extern "C" __global__ void f(double *y, float3 v, matrix m, mixed s) {
    y[0] = v.x + v.y + v.z;
    y[1] = m.all[3][4];
    y[2] = s.i, y[3] = s.d, y[4] = s.c[2];
    y[5] = sizeof(mixed);
}""", "f")
    y = ad.zeros(6)
    v = np.array([1, 2, 4], "float32").view(float3)
    m = np.arange(25, dtype="float32").view(matrix)
    s = np.zeros(1, mixed)
    s["i"], s["d"], s["c"] = 7, 0.25, [1, 2, 3]
    kernel((1,), (1,), (y, v, m, s[0]))
    same(y, np.array([7, 19, 7, 0.25, 3, mixed.itemsize]))


def test_shared_memory_and_barriers():
    source = r"""
extern "C" __global__ void block_sums(const float *x, float *y, int n) {
    %s float part[%s];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = part[0];
}"""
    x = RNG.integers(-9, 9, 1000).astype("float32")
    expected = np.pad(x, (0, 24)).reshape(8, 128).sum(1)
    for kind, size, shared in (("__shared__", "128", 0), ("extern __shared__", "", 512)):
        y = ad.zeros(8, "float32")
        ad.RawKernel(source % (kind, size), "block_sums")((8,), (128,), (ad.asarray(x), y, np.int32(1000)),
                                                          shared_mem=shared)
        same(y, expected)


@pytest.mark.parametrize("barrier", ["__syncwarp", "__syncthreads"])
def test_what_threads_of_a_warp_read_before_a_barrier(barrier):
    kernel = ad.RawKernel("""extern "C" __global__ void leave(int *left) {
        __shared__ int count;
        if (threadIdx.x == 0) count = 7;
        __syncthreads();
        int mine = 10 - count;
        %s();  // without it a thread finds what an earlier one has written, where they do not run in step
        count = 0;
        left[threadIdx.x] = mine;
    }""" % barrier, "leave")
    left = ad.zeros(32, "int32")
    kernel((1,), (32,), (left,))
    assert left.tolist() == [3] * 32


def test_grids_of_three_dimensions():
    kernel = ad.RawKernel(r"""
extern "C" __global__ void f(int *y) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y,
        s = blockIdx.z * blockDim.z + threadIdx.z;
    y[(s * gridDim.y * blockDim.y + r) * gridDim.x * blockDim.x + x] = 100 * s + 10 * r + x;
}""", "f")
    y = ad.zeros((4, 6, 6), "int32")
    kernel((2, 3, 1), (3, 2, 4), (y,))
    s, r, x = np.indices((4, 6, 6))
    same(y, (100 * s + 10 * r + x).astype("int32"))


def test_grid_stride_loops():
    kernel = ad.RawKernel(r"""
extern "C" __global__ void scale(double *x, long long n, double by) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
        x[i] *= by;
}""", "scale")
    x = RNG.normal(size=10_001)
    a = ad.asarray(x)
    kernel((7,), (96,), (a, a.size, 3.0))
    same(a, x * 3)


def test_half():
    kernel = ad.RawKernel(r"""
#include <cuda_fp16.h>
extern "C" __global__ void f(const __half *x, __half *y) {
    int i = threadIdx.x;
    y[i] = __float2half(__half2float(x[i]) * 2.0f);
}""", "f")
    x = RNG.normal(size=32).astype("float16")
    y = ad.zeros(32, "float16")
    kernel((1,), (32,), (ad.asarray(x), y))
    same(y, x * np.float16(2))


MODULE = r"""
__constant__ float factors[4];
__device__ int counter = 5;
extern "C" {
__global__ void test_sum(const float *x1, const float *x2, float *y, unsigned int N) {
    unsigned int tid = blockDim.x * blockIdx.x + threadIdx.x;
    if (tid < N) y[tid] = x1[tid] + x2[tid];
}
__global__ void test_multiply(const float *x1, const float *x2, float *y, unsigned int N) {
    unsigned int tid = blockDim.x * blockIdx.x + threadIdx.x;
    if (tid < N) y[tid] = x1[tid] * x2[tid];
}
__global__ void use(float *y) {
    y[threadIdx.x] = factors[threadIdx.x];
    if (threadIdx.x == 0) counter++;
}
}
"""


def test_module():
    module = ad.RawModule(code=MODULE)
    x1, x2 = RNG.normal(size=(2, 8, 8)).astype("float32")
    a, b, y = ad.asarray(x1), ad.asarray(x2), ad.zeros((8, 8), "float32")
    add, multiply = module.get_function("test_sum"), module.get_function("test_multiply")
    add((8,), (8,), (a, b, y, 64))
    same(y, x1 + x2)
    multiply((8,), (8,), (a, b, y, 64))
    same(y, x1 * x2)
    assert isinstance(add, ad.RawKernel) and add.name == "test_sum" and module.code == MODULE
    module.compile()
    with pytest.raises(ValueError, match="test_nothing"):
        module.get_function("test_nothing")


def test_globals():
    module = ad.RawModule(code=MODULE + "// with globals\n", name_expressions=("&factors", "&counter"))
    factors = module.get_global("&factors").view("float32")
    assert factors.shape == (4,)
    factors[...] = ad.asarray([1, 2, 4, 8], "float32")
    y = ad.zeros(4, "float32")
    use = module.get_function("use")
    use((1,), (4,), (y,))
    use((1,), (4,), (y,))
    same(y, np.array([1, 2, 4, 8], "float32"))
    same(module.get_global("&counter").view("int32"), np.array([7], "int32"))


def test_templates():
    code = r"""
template <typename T> __global__ void fx3(T *arr, int N) {
    unsigned int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid < N) arr[tid] = arr[tid] * 3;
}
namespace inner { template <class T, int by> __global__ void times(T *x) { x[threadIdx.x] *= by; } }
"""
    names = ["fx3<float>", "fx3<double>", "inner::times<int, 5>"]
    module = ad.RawModule(code=code, options=("-std=c++14",), name_expressions=names)
    for name, dtype in zip(names, ("float32", "float64")):
        a = ad.arange(10, dtype=dtype)
        module.get_function(name)((1,), (10,), (a, 10))
        same(a, np.arange(10, dtype=dtype) * 3)
    a = ad.arange(6, dtype="int32")
    module.get_function(names[2])((1,), (6,), (a,))
    same(a, np.arange(6, dtype="int32") * 5)
    assert module.name_expressions == tuple(names)
    b = ad.ones(3)
    ad.RawKernel(code, "fx3<double>")((1,), (3,), (b, 3))
    same(b, np.full(3, 3.0))


def test_options():
    kernel = ad.RawKernel('extern "C" __global__ void f(int *y) { *y = N; }', "f", options=("-DN=42",))
    y = ad.zeros((), "int32")
    kernel((1,), (1,), (y,))
    same(y, np.int32(42))
    with pytest.raises(TypeError, match="tuple of strings"):
        ad.RawKernel(ADD, "my_add", options="-DN=42")


def test_attributes():
    kernel = ad.RawKernel(ADD, "my_add")
    found = kernel.attributes
    assert set(found) == {
        "max_threads_per_block", "shared_size_bytes", "const_size_bytes", "local_size_bytes", "num_regs", "ptx_version",
        "binary_version", "cache_mode_ca", "max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout"}
    for name, value in found.items():
        assert isinstance(value, int) and getattr(kernel, name) == value
    assert kernel.max_threads_per_block >= 256 and kernel.shared_size_bytes == 0
    assert kernel.max_dynamic_shared_size_bytes >= 40_000
    kernel.max_dynamic_shared_size_bytes = 50_000
    assert kernel.max_dynamic_shared_size_bytes == 50_000
    kernel.preferred_shared_memory_carveout = 50
    assert kernel.preferred_shared_memory_carveout == 50
    with pytest.raises(AttributeError):
        kernel.num_regs = 3


def test_warnings_are_written_to_the_log():
    code = 'extern "C" __global__ void f(int *y) {\n    int unused;\n    *y = 1;\n}\n'
    for made in (ad.RawKernel(code, "f"), ad.RawModule(code=code)):
        log = io.StringIO()
        made.compile(log_stream=log)
        assert "warning" in log.getvalue() and "unused" in log.getvalue()
        assert any(mark in log.getvalue() for mark in ("(2)", ":2:"))
    quiet = io.StringIO()
    ad.RawKernel(ADD, "my_add").compile(log_stream=quiet)
    assert quiet.getvalue() == ""


def test_pointers():
    double = ad.RawKernel('extern "C" __global__ void d(int *x) { x[threadIdx.x] *= 2; }', "d")
    x = ad.arange(5, dtype="int32")
    double((1,), (2,), (x.data + 8,))
    assert x.tolist() == [0, 1, 4, 6, 4]
    for address in (x.data.ptr, np.uint64(x[:1].data.ptr), np.int64(x.data.ptr)):  # what a.data.ptr has told
        double((1,), (1,), (address,))
    double((1,), (2,), (x.data.ptr + 4,))
    assert x.tolist() == [0, 2, 8, 6, 4]
    memory = ad.cuda.alloc(12)
    there = ad.ndarray((3,), "int32", memory)
    there[...] = 7
    double((1,), (3,), (memory,))
    assert there.tolist() == [14] * 3
    module = ad.RawModule(code='__device__ int table[4]; extern "C" __global__ void f(int *y) { *y = table[2]; }')
    table = ad.ndarray((4,), "int32", module.get_global("table"))
    table[...] = ad.arange(4, dtype="int32") * 5
    module.get_function("f")((1,), (1,), (x,))
    assert x[0] == 10


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_division_is_nearly_that_of_arrays(dtype):
    real = "float" if dtype == "complex64" else "double"
    kernel = ad.RawKernel("#include <cupy/complex.cuh>\n" f"""typedef complex<{real}> C;
        extern "C" __global__ void divide(const C *a, const C *b, C *y) {{
            int i = threadIdx.x; y[i] = a[i] / b[i];
        }}""", "divide")
    a, b = (ad.asarray((RNG.normal(size=100) + 1j * RNG.normal(size=100)).astype(dtype)) for _ in range(2))
    y = ad.zeros_like(a)
    kernel((1,), (100,), (a, b, y))
    np.testing.assert_allclose(y.get(), (a / b).get(), rtol=4 * np.finfo(dtype).eps)


def test_compile_errors_show_the_users_line():
    code = 'extern "C" __global__ void f(int *y) {\n    int a = 1;\n    *y = a + missing;\n}\n'
    kernel = ad.RawKernel(code, "f")
    log = io.StringIO()
    with pytest.raises(ad.CompileError) as caught:
        kernel.compile(log_stream=log)
    error = caught.value
    assert isinstance(error, CompileException) and "missing" in str(error) and error.source == code
    assert any(f"{mark}" in str(error) for mark in ("(3)", ":3:")) and log.getvalue() == error.get_message()
    dump = io.StringIO()
    error.dump(dump)
    assert "3     *y = a + missing;" in dump.getvalue() and error.get_message() in dump.getvalue()
    with pytest.raises(CompileException):
        kernel((1,), (1,), (ad.zeros(1, "int32"),))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.options == ()


def test_compile_errors_show_no_line_that_was_added():
    """The CPU backend writes something behind a kernel's closing brace, which is on the line that is shown.

    NVRTC names the line of the brace and shows none."""
    with pytest.raises(CompileException) as caught:
        ad.RawKernel('extern "C" __global__ void f(int *y) {\n    *y = 1\n}\n', "f").compile()
    message = str(caught.value)
    assert "*y = 1" in message or 'kernel.cu(3): error: expected a ";"' in message, message
    assert "adrun" not in message and "registered" not in message, message


def test_a_name_that_is_not_there():
    with pytest.raises(ValueError, match="your_add"):
        ad.RawKernel(ADD, "your_add")((1,), (1,), ())
    with pytest.raises(ad.cuda.driver.CUDADriverError, match="named symbol not found"):
        ad.RawModule(code=ADD).get_function("your_add")


def test_grids_of_nothing_and_one_array():
    double = ad.RawKernel('extern "C" __global__ void d(int *x) { x[threadIdx.x] *= 2; }', "d", ("-I/no/where", "-O3"),
                          "nvcc")
    x = ad.arange(3, dtype="int32")
    for grid in (0, (0,), (1, 0), (1, 1, 0)):
        double(grid, (3,), (x,))
    assert x.tolist() == [0, 1, 2]
    double((1,), (3,), x)
    assert x.tolist() == [0, 2, 4]
    assert (double.backend, double.options) == ("nvcc", ("-I/no/where", "-O3"))


def test_pickled():
    for make in (lambda: ad.RawKernel(ADD, "my_add"), lambda: ad.RawModule(code=ADD).get_function("my_add")):
        kernel, x = make(), ad.ones(4, "float32")
        for _ in range(2):
            again, y = pickle.loads(pickle.dumps(kernel)), ad.zeros(4, "float32")
            again((1,), (4,), (x, x, y))
            assert y.tolist() == [2] * 4


HEADERS = r"""
#include <cupy/carray.cuh>
#include <cupy/complex.cuh>
#include <cupy/float16.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
#include <cupy/tuple.cuh>
#include <cupy/type_dispatcher.cuh>
#include <cupy/cuda_workaround.h>

struct size_of {
    template <class T> __device__ void operator()(int *to) const { *to = sizeof(T); }
};
extern "C" __global__ void use(double *x, float16 *h, long long *n, float *most, int *sizes) {
    atomicAdd(&h[0], float16(1.5f));
    atomicAdd(n, 1ll);
    atomicMax(most, (float)threadIdx.x);
    atomicMin(most + 1, -(float)threadIdx.x);
    if (threadIdx.x) return;
    thrust::tuple<int, double, float> t = thrust::make_tuple(1, 2.5, 3.f);
    int a; double b; float c;
    thrust::get<1>(t) += 1;
    thrust::tie(a, b, c) = t;
    x[0] = a + b + c;
    x[1] = CUDART_PI;
    x[2] = CUDART_INF;
    x[3] = CUDART_NAN;
    x[4] = (double)CUDART_LN2_F;
    x[5] = std::is_same<int, int>::value + 2 * std::numeric_limits<short>::max();
    x[6] = t < thrust::make_tuple(1, 3.5, 4.f);
    for (int i = 0; i < 14; i++) dtype_dispatcher(i, size_of(), &sizes[i]);
}"""


def test_headers_of_cupy():
    x, h, n, sizes = ad.zeros(7), ad.zeros(2, "float16"), ad.zeros(1, "int64"), ad.zeros(14, "int32")
    most = ad.zeros(2, "float32")
    ad.RawKernel(HEADERS, "use")((1,), (40,), (x, h, n, most, sizes))
    assert x.tolist()[:3] == [7.5, np.pi, np.inf] and np.isnan(x[3].item())
    assert x.tolist()[4:] == [np.float32(np.log(2)), 65535, 1]
    assert (h.tolist(), n.tolist(), most.tolist()) == ([60, 0], [40], [39, -39])
    assert sizes.tolist() == [1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 8, 16, 1]


def test_wrong_arguments():
    kernel = ad.RawKernel(ADD, "my_add")
    y = ad.zeros(4, "float32")
    for wrong, error, message in (
            ((y, "text", y), TypeError, "argument 1 of a kernel must be an arrayd.ndarray, a number or None, not str"),
            ((y, y, np.zeros(3)), TypeError, "numpy.ndarray of 3 elements"),
            ((y, y, 2**64), OverflowError, "does not fit into 64 bits"),
            ((y, y, np.array([None])), TypeError, "argument 2"),
            ("text", TypeError, "arguments must be a tuple")):
        with pytest.raises(error, match=message):
            kernel((1,), (4,), wrong)
    for grid, error in (((1, 2, 3, 4), ValueError), ((), ValueError), (1.5, TypeError), ((-1,), ValueError)):
        with pytest.raises(error, match="grid"):
            kernel(grid, 1, (y, y, y))


def test_what_a_failed_launch_leaves():
    kernel = ad.RawKernel(ADD, "my_add")
    x, y = ad.ones(4, "float32"), ad.zeros(4, "float32")
    kernel((1,), (100_000,), (x, x, y))
    with pytest.raises(Exception, match="my_add"):
        y.get()


def test_wrong_definitions():
    with pytest.raises(ValueError, match="loads no cubin or PTX"):
        ad.RawModule(path=__file__)
    with pytest.raises(ad.cuda.driver.CUDADriverError, match="CUDA_ERROR_FILE_NOT_FOUND"):
        ad.RawModule(path="kernels.cubin")
    with pytest.raises(TypeError, match="not both"):
        ad.RawModule(code=ADD, path="kernels.cubin")
    with pytest.raises(ValueError, match="need backend='nvrtc'"):
        ad.RawModule(code=ADD, name_expressions=["f<int>"], backend="nvcc")
    with pytest.raises(TypeError, match="needs code"):
        ad.RawModule()
    with pytest.raises(TypeError, match="sequence of strings"):
        ad.RawModule(code=ADD, name_expressions="f<int>")
    with pytest.raises(ValueError, match="backend must be 'nvrtc'"):
        ad.RawKernel(ADD, "my_add", backend="hiprtc")
    with pytest.raises(TypeError, match="code must be a str"):
        ad.RawKernel(b"", "f")
    with pytest.raises(TypeError, match="name must be a str"):
        ad.RawKernel(ADD, 3)


def test_memos():
    kernel = ad.RawKernel(ADD, "my_add")
    kernel.compile()
    ad.clear_memo()
    x, y = ad.ones(4, "float32"), ad.zeros(4, "float32")
    kernel((1,), (4,), (x, x, y))
    same(y, np.full(4, 2, "float32"))


def test_another_connection(own_server):
    _, url = own_server()
    kernel = ad.RawKernel(ADD, "my_add")
    elementwise = ad.ElementwiseKernel("T x", "T z", "z = x + 1", "next")
    x, y = ad.ones(4, "float32"), ad.zeros(4, "float32")
    kernel((1,), (4,), (x, x, y))
    elementwise(x)
    before = ad.session_info()["url"]
    try:
        ad.connect(url)
        a, b = ad.ones(4, "float32"), ad.zeros(4, "float32")
        kernel((1,), (4,), (a, a, b))
        same(b, np.full(4, 2, "float32"))
        same(elementwise(a), np.full(4, 2, "float32"))
    finally:
        ad.connect(before)
    same(y, np.full(4, 2, "float32"))
