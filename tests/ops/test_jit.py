"""jit.rawkernel: functions of Python as kernels, with Python and NumPy as the oracle."""
import math

import numpy as np
import pytest

import arrayd as ad
from arrayd.cupyx import jit

RNG = np.random.default_rng(52)
GLOBAL = 7


def same(array, expected, rtol=0):
    got, expected = array.get(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=rtol) if rtol else np.testing.assert_array_equal(got, expected)


# ---- kernels ----

@jit.rawkernel()
def elementwise_copy(x, y, size):
    tid = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
    ntid = jit.gridDim.x * jit.blockDim.x
    for i in range(tid, size, ntid):
        y[i] = x[i]


def test_copy():
    x = RNG.normal(size=5000).astype("float32")
    a = ad.asarray(x)
    for size in (ad.uint32(5000), 5000, np.int16(5000)):
        y = ad.zeros_like(a)
        elementwise_copy((4,), (64,), (a, y, size))
        same(y, x)
        z = ad.zeros_like(a)
        elementwise_copy[4, 64](a, z, size)
        same(z, x)
    y = ad.zeros_like(a)
    elementwise_copy[(4, 1), (64,)](a[::-1], y[::2], 2500)
    expected = np.zeros_like(x)
    expected[::2] = x[::-1][:2500]
    same(y, expected)


def test_launches_do_not_wait():
    a, y = ad.ones(100), ad.zeros(100)
    elementwise_copy[1, 32](a, y, 100)
    before = ad.session_info()["round_trips"]
    for _ in range(5):
        elementwise_copy[1, 32](a, y, 100)
    assert ad.session_info()["round_trips"] == before


@jit.rawkernel()
def reduction(x, y, size):
    tid = jit.threadIdx.x
    ntid = jit.blockDim.x
    value = ad.float32(0)
    for i in range(tid, size, ntid):
        value += x[i]
    smem = jit.shared_memory(ad.float32, 1024)
    smem[tid] = value
    jit.syncthreads()
    if tid == ad.uint32(0):
        value = ad.float32(0)
        for i in range(ntid):
            value += smem[i]
        y[0] = value


def test_shared_memory():
    x = RNG.integers(-9, 9, 1000).astype("float32")
    y = ad.zeros(1, "float32")
    reduction[1, 256](ad.asarray(x), y, 1000)
    same(y, x.sum(keepdims=True))

    @jit.rawkernel()
    def reverse(x, y):
        kept = jit.shared_memory(np.float64, None)
        t = jit.threadIdx.x
        kept[t] = x[t]
        jit.syncthreads()
        y[t] = kept[jit.blockDim.x - 1 - t]
    a, b = RNG.normal(size=48), ad.zeros(48)
    reverse((1,), (48,), (ad.asarray(a), b), shared_mem=48 * 8)
    same(b, a[::-1])
    b = ad.zeros(48)
    reverse[1, 48, 48 * 8](ad.asarray(a), b)
    same(b, a[::-1])

    @jit.rawkernel()
    def swap(z):
        kept = jit.shared_memory(np.complex64, 32, alignment=16)
        t = jit.threadIdx.x
        kept[t] = z[t]
        jit.syncthreads()
        z[t] = kept[t ^ 1]
    z = (RNG.integers(-9, 9, 32) + 1j * RNG.integers(-9, 9, 32)).astype("complex64")
    c = ad.asarray(z)
    swap[1, 32](c)
    same(c, z.reshape(-1, 2)[:, ::-1].ravel())


def test_grids():
    @jit.rawkernel()
    def fill(y):
        i, j = jit.grid(2)
        n, m = jit.gridsize(2)
        y[i, j] = i * 100 + j
        if i == 0 and j == 0:
            y[0, 0] = n * 1000 + m
    y = ad.zeros((6, 8), "int64")
    fill[(2, 4), (3, 2)](y)
    i, j = np.indices((6, 8))
    expected = i * 100 + j
    expected[0, 0] = 6008
    same(y, expected)

    @jit.rawkernel()
    def three(y):
        x, s, t = jit.grid(3)
        y[x, s, t] = jit.gridsize(3)[2] + jit.gridsize(1) + jit.grid(1)
    y = ad.zeros((2, 3, 4), "uint32")
    three[(1, 3, 2), (2, 1, 2)](y)
    same(y, (4 + 2 + np.indices((2, 3, 4))[0]).astype("uint32"))


