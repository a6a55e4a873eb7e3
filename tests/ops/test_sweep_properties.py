"""Random calls against NumPy: keys, axes, masks, outputs, subscripts, pads, positions, joints."""

import numpy as np
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import arrayd as ad
from oracle import check

PROFILE = settings(max_examples=120, derandomize=True, deadline=None, database=None)
KINDS = st.sampled_from(["bool", "int8", "uint8", "int64", "float32", "float64", "complex64"])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
FULL = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5)


def filled(shape, kind="float64"):
    """Small whole numbers: any order of adding them gives the same."""
    values = np.random.default_rng(int(np.prod(shape)) + len(shape)).integers(0, 5, shape)
    return np.asarray(values * (1 + 1j) if kind == "complex64" else values).astype(kind)


@st.composite
def views(draw, shapes=SHAPES):
    """Memory and a view of it: transposed, reversed, every second."""
    shape = draw(shapes)
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, -1, 2, -2])) for _ in shape]
    memory = filled(tuple(n * abs(step) for n, step in zip(shape, steps)), draw(KINDS))
    return memory, lambda a: a[tuple(slice(None, None, step) for step in steps)].transpose(order)


@st.composite
def axes(draw, ndim, several=True):
    """An axis, several, or None; some counted from the end, a few out of bounds or named twice."""
    one = st.integers(-ndim - (draw(st.integers(0, 9)) == 0), max(ndim - 1, 0))
    kinds = [st.none(), one] + (
        [st.lists(one, max_size=ndim, unique=draw(st.booleans())).map(tuple)] if several else []
    )
    return draw(st.one_of(kinds))


REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "mean", "nansum", "nanmax", "count_nonzero", "ptp"]


@PROFILE
@given(views(), st.sampled_from(REDUCTIONS), st.data())
def test_reductions(case, name, data):
    memory, view = case
    shape = view(memory).shape
    options = {"axis": data.draw(axes(len(shape))), "keepdims": data.draw(st.booleans())}
    mask = data.draw(
        st.none()
        | hnp.arrays(
            bool,
            (
                hnp.array_shapes(min_dims=len(shape), max_dims=len(shape), max_side=1)
                if not all(shape)
                else st.just(shape)
            ),
        )
    )
    initial = (
        data.draw(st.none() | st.sampled_from([0, 1, 3])) if name in ("sum", "prod", "min", "max", "nansum") else None
    )
    if initial is not None:
        options["initial"] = initial
    if name == "mean" and not shape:
        options["axis"] = None  # NumPy's mind about others depends on where
    takes_mask = name not in ("count_nonzero", "ptp", "nanmax") and (initial is not None or name not in ("min", "max"))

    def body(xp, a):
        where = {"where": xp.asarray(mask)} if mask is not None and takes_mask else {}
        return getattr(xp, name)(view(a), **options, **where)

    check(body, memory, ulps=300)


@PROFILE
@given(
    views(),
    st.sampled_from(["cumsum", "cumprod", "sort", "argmin", "argmax", "median", "var", "diff", "flip"]),
    st.data(),
)
def test_along_axes(case, name, data):
    memory, view = case
    axis = data.draw(axes(view(memory).ndim, name in ("median", "var", "flip")))
    if name == "median" and axis == () and not memory.size:
        return  # NumPy cannot reshape it
    if name == "diff" and axis is None or name == "median" and memory.dtype.kind in "bc":
        return
    check(lambda xp, a: getattr(xp, name)(view(a), axis=axis), memory, ulps=300)


@PROFILE
@given(
    hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=4),
    KINDS,
    KINDS,
    st.sampled_from(["add", "multiply", "subtract", "maximum", "less", "logical_and", "divide", "hypot", "where"]),
    st.sampled_from([None, "float64", "float32", "int64", "bool", "complex128"]),
    st.booleans(),
    st.booleans(),
)
def test_broadcasting(shapes, first, second, name, out, masked, row):
    x, y, m = shapes.input_shapes
    mask = filled(m) > 2

    def body(xp, a, b):
        if name == "where":
            return xp.where(xp.asarray(mask), a, b)
        options = {}
        if out is not None or masked:
            shape = shapes.result_shape if masked else np.broadcast_shapes(x, y)
            options["out"] = xp.zeros(shape[1:] if row and shape else shape, out or "float64")
        if masked:
            options["where"] = xp.asarray(mask)
        return getattr(xp, name)(a, b, **options)

    check(body, filled(x, first), filled(y, second))


