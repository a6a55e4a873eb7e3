"""Measure what operations of all rows cost the worker's processors: prints a line of JSON, for each one its name, ns of
processor time and whether it ran beside the engine. The server is that of ARRAYD_URL. Operations are about as large as
those that the engine just executes itself, in the types and with the operands that take longest. The argument is the
longest time in ns that the engine should take for one."""
import itertools
import json
import pathlib
import re
import sys

import numpy as np

import arrayd as ad
from arrayd import _core

MANY, SOME, FEW = 1 << 20, 240_000, 20_000
TABLES = pathlib.Path(__file__).parents[2] / "protocol"
rng = np.random.default_rng(1)


def numbers(letter, n, hard):
    """Plain ones, or the whole range of the type, whose functions take longer."""
    d = np.dtype(letter)
    if d.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if d.kind in "iu":
        info = np.iinfo(d)
        return rng.integers(info.min, info.max, n, d, endpoint=True) if hard else rng.integers(1, 7, n).astype(d)
    most = np.log10(float(np.finfo(d).max)) - 1
    x = 10.0 ** rng.uniform(-most, most, n) if hard else rng.uniform(0.5, 3, n)
    return (x + 1j * x[::-1] if d.kind == "c" else x).astype(d)


ROW = r"^AD_UFUNC\(\d+, (\w+), \d, \d, \w+, \w+, (\d+), "
COSTS = {name: int(cost) for name, cost in re.findall(ROW, (TABLES / "ufunc.def").read_text(), re.M)}


def count_elements(name, letters):
    """How many elements of a function are estimated at just below 5 ms, MANY at most (estimate_ufunc of device/cost.c)."""
    factor = 2 if set("FD") & set(letters) else 0.5 if "d" in letters else 0.25
    return min(MANY, int(5e6 / (2 + int(factor * COSTS[name]))) - 1)


def ufuncs():
    for name, function in _core.ufuncs.items():
        loops = [t for t in function.types if set(t) <= set("?bBhHiIlLqQefdFD->")]
        for loop in [t for t in loops if t[0] in "lfdD"] or loops[-1:]:
            for hard in (False, True):
                letters = loop.split("->")[0]
                arrays = [numbers(c, count_elements(name, letters), hard) for c in letters]
                yield f"{name} {loop}{' hard' * hard}", lambda f, *a: f(*a), [function, *arrays]


def reductions():
    for name in _core.reductions:
        for letter in "lfdD":
            x = numbers(letter, MANY, True)
            yield f"{name} {letter}", lambda x, name=name: _core.reduce(name, x), [x]
            yield f"{name} {letter} pairs", lambda x, name=name: _core.reduce(name, x, axis=1), [x.reshape(-1, 2)]


def strides():
    """Elements of which each has a cache line, or a page, of its own."""
    x = ad.ones(1 << 26, "float32")
    for step in (64, 1024):
        view = x.reshape(-1, step)[:, :16].T[:, :1 << 16]
        yield f"sum of steps {step}", lambda v: v.sum(), [view]
        yield f"copy of steps {step}", lambda v: v.copy(), [view]
        yield f"read of steps {step}", lambda v: v.get(), [view]


def decompositions():
    """Decompose many small matrices, a large one, and a long one."""
    flags = {"cholesky": (False,), "qr": (False,), "svd": (True,), "svdvals": (), "eigh": (False,), "eigvalsh": (False,),
             "inv": (), "lu": (), "slogdet": (), "eig": (), "eigvals": (), "qr_raw": ()}
    for name, params in flags.items():
        for dtype in ("float64", "complex128"):
            for n, count in ((1, FEW), (3, FEW), (100, 1)):
                x = np.broadcast_to(rng.random((n, n)) + n * np.eye(n), (count, n, n))
                x = ((x + x.swapaxes(1, 2)) / 2).astype(dtype)
                yield f"{name} {dtype} of {n}", lambda x, name=name, p=params: _core.call(name, (x,), p), [x]
    a, b = rng.random((3, 3)) + 0j, rng.random((3, SOME)) + 0j
    yield "solve_triangular", lambda a, b: _core.call("solve_triangular", (a, b), (True, False)), [a, b]
    yield "solve", lambda a, b: _core.call("solve", (a, b), ()), [a, b]
    yield "lstsq", lambda a, b: _core.call("lstsq", (a, b), (1e-10,)), [a, b]


