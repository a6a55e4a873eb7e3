"""Operations that the server executes together give what they give one by one, bit for bit, and what NumPy gives.

A large product comes first, so that the operations behind it are queued when the server comes to them.
"""
import os
import time
import warnings

import numpy as np
import pytest

import arrayd as ad

SHAPES = [(32, 32), (32,), (32, 1), (1, 32), (1, 1), ()]
LARGE = [(200, 200), (200,), (200, 1), (), (1, 200)]
REAL = ["float32", "float64", "float32", "int32", "int16", "uint8", "float16"]
ANY = REAL + ["bool", "int64", "uint32", "complex64", "complex128"]
# What these make of real numbers does not depend on who computes it.
EXACT = {1: ["negative", "absolute", "sqrt", "square", "floor", "sign", "signbit", "isnan", "positive"],
         2: ["add", "subtract", "multiply", "maximum", "minimum", "greater", "equal", "logical_and", "not_equal"]}
MORE = {1: EXACT[1] + ["sin", "exp", "tanh", "log1p", "arctan", "conjugate", "modf", "frexp", "reciprocal"],
        2: EXACT[2] + ["divide", "arctan2", "hypot", "power", "floor_divide", "remainder", "divmod", "copysign", "fmod"]}
REDUCTIONS = ["sum", "max", "mean", "argmin", "any"]
DRAWS = {"unit": lambda g, n: g.random(n, dtype="float32"), "uniform": lambda g, n: g.uniform(-3, 5, n),
         "normal": lambda g, n: g.normal(1, 2, n), "wide": lambda g, n: g.standard_normal(n, dtype="float32"),
         "integers": lambda g, n: g.integers(-5, 90, n, dtype="int16"), "long": lambda g, n: g.integers(0, 1 << 40, n),
         "exponential": lambda g, n: g.exponential(2, n), "laplace": lambda g, n: g.laplace(0, 1, n)}


WORK = 700 * 700 * 8  # bytes that busy leaves behind


def busy():
    """Keep the server at work for a while."""
    a = ad.ones((700, 700))
    if ad.session_info()["backend"] == "cuda":
        ad.linalg.svd(a[:99, :99])  # a product is only enqueued; here the server waits for the device
    for _ in range(2):
        a = a @ a * 1e-3
    return a


def once(body):
    ad.sync()
    before, work = ad.stat(), busy()
    result = body()
    after = ad.stat()
    del work
    return result, {name: after[name] - before[name] for name in after}


def compiled():
    """Wait until nothing is being compiled."""
    until = time.monotonic() + 60
    while ad.stat()["compile_waiting"]:
        assert time.monotonic() < until


def together(body):
    """Run body with its operations queued: what it returns, and what the counters say of it. Where chains are compiled,
    again when that has been done."""
    result, counters = once(body)
    for _ in range(6):
        if not counters["unfused_chains"]:
            break
        compiled()
        result, counters = once(body)
    return result, counters


# ---- random programs ----