@st.composite
def subscripts(draw):
    """Draw einsum's subscripts and the shapes of operands that fit, but for once in a while."""
    letters = draw(st.lists(st.sampled_from("abcdZ"), min_size=1, max_size=4, unique=True))
    sizes = {letter: draw(st.integers(1, 3)) for letter in letters}
    dots = draw(st.sampled_from([(), (), (2,), (2, 3)]))
    terms, shapes = [], []
    for _ in range(draw(st.integers(1, 4))):
        term = draw(st.lists(st.sampled_from(letters), max_size=3))
        shape = [sizes[letter] if draw(st.integers(0, 20)) else 1 for letter in term]
        if dots and draw(st.booleans()):
            at, few = draw(st.integers(0, len(term))), draw(st.integers(0, len(dots)))
            shape[at:at] = dots[few:]
            term.insert(at, "...")
        terms.append("".join(term))
        shapes.append(tuple(shape))
    used = sorted({letter for term in terms for letter in term.replace("...", "")})
    result = draw(st.lists(st.sampled_from(used), max_size=3, unique=bool(draw(st.integers(0, 9))))) if used else []
    if any("..." in term for term in terms):
        result.insert(draw(st.integers(0, len(result))), "...")
    return ",".join(terms) + ("->" + "".join(result) if draw(st.booleans()) else ""), shapes


@settings(PROFILE, max_examples=300)
@given(
    subscripts(), st.sampled_from(["int64", "float64", "complex64", "bool"]), st.sampled_from([False, True, "optimal"])
)
def test_einsum(case, kind, optimize):
    text, shapes = case
    check(
        lambda xp, *arrays: xp.einsum(text, *arrays, optimize=optimize),
        *(filled(shape, kind) for shape in shapes),
        ulps=64
    )


MODES = [
    "constant",
    "edge",
    "reflect",
    "symmetric",
    "wrap",
    "maximum",
    "minimum",
    "mean",
    "median",
    "linear_ramp",
    "empty",
]


@settings(PROFILE, max_examples=300)
@given(views(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)), st.sampled_from(MODES), st.data())
def test_pad(case, mode, data):
    memory, view = case
    if memory.dtype.kind == "b" and mode in ("mean", "median", "linear_ramp", "reflect", "symmetric"):
        memory = memory.astype("int16")
    if memory.dtype.kind == "c" and mode == "median":
        memory = memory.real.copy()
    ndim = memory.ndim
    width = data.draw(
        st.one_of(
            st.integers(0, 6),
            st.tuples(st.integers(0, 9), st.integers(-1, 3)),
            st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), min_size=ndim, max_size=ndim),
        )
    )
    options = {}
    if mode in ("reflect", "symmetric"):
        options["reflect_type"] = data.draw(st.sampled_from(["even", "odd"]))
    if mode in ("maximum", "minimum", "mean", "median"):
        options["stat_length"] = data.draw(
            st.none() | st.integers(1, 5) | st.tuples(st.integers(1, 3), st.integers(1, 3))
        )
    if mode in ("constant", "linear_ramp"):
        name = "constant_values" if mode == "constant" else "end_values"
        options[name] = data.draw(st.integers(0, 5) | st.tuples(st.integers(0, 5), st.integers(0, 5)))

    def body(xp, a):
        padded = xp.pad(view(a), width, mode, **options)
        return padded.shape if mode == "empty" else padded

    check(body, memory, ulps=64)


@PROFILE
@given(views(FULL), st.data())
def test_take_and_put(case, data):
    memory, view = case
    shape = view(memory).shape
    axis = data.draw(axes(len(shape), several=False))
    n = int(np.prod(shape)) if axis is None or not -len(shape) <= axis < len(shape) else shape[axis]
    mode = data.draw(st.sampled_from(["raise", "wrap", "clip"]))
    slack = 0 if mode == "raise" and data.draw(st.integers(0, 5)) else 3
    index = data.draw(
        hnp.arrays(
            "int64" if n > 99 else data.draw(st.sampled_from(["int64", "int8"])),
            SHAPES,
            elements=st.integers(-n - slack, n - 1 + slack),
        )
    )
    server = data.draw(st.booleans())
    check(lambda xp, a: xp.take(view(a), xp.asarray(index) if server else index.tolist(), axis, mode=mode), memory)
    values = filled((data.draw(st.integers(1, 4)),), memory.dtype.name)
    flat = np.unique(index.astype(int) % memory.size)  # an element that is named twice has no certain value

    def put(xp, a):
        xp.put(
            view(a),
            xp.asarray(flat) if server else flat.tolist(),
            values if xp is np or not server else xp.asarray(values),
            mode,
        )
        return a

    check(put, memory)


@PROFILE
@given(views(FULL), st.data())
def test_insert_and_delete(case, data):
    memory, view = case
    shape = view(memory).shape
    axis = data.draw(axes(len(shape), several=False))
    n = int(np.prod(shape)) if axis is None or not -len(shape) <= axis < len(shape) else shape[axis]
    places = st.one_of(
        st.integers(-n - 1, n), st.slices(n), st.lists(st.integers(-n, n - 1), max_size=4), hnp.arrays(bool, n)
    )
    obj = data.draw(places)
    check(lambda xp, a: xp.delete(view(a), obj, axis), memory)
    if not isinstance(obj, np.ndarray):
        value = data.draw(st.sampled_from([7, [7], "row"]))
        check(
            lambda xp, a: xp.insert(view(a), obj, view(a)[:1] if value == "row" and axis in (0, None) else 7, axis),
            memory,
        )


