"""All public functions with the cases of surface.CALLS, over types and layouts: values, types, shapes, exceptions."""

import re

import numpy as np
import pytest

import arrayd as ad
import surface
from oracle import DTYPES, SOME, fetch, outcome, same_kind, seed

# Layouts: the shape of the memory, and the view of it.
LAYOUTS = {
    "plain": ((3, 4), lambda xp, m: m),
    "number": ((), lambda xp, m: m),
    "one": ((1,), lambda xp, m: m),
    "line": ((7,), lambda xp, m: m),
    "none": ((0,), lambda xp, m: m),
    "no rows": ((0, 4), lambda xp, m: m),
    "no columns": ((3, 0), lambda xp, m: m),
    "column-major": ((4, 3), lambda xp, m: m.T),
    "strided": ((6, 9), lambda xp, m: m[::2, 1::2]),
    "reversed": ((3, 4), lambda xp, m: m[::-1, ::-1]),
    "repeated": ((4,), lambda xp, m: xp.broadcast_to(m, (3, 4))),
    "permuted": ((4, 2, 3), lambda xp, m: m.transpose(1, 2, 0)),
    "square": ((3, 3), lambda xp, m: m),
}
EMPTY = ("none", "no rows", "no columns")
# Floats that are not finite, as every third element or so.
SPECIAL = [np.nan, np.inf, -np.inf, -0.0]


def empty(dtype, layout):
    return layout in EMPTY


def kinds(letters):
    return lambda dtype, layout: dtype.kind in letters


# Differences from NumPy that are meant, or NumPy's accidents: names, when, why.
DIFFERS = [
    (
        "cross",
        lambda dtype, layout: layout == "permuted" and np.lib.NumpyVersion(np.__version__) >= "2.5.0",
        "NumPy 2.5 has no products of vectors in the plane, CuPy has",
    ),
    (
        "geomspace",
        lambda dtype, layout: ad.session_info()["backend"] == "cuda",
        "a GPU's pow is off by an ulp, which integers show",
    ),
    ("average", empty, "weights that sum to zero give NaN: to look would take waiting"),
    (
        "nanargmin|nanargmax",
        lambda dtype, layout: layout == "special",
        "-1 where all are NaN: to look would take waiting",
    ),
    ("histogram.*", kinds("c"), "NumPy bins complex numbers by their real parts, partly"),
    (
        "histogram.*",
        lambda dtype, layout: layout == "special",
        "NaN as an edge is not refused: to look would take waiting",
    ),
    ("nanquantile|nanpercentile", empty, "NumPy forgets q and method"),
    ("nanvar|nanstd", lambda dtype, layout: dtype == np.float16, "NumPy's mean is a float16 whatever dtype says"),
    ("var|std|nanvar|nanstd", kinds("c"), "NumPy's mean is real when dtype is"),
    ("sinc", lambda dtype, layout: dtype == np.float16, "NumPy's pi is a float16"),
    ("cov|corrcoef", empty, "NumPy forgets the type"),
    ("take|compress|.*partition", empty, "NumPy does not look at indices where it takes nothing"),
    ("select", kinds("u"), "NumPy takes 3 for an int64"),
    ("interp", kinds("c"), "NumPy drops imaginary parts when there is a period"),
    ("convolve|correlate", lambda dtype, layout: layout == "special", "0*inf where NumPy has no product"),
    ("pad", kinds("b"), "NumPy's odd reflections are true where any multiple of the edge is"),
    ("unique", lambda dtype, layout: layout == "special", "the order of rows with NaN is nobody's"),
    ("tile", empty, "NumPy repeats nothing a negative number of times"),
    (
        "tensordot|linalg.multi_dot|histogram2d|histogramdd",
        lambda dtype, layout: layout == "number",
        "another exception",
    ),
    ("nanquantile|nanpercentile", lambda dtype, layout: layout == "permuted", "NumPy mixes up the axes of a 2-d q"),
    ("linalg.*", lambda dtype, layout: layout == "repeated", "singular: only rounding decides"),
    ("linalg.pinv", kinds("biu"), "NumPy has no precision of whole numbers"),
    ("fft.irfft.*|fft.hfft|fft.rfft2|fft.rfftn", empty, "NumPy gives what its memory held, or another exception"),
    ("fft.*", lambda dtype, layout: dtype == np.float16, "NumPy's factor is a float16"),
    ("fft.*shift", lambda dtype, layout: layout == "number", "another exception"),
    ("mean", lambda dtype, layout: layout == "special", "NaN cast to an int"),
]


