"""Keys of every kind, alone and mixed, against NumPy: what is read, what is assigned, and the words of errors."""
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import arrayd as ad
from oracle import compare, outcome, same_kind

PROFILE = settings(max_examples=400, derandomize=True, deadline=None, database=None)


def filled(shape, dtype=np.int32):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


@st.composite
def keys(draw):
    """A shape and a key. Arrays are wrapped so that each run can say where they live."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    key, axis = [], 0
    while axis < len(shape) and draw(st.integers(0, 7)):
        n = shape[axis]
        kind = draw(st.sampled_from(["index", "index", "slice", "slice", "int", "new", "mask", "bool"]))
        if kind == "new":
            key.append(None)
            continue
        if kind == "bool":
            key.append(draw(st.sampled_from([True, False, np.True_])))
            continue
        if kind == "slice":
            key.append(draw(st.slices(n)))
        elif kind == "int":
            key.append(draw(st.integers(-n - 1, n)))
        elif kind == "mask":
            width = draw(st.integers(1, min(3, len(shape) - axis)))
            if 0 in shape:  # NumPy lets an empty mask pass for axes of any size
                break
            key.append(draw(hnp.arrays(bool, shape[axis:axis + width])))
            axis += width - 1
        elif n:
            dims = common if draw(st.booleans()) else tuple(1 if draw(st.booleans()) else m for m in common)
            dtype = draw(st.sampled_from([np.int64, np.int8, np.int32]))
            key.append(draw(hnp.arrays(dtype, dims, elements=st.integers(-n, n - 1))))
        axis += 1
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    return shape, tuple(key)


def placed(key, where):
    """The key with its arrays on the server, here, or as lists."""
    make = {"server": ad.asarray, "host": lambda a: a, "list": lambda a: a.tolist() if a.size else a}[where]
    return tuple(make(part) if isinstance(part, np.ndarray) else part for part in key)


def same(expected, wrong, actual, error):
    if wrong is not None:
        assert error is not None and same_kind(wrong, error), f"numpy: {wrong!r}; arrayd: {actual!r} {error!r}"
    else:
        assert error is None, f"numpy: {expected!r}; arrayd raises {error!r}"
        compare(expected, actual, exact=True)


@PROFILE
@given(keys(), st.sampled_from(["server", "host", "list"]))
def test_get(case, where):
    shape, key = case
    host = filled(shape)
    same(*outcome(lambda: host[key]), *outcome(lambda: ad.asarray(host)[placed(key, where)].get()))


@PROFILE
@given(keys(), st.sampled_from(["server", "host", "list"]), st.sampled_from(["number", "whole", "row", "ones", "too many"]))
def test_set(case, where, kind):
    """Assigning numbers, arrays of the full shape, of its last axis, of ones, of too many dimensions."""
    shape, key = case
    host = filled(shape)
    part, wrong = outcome(lambda: host[key])
    if wrong is not None or repeated(shape, key):
        return
    masked = any(getattr(one, "dtype", None) == bool for one in key)
    if kind == "too many" and (masked or np.ndim(part) == 0):  # where NumPy is of two minds
        return
    dims = {"number": (), "whole": np.shape(part), "row": np.shape(part)[-1:], "ones": (1,) * np.ndim(part),
            "too many": (1, 1) + np.shape(part)}[kind]
    value = np.arange(100, 100 + int(np.prod(dims)), dtype=np.int64).reshape(dims)

    def on_host():
        a = host.copy()
        a[key] = value
        return a

    def on_server(to=ad.asarray):
        a = ad.asarray(host)
        a[placed(key, where)] = 100 if kind == "number" else to(value)
        return a.get()
    same(*outcome(on_host), *outcome(on_server))
    same(*outcome(on_host), *outcome(lambda: on_server(lambda v: v)))


def repeated(shape, key):
    """Tell whether the key names an element twice: nobody promises which value stays."""
    counts = np.zeros(shape, int)
    np.add.at(counts, key, 1)
    return counts.size and counts.max() > 1


@PROFILE
@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5), st.data())
def test_views_of_views(shape, data):
    """Chains of views have NumPy's strides and elements, and nothing is sent for them."""
    host, chain = filled(shape, np.float64), []
    a = ad.asarray(host)
    for _ in range(4):
        key = data.draw(hnp.basic_indices(host.shape, allow_ellipsis=True, allow_newaxis=True, max_dims=5))
        if not isinstance(host[key], np.ndarray):
            break
        turn = data.draw(st.permutations(range(host[key].ndim)))
        host = host[key].transpose(turn)
        chain.append((key, turn))
    ad.sync()
    sent = ad.session_info()["operations"]
    for key, turn in chain:
        a = a[key].transpose(turn)
    assert ad.session_info()["operations"] == sent
    assert a.shape == host.shape
    assert a.strides == host.strides or host.size <= 1 or 1 in host.shape or 0 in host.shape
    assert (a.flags.c_contiguous, a.flags.f_contiguous) == (host.flags.c_contiguous, host.flags.f_contiguous)
    compare(host, a.get(), exact=True)