@PROFILE
@given(
    st.lists(views(hnp.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=3)), min_size=1, max_size=4), st.data()
)
def test_joining(cases, data):
    """Arrays that agree in all but one axis, most of the time, by all functions that join."""
    axis = data.draw(st.integers(0, 1))
    first = cases[0][1](cases[0][0]).shape
    sizes = [data.draw(st.integers(0, 3)) for _ in cases]
    shapes = [first[:axis] + (size,) + first[axis + 1 :] for size in sizes]
    if data.draw(st.integers(0, 9)) == 0:
        shapes[-1] = shapes[-1][::-1]
    arrays = [filled(shape, memory.dtype.name) for shape, (memory, _) in zip(shapes, cases)]
    name = data.draw(st.sampled_from(["concatenate", "stack", "vstack", "hstack", "dstack", "block", "column_stack"]))
    if name in ("concatenate", "stack"):
        place = data.draw(st.sampled_from([axis, 0, -1, None] if name == "concatenate" else [0, -1, 1, 3, 9]))
        check(lambda xp, *parts: getattr(xp, name)(parts, axis=place), *arrays)
    else:
        check(lambda xp, *parts: getattr(xp, name)(list(parts)), *arrays)


@PROFILE
@given(views(FULL), st.data())
def test_splitting(case, data):
    memory, view = case
    n = view(memory).shape[0]
    where = data.draw(st.integers(1, 4) | st.lists(st.integers(-n, n + 2), max_size=4))
    for name in ("split", "array_split", "vsplit", "hsplit"):
        check(lambda xp, a: tuple(getattr(xp, name)(view(a), where)), memory)
    shift, axis = data.draw(st.integers(-9, 9) | st.tuples(st.integers(-4, 4), st.integers(-4, 4))), data.draw(
        axes(memory.ndim)
    )
    check(lambda xp, a: xp.roll(view(a), shift, axis), memory)
    check(lambda xp, a: xp.tile(view(a), data.draw(st.just((2, 1)))), memory)


@PROFILE
@given(views(FULL), st.data())
def test_masks(case, data):
    memory, view = case
    shape = view(memory).shape
    mask = data.draw(hnp.arrays(bool, shape[: data.draw(st.integers(1, len(shape)))]))
    values = filled((int(mask.sum()),) + shape[mask.ndim :], memory.dtype.name)
    check(lambda xp, a: (view(a)[xp.asarray(mask)], view(a)[mask]), memory)
    for server in (False, True):

        def assign(xp, a):
            key = xp.asarray(mask) if server else mask
            view(a)[key] = xp.asarray(values)
            view(a)[key] += 1
            return a

        check(assign, memory) if memory.dtype.kind != "b" else None

    def fill(xp, a):
        full = np.broadcast_to(mask.reshape(mask.shape + (1,) * (len(shape) - mask.ndim)), shape)
        xp.putmask(view(a), xp.asarray(full), values.ravel()[:3] if xp is np else xp.asarray(values.ravel()[:3]))
        xp.place(view(a), xp.asarray(full), [1, 0])
        xp.copyto(view(a), xp.asarray(memory.ravel()[0]), where=xp.asarray(full))
        return a

    check(fill, memory)


def test_server_arrays_are_views_where_numpys_are():
    a, n = ad.zeros((3, 4)), np.zeros((3, 4))
    for view in (
        lambda xp, x: xp.einsum("ij->ji", x),
        lambda xp, x: xp.einsum("ii->i", x[:, :3]),
        lambda xp, x: xp.squeeze(x[None]),
        lambda xp, x: xp.diagonal(x),
        lambda xp, x: xp.reshape(x, -1),
        lambda xp, x: xp.atleast_3d(x),
        lambda xp, x: xp.broadcast_to(x, (2, 3, 4)),
        lambda xp, x: xp.real(x),
        lambda xp, x: xp.take(x, 0, 0),
        lambda xp, x: xp.repeat(x, 1, 0),
        lambda xp, x: xp.tile(x, 1),
        lambda xp, x: xp.roll(x, 0),
        lambda xp, x: xp.pad(x, 0),
        lambda xp, x: xp.compress([True] * 3, x, 0),
        lambda xp, x: xp.partition(x, 0),
        lambda xp, x: xp.trim_zeros(x[0]),
    ):
        assert ad.shares_memory(a, view(ad, a)) == np.shares_memory(n, view(np, n))
