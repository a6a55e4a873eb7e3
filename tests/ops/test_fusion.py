"""Operations that the server executes together give what they give one by one, bit for bit, and what NumPy gives.

A large product comes first, so that the operations behind it are queued when the server comes to them.
"""
import os
import tempfile
import warnings

import numpy as np
import pytest

import arrayd as ad
import conftest

SHAPES = [(40, 24), (24,), (40, 1), (1, 24), (1, 1), ()]
LARGE = [(300, 130), (130,), (300, 1), (), (1, 130)]
REAL = ["float32", "float64", "float32", "int32", "int16", "uint8", "float16"]
ANY = REAL + ["bool", "int64", "uint32", "complex64", "complex128"]
# What these make of real numbers does not depend on who computes it.
EXACT = {1: ["negative", "absolute", "sqrt", "square", "floor", "sign", "signbit", "isnan", "positive"],
         2: ["add", "subtract", "multiply", "maximum", "minimum", "greater", "equal", "logical_and", "not_equal"]}
MORE = {1: EXACT[1] + ["sin", "exp", "tanh", "log1p", "arctan", "conjugate", "modf", "frexp", "reciprocal"],
        2: EXACT[2] + ["divide", "arctan2", "hypot", "power", "floor_divide", "remainder", "divmod", "copysign", "fmod"]}
REDUCTIONS = ["sum", "max", "mean", "argmin", "any"]


@pytest.fixture(scope="module")
def servers():
    """Urls: of a server that fuses, and of one that does not."""
    before, processes, urls = os.environ["ARRAYD_URL"], [], []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        for folder, fuse in ((one, "1"), (other, "0")):
            os.environ["ARRAYD_FUSE"] = fuse
            process, url = conftest.start_server(folder)
            processes.append(process)
            urls.append(url)
        del os.environ["ARRAYD_FUSE"]
        yield urls
        ad.connect(before)
        for process in processes:
            process.kill()
            process.wait()


def busy():
    """Keep the server at work for a while."""
    a = ad.ones((700, 700))
    for _ in range(2):
        a = a @ a * 1e-3
    return a


def together(url, body):
    """Run body against a server with its operations queued: what it returns, and what the counters say of it."""
    ad.connect(url)
    ad.sync()
    before, work = ad.stat(), busy()
    result = body()
    after = ad.stat()
    del work
    return result, {name: after[name] - before[name] for name in after}


# ---- random programs ----

class Program:
    """Steps over numbered arrays, made while NumPy executes them."""

    def __init__(self, seed, exact):
        self.random = np.random.default_rng(seed)
        self.exact = exact
        self.shapes = LARGE if seed % 4 == 0 else SHAPES
        self.dtypes = REAL if exact else ANY
        self.arrays, self.steps, self.next = {}, [], 0
        for _ in range(5):
            self.start()
        for _ in range(int(self.random.integers(10, 70))):
            self.step()

    def pick(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def start(self):
        shape, dtype = self.pick(self.shapes), self.pick(self.dtypes)
        value = self.random.normal(size=shape) * 5
        if dtype.startswith("c"):
            value = value + 1j * self.random.normal(size=shape)
        self.do(("new", np.asarray(np.abs(value) if dtype.startswith("u") else value).astype(dtype)))

    def step(self):
        kind = self.pick(["ufunc"] * 8 + ["out"] * 3 + ["set", "view", "view", "where", "cast", "reduce", "drop", "drop",
                                                          "stream", "read"])
        if kind == "stream":
            self.steps.append(("stream", int(self.random.integers(3))))
        elif kind in ("drop", "read"):
            if len(self.arrays) > 4:
                self.do((kind, self.pick(list(self.arrays))))
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

    def _set(self):
        return ("set", self.array()[1], self.operand())

    def _view(self):
        return ("view", self.pick(["T", "half", "back", "tail", "flat"]), self.array())

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


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("block", range(12))
def test_random_programs(servers, block, exact):
    fused = 0
    for seed in range(block * 10, block * 10 + 10):
        program = Program(seed, exact)
        (together_, read), counters = together(servers[0], program.run)
        (apart, read_apart), none = together(servers[1], program.run)
        fused += counters["fused_ops"]
        assert none["fused_ops"] == none["temporaries"] == 0
        assert together_.keys() == apart.keys() == program.arrays.keys()
        for number, a in together_.items():
            assert same_bits(a, apart[number]), (seed, number)
            if exact:
                np.testing.assert_array_equal(a, program.arrays[number], err_msg=f"{seed}: {number}")
        assert all(same_bits(a, b) for a, b in zip(read, read_apart, strict=True)), seed
    assert fused > 30
