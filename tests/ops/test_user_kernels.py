"""ElementwiseKernel, ReductionKernel and fuse: the examples of CuPy's guide with other numbers, NumPy as the oracle."""
import numpy as np
import pytest

import arrayd as ad
from arrayd.cuda.compiler import CompileException

RNG = np.random.default_rng(50)
REAL = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]


def numbers(shape, dtype="float32", low=-9, high=9):
    dtype = np.dtype(dtype)
    values = RNG.integers(0 if dtype.kind == "u" else low, high, shape).astype(dtype)
    return values + 1j * RNG.integers(low, high, shape).astype(dtype) if dtype.kind == "c" else values


def same(array, expected, rtol=0):
    assert isinstance(array, ad.ndarray)
    got, expected = array.get(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=rtol) if rtol else np.testing.assert_array_equal(got, expected)


# ---- elementwise ----

squared_diff = ad.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_diff")
generic = ad.ElementwiseKernel("T x, T y", "T z", """
    T diff = x - y;
    z = diff * diff;
""", "squared_diff_generic")


def test_declared_types():
    x, y = numbers((3, 7)), numbers(7)
    a, b = ad.asarray(x), ad.asarray(y)
    same(squared_diff(a, b), (x - y) ** 2)
    same(squared_diff(a, 4), (x - 4) ** 2)
    same(squared_diff(2.5, b), (np.float32(2.5) - y) ** 2)
    same(squared_diff(3, 1), np.float32(4))
    z = ad.empty((3, 7), "float32")
    assert squared_diff(a, b, z) is z
    same(z, (x - y) ** 2)


