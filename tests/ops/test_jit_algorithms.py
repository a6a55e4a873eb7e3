"""jit.thrust, jit.cub and rows of arrays: what kernels in Python compute with them, against NumPy."""
import numpy as np
import pytest

import arrayd as ad
from arrayd.cupyx import jit

RNG = np.random.default_rng(61)
thrust = jit.thrust


def rows_of_two(algorithm):
    @jit.rawkernel()
    def kernel(x, y):
        i = jit.grid(1)
        if i < len(x):
            algorithm(thrust.seq, x[i].begin(), x[i].end(), y[i].begin())
    return kernel


def scans_by_key(x, keys, start=None):
    """The scans of the runs of equal keys."""
    out = np.empty_like(x)
    for row, ks, os in zip(x, keys, out):
        bounds = [0, *(np.flatnonzero(np.diff(ks)) + 1), len(ks)]
        for a, b in zip(bounds, bounds[1:]):
            sums = np.cumsum(row[a:b])
            os[a:b] = sums if start is None else np.concatenate([[start], start + sums[:-1]])
    return out


COPIES = {
    "copy": lambda x: x, "reverse_copy": lambda x: x[:, ::-1], "inclusive_scan": lambda x: x.cumsum(1),
    "adjacent_difference": lambda x: np.diff(x, axis=1, prepend=0),
    "exclusive_scan": lambda x: x.cumsum(1) - x,
}
LAYOUTS = {"C": lambda x: x, "F": np.asfortranarray, "steps": lambda x: np.repeat(x, 2, 1)[:, ::2]}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", COPIES)
def test_copies(name, layout):
    x = LAYOUTS[layout](RNG.integers(-9, 9, (20, 31)))
    a = ad.asarray(x, order="A") if layout != "steps" else ad.asarray(np.repeat(x, 2, 1))[:, ::2]
    y = ad.zeros((20, 31), a.dtype)
    rows_of_two(getattr(thrust, name))[2, 16](a, y)
    np.testing.assert_array_equal(y.get(), COPIES[name](x))
    rows_of_two(getattr(thrust, name))[2, 16](ad.zeros((20, 0), int), y)  # nothing, and nothing is written
    np.testing.assert_array_equal(y.get(), COPIES[name](x))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float16", "float32", "float64", "complex64"])
def test_sorting(dtype):
    x = RNG.integers(0, 40, (6, 333)).astype(dtype)
    a, y = ad.asarray(x), ad.asarray(np.tile(np.arange(333), (6, 1)))

    @jit.rawkernel()
    def sort(x, y):
        i = jit.threadIdx.x
        thrust.stable_sort_by_key(thrust.seq, x[i].begin(), x[i].end(), y[i].begin())

    sort[1, 6](a, y)
    np.testing.assert_array_equal(y.get(), np.argsort(x, axis=1, kind="stable"))
    np.testing.assert_array_equal(a.get(), np.sort(x, axis=1))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 17, 1000])
def test_sorting_of_lengths(n):
    x = RNG.permutation(n)
    a = ad.asarray(x)

    @jit.rawkernel()
    def sort(x):
        thrust.sort(thrust.device, x.begin(), x.end())

    sort[1, 1](a)
    np.testing.assert_array_equal(a.get(), np.arange(n))


def multiset(name, a, b):
    """Return what an algorithm of sorted sets gives for lists with repeated elements."""
    values = np.unique(np.concatenate([a, b]))
    m, n = (np.array([np.count_nonzero(each == v) for v in values]) for each in (a, b))
    times = {"merge": m + n, "set_union": np.maximum(m, n), "set_intersection": np.minimum(m, n),
             "set_difference": np.maximum(m - n, 0), "set_symmetric_difference": abs(m - n)}[name]
    return np.repeat(values, times)


@pytest.mark.parametrize("name", ["merge", "set_union", "set_intersection", "set_difference",
                                  "set_symmetric_difference"])
