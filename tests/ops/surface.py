"""One table of all public functions with sample arguments, which the sweep and the count of round trips go through.

CALLS has for the name of each function ("linalg.x" and "fft.x" for those of the modules) cases: expressions of a
library xp and an array a of any shape and type, which may raise what NumPy raises. body(name, text) makes a function of
one.
"""

import functools
import itertools

import numpy as np

CALLS = {}
# Functions that give nothing but change the array: what has become of a copy counts.
CHANGES = "copyto fill_diagonal place put put_along_axis putmask".split()


def add(names, templates, *choices):
    """Add cases for several functions. A template has a place {} for each of the choices, which are lists of texts. It
    begins with the arguments ("(a, {})"), or it is a whole expression, in which $ is the function."""
    for name in names.split():
        for template in [templates] if isinstance(templates, str) else templates:
            for parts in itertools.product(*(one.split(" | ") if isinstance(one, str) else one for one in choices)):
                text = template.format(*parts)
                CALLS.setdefault(name, []).append((text if "$" in text else "$" + text).replace("$", "xp." + name))


@functools.cache
def body(name, text):
    """The function of a library and an array that a case stands for."""
    run = eval("lambda xp, a: " + text, {"np": np, "square": square, "rebuilt": rebuilt})  # the table is ours

    def change(xp, a):
        a = a.copy()
        assert run(xp, a) is None
        return a

    return change if name in CHANGES else run


def square(xp, a):
    """Well-conditioned square matrices, made of any array of at least 1 dimension."""
    a = xp.atleast_2d(a)[..., :3, :3]
    a = xp.asarray(a, dtype=a.dtype if a.dtype.kind in "fc" and a.dtype != np.float16 else xp.float64)
    return a @ a.conj().swapaxes(-1, -2) + 9 * xp.eye(a.shape[-2], dtype=a.dtype)


def rebuilt(factors, product):
    """The factors' types and shapes, and their product: all that a decomposition is but for signs."""
    return [(part.shape, part.dtype.name) for part in factors], product(*factors)


AXES = " | , axis=0 | , axis=-1 | , axis=1"
KEPT = AXES + " | , axis=(0, 1) | , keepdims=True | , axis=0, keepdims=True | , axis=() | , axis=(0, 0)"
DTYPES = (
    ", dtype='float32' | , dtype='int64' | , dtype='complex128' | , dtype='int8' | , dtype='bool' | , dtype='float16'"
)