class Program:
    """Steps over numbered arrays, made while NumPy executes them."""

    def __init__(self, seed, exact):
        self.random = np.random.default_rng(seed)
        self.exact = exact
        self.shapes = LARGE if seed % 4 == 0 else SHAPES
        self.chains = seed % 3 > 0  # one shape for nearly all, and temporaries
        self.dtypes = REAL if exact else ANY
        self.arrays, self.steps, self.next = {}, [], 0
        for _ in range(5):
            self.start()
        for _ in range(int(self.random.integers(10, 70))):
            self.step()

    def pick(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def start(self):
        plain = self.chains and self.random.random() < 0.7
        shape, dtype = self.shapes[0] if plain else self.pick(self.shapes), self.pick(self.dtypes)
        value = self.random.normal(size=shape) * 5
        if dtype.startswith("c"):
            value = value + 1j * self.random.normal(size=shape)
        self.do(("new", np.asarray(np.abs(value) if dtype.startswith("u") else value).astype(dtype)))

    def step(self):
        kind = self.pick(["ufunc"] * 8 + ["out"] * 3 + ["set", "where", "cast", "drop", "drop"] +
                         ["masked", "masked", "masked_new", "random"] +
                         (["ufunc"] * 12 + ["drop"] * 8 if self.chains else ["view", "view", "stream", "read"]) +
                         (["reduce"] if self.chains == (self.random.random() < 0.3) else []) +
                         (["view"] if self.random.random() < 0.2 else []))
        if kind == "stream":
            self.steps.append(("stream", int(self.random.integers(3))))
        elif kind in ("drop", "read"):
            if len(self.arrays) > 4:
                self.do((kind, self.pick(list(self.arrays)[-6:])))
        else:
            self.do(getattr(self, "_" + kind)())

    def operand(self):
        if self.random.random() < 0.25:
            return self.pick([2, 0.5, 3, True, 1.5])
        return ("array", self.pick(list(self.arrays)))

    def array(self):
        return ("array", self.pick(list(self.arrays)))

    def _ufunc(self):
        n = self.pick([1, 2, 2])
        return ("ufunc", self.pick((EXACT if self.exact else MORE)[n]), self.array(), *[self.operand()] * (n - 1))

    def _out(self):
        return ("out", self.array()[1], *self._ufunc()[1:])

    def mask(self):
        masks = [number for number, a in self.arrays.items() if a.dtype == bool]
        return ("array", self.pick(masks)) if masks and self.random.random() < 0.9 else self.pick([True, False])

    def _masked(self):
        return ("masked", self.array()[1], self.mask(), *self._ufunc()[1:])

    def _masked_new(self):
        return ("masked_new", self.mask(), *self._ufunc()[1:])

    def _random(self):
        shape = self.shapes[0] if self.chains else self.pick(self.shapes)
        return ("random", self.pick(list(DRAWS)), int(self.random.integers(100)), int(self.random.integers(6)), shape)

    def _set(self):
        return ("set", self.array()[1], self.operand())

    def _view(self):
        return ("view", self.pick(["T", "back"] if self.chains else ["T", "half", "back", "tail", "flat"]), self.array())

    def _where(self):
        return ("where", self.array(), self.operand(), self.operand())

    def _cast(self):
        return ("cast", self.pick(self.dtypes), self.array())

    def _reduce(self):
        return ("reduce", self.pick(REDUCTIONS), self.pick([None, 0, -1]), self.array())

    def do(self, step):
        """Keep a step that NumPy can take."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results = perform(np, step, self.arrays)
        except (TypeError, ValueError, IndexError):
            return
        if self.exact and step[0] == "reduce" and step[1] in ("sum", "mean"):
            return
        numbers = range(self.next, self.next + len(results))
        self.next += len(results)
        self.arrays.update(zip(numbers, results))
        self.steps.append((step, *numbers))

    def run(self):
        """The arrays that are left, and what was read on the way, by arrayd."""
        arrays, streams, read = {}, [ad.cuda.Stream.null, None, None], []
        work = None
        for step, *numbers in self.steps:
            if step == "stream":
                which = numbers[0]
                streams[which] = streams[which] or ad.cuda.Stream(non_blocking=True)
                streams[which].use()
                continue
            if work is None and step[0] != "new":
                work = busy()
            results = perform(ad, step, arrays)
            if step[0] == "read":
                read.append(arrays[step[1]].get())
            arrays.update(zip(numbers, results))
        ad.cuda.Stream.null.use()
        return {number: a.get() for number, a in arrays.items()}, read


def view(how, a):
    if how == "flat":
        return a.reshape(-1)
    return {"T": lambda: a.T, "half": lambda: a[..., ::2], "back": lambda: a[::-1], "tail": lambda: a[1:]}[how]()


def masked_new(xp, mask, function, operands):
    """Zeros where the mask is false: NumPy leaves there what it finds."""
    if xp is ad:
        results = function(*operands, where=mask)
        return list(results) if isinstance(results, tuple) else [results]
    results = function(*operands)
    results = results if isinstance(results, tuple) else (results,)
    return [np.where(mask, r, np.zeros((), r.dtype)) for r in map(np.asarray, results)]


def drawn(xp, how, seed, skip, shape):
    """Random numbers, not always from the beginning of a block. NumPy gets those that arrayd makes by themselves."""
    generator = ad.random.default_rng(seed)
    if skip:
        generator.random(skip, dtype="float32")
    result = DRAWS[how](generator, shape)
    return np.array(result.get()) if xp is np else ad.asarray(result)


def perform(xp, step, arrays):
    """Take a step in `arrays`: the new ones."""
    def value(x):
        return arrays[x[1]] if isinstance(x, tuple) else x

    kind, *rest = step
    if kind == "new":
        return [xp.array(rest[0])]
    if kind in ("drop", "read"):
        if kind == "drop":
            del arrays[rest[0]]
        return []
    if kind == "set":
        arrays[rest[0]][...] = value(rest[1])
        return []
    if kind == "out":
        getattr(xp, rest[1])(*map(value, rest[2:]), out=arrays[rest[0]])
        return []
    if kind == "masked":
        getattr(xp, rest[2])(*map(value, rest[3:]), out=arrays[rest[0]], where=value(rest[1]))
        return []
    if kind == "masked_new":
        return masked_new(xp, value(rest[0]), getattr(xp, rest[1]), [value(x) for x in rest[2:]])
    if kind == "random":
        return [drawn(xp, *rest)]
    if kind == "view":
        return [xp.asarray(view(rest[0], value(rest[1])))]
    if kind == "cast":
        return [value(rest[1]).astype(rest[0])]
    if kind == "where":
        return [xp.asarray(xp.where(*map(value, rest)))]
    if kind == "reduce":
        return [xp.asarray(getattr(xp, rest[0])(value(rest[2]), axis=rest[1]))]
    result = getattr(xp, rest[0])(*map(value, rest[1:]))
    return [xp.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]


def bits(a):
    """Its bytes, where any NaN is as good as another."""
    parts = a.view(a.real.dtype) if a.dtype.kind == "c" and a.ndim else a
    if a.dtype.kind in "fc":
        a = np.where(np.isnan(parts), np.nan, parts).astype(parts.dtype)
    return a.tobytes()


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and bits(np.ascontiguousarray(a)) == bits(np.ascontiguousarray(b))


def settled(body, **expected):
    """Run body until the counters say what is expected of them: the client may be late on a machine that is busy."""
    for _ in range(20):
        result, counters = together(body)
        if {name: counters[name] for name in expected} == expected:
            return result
    raise AssertionError({name: counters[name] for name in expected})


def uploaded(*arrays):
    result = [ad.array(a) for a in arrays]
    ad.sync()
    return result


def random(shape, dtype="float32", seed=1):
    return np.random.default_rng(seed).random(shape).astype(dtype)


def test_a_formula_is_one(servers):
    ad.connect(servers[0])
    a, b = random(1000), random(1000, seed=2)
    x, y = uploaded(a, b)
    result = settled(lambda: ad.sqrt(x * x + y * y) * 0.5 + ad.sin(x) * ad.exp(-y),
                     fused_chains=1, fused_ops=10, temporaries=9, unfused_chains=0)
    np.testing.assert_allclose(result.get(), np.sqrt(a * a + b * b) * 0.5 + np.sin(a) * np.exp(-b), rtol=1e-5)
    total = settled(lambda: (x * y + 1).sum(), fused_chains=1, fused_ops=3, temporaries=2)
    np.testing.assert_allclose(float(total), (a * b + 1).sum(), rtol=1e-5)


def test_counters_of_a_block(servers):
    ad.connect(servers[0])
    x, = uploaded(random(1000))
    for _ in range(20):
        with ad.cupyx.profiler.counters() as gained:
            work = busy()
            kept = (x + 1) * 2
            ad.sync()
        if gained["fused_ops"] == 2:
            break
        compiled()
    del work, kept
    assert gained["fused_chains"] == 1 and gained["temporaries"] == 1
    assert gained["ops_failed"] == 0 and gained["ops_done"] >= 7 and gained["sessions"] == 0


def test_what_is_kept_is_written(servers):
    ad.connect(servers[0])
    a = random((50, 30))
    x, = uploaded(a)

    def body():
        y = x * 2
        z = y + 1
        return y, z, z.sum(axis=0), z.max()
    y, z, sums, most = settled(body, temporaries=0, ops_unneeded=0)
    np.testing.assert_array_equal(y.get(), a * 2)
    np.testing.assert_array_equal(z.get(), a * 2 + 1)
    np.testing.assert_allclose(sums.get(), (a * 2 + 1).sum(axis=0), rtol=1e-6)
    assert float(most) == (a * 2 + 1).max()


def test_what_nobody_wants_is_not_computed(servers):
    ad.connect(servers[0])
    x, = uploaded(random(100))

    def body():
        (x + 1) * 2
        y = x + 3
        return y
    y = settled(body, ops_unneeded=2, temporaries=2)
    np.testing.assert_array_equal(y.get(), x.get() + 3)


def test_a_loop_makes_the_same_chains(servers):
    """Also where the queue is full in the middle of one."""
    ad.connect(servers[0])
    x, y = uploaded(random(100), random(100, seed=2))
    results = settled(lambda: [((((((x + y) * x) - y) * 0.5 + i) * y) - x) for i in range(40)],
                      fused_chains=40, fused_ops=280, temporaries=240)
    a, b = x.get(), y.get()
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result.get(), ((((((a + b) * a) - b) * np.float32(0.5) + i) * b) - a))


def test_a_queue_that_never_ends(servers):
    """What the server keeps of messages is given back while it stays busy, also where shapes take turns."""
    ad.connect(servers[0])
    x, y = uploaded(random(16), random(17))
    worker, results = ad.stat()["worker_pid"], [None] * 100

    def resident():
        with open(f"/proc/{worker}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def load(n):
        for i in range(n):
            results[i % 100] = (x + x) * x if i % 5 else y + y
        ad.sync()
    load(10000)
    before = resident()
    load(150000)
    assert resident() - before < 4 << 20


@pytest.mark.parametrize("length", [70, 200])
def test_longer_than_a_chain(servers, length):
    ad.connect(servers[0])
    a = random(500, "float64")
    arrays = uploaded(*[a + i for i in range(40)])
    expected = a
    for i in range(length):
        expected = expected * 0.5 + (a + i % 40)

    def body():
        result, kept = arrays[0], []
        for i in range(length):
            result = result * 0.5 + arrays[i % 40]
            kept.append(result)
        return kept
    result, counters = together(body)
    np.testing.assert_array_equal(result[-1].get(), expected)
    assert counters["fused_ops"] > length


def test_views_and_assignments(servers):
    """What is written is seen by whoever reads it later, by whatever view, and by nobody earlier."""
    ad.connect(servers[0])
    a, b = random(64), random(64, seed=2)
    x, y = uploaded(a, b)

    def program(xp, x, y):
        before = x + 1
        x *= 2
        after = x + 1
        x[::2] = y[::2] - 1
        half = x[::2] * 3
        x[1:] += x[:-1]
        x[...] = x[::-1]
        both = x + y
        y[...] = before
        y += after
        return before, after, half, both, x, y
    for _ in range(5):
        (results, _), expected = together(lambda: program(ad, x.copy(), y.copy())), program(np, a.copy(), b.copy())
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(one.get(), other)


def test_views_of_one_shape(servers):
    """A view is read or written while another one of the same array is written or read."""
    ad.connect(servers[0])
    a, b = random((60, 60)), random((60, 60), seed=2)
    x, y = uploaded(a, b)

    def program(xp, x, y):
        plain = x + y
        turned = y + x.T
        x *= 2
        flipped = y - x[::-1]
        x -= 1
        both = x.T + x
        x *= y
        back = x[::-1] - turned
        x[::-1] += y
        y.T[...] = x - back
        xp.add(x, y, out=x.T)
        late = x.T * y[::-1] + x
        y[...] = y.T
        wide = xp.broadcast_to(y[0], (60, 60))
        y += wide
        y[0] = 0
        return plain, turned, flipped, both, back, late, x, y, y + wide
    for _ in range(5):
        (results, _), expected = together(lambda: program(ad, x.copy(), y.copy())), program(np, a.copy(), b.copy())
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(one.get(), other)


def test_temporaries_need_no_memory(servers):
    """A limit that one more array fits, but not two."""
    n = 1 << 18
    a = random(n, "float64")
    ad.connect(servers[0])
    x, = uploaded(a)
    work = busy()
    ad.sync()
    ad.get_default_memory_pool().set_limit(size=ad.stat()["buffer_bytes"] + a.nbytes * 3 // 2)
    try:
        del work
        for _ in range(20):
            blocker = ad.ones(1 << 14).reshape(128, 128)
            for _ in range(300):
                ad.matmul(blocker, blocker, out=blocker)
            result = (x + 1) * 2 - x
            try:
                value = result.get()
                break
            except MemoryError:
                continue
        np.testing.assert_array_equal(value, (a + 1) * 2 - a)
    finally:
        ad.get_default_memory_pool().set_limit(size=0)


def test_failures_are_those_of_operations_by_themselves(servers):
    """No memory for some results of a chain: they have the error, with the name of what failed; the others are right."""
    n = 1 << 20
    a = random(n, "float64")
    told = []
    for url in servers:
        ad.connect(url)
        x, = uploaded(a)
        small, = uploaded(a[:1000])
        ad.get_default_memory_pool().set_limit(size=ad.stat()["buffer_bytes"] + a.nbytes * 3 // 2 + WORK)
        try:
            def body():
                first = x + 1
                second = first * 2
                third = ad.sqrt(second)
                return first, second, third, small * 3, third.sum()
            (first, second, third, other, total), counters = once(body)
            np.testing.assert_array_equal(other.get(), a[:1000] * 3)
            errors = []
            for result in (first, second, third, total):
                try:
                    result.get()
                    errors.append("good")
                except MemoryError as error:
                    errors.append(str(error).split(":")[0])
            told.append((errors, counters["ops_failed"]))
        finally:
            ad.get_default_memory_pool().set_limit(size=0)
    assert told[0][0].count("good") == 1
    assert told[0] == told[1]


def test_a_poisoned_operand(servers):
    ad.connect(servers[0])
    x, = uploaded(random(100))
    bad = x[ad.asarray([1000] * 100)]

    def body():
        y = x + 1
        z = (y + bad) * 2
        w = (y - x) * 2
        return y, z, w
    (y, z, w), _ = together(body)
    np.testing.assert_array_equal(y.get(), x.get() + 1)
    np.testing.assert_array_equal(w.get(), (x.get() + 1 - x.get()) * 2)
    with pytest.raises(IndexError):
        z.get()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("block", range(8))
def test_random_programs(servers, block, exact):
    fused = 0
    for seed in range(block * 10, block * 10 + 10):
        program = Program(seed, exact)
        ad.connect(servers[0])
        (together_, read), counters = together(program.run)
        ad.connect(servers[1])
        (apart, read_apart), none = together(program.run)
        fused += counters["fused_ops"]
        assert none["fused_ops"] == none["temporaries"] == 0
        assert together_.keys() == apart.keys() == program.arrays.keys()
        for number, a in together_.items():
            assert same_bits(a, apart[number]), (seed, number)
            if exact:
                np.testing.assert_array_equal(a, program.arrays[number], err_msg=f"{seed}: {number}")
        assert all(same_bits(a, b) for a, b in zip(read, read_apart, strict=True)), seed
    assert fused > 50


def test_more_than_a_window_of_what_nobody_needs(servers):
    """Operations that are never executed are acknowledged, too: the client would wait for ever."""
    ad.connect(servers[0])
    x, = uploaded(random(16))
    for _ in range(200_000):
        x + x
    np.testing.assert_array_equal((x + x).get(), 2 * x.get())