def test_sets(name):
    algorithm = getattr(thrust, name)
    by_key = getattr(thrust, name + "_by_key")
    one_side = name == "set_intersection"

    @jit.rawkernel()
    def combine(a, b, out, va, vb, keys, values, sizes):
        end = algorithm(thrust.seq, a.begin(), a.end(), b.begin(), b.end(), out.begin())
        sizes[0] = end - out.begin()
        if one_side:
            k, v = by_key(thrust.seq, a.begin(), a.end(), b.begin(), b.end(), va.begin(), keys.begin(), values.begin())
        else:
            k, v = by_key(thrust.seq, a.begin(), a.end(), b.begin(), b.end(), va.begin(), vb.begin(), keys.begin(),
                          values.begin())
        sizes[1] = k - keys.begin()
        sizes[2] = v - values.begin()

    for na, nb in ((20, 30), (0, 5), (5, 0), (30, 3)):
        a, b = np.sort(RNG.integers(0, 12, na)), np.sort(RNG.integers(0, 12, nb))
        expected = multiset(name, a, b)
        out, keys, values, sizes = (ad.zeros(n, int) for n in (64, 64, 64, 3))
        combine[1, 1](ad.asarray(a), ad.asarray(b), out, ad.asarray(a * 10), ad.asarray(b * 10), keys, values, sizes)
        assert sizes.tolist() == [len(expected)] * 3
        n = len(expected)
        np.testing.assert_array_equal(out.get()[:n], expected)
        np.testing.assert_array_equal(keys.get()[:n], expected)
        np.testing.assert_array_equal(values.get()[:n], expected * 10)


def test_searches():
    @jit.rawkernel()
    def search(x, values, out, out2):
        i = jit.grid(1)
        v, first, last = values[i], x.begin(), x.end()
        out[i, 0] = thrust.lower_bound(thrust.seq, first, last, v) - first
        out[i, 1] = thrust.upper_bound(thrust.seq, first, last, v) - first
        low, high = thrust.equal_range(thrust.seq, first, last, v)
        out[i, 2] = high - low
        out[i, 3] = thrust.binary_search(thrust.seq, first, last, v)
        out[i, 4] = thrust.find(thrust.seq, first, last, v) - first
        out[i, 5] = thrust.count(thrust.seq, first, last, v)
        if i == 0:
            thrust.lower_bound(thrust.seq, first, last, values.begin(), values.end(), out2[0].begin())
            thrust.upper_bound(thrust.seq, first, last, values.begin(), values.end(), out2[1].begin())
            thrust.binary_search(thrust.seq, first, last, values.begin(), values.end(), out2[2].begin())

    x, values = np.sort(RNG.integers(0, 30, 50)), np.arange(-1, 31)
    out, out2 = ad.zeros((32, 6), int), ad.zeros((3, 32), int)
    search[1, 32](ad.asarray(x), ad.asarray(values), out, out2)
    low, high = (np.searchsorted(x, values, side) for side in ("left", "right"))
    found = np.isin(values, x)
    np.testing.assert_array_equal(out.get().T, [low, high, high - low, found, np.where(found, low, 50), high - low])
    np.testing.assert_array_equal(out2.get(), [low, high, found])


def test_keys_and_runs():
    @jit.rawkernel()
    def runs(keys, x, inclusive, exclusive, shifted, group_keys, sums, firsts, sizes):
        k, last, v = keys.begin(), keys.end(), x.begin()
        thrust.inclusive_scan_by_key(thrust.seq, k, last, v, inclusive.begin())
        thrust.exclusive_scan_by_key(thrust.seq, k, last, v, exclusive.begin())
        thrust.exclusive_scan_by_key(thrust.seq, k, last, v, shifted.begin(), 5)
        ends = thrust.reduce_by_key(thrust.seq, k, last, v, group_keys.begin(), sums.begin())
        sizes[0] = ends[0] - group_keys.begin()
        a, b = thrust.unique_by_key_copy(thrust.seq, k, last, v, group_keys.begin(), firsts.begin())
        sizes[1] = b - firsts.begin()
        thrust.unique_by_key(thrust.seq, k, last, v)

    keys, x = np.sort(RNG.integers(0, 9, 40)), RNG.integers(-9, 9, 40)
    made = [ad.zeros(40, int) for _ in range(6)] + [ad.zeros(2, int)]
    a, b = ad.asarray(keys), ad.asarray(x)
    runs[1, 1](a, b, *made)
    inclusive, exclusive, shifted, group_keys, sums, firsts, sizes = (each.get() for each in made)
    unique, first = np.unique(keys, return_index=True)
    n = len(unique)
    assert sizes.tolist() == [n, n]
    np.testing.assert_array_equal(inclusive, scans_by_key(x[None], keys[None])[0])
    np.testing.assert_array_equal(exclusive, scans_by_key(x[None], keys[None], 0)[0])
    np.testing.assert_array_equal(shifted, scans_by_key(x[None], keys[None], 5)[0])
    np.testing.assert_array_equal(group_keys[:n], unique)
    np.testing.assert_array_equal(sums[:n], np.add.reduceat(x, first))
    np.testing.assert_array_equal(firsts[:n], x[first])
    np.testing.assert_array_equal(a.get()[:n], unique)
    np.testing.assert_array_equal(b.get()[:n], x[first])


