"""Programs of two users on one server. `python meanwhile.py attack UID CASES ROUNDS [SECONDS]` writes over the operands
of its own operations while they run, by the memory that it has of its arrays. Then it checks the results and its other
arrays. It begins no case after SECONDS. `python meanwhile.py watch UID` has arrays beside it until its input ends. Both
say what they have found as a line of JSON; the server is that of ARRAYD_URL. SIGABRT shows where they are."""
import faulthandler
import itertools
import json
import math
import os
import queue
import sys
import threading
import time

import numpy as np

import arrayd as ad
from arrayd import _core

N = 6000
MANY = 80000  # of what a kernel goes over twice, some microseconds apart
SMALL = 24  # rows and columns of matrices
SEVEN = 7
# Errors that an operation may have for operands that make no sense.
REFUSED = (ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError)


class Host:
    """Memory of the CPU backend, mapped here."""

    @staticmethod
    def upload(array):
        return array

    @staticmethod
    def mapped(array):
        return np.from_dlpack(array, copy=False)

    @staticmethod
    def settle():
        pass

    @staticmethod
    def begin_thread():
        pass


class Device:
    """Memory of a GPU, written by the driver alone."""

    def __init__(self):
        sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu"))
        import device_memory
        self.begin_thread = device_memory.begin  # a context is current in one thread
        self.begin_thread()
        self.upload, self.call = device_memory.Memory, device_memory.call
        self.mapped = lambda array: DeviceBytes(self, array)

    def settle(self):
        self.call("cuStreamSynchronize", None)


class DeviceBytes:
    """The memory of an array, mapped here: `memory[...] = state` begins to copy."""

    def __init__(self, device, array):
        self.device, self.array, self.at = device, array, array.data.ptr

    def __setitem__(self, _, state):
        self.device.call("cuMemcpyDtoDAsync_v2", self.at, state.at, state.nbytes, None)


class Written:
    """An array whose memory is written over, by turns with each of its states."""

    def __init__(self, place, *states):
        self.array = ad.asarray(states[0])
        self.memory = place.mapped(self.array.reshape(-1).view("uint8"))
        self.states = [place.upload(np.ascontiguousarray(s).reshape(-1).view("uint8")) for s in states]


class Writer(threading.Thread):
    """Writes over what it is given: the first state, which makes sense, is there again after each other one, and stays
    for longer or shorter. It looks for something else to do after each round: a lock that it let go of for a moment only
    would keep the other thread waiting."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.orders, self.taken = place, queue.SimpleQueue(), threading.Event()
        self.longer = itertools.cycle((0, 1, 7))
        self.times = 0

    def run(self):
        self.place.begin_thread()
        targets = ()
        while targets is not None:
            if targets and self.orders.empty():
                self.write_round(targets)
            else:
                targets = self.orders.get()
                self.taken.set()

    def write_round(self, targets):
        for target in targets:
            for state, longer in zip(target.states[1:], self.longer):
                target.memory[...] = state
                for _ in range(1 + longer):
                    target.memory[...] = target.states[0]
        self.place.settle()
        self.times += 1

    def take(self, targets):
        """Give the thread other targets; those from before are left alone when this returns. None: the thread ends."""
        self.taken.clear()
        self.orders.put(targets)
        self.taken.wait()


class Case:
    """An operation, run with operands that are written over. check: of a result on the host, whether it can be. times:
    as often as others."""

    def __init__(self, name, run, operands, check=None, times=1):
        self.name, self.run, self.check, self.times = name, run, check, times
        self.written = [x for x in operands if isinstance(x, Written)]


def plain(operand):
    return operand.array if isinstance(operand, Written) else operand


# ---- contents ----


def numbers(rng, dtype, shape):
    """Small ones, and those at which functions and divisions are special."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return rng.integers(0, 2, shape, "u1").view(bool), rng.choice([0, 1, 2, 255], shape).astype("u1").view(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wild = np.array([0, info.min, info.max, info.max // 2, 1, 64, 3], dtype)
        wild = np.append(wild, np.array(-1).astype(dtype))
        return rng.integers(1, 7, shape).astype(dtype), rng.choice(wild, shape)
    with np.errstate(all="ignore"):
        wild = np.array([0, -0.0, np.nan, np.inf, -np.inf, 1e300, -1e-300, -2.5, 1e6]).astype(dtype)
    return rng.uniform(0.5, 3, shape).astype(dtype), rng.choice(wild, shape)