def test_control_flow():
    @jit.rawkernel()
    def collatz(x, y, limit):
        i = jit.grid(1)
        if i >= x.size:
            return
        n, steps = x[i], 0
        while n != 1:
            if n % 2 == 0:
                n //= 2
            elif steps > limit:
                break
            else:
                n = 3 * n + 1
            steps += 1
            if steps % 2:
                continue
            pass
        y[i] = steps if steps < 1000 else -1

    def python(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps
    x = np.arange(1, 41)
    y = ad.zeros(40, "int32")
    collatz[2, 32](ad.asarray(x), y, 10**6)
    same(y, np.array([python(int(n)) for n in x], "int32"))


def test_ranges():
    """Bounds are taken once, the variable may be changed, and it stays what it was last: as in Python."""
    def body(y, n):
        at = 0
        for i in range(n):
            n = 3
            y[at] = i
            i = 100
            at += 1
        y[at] = i
        for k in range(10, 0, -3):
            y[at + 1] += k
        for k in range(5, 2):
            y[0] = -1
        for s in jit.range(1, 9, 2, unroll=True):
            y[at + 2] += s
        for s in jit.range(4, unroll=2):
            y[at + 3] += s
    y = ad.zeros(10, "int64")
    jit.rawkernel()(body)[1, 1](y, 5)
    same(y, np.array([0, 1, 2, 3, 4, 100, 22, 16, 6, 0]))

    @jit.rawkernel()
    def steps(y, start, stop, step):
        for i in range(start, stop, step):
            y[0] = y[0] * 10 + i
    for arguments in ((1, 6, 2), (7, 1, -3), (3, 3, 1), (1, 5, -1)):
        y = ad.zeros(1, "int64")
        steps[1, 1](y, *arguments)
        value = 0
        for i in range(*arguments):
            value = value * 10 + i
        same(y, np.array([value]))


def test_operators_follow_numpy():
    x = np.array([-7, -3, 0, 2, 5, 9])
    y = np.array([3, -2, 4, -5, 5, 2])

    def body(x, y, out):
        i = jit.threadIdx.x
        a, b = x[i], y[i]
        out[0, i], out[1, i], out[2, i], out[3, i] = a + b, a - b, a * b, a / b
        out[4, i], out[5, i], out[6, i] = a // b, a % b, -a
        out[7, i] = (a & b) | (a ^ 3)
        out[8, i] = ~a << 2 >> 1
        out[9, i] = a < b <= 5 != a
        out[10, i] = abs(a) ** 2
        out[11, i] = min(a, b, 1) + max(a, b)
        out[12, i] = not a
        out[13, i] = +a if a > 0 or b > 0 else 2 * b

    def python(a, b):
        return [a + b, a - b, a * b, a / b, a // b, a % b, -a, (a & b) | (a ^ 3), ~a << 2 >> 1, a < b <= 5 != a,
                abs(a) ** 2, min(a, b, 1) + max(a, b), not a, a if a > 0 or b > 0 else 2 * b]
    out = ad.zeros((14, 6))
    jit.rawkernel()(body)[1, 6](ad.asarray(x), ad.asarray(y), out)
    same(out, np.array([python(int(a), int(b)) for a, b in zip(x, y)], float).T)


def test_division_by_zero_and_overflow_harm_nobody():
    @jit.rawkernel()
    def divide(x, y):
        i = jit.threadIdx.x
        y[i] = x[i] // x[2] + x[i] % x[2] + x[0] // x[1] + x[0] % x[1]
    y = ad.zeros(3, "int64")
    low = -2**63
    divide[1, 3](ad.asarray([low, -1, 0]), y)
    same(y, np.array([low] * 3))


def test_functions_and_constants():
    offset = 0.5

    def plain(v):
        if v > 2:
            return v
        return -v

    @jit.rawkernel(device=True)
    def both(a, b=3):
        return a + b, a * b

    @jit.rawkernel()
    def f(x, out):
        i = jit.threadIdx.x
        s, p = both(x[i])
        out[i, 0] = s + p
        out[i, 1] = both(x[i], b=2)[1]
        out[i, 2] = plain(x[i]) + GLOBAL + offset
        out[i, 3] = math.sqrt(x[i]) + np.exp(x[i]) + ad.sin(x[i]) + math.pi
        out[i, 4] = len(x) + x.size + out.shape[1] + out.ndim + x.dtype.itemsize
        t = (i, x[i])
        t = t[0], t[1] * 2
        out[i, 5] = t[1]
        out[i, 6] = int(x[i] * 1.7) + float(i) + bool(i)
        out[i, 7] = 2 ** 10 - 3 // 2 + (1, 5, 9)[1]
        for d in range(2):
            out[i, 7] += out.shape[d]

    x = np.arange(5.0)
    out = ad.zeros((5, 8))
    f[1, 5](ad.asarray(x), out)
    expected = np.stack([
        x + 3 + x * 3, x * 2, np.where(x > 2, x, -x) + 7.5, np.sqrt(x) + np.exp(x) + np.sin(x) + math.pi,
        np.full(5, 5 + 5 + 8 + 2 + 8.0), x * 2, np.floor(x * 1.7) + x + (x > 0), np.full(5, 1023 + 5 + 5 + 8.0)], 1)
    same(out, expected, 1e-14)
    with pytest.raises(TypeError, match="device function"):
        both[1, 1](1, 2)


def test_device_functions_write():
    @jit.rawkernel(device=True)
    def put(array, at, value):
        array[at] = value
        jit.atomic_add(array, 0, 1)

    @jit.rawkernel()
    def f(x, y):
        other = y
        put(other, jit.threadIdx.x + 1, x[jit.threadIdx.x])
    x, y = np.arange(4.0), ad.zeros(5)
    f[1, 4](ad.asarray(x), y)
    same(y, np.array([4.0, 0, 1, 2, 3]))


ATOMICS = {
    "add": (jit.atomic_add, lambda values, start: start + values.sum()),
    "sub": (jit.atomic_sub, lambda values, start: start - values.sum()),
    "min": (jit.atomic_min, lambda values, start: min(start, values.min())),
    "max": (jit.atomic_max, lambda values, start: max(start, values.max())),
    "and": (jit.atomic_and, lambda values, start: np.bitwise_and.reduce(values) & start),
    "or": (jit.atomic_or, lambda values, start: np.bitwise_or.reduce(values) | start),
    "xor": (jit.atomic_xor, lambda values, start: np.bitwise_xor.reduce(values) ^ start),
}


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("name", ATOMICS)
def test_atomics(name, dtype):
    operation, expected = ATOMICS[name]

    @jit.rawkernel()
    def f(x, y):
        operation(y, (1, 0), x[jit.grid(1)])
    x = RNG.integers(1, 100, 128).astype(dtype)
    y = ad.full((2, 2), 55, dtype)
    if name in ("and", "or", "xor") and dtype.startswith("float"):
        with pytest.raises(TypeError, match=f"atomic_{name} is not defined for {dtype}"):
            f[2, 64](ad.asarray(x), y)
        return
    f[2, 64](ad.asarray(x), y)
    with np.errstate(over="ignore"):
        result = expected(x, x.dtype.type(55))
    same(y, np.array([[55, 55], [result, 55]], dtype))


def test_more_atomics():
    @jit.rawkernel()
    def f(y, old):
        i = jit.threadIdx.x
        jit.atomic_inc(y, 0, 9)
        jit.atomic_dec(y, 1, 5)
        old[i] = jit.atomic_cas(y, 2, 0, i + 1)
        jit.atomic_exch(y, 3, 8)
        jit.atomic_add(y, 4, 1)
    y, old = ad.zeros(5, "uint32"), ad.zeros(32, "uint32")
    f[1, 32](y, old)
    counts, olds = y.get(), old.get()
    assert counts[0] == 32 % 10 and counts[1] == (-32) % 6 and counts[3] == 8 and counts[4] == 32
    assert (olds == 0).sum() == 1 and counts[2] == 1 + int(np.argmin(olds)) and set(olds) <= {0, counts[2]}

    @jit.rawkernel()
    def exchange(y):
        jit.atomic_exch(y, 0, 2.5)
        jit.atomic_max(y, 1, 1.5)
        jit.atomic_min(y, 2, -1.5)
    for dtype in ("float32", "float64"):
        y = ad.zeros(3, dtype)
        exchange[1, 32](y)
        same(y, np.array([2.5, 1.5, -1.5], dtype))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_shuffles(dtype):
    @jit.rawkernel()
    def f(x, out):
        lane = jit.laneid()
        v = x[jit.threadIdx.x]
        out[0, lane] = jit.shfl_sync(0xffffffff, v, 3)
        out[1, lane] = jit.shfl_up_sync(0xffffffff, v, 2)
        out[2, lane] = jit.shfl_down_sync(0xffffffff, v, 5)
        out[3, lane] = jit.shfl_xor_sync(0xffffffff, v, 1)
        out[4, lane] = jit.shfl_sync(0xffffffff, v, 1, width=8)
        total = v
        for k in range(5):
            total += jit.shfl_xor_sync(0xffffffff, total, 1 << k)
            jit.syncwarp()
        out[5, lane] = total
        jit.syncwarp(mask=0xffffffff)
    x = RNG.integers(0, 99, 32).astype(dtype)
    out = ad.zeros((6, 32), dtype)
    f[1, 32](ad.asarray(x), out)
    lanes = np.arange(32)
    same(out, np.stack([np.full(32, x[3]), x[np.where(lanes >= 2, lanes - 2, lanes)],
                        x[np.where(lanes < 27, lanes + 5, lanes)], x[lanes ^ 1], x[lanes // 8 * 8 + 1],
                        np.full(32, x.sum(dtype=dtype))]).astype(dtype))
    assert jit.warpsize == 32


def test_types_of_variables():
    @jit.rawkernel()
    def f(x, out):
        i = jit.threadIdx.x
        a = x[i] * 2 + 0.1
        out[i] = a * 3
    for dtype in ("float16", "float32", "float64"):
        x = RNG.uniform(0, 3, 20).astype(dtype)
        out = ad.zeros(20, dtype)
        f[1, 20](ad.asarray(x), out)
        same(out, (x * 2 + 0.1) * 3, {"float16": 0, "float32": 1e-6, "float64": 1e-15}[dtype])
    assert f.cached_codes and all("jit_f" in code for code in f.cached_codes.values())
    with pytest.warns(RuntimeWarning, match="several types"):
        assert "jit_f" in f.cached_code


def test_small_and_unsigned_integers_wrap():
    @jit.rawkernel()
    def f(x, out):
        i = jit.threadIdx.x
        out[i] = x[i] * x[i] - 1
    for dtype in ("int8", "uint8", "int16", "uint32", "uint64"):
        x = RNG.integers(0, 100, 30).astype(dtype)
        out = ad.zeros(30, dtype)
        f[1, 30](ad.asarray(x), out)
        same(out, x * x - x.dtype.type(1))


def test_complex_numbers():
    @jit.rawkernel()
    def f(z, out):
        i = jit.threadIdx.x
        out[i] = z[i] * (2 + 1j) - z[i].real + abs(z[i]) * 1j
    for dtype in ("complex64", "complex128"):
        z = (RNG.normal(size=9) + 1j * RNG.normal(size=9)).astype(dtype)
        out = ad.zeros(9, dtype)
        f[1, 9](ad.asarray(z), out)
        same(out, z * (2 + 1j) - z.real + abs(z) * 1j, 1e-5)


def test_compile_time_branches():
    @jit.rawkernel()
    def f(x, out):
        if x.ndim == 1:
            out[jit.threadIdx.x] = x[jit.threadIdx.x]
        else:
            out[jit.threadIdx.x] = x[jit.threadIdx.x, 1]
    out = ad.zeros(3)
    f[1, 3](ad.arange(3.0), out)
    same(out, np.arange(3.0))
    f[1, 3](ad.arange(6.0).reshape(3, 2), out)
    same(out, np.array([1.0, 3, 5]))


def test_numpy_mode():
    def body(x, y, out):
        out[0] = x[0] + y[0]
    x, y = ad.asarray([2**53 + 1]), ad.asarray([0], "uint64")
    exact, rounded = ad.zeros(1, "uint64"), ad.zeros(1)
    jit.rawkernel()(body)[1, 1](x, y, exact)
    jit.rawkernel(mode="numpy")(body)[1, 1](x, y, rounded)
    same(exact, np.array([2**53 + 1], "uint64"))
    same(rounded, np.array([2.0**53]))
    with pytest.raises(ValueError, match="mode must be"):
        jit.rawkernel(mode="c")


def unknown(x):
    x[0] = nowhere  # noqa: F821


def early(x):
    x[0] = later  # noqa: F821
    later = 1  # noqa: F841


def changing(x):
    a = 1
    a = 2.5
    x[0] = a


def dimensions(x):
    x[0, 1] = 2


def fractions(x):
    x[0.5] = 2


def gives(x):
    return 3


def strange(x):
    with x:
        pass


def over_a_list(x):
    for i in x:
        x[0] = i


def lossy(x):
    x[0] = 1j


def method(x):
    x[0] = x.sum()


def recursive(x):
    recursive(x)


def other_call(x):
    x[0] = sorted(x)


def own_error(x):
    x[0] = open("no such file")


def never(x):
    for i in range(3):
        x[i] = 1
    else:
        x[0] = 2


@pytest.mark.parametrize("function, error, message", [
    (unknown, NameError, "Unbound name: nowhere"), (early, NameError, "later is used before it is assigned"),
    (changing, TypeError, "a is int64 from its first assignment on: 2.5 cannot become int64"),
    (dimensions, IndexError, "an array of 1 dimensions needs as many indices, not 2"),
    (fractions, IndexError, "an index must be an integer, not float64"), (gives, TypeError, "a kernel returns nothing"),
    (strange, NotImplementedError, "With cannot be translated"),
    (over_a_list, NotImplementedError, "must be over range"),
    (lossy, TypeError, "1j cannot become float64 here"), (method, AttributeError, "has no attribute sum in a kernel"),
    (recursive, ValueError, "calls itself"), (other_call, TypeError, "'sorted' cannot be called in a kernel"),
    (own_error, TypeError, "FileNotFoundError: .*No such file"),
    (never, NotImplementedError, "else of a loop")])
def test_what_cannot_be_translated_names_the_line(function, error, message):
    with pytest.raises(error, match=message) as caught:
        jit.rawkernel()(function)[1, 1](ad.zeros(3))
    text = str(caught.value)
    assert "test_jit.py, line " in text and f"in {function.__name__}" in text
    line = int(text.split("test_jit.py, line ")[1].split(",")[0])
    first = function.__code__.co_firstlineno
    assert first < line <= first + 5


def test_wrong_launches():
    with pytest.raises(TypeError, match="takes 3 arguments, not 1"):
        elementwise_copy[1, 1](ad.zeros(3))
    with pytest.raises(TypeError, match="argument 0 of elementwise_copy must be an arrayd.ndarray or a number, not"):
        elementwise_copy[1, 1](np.zeros(3), ad.zeros(3), 3)
    with pytest.raises(TypeError, match="must be a tuple"):
        elementwise_copy((1,), (1,), ad.zeros(3))
    with pytest.raises(ValueError, match=r"kernel\[grid, block\]"):
        elementwise_copy[1]
    with pytest.raises(ValueError, match="one to three sizes"):
        elementwise_copy[(1, 1, 1, 1), 1]()
    for outside in (jit.syncthreads, jit.grid, jit.atomic_add, jit.shared_memory, jit.range):
        with pytest.raises(RuntimeError, match="can only be called in a function that jit.rawkernel decorates"):
            outside(1)
    with pytest.raises(RuntimeError, match="has not been called"):
        jit.rawkernel()(gives).cached_code
    assert "kernel elementwise_copy" in repr(elementwise_copy) and "grid" in repr(jit.grid)


def test_without_source():
    scope = {}
    exec("def f(x):\n    x[0] = 1\n", scope)
    with pytest.raises(ValueError, match="the source of f cannot be found"):
        jit.rawkernel()(scope["f"])[1, 1](ad.zeros(1))