# ---- reductions, running sums, order ----
add("sum prod nansum nanprod", "(a{})", f"{KEPT} | {DTYPES} | , initial=3 | , axis=0, initial=2, keepdims=True")
add("mean nanmean", "(a{})", KEPT + " | , dtype='float32' | , dtype='int64' | , dtype='complex128'")
add(
    "var std nanvar nanstd",
    "(a{})",
    KEPT + " | , dtype='float32' | , ddof=1 | , correction=1 | , axis=0, ddof=2" " | , ddof=1, correction=1",
)
add("min max amin amax nanmin nanmax", "(a{})", KEPT + " | , initial=2 | , axis=0, initial=1")
add("all any count_nonzero", "(a{})", KEPT)
add("argmin argmax", "(a{})", AXES + " | , axis=2 | , keepdims=True | , axis=0, keepdims=True")
add("nanargmin nanargmax", "(a{})", AXES + " | , axis=0, keepdims=True")
add("ptp median nanmedian", "(a{})", AXES + " | , keepdims=True | , axis=(0, 1) | , axis=0, keepdims=True")
add("cumsum cumprod nancumsum nancumprod", "(a{})", f"{AXES} | , axis=0{DTYPES.replace('|', '| , axis=0')}")
add(
    "cumulative_sum cumulative_prod",
    "(a{})",
    AXES + " | , axis=0, include_initial=True | , include_initial=True | , axis=0, dtype='float32'",
)
add(
    "average",
    "(a{})",
    AXES + " | , returned=True | , axis=0, keepdims=True | , axis=(0, 1), returned=True"
    " | , weights=xp.ones(a.shape) | , axis=0, weights=xp.arange(1, 1 + (a.shape or (1,))[0]) | , weights=xp.ones(7)"
    " | , axis=-1, weights=xp.ones(a.shape[-1:]), returned=True, keepdims=True",
)
add(
    "quantile percentile nanquantile nanpercentile",
    "(a, {}{})",
    "0.25 | [0.0, 0.5, 1.0] | 1 | 50 | -1 | [[0.25], [0.5]]",
    " | , axis=0 | , axis=(0, 1), keepdims=True | , axis=-1, method='nearest' | , method='hazen' | , method='x'"
    " | , weights=xp.ones(a.shape), method='inverted_cdf' | , weights=[1, 2]",
)
add("quantile percentile", "(a, [0, 0.25, 1], axis=0, weights=xp.arange(1, 1 + len(a)), method='inverted_cdf')")
add("sort", "(a{})", AXES + " | , axis=None | , stable=True | , order='x'")
add("argsort", "(a, stable=True{})", AXES + " | , axis=None")
add("sort_complex", "(a)")
add("partition", "xp.take($(a, {0}, axis={1}), {0}, axis=-1)", "0 | 1 | -1 | 99 | [0, 1] | 1.5", "-1 | None")
add("argpartition", "xp.take(xp.take_along_axis(a, $(a, {0}), -1), {0}, -1)", "1 | -1 | 99 | [0, 1]")
add("lexsort", "{}", "$(a) | $((a, a)) | $((a[::-1], a), axis=0) | $((a, a), axis=1)")
add(
    "searchsorted",
    "{}",
    "$(xp.sort(a.ravel()), a) | $(xp.sort(a.ravel()), a, 'right') | $([1, 2, 3], a) | $(a[None], 1)"
    " | $(a.ravel(), a, sorter=xp.argsort(a.ravel(), stable=True)) | $(xp.sort(a.ravel()), 2.5)"
    " | $(xp.sort(a.ravel()), 2) | $(a.ravel(), a, 'middle')",
)
add(
    "unique",
    "(a{})",
    " | , return_index=True | , return_inverse=True | , return_counts=True | , axis=0 | , axis=-1"
    " | , return_index=True, return_inverse=True, return_counts=True | , equal_nan=False"
    " | , axis=1, return_inverse=True"
    " | , axis=0, return_index=True, return_inverse=True, return_counts=True | , axis=9",
)
add("unique_values", "xp.sort($(a))")
add("unique_all unique_counts unique_inverse", "tuple($(a))")
add("union1d intersect1d setdiff1d setxor1d isin", "(a, {})", "a[:1] | [1, 2, 2] | 1.5 | a + a")
add("intersect1d", "(a, [1, 1, 2, 0], return_indices=True)")
add("isin", "(a, {})", "a, invert=True | []")

# ---- shapes ----
add(
    "reshape",
    "(a, {}, {})",
    "-1 | (-1, 2) | (2, -1) | (4, 3) | () | (1, 1) | (0, -1) | (3, -1, 2) | (-1, -1)",
    "'C' | 'F' | 'A'",
)
add("ravel", "(a{})", " | , 'C' | , 'F' | , 'A' | , 'K' | , 'X'")
add("transpose permute_dims", "(a{})", " | , (1, 0) | , (0, -1) | , (2, 0, 1) | , (0, 0)")
add("atleast_1d atleast_2d atleast_3d matrix_transpose fliplr flipud", "(a)")
add("squeeze", "(a{})", " | , 0 | , -1 | , (0, 1) | , ()")
add("expand_dims", "(a, {})", "0 | -1 | (0, 2) | 9 | (0, 0)")
add("swapaxes", "(a, {})", "0, -1 | 0, 1 | 0, 7")
add("moveaxis", "(a, {})", "0, -1 | (0, 1), (1, 0) | (0, 1), 0 | (0, 0), (1, 0)")
add("rollaxis", "(a, {})", "0 | -1 | 1, 0 | 0, 2 | 1, 9 | 9, 0")
add("flip", "(a{})", " | , 0 | , (0, 1) | , -1 | , () | , (0, 0)")
add("rot90", "(a{})", " | , 2 | , -1 | , 3, (1, 0) | , axes=(0, 0) | , axes=(0, 9)")
add("broadcast_to", "(a, {})", "(2,) + a.shape | (3, 4) | 4 | (-1, 4)")
add("broadcast_arrays", "tuple($({}))", "a, 1, a[..., None] |  | a, xp.ones(5)")
add("broadcast_shapes", "(a.shape, {})", "(1,) | 5")