def test_sums_extremes_and_changes():
    @jit.rawkernel()
    def kernel(x, y, out, changed):
        first, last = x.begin(), x.end()
        out[0] = thrust.reduce(thrust.seq, first, last)
        out[1] = thrust.reduce(thrust.seq, first, last, 10)
        out[2] = thrust.inner_product(thrust.seq, first, last, y.begin(), 1)
        out[3] = thrust.max_element(thrust.seq, first, last) - first
        low, high = thrust.minmax_element(thrust.seq, first, last)
        out[4] = low - first
        out[5] = high[0]
        out[6] = thrust.is_sorted(thrust.seq, first, last)
        out[7] = thrust.is_sorted_until(thrust.seq, first, last) - first
        out[8] = thrust.mismatch(thrust.seq, first, last, y.begin())[0] - first
        out[9] = thrust.equal(thrust.seq, first, first + 3, y.begin())
        thrust.replace_copy(thrust.seq, first, last, changed[0].begin(), 3, -7)
        out[10] = thrust.remove_copy(thrust.seq, first, last, changed[1].begin(), 3) - changed[1].begin()
        out[11] = thrust.unique_copy(thrust.seq, first, last, changed[2].begin()) - changed[2].begin()
        thrust.sequence(thrust.seq, changed[3].begin(), changed[3].end(), 5, 3)
        thrust.fill(thrust.seq, changed[4].begin(), changed[4].end() - 1, 8)
        thrust.swap_ranges(thrust.seq, changed[3].begin(), changed[3].begin() + 2, changed[4].begin())
        out[12] = thrust.make_counting_iterator(4)[3] + thrust.make_constant_iterator(4)[3]
        out[13] = first + 2 == last - (x.size - 2)
        out[14] = (last != first) and (first < last)

    x = np.array([3, 4, 4, 5, 3, 9, 1, 3])
    y = np.array([3, 4, 4, 6, 0, 1, 2, 3])
    out, changed = ad.zeros(15, int), ad.zeros((5, 8), int)
    kernel[1, 1](ad.asarray(x), ad.asarray(y), out, changed)
    kept, runs = x[x != 3], np.array([3, 4, 5, 3, 9, 1, 3])
    assert out.tolist() == [x.sum(), x.sum() + 10, 1 + x @ y, 5, 6, 9, 0, 4, 3, 1, len(kept), len(runs), 11, 1, 1]
    expected = np.zeros((5, 8), int)
    expected[0] = np.where(x == 3, -7, x)
    expected[1, :len(kept)], expected[2, :len(runs)] = kept, runs
    expected[3] = 5 + 3 * np.arange(8)
    expected[4, :7] = 8
    expected[3, :2], expected[4, :2] = expected[4, :2].copy(), expected[3, :2].copy()
    np.testing.assert_array_equal(changed.get(), expected)


def test_gather_and_scatter():
    @jit.rawkernel()
    def kernel(places, x, gathered, scattered):
        thrust.gather(thrust.seq, places.begin(), places.end(), x.begin(), gathered.begin())
        thrust.scatter(thrust.seq, x.begin(), x.end(), places.begin(), scattered.begin())
        thrust.reverse(thrust.seq, x.begin(), x.end())
        thrust.replace(thrust.seq, places.begin(), places.end(), 0, 99)

    places, x = RNG.permutation(20), RNG.normal(size=20).astype("float32")
    a, p, gathered, scattered = ad.asarray(x), ad.asarray(places), ad.zeros(20, "float32"), ad.zeros(20, "float32")
    kernel[1, 1](p, a, gathered, scattered)
    np.testing.assert_array_equal(gathered.get(), x[places])
    np.testing.assert_array_equal(scattered.get()[places], x)
    np.testing.assert_array_equal(a.get(), x[::-1])
    assert p.get().max() == 99


