"""Extents of a million random array descriptions, against Python's integers, which do not overflow."""
import ctypes

import numpy as np
import pytest

MANY, BATCH, NDIM = 1_000_000, 50_000, 32
VALUE, EXTENT = -2, -8
ITEMSIZE = [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16]
ALIGNMENT = [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 4, 8]
GREATEST, MOST_BYTES = 2**63 - 1, 2**62 - 1
CASE = np.dtype([("ndim", "i8"), ("dtype", "i8"), ("offset", "i8"), ("size", "i8"), ("shape", "i8", NDIM),
                 ("strides", "i8", NDIM)])
RESULT = np.dtype([("extent", "i8"), ("check", "i8"), ("low", "i8"), ("high", "i8")])


def extremes(rng, shape):
    """Numbers next to a power of two, up to 2**63 - 1."""
    power = np.left_shift(np.uint64(1), rng.integers(0, 64, shape).astype(np.uint64))
    return (power + rng.integers(-2, 3, shape).astype(np.uint64) & np.uint64(GREATEST)).astype(np.int64)


def mixed(rng, shape, *choices):
    """Draw each number from one of the choices."""
    return np.choose(rng.integers(0, len(choices), shape), choices)


def draw(rng):
    cases = np.zeros(BATCH, CASE)
    n, all_dims = BATCH, (BATCH, NDIM)
    cases["ndim"] = mixed(rng, n, rng.integers(0, 4, n), rng.integers(0, 4, n), rng.integers(0, 7, n),
                          np.where(rng.random(n) < 0.05, rng.integers(0, NDIM + 1, n), 1))
    cases["dtype"] = rng.integers(0, len(ITEMSIZE), n)
    item = np.array(ITEMSIZE)[cases["dtype"]]
    cases["offset"] = mixed(rng, n, rng.integers(0, 100, n) * item, rng.integers(0, 1000, n), item * 4096,
                            np.where(rng.random(n) < 0.3, extremes(rng, n), 0))
    small = rng.integers(1, 6, all_dims)
    wild = rng.random((n, 1)) < 0.3
    rare = rng.random(all_dims) < 0.02
    cases["shape"] = np.where(wild, mixed(rng, all_dims, small, small, extremes(rng, all_dims)), small)
    cases["shape"][rare] = rng.choice([0, 1, -1, 0, 1, 1], all_dims)[rare]
    steps = rng.integers(-6, 20, all_dims) * item[:, None]
    sign = rng.choice([-1, 1], all_dims)
    cases["strides"] = np.where(wild, mixed(rng, all_dims, steps, steps + 1, sign * extremes(rng, all_dims)), steps)
    cases["strides"][rng.random(all_dims) < 0.001] = -2**63
    return cases


def oracle(ndim, dtype, offset, shape, strides):
    """Return low and high, or None for an extent that no buffer has; and the status of the whole check, size aside."""
    shape, strides = shape[:ndim], strides[:ndim]
    item, low, high, count = ITEMSIZE[dtype], offset, offset, 1
    for n, stride in zip(shape, strides):
        count *= n or 1
        reach = (n - 1 if n != 1 else 1) * stride
        if reach < 0:
            low += reach
        else:
            high += reach
    high += item
    if 0 in shape:
        low = high = offset
    status = 0
    if min(shape, default=0) < 0 or count * item > MOST_BYTES:
        status = VALUE
    elif low < 0 or high > GREATEST:
        status = EXTENT
    elif offset % ALIGNMENT[dtype] or any(n > 1 and s % ALIGNMENT[dtype] for n, s in zip(shape, strides)):
        status = EXTENT
    return (low, high) if 0 <= low and high <= GREATEST else (None, None), status


def test_extents(native):
    rng = np.random.default_rng(20240229)
    kinds = {0: 0, VALUE: 0, EXTENT: 0, "size": 0}
    for _ in range(MANY // BATCH):
        cases, results = draw(rng), np.zeros(BATCH, RESULT)
        rows = [cases[field].tolist() for field in ("ndim", "dtype", "offset", "shape", "strides")]
        expected = [oracle(*row) for row in zip(*rows)]
        # Buffers that end exactly with the array, one byte before, or anywhere.
        edge = rng.integers(-1, 2, BATCH).tolist()
        sizes = [max(0, min(GREATEST, (GREATEST if high is None else high) + e))
                 for ((low, high), status), e in zip(expected, edge)]
        cases["size"] = sizes
        native.lib.arrayd_test_extents(ctypes.c_int64(BATCH), cases.ctypes.data_as(ctypes.c_void_p),
                                       results.ctypes.data_as(ctypes.c_void_p))
        for i, (got, ((low, high), status)) in enumerate(zip(results.tolist(), expected)):
            if status == 0 and high > sizes[i]:
                status, kinds["size"] = EXTENT, kinds["size"] + 1
            kinds[status] += 1
            negative = any(n < 0 for n in rows[3][i][:rows[0][i]])
            if low is None:
                fits = got[0] == EXTENT
            else:
                fits = got[0] == 0 and got[2:] == (low, high)
            assert (fits or negative) and got[1] == status, (cases[i], got, low, high, status)
    assert min(kinds.values()) > MANY // 100, kinds # every outcome was met often


@pytest.mark.parametrize("shape, strides, size, status", [
    ((2**62, 4), (8, 0), GREATEST, VALUE),               # too many elements
    ((2**29, 2**29), (2**36, 2**36), GREATEST, EXTENT),  # overflows 64 bits
    ((2**58 + 1,), (32,), GREATEST, EXTENT),             # the last element begins at 2**63
    ((2**59,), (0,), GREATEST, VALUE),                   # 2**62 bytes
    ((2**59 - 1,), (0,), 8, 0),                          # one element fewer, all in one place
    ((0, 2**59), (0, 0), 0, VALUE),                      # a dimension of 0 is left out
    ((1,), (2**62,), 8, EXTENT),                         # a wild stride that is not used
    ((0, 2**40), (2**60, 2**60), 0, 0),                  # nothing is touched
    ((2,) * 32, (0,) * 32, 8, 0),
])
def test_corners(native, shape, strides, size, status):
    case, result = np.zeros(1, CASE), np.zeros(1, RESULT)
    case["ndim"], case["dtype"], case["size"] = len(shape), 12, size
    case["shape"][0, :len(shape)], case["strides"][0, :len(strides)] = shape, strides
    native.lib.arrayd_test_extents(ctypes.c_int64(1), case.ctypes.data_as(ctypes.c_void_p),
                                   result.ctypes.data_as(ctypes.c_void_p))
    assert result["check"][0] == status