# ---- joining and taking apart ----
add(
    "concatenate concat",
    "([a, a, a[:0]]{})",
    " | , axis=0 | , axis=-1 | , axis=None | , axis=0, dtype='float64' | , dtype='int8'"
    " | , dtype='int8', casting='unsafe'",
)
add("concatenate concat", "({})", "(a, xp.ones(a.shape, xp.float32)) | [] | (a, 1.5), axis=None")
add("stack", "([a, a]{})", " | , axis=-1 | , axis=1 | , axis=9 | , dtype='complex128'")
add("vstack hstack dstack column_stack", "({})", "[a, a] | (a, 1) | [a] | []")
add("block", "({})", "[a, a] | [[a, a], [a, a]] | a | [[a], [a, a]] | [a, [a]]")
add(
    "split array_split hsplit vsplit dsplit",
    "tuple($(a, {}))",
    "1 | 2 | 3 | [1, 2] | [0, 9] | [] | -1 | 0 | [-1] | [2, 1]",
)
add("split array_split", "tuple($(a, {}, axis=-1))", "1 | 2 | [1]")
add("unstack", "(a{})", " | , axis=-1 | , axis=5")
add("tile", "(a, {})", "2 | (2, 3) | (1,) | (2, 1, 1, 2) | 0 | () | -1 | 1")
add("repeat", "(a, {}, {})", "2 | [2] | 0 | [1, 0, 2] | -1 | [1, -1, 1] | 1 | 1.5", "None | 0 | -1")
add("roll", "(a, {})", "1 | -2 | 1, 0 | 100, -1 | (1, 2), (0, 1) | 1, (0, 1) | (1, 2), 0 | 0 | 1, 9 | (1, 2)")
add("append", "(a, {})", "1 | a, axis=0 | [1.5, 2] | a[..., :1], axis=-1 | 1, axis=0")
add(
    "delete",
    "(a, {}, {})",
    "0 | -1 | [0, 0] | slice(None, None, 2) | [] | 99 | slice(-1, None) | [True, False] | 1.5 | [0, -1]",
    "None | 0 | -1",
)
add(
    "insert",
    "(a, {}, {})",
    "0, 7 | -1, 7 | [0, 1], 5 | slice(0, 2), 5 | 99, 1 | [], 1 | 0, [1, 2] | [0], [1, 2, 3]" " | [1, 1], [2, 3]",
    "None | 0 | -1",
)
add("resize", "(a, {})", "5 | (2, 3) | () | 0 | (7, 1, 2) | -1")
add("trim_zeros", "(a{})", " | , 'f' | , 'b' | , axis=0 | , 'x'")
add(
    "copyto",
    "(a, {})",
    "3 | a[:1] | xp.ones(a.shape), 'unsafe' | xp.ones(a.shape) | 5, where=a == 1 | 2.5 | xp.ones(7, bool)",
)

