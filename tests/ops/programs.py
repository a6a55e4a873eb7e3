"""Random programs over arrays, made while NumPy executes them."""
import warnings

import numpy as np

import arrayd as ad
from chains import busy

SHAPES = [(32, 32), (32,), (32, 1), (1, 32), (1, 1), ()]
LARGE = [(200, 200), (200,), (200, 1), (), (1, 200)]
REAL = ["float32", "float64", "float32", "int32", "int16", "uint8", "float16"]
ANY = REAL + ["bool", "int64", "uint32", "complex64", "complex128"]
# Results of these for real numbers do not depend on who computes them.
EXACT = {1: ["negative", "absolute", "sqrt", "square", "floor", "sign", "signbit", "isnan", "positive"],
         2: ["add", "subtract", "multiply", "maximum", "minimum", "greater", "equal", "logical_and", "not_equal"]}
MORE = {1: EXACT[1] + ["sin", "exp", "tanh", "log1p", "arctan", "conjugate", "modf", "frexp", "reciprocal"],
        2: EXACT[2] + ["divide", "arctan2", "hypot", "power", "floor_divide", "remainder", "divmod", "copysign", "fmod"]}
REDUCTIONS = ["sum", "max", "mean", "argmin", "any"]
SCANS = ["cumsum", "cumprod", "nancumsum", "nancumprod"]
DRAWS = {"unit": lambda g, n: g.random(n, dtype="float32"), "uniform": lambda g, n: g.uniform(-3, 5, n),
         "normal": lambda g, n: g.normal(1, 2, n), "wide": lambda g, n: g.standard_normal(n, dtype="float32"),
         "integers": lambda g, n: g.integers(-5, 90, n, dtype="int16"), "long": lambda g, n: g.integers(0, 1 << 40, n),
         "exponential": lambda g, n: g.exponential(2, n), "laplace": lambda g, n: g.laplace(0, 1, n)}


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
                         (["scan"] if self.random.random() < 0.5 else []) +
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

    def _scan(self):
        of, dtype, into = self.array(), self.pick([None, None, "float64", "int32", "float32"]), None
        x = self.arrays[of[1]]
        fits = [n for n, a in self.arrays.items() if a.ndim and a.shape == x.shape and a.dtype == x.dtype]
        if fits and x.dtype.kind in "fc" and self.random.random() < 0.3:
            dtype, into = None, self.pick(fits)
        return ("scan", self.pick(SCANS), self.pick([0, -1]), dtype, into, of)

    def takes(self, step):
        """Tell whether the step's result is certain. The sign of a NaN is not, as processors choose it. Nor are long scans
        of floats: on a GPU the order in which they are added up depends on the blocks' pace."""
        if {"signbit", "copysign"} & set(map(str, step)):
            return not any(np.isnan(self.arrays[x[1]]).any() for x in step if isinstance(x, tuple) and x[0] == "array")
        return step[0] != "scan" or (not self.exact and max(self.arrays[step[-1][1]].shape, default=1) <= 64)

    def do(self, step):
        """Keep a step that NumPy can take."""
        if not self.takes(step):
            return
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
    if kind == "scan":
        name, axis, dtype, into, of = rest
        scan = getattr(xp, name)
        if into is None:
            return [xp.asarray(scan(value(of), axis=axis, dtype=dtype))]
        scan(value(of), axis=axis, dtype=dtype, out=arrays[into])
        return []
    result = getattr(xp, rest[0])(*map(value, rest[1:]))
    return [xp.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]