def differs(name, dtype, layout):
    return any(re.fullmatch(names, name) and when(dtype, layout) for names, when, _ in DIFFERS)


def numbers(dtype, layout):
    """Small whole numbers, so that sums and products are exact in any order."""
    shape = LAYOUTS.get(layout, LAYOUTS["plain"])[0]
    rng = seed("sweep", dtype, layout)
    values = rng.integers(0, 6, shape) if dtype.kind == "u" else rng.integers(-3, 5, shape)
    values = values + 1j * rng.integers(-2, 3, shape) if dtype.kind == "c" else values
    values = np.asarray(values).astype(dtype)
    if layout == "special":
        values = np.where(rng.integers(0, 3, shape) == 0, rng.choice(SPECIAL, shape), values).astype(dtype)
    return values


def close(expected, actual, ulps):
    """Check type, shape and whole numbers exactly, and floats but for so many units in the last place of the
    largest."""
    if isinstance(expected, (tuple, list)):
        assert isinstance(actual, (tuple, list)) and len(expected) == len(actual), (expected, actual)
        for one, other in zip(expected, actual):
            close(one, other, ulps)
        return
    if isinstance(expected, str):
        assert expected == actual, (expected, actual)
        return
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert (expected.shape, expected.dtype) == (actual.shape, actual.dtype), (expected, actual)
    exact = expected.dtype.kind not in "fc"
    if np.array_equal(expected, actual, equal_nan=not exact):
        return
    assert not exact, (expected, actual)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(actual[~finite], expected[~finite])
    size, off = np.abs(expected[finite]), np.abs(expected[finite] - actual[finite])
    assert (off <= ulps * np.finfo(expected.dtype).eps * size.max()).all(), (expected, actual)


def sweep(name, cases):
    ulps = 1000 if name.startswith(("linalg", "fft")) else 32
    for dtype, layout in cases:
        if differs(name, dtype, layout):
            continue
        view = LAYOUTS.get(layout, LAYOUTS["plain"])[1]
        memory = numbers(dtype, layout)
        on_server = ad.asarray(memory)
        for text in surface.CALLS[name]:
            run = surface.body(name, text)
            expected, wrong = outcome(lambda: fetch(run(np, view(np, memory))))
            actual, error = outcome(lambda: fetch(run(ad, view(ad, on_server))))
            case = f"{text} of {dtype}, {layout}"
            assert (wrong is None) == (error is None), f"{case}: {wrong!r} {expected}, arrayd {error!r} {actual}"
            if wrong is not None:
                assert same_kind(wrong, error), f"{case}: {wrong!r}, arrayd {error!r}"
                continue
            try:
                close(expected, actual, ulps)
            except AssertionError as off:
                raise AssertionError(f"{case}: {off}") from None


@pytest.mark.parametrize("name", surface.CALLS)
def test_layouts(name):
    sweep(name, [(np.dtype(float), layout) for layout in LAYOUTS])


@pytest.mark.parametrize("name", surface.CALLS)
def test_types(name):
    sweep(name, [(dtype, "plain") for dtype in DTYPES] + [(dtype, "no rows") for dtype in SOME])


@pytest.mark.parametrize("name", [name for name in surface.CALLS if not name.startswith(("linalg", "fft"))])
def test_special_floats(name):
    sweep(name, [(np.dtype(kind), "special") for kind in ("float64", "complex64")])


def test_all_functions_are_in_the_table():
    public = {
        name
        for name in ad.__all__
        if not isinstance(getattr(ad, name), (type, ad.ufunc)) and callable(getattr(ad, name))
    }
    assert not (public ^ surface.ELSEWHERE) - set(surface.CALLS), "cases of these belong into surface.CALLS"
    assert not set(surface.CALLS) & surface.ELSEWHERE
    for module in (ad.linalg, ad.fft):
        short = module.__name__.rpartition(".")[2]
        parts = {name: getattr(module, name) for name in module.__all__}
        functions = {f"{short}.{name}" for name, one in parts.items() if callable(one) and not isinstance(one, type)}
        # Eigenvalues of any matrix are complex always: test_decompositions.
        assert not functions - set(surface.CALLS) - {"linalg.eig", "linalg.eigvals"}