# ---- choosing ----
INDICES = "0 | [0, -1] | [[0], [1]] | [] | [1, 7]"
MODES = "'raise' | 'wrap' | 'clip'"
add("take", "(a, {}, {}, mode={})", INDICES + " | 99 | -1", "None | 0 | -1", MODES)
add("put", "(a, {}, {}, {})", INDICES, "7 | [1, 2] | [5, 6, 7]", MODES)
add(
    "take_along_axis",
    "(a, {})",
    "xp.argsort(a, axis=-1, stable=True), -1 | xp.argmax(a, axis=0, keepdims=True), 0"
    " | xp.zeros(3, int), None | xp.zeros((1,) * a.ndim, int), 0 | xp.zeros((3,) * a.ndim, int), 0",
)
add(
    "put_along_axis",
    "(a, {})",
    "xp.argmax(a, axis=-1, keepdims=True), 9, -1 | xp.zeros((1,) * a.ndim, int), 5, 0" " | xp.asarray([0, 1]), 5, None",
)
add("where", "({})", "a | a, a, 0 | a > 1, a, 1.5 | a > 1, 1, a | a > 1, xp.float32(2), a | a != 0, 1, 0 | a, a")
add("argwhere nonzero flatnonzero", "(a)")
add(
    "compress",
    "({}, a, {})",
    "[True, False, True] | [0, 1] | [] | [False] | [True] * 9 | [[True]] | a.ravel()[:3] != 0",
    "None | 0 | -1",
)
add("extract", "({})", "a > 1, a | a, a | [True, False], a")
add("choose", "({})", "a, [10, 20, 30], mode='clip' | a, [a, 7], mode='wrap' | a != 0, [a, 7] | [0, 1], [a, a]")
add("select", "({})", "[a > 1, a < 0], [a, 7], 3 | [a > 1], [a] | [a > 1, a > 2], [a, 1.5], -1 | [a], [a]")
add(
    "piecewise",
    "(a, {})",
    "[a < 1, a > 2], [1, lambda x: x * 2] | [a < 1], [lambda x: x, 3] | a.ravel()[0] < 1, [2]" " | [a < 1], [1, 2, 3]",
)
add("place", "(a, {})", "a > 1, [7, 8] | a > 99, [] | a != 0, [] | a > 1, 9")
add("putmask", "(a, {})", "a > 1, 7 | a > 1, [7, 8, 9] | a != 0, a[::-1] | [True], 1")
add("diagonal", "(a{})", " | , 1 | , -2 | , axis1=1, axis2=0 | , 99 | , axis1=0, axis2=0")
add("fill_diagonal", "(a, {})", "7 | [1, 2] | 5, wrap=True")
add("unravel_index", "({}, (3, 4){})", "abs(a) % 12 | 5 | [1, 11] | [1, 12]", " | , 'F'")
add(
    "ravel_multi_index",
    "({})",
    "(abs(a) % 3, abs(a) % 4), (3, 4) | (a, a), (3, 4), 'wrap' | (a, a), (3, 4), 'clip', 'F'"
    " | ([0, 2], [1, 3]), (3, 4) | ([0, 3], [1, 3]), (3, 4)",
)
add("ix_", "({})", "a, [1, 2] | a.ravel(), a.ravel() | [True, False, True], [0]")
add("tril triu diag diagflat", "(a{})", " | , 1 | , -1 | , 9")
add("tril_indices triu_indices", "({})", "3 | 3, -1, 4 | 2, 5 | 0 | 4, -9")
add("tril_indices_from triu_indices_from", "(a{})", " | , 1")
add("diag_indices", "({})", "3 | 2, 3")
add("diag_indices_from", "(a)")
add("mask_indices", "({})", "3, xp.triu | 3, xp.tril, 1")