def places(rng, shape, size):
    """Indices in bounds; and some that are not, by little and by much."""
    near, far = rng.integers(-(1 << 15), 1 << 15, shape), rng.integers(1 << 40, 1 << 60, shape)
    return rng.integers(0, size, shape), np.where(rng.random(shape) < 0.9, near, far)


def masks(rng, shape):
    """Return masks of which the second has as many true elements as the first, which is what `place` asks first; then
    none, and all."""
    few = np.zeros(shape, bool)
    few.flat[rng.choice(few.size, few.size // 3, replace=False)] = True
    other = np.zeros(shape, bool)
    other.flat[:few.size // 3] = True
    return few, other, np.zeros(shape, bool), np.ones(shape, bool)


def within(low, high):
    return lambda result: bool(((result >= low) & (result < high)).all())


def are_places(shape):
    """Tell whether these are the places of elements that are not zero: each once, in their order."""
    def check(result):
        inside = all(((r >= 0) & (r < n)).all() for r, n in zip(result, shape))
        return bool(inside and (np.diff(np.ravel_multi_index(tuple(result), shape)) > 0).all())
    return check


def are_seven(result):
    return bool((result == SEVEN).all())


# ---- cases ----

KEPT = {}  # operands of many cases


def kept(rng, place, make, shape, number, *dtype):
    """The operand of this number, of this type and shape."""
    key = make, shape, number, dtype
    if key not in KEPT:
        KEPT[key] = Written(place, *make(rng, *dtype, shape))
    return KEPT[key]


def ufunc_cases(rng, place, name):
    """A few of its types; with an output that is written over, and with a mask."""
    function = _core.ufuncs[name]
    types = [t for t in function.types if set(t) <= set("?bBhHiIlLqQefdFD->")]
    for t in [types[i] for i in sorted({0, len(types) // 2, len(types) - 1})] if types else ():
        inputs = [kept(rng, place, numbers, N, i, c) for i, c in enumerate(t.split("->")[0])]
        outputs = [kept(rng, place, numbers, N, -1 - i, c) for i, c in enumerate(t.split("->")[1])]
        mask = kept(rng, place, masks, N, 0)
        arrays, out = [x.array for x in inputs], tuple(o.array for o in outputs)
        yield Case(f"{name} {t}", lambda f=function, a=arrays: f(*a), inputs)
        yield Case(f"{name} {t} out", lambda f=function, a=arrays, o=out: f(*a, out=o, casting="unsafe"), inputs + outputs)
        yield Case(f"{name} {t} where", lambda f=function, a=arrays, o=out, m=mask: f(
            *a, out=o, where=m.array, casting="unsafe"), [*inputs, *outputs, mask])


def reduction_cases(rng, place, name):
    shape = (8, N)
    check = within(-1, shape[0] * shape[1]) if "arg" in name else None
    for dtype in ("int64", "float32", "uint8") if check else ():  # the extreme is found first, and then its place
        x = Written(place, *(np.full(MANY, value, dtype) for value in (2, 1, 3)))
        yield Case(f"{name} {dtype} flat", lambda x=x.array: _core.reduce(name, x), [x], within(-1, MANY), 20)
    for dtype in ("int64", "float32", "int8", "bool", "complex64"):
        x, mask = kept(rng, place, numbers, shape, 0, dtype), kept(rng, place, masks, shape, 0)
        for axis, where in itertools.product((None, 0, 1), (None, mask)):
            def run(x=x.array, axis=axis, where=where):
                return _core.reduce(name, x, axis=axis, where=where.array if where else None)
            yield Case(f"{name} {dtype} {axis} {'where' if where else ''}", run, [x] + ([where] if where else []), check)


def matrices(rng, place, dtype="float64"):
    good = rng.normal(size=(3, SMALL, SMALL))
    good = (good @ good.swapaxes(1, 2) + SMALL * np.eye(SMALL)).astype(dtype)
    return Written(place, good, numbers(rng, dtype, good.shape)[1], np.zeros_like(good))


def linalg_cases(rng, place):
    """Decompositions of all kinds; those with indices among their results say where they lie."""
    flags = {"cholesky": (False,), "qr": (False,), "svd": (True,), "svdvals": (), "eigh": (False,), "eigvalsh": (False,),
             "inv": (), "lu": (), "slogdet": (), "eig": (), "eigvals": (), "qr_raw": ()}
    for name, params in flags.items():
        x = matrices(rng, place)
        yield name, (x,), params, {}, (lambda r: within(0, SMALL)(r[1])) if name == "lu" else None
    yield "solve", (matrices(rng, place), matrices(rng, place)), (), {}, None
    yield "solve_triangular", (matrices(rng, place), matrices(rng, place)), (True, False), {}, None
    one = Written(place, *numbers(rng, "float64", (SMALL, SMALL)))
    yield "lstsq", (one, Written(place, *numbers(rng, "float64", (SMALL, 2)))), (1e-10,), {}, (
        lambda r: within(0, SMALL + 1)(r[1]))


def index_cases(rng, place):
    """Cases with indices and masks. Arrays that are gathered from are all sevens, and so must be what comes out."""
    sevens, table = ad.full(N, SEVEN), ad.full((N // 8, 8), SEVEN)
    many, broad = ad.full(MANY, SEVEN), ad.full((MANY // 4, 4), SEVEN)
    index, mask = Written(place, *places(rng, N, N)), Written(place, *masks(rng, MANY))
    rows, row_mask = Written(place, *places(rng, N // 8, N // 8)), Written(place, *masks(rng, MANY // 4))
    value, behind, few = Written(place, *numbers(rng, "int64", N)), ad.full(N, 9999), ad.full(MANY // 3, SEVEN)
    yield "gather", (sevens, index), (), {}, are_seven
    yield "gather", (table, rows), (), {}, are_seven
    yield "gather", (table, rows, Written(place, *places(rng, N // 8, 8))), (), {}, are_seven
    yield "gather", (value, index), (), {"out": Written(place, *numbers(rng, "int64", N))}, None
    for mode in range(4):
        yield "scatter", (value, index), (mode,), {"out": ad.zeros(N, "int64")}, None
        yield "scatter", (value, index), (mode,), {"out": Written(place, *numbers(rng, "int64", N))}, None
    yield "scatter", (ad.zeros((N // 8, 8), "int64"), rows), (0,), {"out": ad.zeros((N // 8, 8), "int64")}, None
    yield "compress", (many, mask), (), {}, are_seven
    yield "compress", (broad, row_mask), (), {}, are_seven
    yield "place", (mask, few), (), {"out": ad.zeros(MANY, "int64")}, (
        lambda r, behind=behind: bool(np.isin(r, (0, SEVEN)).all()))
    yield "place", (mask, few), (), {"out": Written(place, *numbers(rng, "int64", MANY))}, None
    yield "nonzero", (mask,), (), {}, are_places((MANY,))
    yield "nonzero", (Written(place, *masks(rng, (MANY // 8, 8))),), (), {}, are_places((MANY // 8, 8))
    yield "nonzero", (value,), (), {}, are_places((N,))
    yield "bincount", (index,), (), {"out": ad.zeros(N, "int64")}, None
    edges = Written(place, np.linspace(-9, 9, 101), np.full(101, np.nan), np.linspace(9, -9, 101))
    yield "histogram", (Written(place, *numbers(rng, "float64", N)), edges), (), {}, within(0, N)
    yield "bincount", (index, Written(place, *numbers(rng, "float64", N))), (), {"out": ad.zeros(N)}, None
    yield "bincount", (index,), (), {"out": Written(place, *numbers(rng, "int64", N))}, None


def order_cases(rng, place):
    for dtype, shape in itertools.product(("int64", "float32", "complex128", "uint8", "float64"), ((N,), (400, 15), (3, 2000))):
        x, axis = Written(place, *numbers(rng, dtype, shape), np.zeros(shape, dtype), -np.zeros(shape, dtype)), len(shape) - 1
        yield "sort", (x,), (axis,), {}, None
        yield "sort", (x,), (axis,), {"out": Written(place, *numbers(rng, dtype, shape))}, None
        yield "sort", (x,), (axis,), {"out": x}, None
        yield "argsort", (x,), (axis,), {}, within(0, shape[-1])
        yield "argsort", (x,), (axis,), {"out": Written(place, *numbers(rng, "int64", shape))}, None
        kth = shape[-1] // 3
        yield "partition", (x,), (axis, kth), {}, None
        yield "partition", (x,), (axis, kth), {"out": x}, None
        yield "argpartition", (x,), (axis, kth), {}, within(0, shape[-1])
        yield "argpartition", (x,), (axis, kth), {"out": Written(place, *numbers(rng, "int64", shape))}, None
    x, v = Written(place, np.arange(N, dtype="float64"), numbers(rng, "float64", N)[1]), numbers(rng, "float64", N)
    for right in (False, True):
        yield "searchsorted", (x, Written(place, *v)), (right,), {}, within(0, N + 1)
    for dtype in ("float32", "complex128", "uint8"):
        a, b = (Written(place, *numbers(rng, dtype, N)) for _ in range(2))
        i, j = (Written(place, *numbers(rng, "int64", N)) for _ in range(2))
        yield "merge", (a, b), (), {}, None
        yield "merge", (a, b), (), {"out": Written(place, *numbers(rng, dtype, 2 * N))}, None
        yield "merge_pairs", (a, b, i, j), (), {}, None
        yield "sort_places", (a,), (5,), {}, None


def number_cases(rng, place):
    """Cases in which elements are no more than numbers."""
    wave = Written(place, *numbers(rng, "complex128", N))
    real = Written(place, *numbers(rng, "float64", N))
    yield "iota", (), (0, 1), {"out": Written(place, *numbers(rng, "int64", N))}, None
    yield "fft", (wave,), (1, -1, 1.0), {}, None
    yield "fft", (real,), (1, 1, 1.0), {"dtype": "complex128"}, None
    yield "rfft", (real,), (0, 0, 1.0), {"dtype": "complex128"}, None
    yield "irfft", (wave,), (0, 0, 2 * N - 2, 1.0), {}, None
    for kind, sine in itertools.product(range(1, 5), (False, True)):
        yield "dct", (real,), (0, kind, sine, True, 0.5), {}, None
    for name, x in itertools.product(("cumsum", "cumprod", "nancumsum", "nancumprod"), (real, Written(
            place, *numbers(rng, "int64", N)))):
        yield name, (x,), (0,), {}, None
    for dtype in ("float32", "float64", "int64", "bool", "complex64"):
        a, b = Written(place, *numbers(rng, dtype, (90, 70))), Written(place, *numbers(rng, dtype, (70, 80)))
        yield "matmul", (a, b), (False,), {}, None
        yield "matmul", (a, b), (False,), {"out": Written(place, *numbers(rng, dtype, (90, 80)))}, None


def sparse_cases(rng, place):
    """Matrices whose indices go out of bounds, and whose pointers to rows do and go back."""
    rows = 600
    pointers = np.linspace(0, N, rows + 1).astype("int64")
    for dtype, kind in itertools.product(("float64", "complex64"), ("int32", "int64")):
        data = Written(place, *numbers(rng, dtype, N))
        indices = Written(place, *(p.astype(kind) for p in places(rng, N, rows)))
        wild = np.where(rng.random(rows + 1) < 0.5, pointers, places(rng, rows + 1, N)[1])
        indptr = Written(place, pointers.astype(kind), wild.astype(kind), pointers[::-1].astype(kind))
        lines = Written(place, *places(rng, N, rows))
        for shape in ((rows,), (rows, 3)):
            x = Written(place, *numbers(rng, dtype, shape))
            for transposed in (False, True):
                yield "spmm", (data, indices, indptr, x), (rows, transposed), {}, None
                out = {"out": Written(place, *numbers(rng, dtype, shape))}
                yield "spmm", (data, indices, indptr, x), (rows, transposed), out, None
            for lower, unit in itertools.product((False, True), repeat=2):
                yield "sptrsm", (data, indices, indptr, x), (lower, unit), {}, None
        yield "spgemm", (data, indices, indptr, data, indices, indptr), (rows,), {}, None
        ascending = Written(place, np.concatenate([np.sort(rng.choice(rows, N // rows, replace=False)) for _ in range(rows)]).astype(kind),
                            *(p.astype(kind) for p in places(rng, N, rows)[1:]))
        for cholesky in (False, True):
            yield "ilu0", (data, ascending, indptr), (cholesky,), {}, None
        for number in (0, 5, 8):
            yield "spunion", (data, ascending, indptr, data, ascending, indptr), (number,), {}, None
        for low, high, diagonal in ((0, rows, False), (5, 90, False), (-20, 20, True)):
            yield "spband", (data, indices, indptr), (low, high, diagonal), {}, None
        yield "sptranspose", (data, indices, indptr), (rows,), {}, lambda r, n=rows: within(0, n)(r[1]) and within(0, N + 1)(r[2])
        yield "sprows", (indptr,), (N,), {}, within(0, rows)
        yield "spdiagonal", (data, indices, indptr), (0, 1, rows), {}, None
        yield "sptake", (data, indices, indptr, lines), (), {}, None
        yield "spcomponents", (data, indices, indptr), (), {}, within(0, rows)


def image_cases(rng, place):
    """Filters and measurements, with offsets that lead anywhere, coordinates that are none and masks that change."""
    for dtype in ("float64", "uint8"):
        x = Written(place, *numbers(rng, dtype, (60, 70)))
        near = rng.integers(-2, 3, (9, 2))
        far = np.where(rng.random((9, 2)) < 0.5, near, rng.integers(-2**62, 2**62, (9, 2)))
        offsets = Written(place, near, far, np.full((9, 2), 2**63 - 1), np.full((9, 2), -2**63))
        weights = Written(place, *numbers(rng, "float64", 9))
        for mode in range(5):
            yield "correlate1d", (x, weights), (1, mode, 0.5, 3), {"dtype": "float64"}, None
            yield "correlate", (x, offsets, weights), (mode, 0.5), {"dtype": "float64"}, None
            yield "rank_filter", (x, offsets), (4, mode, 1), {}, None
            yield "grey_filter", (x, offsets, weights), (True, mode, 0.5), {"dtype": "float64"}, None
        yield "window1d", (x,), (0, 1, 5, 0, 0, 2), {}, None
    x = Written(place, *numbers(rng, "float64", (60, 70)))
    yield "spline1d", (x,), (0, 3, 3), {}, None
    where = Written(place, rng.uniform(-9, 80, (2, 900)), *(np.full((2, 900), v) for v in (np.nan, np.inf, 1e300, -1e300)))
    matrix = Written(place, rng.uniform(-1, 1, (2, 3)), *(np.full((2, 3), v) for v in (np.nan, np.inf, -1e300)))
    for order, mode in itertools.product((0, 1, 3, 5), range(7)):
        yield "sample", (x, where), (False, order, mode, 0.5, 0), {}, None
        yield "sample", (x, matrix), (True, order, mode, 0.5, 0), {"shape": (50, 40)}, None
    mask = Written(place, *masks(rng, (60, 70)))
    ahead = Written(place, np.array([(-1, 0), (0, -1)]), rng.integers(-2**62, 2**62, (2, 2)), np.array([(-59, 5), (3, 3)]))
    yield "label", (mask, ahead), (), {}, lambda r: within(0, 60 * 70 + 1)(r[0]) and 0 <= int(r[1]) <= 60 * 70
    steps = Written(place, np.ones(2), np.full(2, np.nan), np.full(2, -1e300), np.zeros(2))
    yield "nearest_zero", (mask, steps), (), {}, lambda r: within(-1, 60 * 70)(r[1])
    sections, state = Written(place, *numbers(rng, "float64", (2, 2, 3))), Written(place, *numbers(rng, "float64", (2, 2, 70)))
    yield "iir", (x, sections, state), (0,), {}, None


def point_cases(rng, place):
    """Distances and neighbours of points, some of which are anywhere or are none."""
    points = Written(place, *numbers(rng, "float64", (300, 3)), np.full((300, 3), np.nan))
    queries = Written(place, *numbers(rng, "float64", (500, 3)), np.full((500, 3), -np.inf))
    for metric in range(13):
        yield "pair_distances", (points, queries), (metric, 1.5), {}, None
        yield "pair_distances", (points,), (metric, 1.5), {}, None
    for p in 1, 2, 2.5, np.inf:
        yield "nearest_points", (points, queries), (3, p, np.inf), {}, lambda r: within(0, 301)(r[1])
    for dtype in "float64", "int8":
        yield "squareform", (Written(place, *numbers(rng, dtype, 4950)),), (), {}, None


def random_cases(rng, place):
    """Cases of each distribution. Its parameters are arrays, and their second state has values that it does not
    take."""
    table = os.path.join(os.path.dirname(__file__), "../../protocol/distribution.def")
    with open(table) as text:
        rows = [line.split("(", 1)[1].split(",") for line in text if line.startswith("AD_DISTRIBUTION(")]
    for number, name, _, loops, *rest in rows:
        count = sum(rest[i].strip() not in ("", '""') and rest[i + 1].strip() != "NONE" for i in (0, 2, 4))
        kind = {"REAL": "float64", "COUNT": "float64", "WHOLE": "int64"}.get(loops.strip())
        if not kind or not count:
            continue
        good = [np.full(N, v, kind) for v in ((0, 9) if kind == "int64" else (0.25, 0.5, 0.75))]
        parameters = [Written(place, g, numbers(rng, kind, N)[1], np.full(N, 5, kind)) for g in good[:count]]
        dtype = "int64" if loops.strip() in ("COUNT", "WHOLE") else "float64"
        yield "random", tuple(parameters), (int(number), 5, 0), {"dtype": dtype, "shape": (N,)}, None


def curand_cases(rng, place):
    """Numbers of words that are states and of words that are none, of parameters as random_cases has them."""
    states = [rng.integers(0, 1 << 32, (12, N), dtype="uint32") for _ in range(3)]
    every, sequences, elements = range(4), range(3), (3,)
    for number, good, generators in (
            (1, (0, 9), sequences), (3, (0.25, 0.5), sequences), (20, (0.25, 0.5), every), (21, (0.25, 0.5), every),
            (25, (0.25, 0.5, 0.25), elements), (26, (0.25,), elements), (27, (0.25, 0.5), elements), (40, (0.25,), every),
            (41, (90.0, 0.5), every), (42, (0.25,), every), (43, (30.0, 40.0, 9.0), every), (45, (0.25,), every),
            (46, (1.25,), elements)):
        kind = "uint64" if number == 1 else "float64"
        parameters = [Written(place, np.full(N, v, kind), numbers(rng, kind, N)[1], np.full(N, 5, kind)) for v in good]
        dtype = "uint64" if number == 1 else "int64" if number >= 40 else "float64"
        for generator in generators:
            yield ("curand", (Written(place, *states), *parameters), (number, generator, 0, N, 0),
                   {"dtype": dtype, "shape": (N,)}, None)
    yield "curand_seed", (), (0, 5, 0), {"out": Written(place, *states), "dtype": "uint32"}, None


CALLS = {name: make for make, names in {
    index_cases: "gather scatter compress place nonzero bincount histogram",
    order_cases: "sort sort_places argsort partition argpartition searchsorted merge merge_pairs",
    number_cases: "iota fft rfft irfft dct cumsum cumprod nancumsum nancumprod matmul",
    linalg_cases: "cholesky qr svd svdvals eigh eigvalsh inv lu slogdet eig eigvals qr_raw solve solve_triangular lstsq",
    random_cases: "random",
    curand_cases: "curand curand_seed",
    sparse_cases: "spmm sptrsm spgemm ilu0 spunion sptranspose spband sprows spdiagonal sptake spcomponents",
    point_cases: "pair_distances nearest_points squareform",
    image_cases: "correlate1d window1d correlate rank_filter grey_filter spline1d sample label nearest_zero iir",
}.items() for name in names.split()}


def call_cases(rng, place, names):
    """Of all these rows: what makes the operands of several is run once."""
    for make in dict.fromkeys(CALLS[name] for name in names):
        for i, (row, inputs, params, more, check) in enumerate(make(rng, place)):
            if row not in names:
                continue
            given, arrays = {key: plain(value) for key, value in more.items()}, tuple(map(plain, inputs))
            yield row, Case(f"{row} {i}", lambda n=row, a=arrays, p=params, g=given: _core.call(n, a, p, **g),
                            [*inputs, *more.values()], check)


def cases(rng, place, names):
    """Of rows such as "ufunc:add"."""
    rows = {table: [n for t, n in (name.split(":") for name in names) if t == table]
            for table in ("ufunc", "reduction", "call")}
    for table, make in ("ufunc", ufunc_cases), ("reduction", reduction_cases):
        for name in rows[table]:
            for case in make(rng, place, name):
                case.row = f"{table}:{name}"
                yield case
    for name, case in call_cases(rng, place, rows["call"]):
        case.row = f"call:{name}"
        yield case


# ---- running them ----


class Canaries:
    """Arrays of this program that no operation names, of all sizes, before and behind the others."""

    def __init__(self):
        self.arrays = [ad.full(n, 1000 + i) for i, n in enumerate((1, 8, 64, 500, N, 20000))]

    def sing(self):
        return all(bool((a.get() == 1000 + i).all()) for i, a in enumerate(self.arrays))


def run(case, rounds, canaries, found):
    """Operations that are refused count as others do: what was read first made no sense. Arrays that are made later
    lie before those that are there, so that a result that has no end would run into the next array."""
    found["rows"].setdefault(case.row, 0)
    for _ in range(rounds):
        behind = ad.full(N, 4242) if case.row.startswith("call:") else None
        try:
            result = case.run()
            results = [r.get() for r in result] if isinstance(result, tuple) else result.get()
            if case.check and not case.check(results):
                found["wrong"].append(case.name)
            found["done"] += 1
            found["rows"][case.row] += 1
        except REFUSED:
            found["refused"] += 1
        if behind is not None and not (behind.get() == 4242).all():
            found["wrong"].append(f"{case.name}: the next array")
    if not canaries.sing():
        found["wrong"].append(f"{case.name}: another array")


def attack(names, rounds, seconds=math.inf):
    place = Device() if "cuda" in ad.session_info()["backend"] else Host()
    sys.setswitchinterval(1e-5)
    found = {"done": 0, "refused": 0, "wrong": [], "cases": 0, "rows": {}, "ended": ""}
    canaries, writer, rng = Canaries(), Writer(place), np.random.default_rng(1)
    until = time.monotonic() + seconds
    writer.start()
    for case in cases(rng, place, names):
        if time.monotonic() > until:
            found["ended"] = case.name
            break
        print(case.name, file=sys.stderr, flush=True)
        found["cases"] += 1
        writer.take(case.written)
        run(case, rounds * case.times, canaries, found)
        writer.take(())
    writer.take(None)
    writer.join()
    found["written"] = writer.times
    return found


def watch(uid):
    """Looks at its arrays again and again, and comes back to them as the same user when its connection breaks."""
    arrays = [ad.full(100 + 997 * i, 2000 + i) for i in range(30)]
    float(arrays[0].sum()), arrays[0].get()
    os.seteuid(uid)
    print("ready", flush=True)
    stop = threading.Thread(target=sys.stdin.read, daemon=True)
    stop.start()
    found, times = {"looks": 0, "wrong": 0}, []
    while stop.is_alive() or not found["looks"]:
        found["looks"] += 1
        found["wrong"] += sum(not bool((a.get() == 2000 + i).all()) for i, a in enumerate(arrays))
        for _ in range(30):
            begun = time.perf_counter()
            found["wrong"] += float(arrays[0].sum()) != 200_000
            times.append(1e3 * (time.perf_counter() - begun))
    times.sort()
    return {**found, "answers": len(times), "p50_ms": times[len(times) // 2], "p99_ms": times[len(times) * 99 // 100],
            "slowest_ms": times[-1]}


if __name__ == "__main__":
    faulthandler.enable()
    how, uid, *more = sys.argv[1:]
    os.seteuid(int(uid))  # the server asks who connects; what Python has yet to import may be root's only
    ad.connect()
    os.seteuid(os.getuid())
    print(json.dumps(attack(more[0].split(","), *map(int, more[1:])) if how == "attack" else watch(int(uid))), flush=True)