@pytest.mark.parametrize("key, message", [
    ((0, 0), "too many indices for array: array is 1-dimensional, but 2 were indexed"),
    (3, "index 3 is out of bounds for axis 0 with size 3"),
    (-4, "index -4 is out of bounds for axis 0 with size 3"),
    ([0, 7], "index 7 is out of bounds for axis 0 with size 3"),
    (np.array([True, False]),
     "boolean index did not match indexed array along axis 0; size of axis is 3 but size of corresponding boolean axis "
     "is 2"),
    (1.5, "only integers, slices"), ("name", "only integers, slices"), ([1.5], "only integers, slices"),
    (np.zeros(2), "arrays used as indices must be of integer"), ((..., ...), "can only have a single ellipsis"),
    (([0, 1], [0, 1, 2]), "too many indices"), (slice(None, None, 0), "slice step cannot be zero"),
    (slice("a"), "slice indices must be integers"), (10**30, "cannot fit"),
])
def test_wrong_keys(key, message):
    host = np.arange(3)
    a = ad.asarray(host)
    for run in (lambda x: x[key], lambda x: x.__setitem__(key, 0)):
        _, wrong = outcome(lambda: run(host.copy()))
        _, error = outcome(lambda: run(a))
        assert type(error) is type(wrong) and message in str(error), (wrong, error)


def test_broadcast_of_indices():
    a = ad.zeros((3, 3))
    with pytest.raises(IndexError, match=r"could not be broadcast together with shapes \(2,\) \(3,\)"):
        a[[0, 1], [0, 1, 2]]
    with pytest.raises(ValueError, match=r"value array of shape \(3,\) could not be broadcast to indexing result of "
                                         r"shape \(2,\)"):
        a[[0, 1], [0, 1]] = ad.arange(3)
    with pytest.raises(ValueError, match=r"could not broadcast input array from shape \(4,\) into shape \(3,3\)"):
        a[...] = ad.arange(4)


@pytest.mark.parametrize("dtype, value, error", [
    (np.uint8, 256, OverflowError), (np.uint8, -1, OverflowError), (np.int64, 2**63, OverflowError),
    (np.int64, 2**80, OverflowError), (np.int32, float("nan"), ValueError), (np.int32, float("inf"), OverflowError),
    (np.float32, 1j, TypeError), (np.int8, 1j, TypeError), (np.float64, "text", ValueError),
])
@pytest.mark.parametrize("key", [0, slice(None), [0, 1], "mask"])
def test_wrong_values(dtype, value, error, key):
    a = ad.zeros(3, dtype)
    if key == "mask":
        key = ad.asarray([True, False, True])
    with pytest.raises(error):
        a[key] = value
    assert a.get().tolist() == [0, 0, 0]


def test_mask_with_a_wrong_count_changes_nothing():
    a, mask = ad.arange(6), ad.asarray([True, False] * 3)
    a[mask] = ad.asarray([7, 8])
    with pytest.raises(ValueError, match="place"):
        ad.sync()
    assert a.get().tolist() == list(range(6))


def test_waits_only_where_it_must():
    a, mask, index = ad.arange(60).reshape(3, 4, 5), ad.asarray(np.arange(3) > 0), ad.asarray([0, 2])
    ad.sync()
    before = ad.session_info()["round_trips"]
    a[mask] = 1
    a[mask] = ad.arange(5)
    a[mask] = ad.zeros((2, 4, 5), int)
    a[index] += 1
    a[1:, index, None]
    a[:, [0, 3]] = 5
    a[[True, False, True]]
    assert ad.session_info()["round_trips"] == before
    a[mask]
    assert ad.session_info()["round_trips"] == before + 1


def test_overlap():
    for key, source in [(np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[::-1], np.s_[:]), (np.s_[1::2], np.s_[::2])]:
        host = np.arange(12.0)
        a = ad.asarray(host)
        host[key] = host[source]
        a[key] = a[source]
        compare(host, a.get())
    host = np.arange(12.0).reshape(3, 4)
    a = ad.asarray(host)
    host[[0, 1, 2]] = host[[2, 0, 1]].copy()
    a[[0, 1, 2]] = a[[2, 0, 1]]
    host[:, :3] += host[:, 1:]
    a[:, :3] += a[:, 1:]
    compare(host, a.get())


def test_iteration_and_membership():
    host = np.arange(6).reshape(3, 2)
    a = ad.asarray(host)
    assert [row.get().tolist() for row in a] == host.tolist() and len(a) == 3
    assert 4 in a and 7 not in a and np.int8(5) in a and "x" not in a
    assert all(row.base is a for row in a)
    for run in (lambda x: len(x), lambda x: iter(x)):
        with pytest.raises(TypeError):
            run(ad.asarray(1))