# ---- mathematics ----
add("real imag iscomplex isreal iscomplexobj isrealobj isscalar isfortran ndim shape sinc i0 fix corrcoef cov", "(a)")
add("round around", "(a{})", " | , 1 | , -1 | , 0")
add(
    "clip",
    "(a, {})",
    "0, 2 | None, 1 | 1, None | None, None | 1.5, 2.5 | -300, 300 | 3, 1 | min=1 | a[:1], 3 | max=a"
    " | xp.ones(a.shape, xp.float32), 2 | ",
)
add("nan_to_num", "(a{})", " | , nan=5 | , posinf=3, neginf=-3")
add("angle", "(a{})", " | , deg=True")
add(
    "diff",
    "(a{})",
    " | , 2 | , axis=0 | , 0 | , -1 | , 9 | , prepend=1 | , append=2, axis=0 | , prepend=0.5, append=1j | , axis=9",
)
add("ediff1d", "(a{})", " | , to_begin=1 | , to_end=[1, 2] | , to_end=1.5")
add("gradient", "(a{}{})", " | , 2 | , 0.5 | , 1, 2", " | , axis=0 | , axis=-1 | , edge_order=2 | , axis=(0, 1)")
add("gradient", "(a, [0, 1, 3], axis=0)")
add("trapezoid", "(a{})", " | , dx=2 | , dx=0.5, axis=0 | , x=[0, 1, 3], axis=0 | , axis=1")
add(
    "interp",
    "(a, {})",
    "[0, 1, 3], [1.0, 2, 5] | [0, 1, 3], [1.0, 2, 5], left=-1 | [0, 1, 3], [1.0, 2, 5], 0, 9"
    " | [0, 1, 3], [1.0, 2, 5], period=2 | [1.0], [4] | [0, 1, 3], [1j, 2, 3]",
)
add("interp", "(1.5, [0, 1, 3], a.ravel()[:3])")
add("convolve correlate", "(a, [1, 2], {})", "'full' | 'same' | 'valid' | 'x'")
add("convolve correlate", "({})", "a.ravel(), a.ravel()[:2] | [1, 2, 3, 4], a.ravel()[:2], 'same' | [1.5], a.ravel()")
add("unwrap", "(a{})", " | , axis=0 | , period=4 | , discont=1, period=3")
add("bartlett blackman hamming hanning", "({})", "0 | 1 | 2 | 7 | -1")
add("kaiser", "({}, 8.6)", "0 | 1 | 2 | 7")
add("vander", "(a{})", " | , 2 | , increasing=True | , 0")
add("polyadd polysub polymul", "({})", "a.ravel()[:4], [1, 2] | [1.5], a.ravel()[:3]")
add("polydiv", "([1.5, 2, 1, 3], [1, 2])")
add("polyval", "({})", "[1, 2, 3], a | a.ravel()[:4], 2")
add("polyder", "(a.ravel()[:5], {})", "1 | 2 | 0")
add("polyint", "(a.ravel()[:5], {})", "1 | 2, 3 | 0")

# ---- products ----
add("dot", "({})", "a, a | a, a.T | a, 2 | 1.5, a")
add("vdot", "({})", "a, a | a, a.T | a, [1, 2]")
add("inner", "({})", "a, a | a, a[0] | a, 2 | a, [1, 2]")
add("outer", "({})", "a, [1, 2] | a[:1], a | 2, a")
add("kron", "({})", "a[:2], [1, 2] | [[1, 2]], a | a, 2")
add("matmul", "({})", "a, a.swapaxes(-1, -2) | a, a | a, [1, 2, 3, 4] | a, 2 | [1.5], a | a, a.T")
add("matvec", "({})", "a, a[..., 0, :] | a, a")
add("vecmat", "({})", "a[..., 0], a | a, a")
add("vecdot", "({})", "a, a | a, a, axis=0 | a, a[:1]")
add("tensordot", "(a, {})", "a, 0 | a, ((0,), (0,)) | a, ([0, 1], [0, 1]) | a, ((-1,), (-1,)) | a.T, 1")
add("trace", "(a{})", " | , 1 | , axis1=1, axis2=0 | , dtype='float32'")
add("cross", "({})", "a[..., [0, 0, -1]], a[..., [-1, 0, 0]] | a[:3], [1, 2, 3], axis=0")
add(
    "einsum",
    "({})",
    "'...i->...', a | 'ij->ji', a | 'ij', a | 'ii', a | 'i->', a | '...ij->...ji', a | '...->...', a | 'ij->', a",
)
add(
    "einsum",
    "({}, optimize={})",
    "'...i,...i', a, a | 'ij,kj->ik', a, a | '...i,...j->...ij', a, a | 'ij,ij', a, a" " | 'ij,kj,kl->il', a, a, a",
    "False | True",
)
add(
    "einsum_path",
    "$({})[0]",
    "'...i,...i', a, a | 'ij,kj,kl->il', a, a, a, optimize='optimal' | a, [0, 1], a, [0, 2], [1, 2]",
)