@pytest.mark.parametrize("dtype", REAL + ["complex64", "complex128"])
def test_placeholders(dtype):
    x, y = numbers((5, 4), dtype, 0), numbers(4, dtype, 0)
    same(generic(ad.asarray(x), ad.asarray(y)), (x - y) * (x - y))
    same(generic(ad.asarray(x), 2), (x - x.dtype.type(2)) * (x - x.dtype.type(2)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_small_floats(dtype):
    x = ad.asarray(RNG.normal(size=1000).astype("float32")).astype(dtype)
    y = ad.asarray(RNG.normal(size=1000).astype("float32")).astype(dtype)
    sums = ad.ElementwiseKernel("T x, T y", "T z", "z = x + y", "sums")
    assert (sums(x, y).astype("float32").get() == (x + y).astype("float32").get()).all()
    same(ad.ElementwiseKernel("T x", "float32 z", "z = x; z += 1", "widen")(x), x.astype("float32").get() + 1)
    special = ad.asarray([0, -0.0, np.inf, -np.inf, 1e-7, 65504, 1e5, 3e38, 1.0009765625], "float32")
    narrow = ad.ElementwiseKernel("float32 x", f"{dtype} z", "z = x", f"narrow_{dtype}")
    expected = special.astype(dtype).astype("float32")
    np.testing.assert_array_equal(narrow(special).astype("float32").get(), expected.get())
    assert np.isnan(float(narrow(ad.asarray([np.nan], "float32")).astype("float32")[0]))


def test_several_placeholders_take_outputs_first():
    kernel = ad.ElementwiseKernel("X x, Y y", "Z z", "z = (x - y) * (x - y)", "super_generic")
    x, y = numbers(9, "int32"), numbers(9, "float64")
    z = ad.empty(9, "float32")
    same(kernel(ad.asarray(x), ad.asarray(y), z), ((x - y) ** 2).astype("float32"))
    with pytest.raises(TypeError, match="Z of z"):
        kernel(ad.asarray(x), ad.asarray(y))


def test_numbers_decide_where_no_array_does():
    twice = ad.ElementwiseKernel("T x", "T z", "z = x + x", "twice")
    for value in (3, 2.5, 1 + 2j, np.float32(1.5), np.int8(4), np.uint64(1 << 63), -5):
        with np.errstate(over="ignore"):
            expected = np.asarray(value) + np.asarray(value)
        same(twice(value), expected)
    same(twice(True), True)
    mixed = ad.ElementwiseKernel("T x, T y", "T z", "z = x + y", "mixed")
    same(mixed(1, np.float32(0.5)), np.float32(1.5))
    same(mixed(ad.asarray([1], "int8"), 3.9), np.array([4], "int8"))


def test_raw_arguments():
    kernel = ad.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "add_reverse")
    x, y = numbers(11), numbers(11)
    same(kernel(ad.asarray(x), ad.asarray(y)), x + y[::-1])
    same(kernel(ad.asarray(x), ad.asarray(y)[::-1]), x + y)
    m = numbers((3, 4))
    same(kernel(ad.asarray(m), ad.asarray(m).T), m + m.T.ravel()[::-1].reshape(3, 4))
    wide = np.tile(m, 2)
    same(kernel(ad.asarray(m), ad.asarray(wide)[:, ::2]), m + wide[:, ::2].ravel()[::-1].reshape(3, 4))


def test_all_raw_needs_size():
    kernel = ad.ElementwiseKernel("raw T x", "raw T z", "z[i] = x[n - 1 - i]", "reverse")
    x = numbers(9)
    z = ad.zeros(9, "float32")
    kernel(ad.asarray(x), z, size=9)
    same(z, x[::-1])
    same(kernel(ad.asarray(x), size=9), x[::-1])
    with pytest.raises(ValueError, match="size must be given"):
        kernel(ad.asarray(x), z)
    with pytest.raises(ValueError, match="Specified 'size' can be given only"):
        squared_diff(z, z, size=9)


def test_raw_arrays_have_shapes():
    kernel = ad.ElementwiseKernel("raw T x", "raw int64 z", """
        z[0] = x.size(); z[1] = x.shape()[0]; z[2] = x.shape()[1]; z[3] = x.strides()[0]; z[4] = x.strides()[1];
        ptrdiff_t at[] = {1, 2};
        z[5] = (long long)x[at];
        z[6] = x.ndim;
    """, "facts")
    x = numbers((4, 6), "float64")
    z = ad.zeros(7, "int64")
    a = ad.asarray(x).T
    kernel(a, z, size=1)
    same(z, np.array([24, 6, 4, 8, 48, int(x.T[1, 2]), 2]))


def test_index():
    kernel = ad.ElementwiseKernel("T x", "int64 z", "z = _ind.get()[0] * 100 + _ind.get()[1] * 10 + _ind.get()[2]",
                                  "index", reduce_dims=False)
    expected = np.indices((3, 4, 5))
    same(kernel(ad.zeros((3, 4, 5))), expected[0] * 100 + expected[1] * 10 + expected[2])
    number = ad.ElementwiseKernel("T x", "int64 z", "z = i + n", "number")
    same(number(ad.zeros((3, 4)).T), np.arange(12).reshape(4, 3) + 12)


LAYOUTS = {
    "flat": lambda a: a, "transposed": lambda a: a.transpose(2, 0, 1), "reversed": lambda a: a[::-1, :, ::-1],
    "every second": lambda a: a[:, ::2], "one": lambda a: a[1:2, :, 3:4], "none": lambda a: a[:0],
    "0-d": lambda a: a[1, 2, 3, ...],
    "broadcast row": lambda a: a[0, 0], "column": lambda a: a[:, :, :1], "new axes": lambda a: a[:, None, :, None, :],
}


@pytest.mark.parametrize("reduce_dims", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, reduce_dims):
    kernel = ad.ElementwiseKernel("T x, U y", "T z", "z = x * 2 + y", "layouts", reduce_dims=reduce_dims)
    x, y = numbers((3, 4, 5), "float64"), numbers((3, 4, 5), "int32")
    f = LAYOUTS[layout]
    a, b = ad.asarray(x), ad.asarray(y)
    same(kernel(f(a), f(b)), f(x) * 2 + f(y))
    same(kernel(f(a), 3), f(x) * 2 + 3)
    if layout in ("broadcast row", "column", "0-d", "flat"):
        same(kernel(f(a), b), f(x) * 2 + y)
    out = ad.zeros((3, 4, 5))
    kernel(f(a), f(b), f(out))
    expected = np.zeros((3, 4, 5))
    f(expected)[...] = f(x) * 2 + f(y)
    same(out, expected)


def test_in_place_and_several_outputs():
    kernel = ad.ElementwiseKernel("T x, T y", "T s, T d", "s = x + y; d = x - y", "both")
    x, y = numbers((4, 5)), numbers((4, 5))
    a, b = ad.asarray(x), ad.asarray(y)
    s, d = kernel(a, b)
    same(s, x + y)
    same(d, x - y)
    given = kernel(a, b, a, b)
    assert given[0] is a and given[1] is b
    same(a, x + y)
    same(b, x - y)
    assert ad.ElementwiseKernel("T x", "T z", "z = x", "one", return_tuple=True)(a)[0].shape == (4, 5)
    assert ad.ElementwiseKernel("T x", "T z", "z = x", "nothing", no_return=True)(a) is None


def test_pieces_around_the_loop():
    kernel = ad.ElementwiseKernel("float32 x", "float32 z, raw int32 count", "z = twice(x) + offset; seen++", "pieces",
                                  preamble="__device__ float twice(float v) { return 2 * v; }",
                                  loop_prep="float offset = 3; int seen = 0;", after_loop="atomicAdd(&count[0], seen);",
                                  options=("-DUNUSED=1",))
    x, count = numbers(1000), ad.zeros(1, "int32")
    z = ad.empty(1000, "float32")
    kernel(ad.asarray(x), z, count, block_size=64)
    same(z, x * 2 + 3)
    same(count, np.array([1000], "int32"))


def test_atomics_into_a_raw_output():
    kernel = ad.ElementwiseKernel("int32 x", "raw int32 bins", "atomicAdd(&bins[x], 1)", "histogram")
    x = RNG.integers(0, 10, 5000).astype("int32")
    bins = ad.zeros(10, "int32")
    kernel(ad.asarray(x), bins)
    same(bins, np.bincount(x, minlength=10).astype("int32"))


def test_large_and_many_dimensions():
    x = np.arange(1 << 20, dtype="float32").reshape((2,) * 20)
    kernel = ad.ElementwiseKernel("T x, T y", "T z", "z = x + 3 * y", "large")
    order = RNG.permutation(20)
    same(kernel(ad.asarray(x), ad.asarray(x).transpose(order)), x + 3 * x.transpose(order))


def test_complex_and_bool():
    kernel = ad.ElementwiseKernel("complex64 z", "float32 r", "r = abs(z)", "modulus")
    z = numbers(20, "complex64")
    same(kernel(ad.asarray(z)), np.abs(z), 1e-6)
    same(ad.ElementwiseKernel("T z", "T r", "r = z * conj(z) + T(1)", "norms")(ad.asarray(z)), z * z.conj() + 1)
    both = ad.ElementwiseKernel("bool a, bool b", "bool c", "c = a && !b", "both")
    a, b = RNG.integers(0, 2, 50).astype(bool), RNG.integers(0, 2, 50).astype(bool)
    same(both(ad.asarray(a), ad.asarray(b)), a & ~b)
    same(both(ad.asarray(a), False), a)


def test_launches_do_not_wait():
    a = ad.asarray(numbers(100))
    reduction = ad.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    squared_diff(a, a), reduction(a)

    def waits():
        before = ad.session_info()["round_trips"]
        for _ in range(5):
            squared_diff(a, 1)
            squared_diff(a[:50], a[50:])
            reduction(a)
            reduction(a[:70])
        return ad.session_info()["round_trips"] - before

    assert not (waits() and waits())  # a window of earlier tests, idle for a minute, may just go


def test_wrong_calls():
    a = ad.zeros(3, "float32")
    with pytest.raises(TypeError, match="squared_diff: wrong number of arguments: 2 inputs, or 3 with outputs, and"):
        squared_diff(a)
    with pytest.raises(TypeError, match="x is float64, and its type is float32"):
        squared_diff(ad.zeros(3), a)
    with pytest.raises(TypeError, match="y is float64, and placeholder T is float32"):
        generic(a, ad.zeros(3))
    with pytest.raises(TypeError, match="z is float64, and its type is float32"):
        squared_diff(a, a, ad.zeros(3))
    with pytest.raises(TypeError, match="not ndarray; arrayd.asarray makes one"):
        squared_diff(np.zeros(3, "float32"), a)
    with pytest.raises(TypeError, match="outputs must be arrays"):
        squared_diff(a, a, 3)
    with pytest.raises(TypeError, match="y is float32, and given the complex number 1j"):
        squared_diff(a, 1j)
    with pytest.raises(OverflowError, match="y is int8, and 300 is out of its bounds"):
        generic(ad.zeros(3, "int8"), 300)
    with pytest.raises(ValueError, match="cannot be broadcast"):
        squared_diff(a, ad.zeros(4, "float32"))
    with pytest.raises(ValueError, match="cannot be broadcast"):
        squared_diff(a, a, ad.zeros(4, "float32"))
    with pytest.raises(ValueError, match=r"Out shape is mismatched: z of \w+ has \(1,\), and it must be \(3,\)"):
        squared_diff(a, a, ad.zeros(1, "float32"))
    with pytest.raises(ValueError, match="block_size must be 1 to 1024"):
        squared_diff(a, a, block_size=2048)


def test_outputs_are_broadcast_with_the_inputs():
    kernel = ad.ElementwiseKernel("T x", "T z", "z = x + i", "placed")
    out = ad.zeros((2, 3))
    assert kernel(ad.arange(3.0), out) is out
    np.testing.assert_array_equal(out.get(), [[0, 2, 4], [3, 5, 7]])
    np.testing.assert_array_equal(kernel(2.0, out[0]).get(), [2, 3, 4])
    two = ad.ElementwiseKernel("T x", "T y, T z", "y = x; z = -x", "two")
    with pytest.raises(ValueError, match=r"Out shape is mismatched: y of \w+ has \(3,\), and it must be \(2, 3\)"):
        two(ad.arange(3.0), ad.zeros(3), out)
    column = ad.zeros((2, 1))
    with pytest.raises(ValueError, match=r"Out shape is mismatched: z of \w+ has \(2, 1\), and it must be \(2, 3\)"):
        kernel(ad.arange(3.0), column)


def test_a_parameter_named_n():
    x = ad.arange(4.0)
    kernel = ad.ElementwiseKernel("T x, int64 n", "T z", "z = x + n", "shifted")
    np.testing.assert_array_equal(kernel(x, 10).get(), [10, 11, 12, 13])
    kernel = ad.ElementwiseKernel("T x", "T n", "n = x * _ind.size()", "scaled")
    np.testing.assert_array_equal(kernel(x).get(), [0, 4, 8, 12])
    np.testing.assert_array_equal(ad.ElementwiseKernel("T x", "T z", "z = n", "counted")(x).get(), [4] * 4)
    total = ad.ReductionKernel("T x, int64 n", "T z", "x * n", "a + b", "z = a", "0", "weighted")
    assert total(x, 3) == 18
    total = ad.ReductionKernel("T x", "T n", "x", "a + b", "n = a", "0", "summed")
    assert total(x) == 6


def test_an_operation_may_use_any_names_of_its_own():
    kernel = ad.ElementwiseKernel("T x, raw T y", "T z", "ptrdiff_t _i = i, _n = 3, n = 1, _shape = 0; z = x + y[_i] + _n * n + _shape", "named")
    assert kernel(ad.arange(4), ad.arange(4)).tolist() == [3, 5, 7, 9]
    strided = ad.arange(8)[::2]
    assert kernel(strided, strided).tolist() == [3, 7, 11, 15]


def test_parameters_named_i_and_n():
    x = ad.arange(5)
    add = ad.ElementwiseKernel("T i, T n", "T z", "z = 10 * i + n", "tens")
    assert add(x, x[::-1]).tolist() == [4, 13, 22, 31, 40]
    assert ad.ReductionKernel("T i", "T n", "i * i", "a + b", "n = a", "0", "squares")(x) == 30


def test_arrays_of_elements():
    """_raw_x is the array of x, with _ind its index: neighbours, shapes, strides and templates of CArray."""
    x = RNG.integers(-99, 99, (4, 6))
    last = ad.ElementwiseKernel("T x", "T z", """
        const ptrdiff_t *shape = _ind.shape();
        ptrdiff_t index[2] = {_ind.get()[0], shape[1] - 1};
        z = 1000 * _raw_x[index] + total(_raw_x) + (_raw_x[_ind.get()] == x && &_raw_z[_ind.get()] == &z);
        """, "last", reduce_dims=False, preamble="""
        template <class T, int N, bool C, bool I> __device__ T total(const CArray<T, N, C, I> &a) {
            T sum = 0;
            for (ptrdiff_t i = 0; i < a.size(); i++) sum += a[i];
            return sum + a.shape()[0] + (a.strides()[1] > 0);
        }""")
    for view in (lambda a: a, lambda a: a[:, ::-1], lambda a: a.T, lambda a: a[::2, 1:]):
        v = view(x)
        expected = np.broadcast_to(1000 * v[:, -1:] + v.sum() + len(v) + (v.strides[1] > 0) + 1, v.shape)
        np.testing.assert_array_equal(last(view(ad.asarray(x))).get(), expected)


def test_traits_of_types_by_the_name_of_cupys_header():
    kernel = ad.ElementwiseKernel("T x", "int32 z", """
        using namespace cupy::type_traits;
        typename conditional<sizeof(T) == 8, long long, int>::type wide = x;
        z = 10 * sizeof wide + is_same<T, double>::value + named(x);
        """, "traits", preamble="""
        template <class T> __device__ typename cupy::type_traits::enable_if<sizeof(T) == 8, int>::type named(T) { return 100; }
        template <class T> __device__ typename cupy::type_traits::enable_if<sizeof(T) == 4, int>::type named(T) { return 200; }
        """)
    for dtype, expected in (("float64", 181), ("int64", 180), ("float32", 240)):
        assert kernel(ad.ones(1, dtype)).tolist() == [expected]


def test_raw_arrays_as_carrays():
    first = ad.ElementwiseKernel("raw T x, int64 n", "T z", "z = row(x, i)", "first", preamble="""
        template <class T, bool C> __device__ T row(const CArray<T, 2, C> &a, ptrdiff_t i) {
            const ptrdiff_t index[2] = {i, 0};
            return a[index];
        }""")
    x = RNG.integers(-99, 99, (4, 6))
    for view in (lambda a: a, lambda a: a[:, ::-1]):
        np.testing.assert_array_equal(first(view(ad.asarray(x)), 1, size=4).get(), view(x)[:, 0])


SPECIAL = {"erfinv": (-0.999, 0.999), "erfcinv": (1e-9, 2), "normcdfinv": (1e-9, 1), "erfcx": (-5, 60),
           "cyl_bessel_i0": (-60, 60), "cyl_bessel_i1": (-60, 60)}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    special = pytest.importorskip("scipy.special")
    expected = getattr(special, {"normcdfinv": "ndtri", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1"}.get(name, name))
    kernel = ad.ElementwiseKernel("T x", "T z", f"z = {name}(x)", name)
    x = RNG.uniform(*SPECIAL[name], 500)
    np.testing.assert_allclose(kernel(ad.asarray(x)).get(), expected(x), rtol=1e-14)
    x = x.astype("float32")
    np.testing.assert_allclose(kernel(ad.asarray(x)).get(), expected(x.astype(float)), rtol=1e-5, atol=1e-37)


def test_functions_of_integers():
    code = """y = __hadd(x, 7) + 100 * __rhadd(x, 8) + 10000 * (int)__uhadd(x + 10u, 5u) + 1000000 * (int)__urhadd(3u, 4u)
              + 10000000 * __dp4a(0x01ff0302, 0x02040101, x) + (int)__dp4a(0xff000000u, 0x02000000u, 0u);"""
    x = np.array([-4, 5], "int32")
    dot = 1 * 2 - 1 * 4 + 3 + 2 + x
    expected = ((x + 7) // 2 + 100 * ((x + 9) // 2) + 10000 * ((x + 15) // 2) + 4000000 + 10000000 * dot + 255 * 2)
    got = ad.ElementwiseKernel("int32 x", "int32 y", code, "integers")(ad.asarray(x))
    np.testing.assert_array_equal(got.get(), expected.astype("int32"))


def test_nan_and_half():
    kernel = ad.ElementwiseKernel("float64 x", "float64 z, float32 y",
                                  'z = x < 0 ? nan("") : (double)__half2float(__float2half((float)x)); y = nanf("1");',
                                  "rounded")
    z, y = kernel(ad.asarray([-1.0, 1 / 3]))
    np.testing.assert_array_equal(z.get(), [np.nan, float(np.float16(1 / 3))])
    assert np.isnan(y.get()).all()


@pytest.mark.parametrize("declared, message", {
    "x": "must be a type and a name", "float31 x": "'float31' is neither", "T _x": "reserved",
    "T x, T x": "declared twice", "wild T x": "unknown keyword 'wild'", "9 x": "no placeholder",
    "T x-y": "C identifier", "float x": "'float' is neither",
}.items())
def test_wrong_declarations(declared, message):
    with pytest.raises(ValueError, match=message):
        ad.ElementwiseKernel(declared, "T z", "z = 1")


def test_wrong_definitions():
    with pytest.raises(ValueError, match="C identifier"):
        ad.ElementwiseKernel("T x", "T z", "z = x", "two words")
    for name, valid in {"f": True, "_2": True, "": False, "2f": False, "f\n": False, "a b": False, "é": False}.items():
        assert ad.cuda.compiler.is_valid_kernel_name(name) == valid
    with pytest.raises(ValueError, match="in common"):
        ad.ElementwiseKernel("T x", "T x", "x = x")
    with pytest.raises(TypeError, match="no parameter speed"):
        ad.ElementwiseKernel("T x", "T z", "z = x", speed=1)


def test_compile_errors_show_the_users_line():
    kernel = ad.ElementwiseKernel("T x", "T z", "z = x;\nz = nowhere + 1;", "broken")
    with pytest.raises(ad.CompileError) as caught:
        kernel(ad.zeros(3))
    message = str(caught.value)
    assert "nowhere" in message and ("broken(2)" in message or "broken:2" in message)
    assert message.count("z = nowhere + 1;") == 1, "the line itself, whoever compiles"
    assert "z = x;" not in message and "ad_kernel" not in message and "ptrdiff_t" not in message, message
    assert isinstance(caught.value, CompileException) and caught.value.name == "broken"
    assert caught.value.get_message() == message


def test_attributes_and_cached_code():
    kernel = ad.ElementwiseKernel("T x, raw T y", "T z", "z = x", "named")
    assert (kernel.nin, kernel.nout, kernel.nargs, kernel.name) == (2, 1, 3, "named") and "named" in repr(kernel)
    assert [(p.name, p.raw) for p in kernel.params] == [("x", False), ("y", True), ("z", False)]
    with pytest.raises(RuntimeError, match="has not been called"):
        kernel.cached_code
    kernel(ad.zeros(3), ad.zeros(3))
    kernel(ad.zeros(3, "int32"), ad.zeros(3, "int32"))
    assert len(kernel.cached_codes) == 2 and "int" in kernel.cached_code and "void elementwise_named(" in kernel.cached_code


# ---- reductions ----

l2norm = ad.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
total = ad.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")


@pytest.mark.parametrize("block_size", [None, 1, 8, 64, 256])
@pytest.mark.parametrize("shape", [(7,), (5, 6), (3, 4, 5), (1, 300), (300, 1), (2, 1000)])
def test_axes(shape, block_size):
    x = numbers(shape, "float64")
    a = ad.asarray(x)
    for axis in (None, *range(len(shape)), -1, tuple(range(len(shape))), (), (0, -1) if len(shape) > 1 else 0):
        for keepdims in (False, True):
            same(total(a, axis=axis, keepdims=keepdims, block_size=block_size), x.sum(axis=axis, keepdims=keepdims))
    same(l2norm(a, axis=-1, block_size=block_size), np.sqrt((x * x).sum(-1)), 1e-14)
    same(total(a.T, axis=0, block_size=block_size), x.T.sum(0))


@pytest.mark.parametrize("name", ["norm", "sin", "kernel", "main", "rint"])
def test_kernels_named_as_functions(name):
    """CUDA declares many, some of them for C; they can be called, too."""
    x = numbers(10, "float64")
    doubled = ad.ElementwiseKernel("float64 x", "float64 y", "y = 2 * x + sin(x) - rint(x)", name)
    same(doubled(ad.asarray(x)), 2 * x + np.sin(x) - np.rint(x), 1e-14)
    longest = ad.ReductionKernel("float64 x", "float64 y", "fabs(x)", "fmax(a, b)", "y = a", "0", name)
    same(longest(ad.asarray(x)), np.abs(x).max())


@pytest.mark.parametrize("dtype", REAL + ["complex64", "complex128"])
def test_reduction_types(dtype):
    x = numbers((6, 7), dtype)
    same(total(ad.asarray(x), axis=0), x.sum(0, dtype=dtype))


def test_reductions_in_two_stages():
    x = RNG.integers(-100, 100, 300_000)
    same(total(ad.asarray(x)), x.sum())
    same(total(ad.asarray(x).reshape(3, -1), axis=1), x.reshape(3, -1).sum(1))
    same(total(ad.asarray(x).reshape(-1, 3), axis=0), x.reshape(-1, 3).sum(0))
    same(total(ad.asarray(x).reshape(-1, 3), axis=0, block_size=128), x.reshape(-1, 3).sum(0))
    halves = ad.ReductionKernel("T x", "float64 y", "x / 2.0", "a + b", "y = a + _in_ind.size()", "0", "halves")
    same(halves(ad.asarray(x)), np.float64(x.sum() / 2 + x.size))


def test_several_inputs_and_outputs():
    dot = ad.ReductionKernel("T x, T y, T w", "T z", "x * y * w", "a + b", "z = a", "0", "weighted_dot")
    x, y = numbers((5, 8), "float64"), numbers(8, "float64")
    same(dot(ad.asarray(x), ad.asarray(y), 2, axis=1), (x * y * 2).sum(1))
    extremes = ad.ReductionKernel("T x", "T low, T high", "range<T>(x, x)",
                                  "range<T>(min(a.low, b.low), max(a.high, b.high))", "low = a.low; high = a.high", None,
                                  "extremes", reduce_type="range<T>", preamble="""
        template <class T> struct range {
            T low, high;
            __device__ range(T low, T high) : low(low), high(high) {}
        };""")
    low, high = extremes(ad.asarray(x), axis=0)
    same(low, x.min(0))
    same(high, x.max(0))
    big = numbers(100_000, "int32", -10**6, 10**6)
    low, high = extremes(ad.asarray(big), block_size=64)
    assert (int(low), int(high)) == (big.min(), big.max())


def test_number_of_an_element():
    argmax = ad.ReductionKernel("T x", "int64 y", "best<T>(x, _J)",
                                "a.value > b.value || (a.value == b.value && a.at < b.at) ? a : b", "y = a.at", "", "argmax",
                                reduce_type="best<T>", preamble="""
        template <class T> struct best {
            T value; long long at;
            __device__ best(T value, long long at) : value(value), at(at) {}
        };""")
    x = numbers((9, 50), "int32")
    for axis in (0, 1, None):
        same(argmax(ad.asarray(x), axis=axis), x.argmax(axis))
        same(argmax(ad.asarray(x), axis=axis, block_size=32), x.argmax(axis))


def test_raw_inputs_of_a_reduction():
    kernel = ad.ReductionKernel("T x, raw T w", "T y", "x * w[_J]", "a + b", "y = a", "0", "weighted")
    x, w = numbers((6, 4), "float64"), numbers(6, "float64")
    same(kernel(ad.asarray(x), ad.asarray(w), axis=0), (x * w[:, None]).sum(0))
    with pytest.raises(ValueError, match="can only reduce the first axes"):
        kernel(ad.asarray(x), ad.asarray(w), axis=1)


def test_outputs_of_a_reduction():
    x = numbers((4, 5))
    a, out = ad.asarray(x), ad.zeros(4, "float32")
    assert total(a, axis=1, out=out) is out
    same(out, x.sum(1))
    wide = ad.ReductionKernel("X x", "Y y", "x", "a + b", "y = a", "0", "wide")
    same(wide(a, dtype="float64", axis=0), x.sum(0, dtype="float64"))
    z = ad.zeros((4, 1), "float64")
    wide(a, z, axis=1, keepdims=True)
    same(z, x.sum(1, keepdims=True, dtype="float64"))
    strided = ad.zeros((4, 2), "float32")
    total(a, axis=1, out=strided[:, 1])
    same(strided, np.stack([np.zeros(4, "float32"), x.sum(1)], 1))


def test_reductions_of_nothing():
    same(total(ad.zeros((0, 3)), axis=0), np.zeros(3))
    same(total(ad.zeros((0, 3)), axis=1), np.zeros(0))
    least = ad.ReductionKernel("T x", "T y", "x", "min(a, b)", "y = a", None, "least")
    with pytest.raises(ValueError, match="zero-size array to reduction operation least which has no identity"):
        least(ad.zeros((0, 3)), axis=0)
    x = numbers((5, 3))
    same(least(ad.asarray(x), axis=0), x.min(0))


def test_wrong_reductions():
    with pytest.raises(TypeError, match="total: wrong number of arguments"):
        total()
    with pytest.raises(np.exceptions.AxisError):
        total(ad.zeros(3), axis=1)
    with pytest.raises(ValueError, match=r"output y has shape \(3,\), the result \(\)"):
        total(ad.zeros(3), out=ad.zeros(3))
    with pytest.raises(ValueError, match="power of two"):
        total(ad.zeros(3), block_size=100)
    with pytest.raises(ValueError, match="cannot be raw"):
        ad.ReductionKernel("T x", "raw T y", "x", "a + b", "y = a", "0")
    broken = ad.ReductionKernel("T x", "T y", "x", "a +\n nothing", "y = a", "0", "broken_sum")
    with pytest.raises(ad.CompileError, match=r"reduce_expr of broken_sum[(:]2"):
        broken(ad.zeros(3))


# ---- fuse ----

def test_fuse():
    @ad.fuse()
    def f(x, y):
        """doc"""
        return (x - y) * (x - y)

    @ad.fuse(kernel_name="named")
    def g(x, y):
        return ad.sum(x * y, axis=-1)

    @ad.fuse
    def h(x, out):
        out += x

    x, y = numbers((3, 4)), numbers((3, 4))
    a, b = ad.asarray(x), ad.asarray(y)
    same(f(a, b), (x - y) ** 2)
    assert f(5, 3) == 4 and f.__name__ == "f" and f.__doc__ == "doc" and "named" in repr(g)
    np.testing.assert_array_equal(f(x, y), (x - y) ** 2)
    same(g(a, b), (x * y).sum(-1), 1e-6)
    assert h(a, b) is None
    same(b, x + y)
    f.clear_cache()
    for wrong in (lambda: ad.fuse(3), lambda: ad.fuse(name="x"), lambda: ad.fuse(kernel_name=3)):
        with pytest.raises(TypeError):
            wrong()