def calls():
    for letter in "lfdD":
        x = numbers(letter, SOME, False)
        for shape in ((SOME,), (SOME // 2, 2), (2, SOME // 2)):
            for name in ("sort", "argsort", *("cumsum", "nancumprod")):
                yield f"{name} {letter} {shape}", lambda x, name=name: _core.call(name, (x,), (0,)), [x.reshape(shape)]
            for name in ("partition", "argpartition"):
                yield f"{name} {letter} {shape}", lambda x, name=name: _core.call(name, (x,), (0, 1)), [x.reshape(shape)]
        for shape in ((SOME, 1, 1), (SOME // 9, 3, 3), (SOME // 400, 20, 20)):
            a = numbers(letter, int(np.prod(shape)), False).reshape(shape)
            yield f"matmul {letter} {shape}", lambda a: _core.call("matmul", (a, a), (False,)), [a]
    for n in (SOME - 1, 1 << 17, 131071):  # primes, too
        yield f"fft of {n}", lambda x: _core.call("fft", (x,), (1, -1, 1.0)), [numbers("D", n, False)]
        yield f"fft of {n} real", lambda x: _core.call("fft", (x,), (1, -1, 1.0), dtype="complex128"), [numbers("d", n, False)]
        yield f"fft of pairs, {n}", lambda x: _core.call("fft", (x,), (2, -1, 1.0)), [numbers("D", 2 * n, False).reshape(n, 2)]
    threes = numbers("d", 3**11, False).reshape((3,) * 11)
    yield "fft of threes", lambda x: _core.call("fft", (x,), ((1 << 11) - 1, -1, 1.0), dtype="complex128"), [threes]
    index = rng.integers(0, SOME, SOME)
    x = numbers("d", SOME, False)
    yield "gather", lambda x, i: _core.call("gather", (x, i), ()), [x, index]
    yield "searchsorted", lambda x, v: _core.call("searchsorted", (x, v), (False,)), [np.sort(x), x]
    yield "sort_places", lambda x: _core.call("sort_places", (x,), (0,)), [x]
    yield "merge", lambda x, v: _core.call("merge", (x, v), ()), [np.sort(x), np.sort(x)]
    yield "merge_pairs", lambda x, v, i: _core.call("merge_pairs", (x, v, i, i), ()), [np.sort(x), np.sort(x), index]
    yield "nonzero", lambda x: _core.call("nonzero", (x,), ()), [x]
    yield "compress", lambda x, m: _core.call("compress", (x, m), ()), [x, x > 1]


def windows():
    """Windows and neighbours, of which there may be more than elements."""
    for shape, axis, sizes in (((60, 70), 0, (3, 1_000_000)), ((4200, 1), 1, (60, 10_000)), ((SOME,), 0, (9, 1000)),
                               ((SOME // 2, 2), 1, (3, 100))):
        x = numbers("d", int(np.prod(shape)), False).reshape(shape)
        for size, what in itertools.product(sizes, range(3)):
            yield f"window1d {shape} {size} {what}", lambda x, a=(axis, what, size, 3, 0.0, size // 2): _core.call(
                "window1d", (x,), a), [x]
    for shape, axis, k in (((1,), 0, 2_000_000), ((2400, 1), 1, 2000), ((2400,), 0, 2000), ((SOME // 2, 2), 1, 5)):
        x, w = numbers("d", int(np.prod(shape)), False).reshape(shape), numbers("d", k, False)
        for mode in (0, 4):
            yield f"correlate1d {shape} {k} {mode}", lambda x, w, a=(axis, mode, 0.0, k // 2): _core.call(
                "correlate1d", (x, w), a), [x, w]
    for shape, k in (((2,), 300_000), ((2400,), 2000), ((49, 49), 500), ((2,) * 16, 2)):
        x, w = numbers("d", int(np.prod(shape)), False).reshape(shape), numbers("d", k, False)
        offsets = rng.integers(-50_000, 50_000, (k, len(shape)))
        yield f"correlate {shape} {k}", lambda *a: _core.call("correlate", a, (4, 0.0)), [x, offsets, w]
        yield f"grey_filter {shape} {k}", lambda *a: _core.call("grey_filter", a, (True, 4, 0.0)), [x, offsets, w]
        yield f"rank_filter {shape} {k}", lambda *a, k=k: _core.call("rank_filter", a, (k // 2, 4, 0.0)), [x, offsets]


def images():
    for shape, axis in ((SOME // 2,), 0), ((SOME // 4, 2), 1), ((2, SOME // 4), 0):
        x = numbers("d", SOME // 2, False).reshape(shape)
        yield f"spline1d {shape}", lambda x, axis=axis: _core.call("spline1d", (x,), (axis, 5, 3)), [x]
    for axes, order in (1, 5), (2, 5), (3, 3), (6, 1), (16, 0):
        n = int(5e6 / (20 + (order + 1) ** axes)) - 1
        x, where = numbers("d", 2 ** axes, False).reshape((2,) * axes), rng.uniform(-50, 50, (axes, n))
        yield f"sample of {axes} axes, order {order}", lambda x, w, order=order: _core.call(
            "sample", (x, w), (False, order, 3, 0.5, 0)), [x, where]
    for shape, k in ((60_000,), 1), ((60_000,), 1000), ((250, 250), 4), ((2,) * 16, 16):
        mask, offsets = rng.random(shape) < 0.7, -rng.integers(1, 250, (k, len(shape)))
        yield f"label {shape}, {k} neighbours", lambda m, o: _core.call("label", (m, o), ()), [mask, offsets]
        yield f"nearest_zero {shape}", lambda m, s: _core.call("nearest_zero", (m, s), ()), [mask, np.ones(len(shape))]
    for sections, order in (1, 2), (1000, 2), (2, 1000):
        x = numbers("d", 60_000 if sections * order > 2 else SOME, False)
        yield f"iir of {sections} sections of order {order}", lambda *a: _core.call("iir", a, (0,)), [
            x, np.full((sections, 2, order + 1), 1e-6), np.zeros((sections, order, 1))]


def points():
    """Few points of many coordinates, many of few, and those of which all are equally far."""
    for m, n, columns in (2000, 2000, 1), (60, 60, 1000), (2, 2, 1_000_000), (1, SOME, 3), (SOME, 1, 3), (700, 700, 3):
        x, y = (numbers("d", k * columns, False).reshape(k, columns) for k in (m, n))
        for metric in range(13):
            yield f"pair_distances of {m} and {n}, {columns} columns, metric {metric}", lambda x, y, metric=metric: _core.call(
                "pair_distances", (x, y), (metric, 2.5)), [x, y]
            yield f"pair_distances of {m}, {columns} columns, metric {metric}", lambda x, metric=metric: _core.call(
                "pair_distances", (x,), (metric, 2.5)), [x]
        for p, same in itertools.product((2, 2.5, np.inf), (False, True)):
            yield f"nearest_points of {m} to {n}, {columns} columns, p {p}", lambda x, y, p=p: _core.call(
                "nearest_points", (x, y), (16, p, np.inf)), [x * (not same), y]
    for kind in "db":
        yield f"squareform {kind}", lambda x: _core.call("squareform", (x,), ()), [numbers(kind, 1000 * 999 // 2, False)]
    for n, (kind, sine) in itertools.product((SOME - 1, 1 << 17, 131071), itertools.product(range(1, 5), (False, True))):
        yield f"dct {kind} of {n}{' sine' * sine}", lambda x, a=(kind, sine): _core.call(
            "dct", (x,), (0, *a, True, 1.0)), [numbers("d", n, False)]


def sparse():
    """One long row, and a triangle, with one column and many."""
    n, rows = 60_000, 300
    row = [numbers("d", n, False), rng.integers(0, 4, n), np.array([0, n])]
    triangle = [numbers("d", n, False) * 1e-3, np.concatenate([rng.integers(0, i + 1, n // rows) for i in range(rows)]),
                np.arange(0, n + 1, n // rows)]
    for columns in (1, 100, 10_000):
        yield f"spmm, {columns} columns", lambda *a: _core.call("spmm", a, (1, False)), [*row, np.ones((4, columns))]
        yield f"spmm transposed, {columns} columns", lambda *a: _core.call("spmm", a, (4, True)), [*row, np.ones((1, columns))]
        yield f"sptrsm, {columns} columns", lambda *a: _core.call("sptrsm", a, (True, True)), [
            *triangle, np.ones((rows, columns))]
    for n, m in ((1000, 4700), (60_000, 60), (SOME - 1, 1)):  # all entries meet the first one of many rows
        one, other = [numbers("d", n, False), np.zeros(n, int), np.array([0, n])], np.r_[0, np.full(10_000, m)]
        for places in np.zeros(m, int), np.arange(m)[::-1]:
            yield f"spgemm, {n} by {m}, {places[0]}", lambda *a, m=m: _core.call("spgemm", a, (m,)), [
                *one, numbers("d", m, False), places, other]
    for rows in (1, 100_000):
        n = int(5e6 / 10) - 2
        indptr = np.arange(rows + 1) * n // rows
        ascending = np.arange(n) * 2
        one, other = ([numbers("d", n, False), ascending + odd, indptr] for odd in (0, 1))
        yield f"spunion of {rows} rows", lambda *a: _core.call("spunion", a, (0,)), [*one, *other]
        yield f"spband of {rows} rows", lambda *a: _core.call("spband", a, (0, n, False)), one
        yield f"sprows of {rows} rows", lambda p, n=n: _core.call("sprows", (p,), (n,)), [indptr]
        yield f"spdiagonal of {rows} rows", lambda *a, n=rows: _core.call("spdiagonal", a, (0, 0, n)), one
        yield f"sptake of {rows} rows", lambda *a: _core.call("sptake", a), [*one, np.arange(rows)[::-1].copy()]
        n = int(5e6 / 20) - 2
        indptr = np.arange(rows + 1) * n // rows
        yield f"spcomponents of {rows} rows", lambda *a: _core.call("spcomponents", a), [
            np.ones(n), rng.integers(0, rows, n), indptr]
        for columns in (1, n):
            yield f"sptranspose of {rows} rows, {columns} columns", lambda *a, m=columns: _core.call("sptranspose", a, (m,)), [
                numbers("d", n, False), rng.integers(0, columns, n), indptr]
    for n in 100, 120:
        column, row = np.tile(np.arange(n), n), np.arange(n + 1) * n
        yield f"ilu0 of all elements of {n} rows", lambda *a: _core.call("ilu0", a, (False,)), [
            numbers("d", n * n, False), column, row]


DISTRIBUTIONS = {name: (int(number), source, kind, parameters) for number, name, source, kind, parameters in re.findall(
    r"^AD_DISTRIBUTION\((\d+), (\w+), (\w+), (\w+), (.*?), \"", (TABLES / "distribution.def").read_text(), re.M)}
# Of each distribution by rejection; those that it does not take are refused.
PARAMETERS = ((15, 0.5, 15), (15, 15, 15), (1.5, 0.5, 0.5), (1e-3, 1e-3, 1e-3), (5e-324, 5e-324, 1), (1e9, 9, 1e9),
              (9e8, 9e8, 1e8))
# Of cuRAND's.
DRAWN = {"integers": ((0, 1 << 63), (0, 1 << 40)), "gamma": ((0.5, 1), (9, 1)), "beta": ((0.5, 0.5), (9, 9)),
         "poisson": ((9,), (1e9,)), "binomial": ((1e9, 0.25), (1e9, 1e-9)), "logseries": ((0.5,), (0.999,)),
         "hypergeometric": ((9e8, 9e8, 1e8), (10000, 5, 10000)), "geometric": ((0.5,), (1e-9,))}
WORDS = 0, 1, 0xffffffff  # of states that no generator comes to, so that nothing which is drawn may be accepted


def count_drawn(distribution, curand=False):
    """How many are estimated at 5 ms (ad__random_cost of protocol/infer_random.c)."""
    row, source, *_ = DISTRIBUTIONS[distribution]
    if curand and distribution == "hypergeometric":
        return int(5e6 / 30040)
    return int(5e6 / (840 if source == "OWN" else 200 if curand else 40)) - 1


def distributions():
    for name, (row, source, kind, parameters) in DISTRIBUTIONS.items():
        count, dtype = sum(d != "NONE" for d in parameters.split(", ")[1::2]), "int64" if kind == "COUNT" else "float64"
        more = {"dtype": dtype, "shape": (count_drawn(name),)}
        for values in PARAMETERS if source == "OWN" else ():
            yield f"{name} {values[:count]}", lambda *p, row=row, more=more: _core.call(
                "random", p, (row, 5, 0), **more), [np.float64(v) for v in values[:count]]


def draws():
    for name, all_values in DRAWN.items():
        row, _, kind, _ = DISTRIBUTIONS[name]
        n, number = count_drawn(name, curand=True), np.uint64 if kind == "WHOLE" else np.float64
        more = {"dtype": {"WHOLE": "uint64", "COUNT": "int64"}.get(kind, "float64"), "shape": (n,)}
        for values, generator, word in itertools.product(all_values, range(3), WORDS):
            yield f"curand {name} {values}, generator {generator} of {word:#x}", lambda s, *p, a=(
                row, generator, 0, n, 0), more=more: _core.call("curand", (s, *p), a, **more), [
                    np.full((12, n), word, "uint32"), *map(number, values)]


def processor_time(pid):
    """Return the processor time of all threads, in ns."""
    return sum(int(task.read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def measure_once(run, operands):
    ad.sync()
    before, pid = ad.stat()["in_background"], ad.stat()["worker_pid"]
    begun = processor_time(pid)
    try:
        result = run(*operands)  # the result is kept: what nobody has any more is not computed
        ad.sync()
    except (np.linalg.LinAlgError, TypeError, ValueError) as error:
        return str(error)
    spent = processor_time(pid) - begun, ad.stat()["in_background"] - before
    del result
    return spent


def measure(run, operands, limit):
    """Return the processor time and whether it was spent beside the engine, or the text of an error. A processor's time
    includes what its host takes from it. So of what seems to take more than `limit` ns in the engine the shortest of three
    times counts."""
    operands = [ad.asarray(x) if isinstance(x, np.ndarray) else x for x in operands]
    found = measure_once(run, operands)
    for _ in range(2):
        if isinstance(found, tuple) and found[0] > limit and not found[1]:
            found = min(found, measure_once(run, operands))
    return found


if __name__ == "__main__":
    ad.connect()
    found, limit = [], int(sys.argv[1])
    with np.errstate(all="ignore"):
        for make in (ufuncs, reductions, strides, decompositions, calls, windows, images, points, sparse, distributions,
                     draws):
            found += [[name, measure(run, operands, limit)] for name, run, operands in make()]
    print(json.dumps(found))