# ---- padding, bits, counting ----
add(
    "pad",
    "(a, {}, {})",
    "1 | (2, 1) | 0 | ((1, 2),) | 5",
    "'constant' | 'edge' | 'reflect' | 'symmetric' | 'wrap' | 'maximum'"
    " | 'minimum' | 'mean' | 'median' | 'linear_ramp' | 'x'",
)
add(
    "pad",
    "(a, {})",
    "2, constant_values=(1, 2) | 2, 'mean', stat_length=2 | {0: 1} | -1 | 3, 'reflect', reflect_type='odd'"
    " | 2, 'symmetric', reflect_type='odd' | 1, 'edge', constant_values=3 | 3, 'linear_ramp', end_values=(5, -4)"
    " | 1, constant_values=300",
)
add("packbits", "(a{})", " | , axis=0 | , axis=-1, bitorder='little'")
add("unpackbits", "(a{})", " | , axis=0 | , axis=-1, count=3")
add("bincount", "({})", "a | abs(a).ravel(), minlength=7 | xp.asarray([0, 2, 2]), a.ravel()[:3]")
add("digitize", "(a, {}, {})", "[0, 1, 3] | [3, 1, 0] | [] | [1, 3, 2] | xp.asarray([0, 1, 3])", "False | True")
add("histogram histogram_bin_edges", "(a{})", " | , 3 | , [0, 1, 2, 4] | , 4, (0, 2) | , 0 | , [2, 1] | , range=(3, 1)")
add(
    "histogram",
    "(a, {})",
    "3, density=True, range=(-5, 5) | 3, weights=a, range=(-5, 5) | [0, 1, 3], weights=xp.ones(a.shape)",
)
add("histogram2d", "({})", "a.ravel(), a.ravel(), 3 | a, a, [2, 3]")
add("histogramdd", "(a, {})", "2 | 2, range=[(0, 1)] * 4")
add("cov", "(a{})", ", rowvar=False | , a | , bias=True | , ddof=5 | , dtype='float32'")
add("corrcoef", "(a{})", ", rowvar=False | , a")

# ---- questions ----
add("isclose", "({})", "a, a | a, 1 | a, a + 1, atol=1 | 1, a, 2.0 | a, np.inf | a, np.nan, equal_nan=True")
add("allclose", "({})", "a, a | a, 1 | a, a, equal_nan=True")
add("array_equal", "({})", "a, a | a, a[:1] | a, a, equal_nan=True")
add("array_equiv", "({})", "a, a | a, a[:1] | a, [1, 2]")
add("size", "(a{})", " | , 0 | , (0, 1) | , 9")
add("result_type", "$({}).name", "a | a, 1.5 | a, np.int8 | a, 'f4'")
add("can_cast", "({})", "a.dtype, 'int16' | a, 'float64', 'same_kind'")
add("common_type", "np.dtype($(a, a)).name")
add("shares_memory may_share_memory", "(a, {})", "a[..., :1] | a.copy()")
add("asarray_chkfinite", "(a)")
add("real_if_close", "({})", "a | a + 1e-20j")
add("typename", "('f')")
add("mintypecode", "('fd')")