def test_rows():
    @jit.rawkernel()
    def kernel(x, y):
        i, j = jit.threadIdx.x, jit.threadIdx.y
        plane = x[i]
        row = plane[j]
        y[i, j, 0] = row.size + plane.ndim * 100 + len(plane) * 1000
        for k in range(row.shape[0]):
            y[i, j, 1] += row[k]
        if i == 1:
            row = plane[0]
        y[i, j, 2] = row[2]
        row[2] += 0

    x = RNG.integers(-9, 9, (3, 4, 5))
    for view in (lambda a: a, lambda a: a[::-1, ::-1, ::-1], lambda a: a.transpose(0, 1, 2)):
        y = ad.zeros((3, 4, 3), int)
        kernel[1, (3, 4)](view(ad.asarray(x)), y)
        v, got = view(x), y.get()
        assert (got[:, :, 0] == 5 + 200 + 4000).all()
        np.testing.assert_array_equal(got[:, :, 1], v.sum(2))
        thirds = v[:, :, 2].copy()
        thirds[1] = v[1, 0, 2]
        np.testing.assert_array_equal(got[:, :, 2], thirds)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
                                   "complex128"])
def test_cub(dtype):
    dtype = ad.empty(0, dtype).dtype
    cub = jit.cub

    @jit.rawkernel()
    def blocks(x, y):
        i, j = jit.blockIdx.x, jit.threadIdx.x
        Block = cub.BlockReduce[dtype, 96]
        storage = jit.shared_memory(Block.TempStorage, 1)
        total = Block(storage[0]).Sum(x[i, j])
        jit.syncthreads()
        greatest = Block(storage[0]).Reduce(x[i, j], cub.Max())
        jit.syncthreads()
        few = Block(storage[0]).Reduce(x[i, j], cub.Min(), 11)
        if j == 0:
            y[0, i] = total
            y[1, i] = greatest
            y[2, i] = few

    @jit.rawkernel()
    def warps(x, y):
        i, j = jit.blockIdx.x, jit.threadIdx.x
        Warp = cub.WarpReduce[dtype]
        storage = jit.shared_memory(Warp.TempStorage, 3)
        reducer = Warp(storage[j // 32])
        total = reducer.Sum(x[i, j])
        jit.syncwarp()
        least = reducer.Reduce(x[i, j], cub.Min())
        if j % 32 == 0:
            y[0, i, j // 32] = total
            y[1, i, j // 32] = least

    x = RNG.integers(0, 2, (4, 96)).astype(dtype)
    x[:, 50] = 1
    a, y, z = ad.asarray(x), ad.zeros((3, 4), dtype), ad.zeros((2, 4, 3), dtype)
    blocks[4, 96](a, y)
    warps[4, 96](a, z)
    wide = x.astype("complex128" if dtype.kind == "c" else "float64").real
    np.testing.assert_array_equal(y.get().astype(complex).real, [wide.sum(1), wide.max(1), wide[:, :11].min(1)])
    lanes = wide.reshape(4, 3, 32)
    np.testing.assert_array_equal(z.get().astype(complex).real, [lanes.sum(2), lanes.min(2)])


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float64", "complex64"])
def test_scans(dtype):
    dtype = ad.empty(0, dtype).dtype
    cub = jit.cub

    @jit.rawkernel()
    def scans(x, y, z):
        i, j = jit.blockIdx.x, jit.threadIdx.x
        Block = cub.BlockScan[dtype, 96]
        storage = jit.shared_memory(Block.TempStorage, 1)
        y[0, i, j] = Block(storage[0]).InclusiveSum(x[i, j])
        jit.syncthreads()
        y[1, i, j] = Block(storage[0]).ExclusiveSum(x[i, j])
        jit.syncthreads()
        y[2, i, j] = Block(storage[0]).InclusiveScan(x[i, j], cub.Max())
        Warp = cub.WarpScan[dtype]
        of_warps = jit.shared_memory(Warp.TempStorage, 3)
        z[0, i, j] = Warp(of_warps[j // 32]).ExclusiveSum(x[i, j])
        jit.syncwarp()
        z[1, i, j] = Warp(of_warps[j // 32]).InclusiveScan(x[i, j], cub.Min())

    x = RNG.integers(0, 2, (4, 96)).astype(dtype)
    y, z = ad.zeros((3, 4, 96), dtype), ad.zeros((2, 4, 96), dtype)
    scans[4, 96](ad.asarray(x), y, z)
    wide = x.real.astype(float)
    parts = wide.reshape(4, 3, 32)
    np.testing.assert_array_equal(y.get().real.astype(float), [
        wide.cumsum(1), wide.cumsum(1) - wide, np.maximum.accumulate(wide, 1)])
    np.testing.assert_array_equal(z.get().real.astype(float), [
        (parts.cumsum(2) - parts).reshape(4, 96), np.minimum.accumulate(parts, 2).reshape(4, 96)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_atomic_add_of_two_bytes(dtype):
    @jit.rawkernel()
    def count(x):
        jit.atomic_add(x, jit.threadIdx.x % 5, 1)

    x = ad.zeros(7, dtype)
    count[8, 20](x)
    assert x.get().astype(float).tolist() == [32] * 5 + [0, 0]


def test_functions_that_make_device_functions():
    def scaled(by):
        @jit.rawkernel(device=True)
        def f(x, i):
            x[i] *= by
            if by < 8:
                scaled(by * 2)(x, i)
        return f

    @jit.rawkernel()
    def kernel(x):
        scaled(2)(x, jit.threadIdx.x)

    x = ad.arange(6)
    kernel[1, 6](x)
    assert x.tolist() == [64 * i for i in range(6)]


def numbers_are_no_iterators(x):
    thrust.sort(thrust.seq, x.begin(), 3)


def no_policy(x):
    thrust.sort(x.begin(), x.end(), x.begin())


def too_few(x):
    thrust.copy(thrust.seq, x.begin())


def products_of_iterators(x):
    x[0] = x.begin() * 2


def steps_of_floats(x):
    thrust.sort(thrust.seq, x.begin() + 1.5, x.end())


def not_the_storage(x):
    storage = jit.shared_memory("int64", 3)
    jit.cub.WarpReduce[np.int64](storage[0])


def no_operator(x):
    Warp = jit.cub.WarpReduce[np.int64]
    storage = jit.shared_memory(Warp.TempStorage, 1)
    x[0] = Warp(storage[0]).Reduce(x[0], max)


def no_operator_of_scans(x):
    Block = jit.cub.BlockScan[np.int64, 32]
    storage = jit.shared_memory(Block.TempStorage, 1)
    x[0] = Block(storage[0]).InclusiveScan(x[0], 5)


def calls_itself(x):
    calls_itself(x)


@pytest.mark.parametrize("function, error, message", [
    (numbers_are_no_iterators, TypeError, "an iterator is needed here"),
    (no_policy, TypeError, "must be thrust.device or thrust.seq"), (too_few, TypeError, "takes 3 arguments"),
    (products_of_iterators, TypeError, r"there are \+, -"), (steps_of_floats, TypeError, "moves by integers"),
    (not_the_storage, TypeError, "needs an element of shared memory"), (no_operator, TypeError, "reduction_op must be"),
    (no_operator_of_scans, TypeError, "scan_op must be"),
    (calls_itself, ValueError, "calls itself"),
])
def test_wrong_calls(function, error, message):
    with pytest.raises(error, match=message):
        jit.rawkernel()(function)[1, 1](ad.zeros(3, int))
    assert ad.arange(3).sum() == 3


def test_outside_of_kernels():
    with pytest.raises(RuntimeError, match="rawkernel"):
        thrust.sort(thrust.seq, 1, 2)
    with pytest.raises(RuntimeError, match="rawkernel"):
        jit.cub.Sum()
    with pytest.raises(TypeError, match="how many threads"):
        jit.cub.BlockReduce[np.int32]
    with pytest.raises(TypeError, match=r"BlockScan\[dtype, threads\]"):
        jit.cub.BlockScan[np.int32, 2000]