# ---- new arrays ----
add("full_like", "(a, {})", "3 | 2.5 | 300 | [1, 2]")
add("empty_like", "$(a{}", ").shape | ).dtype.name | , order='F').strides")
add("zeros_like ones_like", "(a{})", " | , dtype='int16' | , shape=(2, 2) | , shape=3, order='F'")
add("zeros ones", "$({})", "3 | (2, 0) | () | -1 | (2, -3)")
add("empty", "xp.zeros_like($({}))", "3 | (2, 0) | () | -1 | (2, -3)")
add("full", "({})", "3, 7 | (2, 3), [1, 2, 3.5] | (), 2, 'float32' | 3, 300, 'int8'")
add("array", "$({}", "a) | a, dtype='float32') | a, ndmin=3) | [a, a]) | a, order='F').strides")
add("asarray", "$(a{}", ") | , 'complex64') | , order='C').strides")
add("asanyarray ascontiguousarray asfortranarray copy", "(a)")
add("require", "$(a, {}", "'float32', 'F').strides | requirements=['C', 'O'])")
add("astype", "(a, '{}')", "int8 | float32 | bool | complex64 | uint16 | float16")
add("arange", "({})", "5 | 1, 9, 2 | 1.0, 2.0, 0.3 | 5, 1, -1 | 0 | 3, 1 | 2.5 | 0, 5, 1, 'float32' | 1, 5, 0")
add(
    "linspace",
    "({})",
    "0, 1, 5 | a, 9, 4 | 0, a, 3, endpoint=False, axis=-1 | 0, 1, 1 | 0, 1, 0 | 0, 10, 4, dtype=int | 0, 1, -1"
    " | 0, 1, 5, retstep=True | 1, 1j, 3 | a, a, 1, retstep=True | 0, 1e-320, 5",
)
add("logspace", "({})", "0, 2, 5 | 0, [1, 2], 3 | 0, 3, 4, base=2 | 0, 3, 4, base=[2, 3]")
add(
    "geomspace",
    "({})",
    "1, 1000, 4 | -1, -8, 4 | 1, 0, 3 | [1, 2], [8, 200], 3 | 1, 256, 9, dtype=int | 1j, 1000j, 4"
    " | 1 + abs(a), 100, 3",
)
add("eye", "({})", "3 | 2, 4, 1, 'int8' | 3, k=-5 | 0")
add("identity", "({})", "3 | 2, 'int8'")
add("tri", "({})", "3 | 3, 4, 1, 'int8' | 2, 3, -9")
add(
    "meshgrid",
    "tuple($({}))",
    "a, [1, 2] | a, [1, 2], [1.5], indexing='ij' | a, [1, 2], sparse=True |  | a, indexing='x'",
)
add("indices", "({})", "(2, 3) | (2, 3), 'float32' | (2, 3), sparse=True | ()")
add("fromfunction", "(lambda i, j: i + j, (2, 3))")
add("frombuffer", "(b'{})", "1234', 'uint8' | 1234', 'int16', 1, 2 | 123', 'int16'")
add("fromiter", "(range(4), {})", "float | int, 2 | int, 7")
add("apply_along_axis", "({}, a)", "lambda line: line.sum(), 0 | lambda line: line * 2, -1")
add("apply_over_axes", "(xp.sum, a, {})", "[0] | (0, 1)")

# ---- linalg, fft ----
ORDERS = "None | 0 | 1 | 2 | 3 | -1 | -2 | 0.5 | np.inf | -np.inf | 'fro' | 'nuc' | 'x'"
add("linalg.norm", "(a, {}, {}, {})", ORDERS, "None | 0 | -1 | (0, 1) | (-1, -2) | (0, 0)", "False | True")
add(
    "linalg.vector_norm",
    "(a, ord={}, {})",
    "2 | 0 | 1 | 3 | np.inf | -np.inf",
    "axis=None | axis=0, keepdims=True | axis=(0, 1)",
)
add("linalg.matrix_norm", "(a, ord={})", "'fro' | 'nuc' | 1, keepdims=True | -1 | 2 | -2 | np.inf | -np.inf | 3")
add("linalg.cond", "({})", [f"square(xp, a), {p}" for p in ORDERS.split(" | ") if p not in ("0", "3", "0.5")] + ["a"])
add("linalg.matrix_rank", "({})", "a | a, tol=1e-3 | a, rtol=1e-3 | a, tol=1, rtol=1 | square(xp, a), hermitian=True")
add("linalg.matrix_power", "({})", [f"square(xp, a), {n}" for n in (0, 1, 2, 3, -1, -2, 1.5)] + ["a, 2"])
add("linalg.det linalg.slogdet linalg.svdvals linalg.pinv", "({})", "square(xp, a) | a")
add("linalg.pinv", "({})", "square(xp, a), hermitian=True | a, rcond=0.1 | a, rtol=None")
add("linalg.inv", "(square(xp, a))")
add("linalg.cholesky", "(square(xp, a){})", " | , upper=True")
add("linalg.eigvalsh", "(square(xp, a){})", " | , 'U' | , 'x'")
add(
    "linalg.eigh",
    ["$(square(xp, a)).eigenvalues", "rebuilt($(square(xp, a)), lambda w, v: v * w[..., None, :] @ v.conj().mT)"],
)
add(
    "linalg.svd",
    [
        "(a, compute_uv=False)",
        "rebuilt($(a), lambda u, s, v: 0)",
        "$(square(xp, a), hermitian=True).S",
        "rebuilt($(a, full_matrices=False), lambda u, s, v: u * s[..., None, :] @ v)",
    ],
)
add("linalg.qr", ["rebuilt($(a, '{}'), lambda q, r: q @ r)"], "reduced | complete | x")
add("linalg.qr", "[x.shape for x in $(a, 'raw')]")
add("linalg.qr", "abs($(square(xp, a), 'r'))")
add("linalg.solve", "({})", "square(xp, a), xp.ones(3) | square(xp, a), a | a, a | square(xp, a), 1")
add("linalg.lstsq", ["$(square(xp, a), xp.ones(3))[:2]", "int($(a, xp.ones((3, 2)))[2])", "$(a, xp.ones(5))"])
add("linalg.tensorsolve", "({})", "xp.eye(6).reshape(2, 3, 6) * 2, xp.ones((2, 3)) | a, a")
add("linalg.tensorinv", "({})", "xp.eye(6).reshape(2, 3, 6) * 2 | square(xp, a), 1 | a, 0")
add("linalg.multi_dot", "([{}])", "a, xp.ones((4, 2)), xp.ones((2, 5)), xp.ones(5) | a, a.T | a")
add("linalg.cross", "(a[..., :3], a[..., 1:4])")
add("linalg.diagonal", "(a{})", " | , offset=1")
add("linalg.trace", "(a{})", " | , offset=1 | , dtype='float32'")
add("linalg.matmul", "(a, a.mT)")
add("linalg.outer", "({})", "a, a | a.ravel(), [1, 2]")
add("linalg.tensordot", "(a, a, axes=0)")
add("linalg.vecdot", "(a, a)")
add("linalg.matrix_transpose", "(a)")
add(
    "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft",
    "(a{})",
    " | , 3 | , 8 | , axis=0 | , norm='ortho'" " | , norm='forward', axis=0 | , 0 | , axis=7 | , norm='x'",
)
add(
    "fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn fft.ifftn fft.rfftn fft.irfftn",
    "(a{})",
    " | , (2, 5), (0, 1) | , axes=(1, 0)"
    " | , norm='ortho' | , axes=(0,) | , axes=(0, 0) | , axes=() | , (2, 2, 2), (0, 1)",
)
add("fft.fftfreq fft.rfftfreq", "({}, 0.1)", "1 | 2 | 7 | 8")
add("fft.fftshift fft.ifftshift", "(a{})", " | , 0 | , (0, 1) | , -1 | , 9")

# Functions of files, texts and settings, or of the server alone: they have tests of their own.
ELSEWHERE = set("""
    array2string array_repr array_str asnumpy async_asarray async_sync attach base_repr binary_repr byte_bounds
    cancel clear_memo connect device_put disp empty_like_pinned empty_pinned format_float_positional format_float_scientific
    fromDlpack from_dlpack fromfile fromstring fuse genfromtxt get_array_module get_default_memory_pool
    get_default_pinned_memory_pool get_printoptions is_available isdtype issubdtype iterable load make_aligned_dtype
    load_ipython_extension loadtxt memoize min_scalar_type names poly polyfit printoptions promote_types publish
    roots save savetxt savez savez_compressed session_info set_printoptions share show_config stat sync
    unload_ipython_extension unpublish who zeros_like_pinned zeros_pinned
    """.split())
