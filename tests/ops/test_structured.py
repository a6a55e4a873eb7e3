"""Arrays of structures and of bytes: NumPy's results of the same program."""
import copy
import io
import operator
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import arrayd as ad

POINT = np.dtype([("x", "f4"), ("n", "i4"), ("z", "f8")])
INNER = np.dtype([("u", "u1"), ("s", [("p", "i2"), ("q", "f4")]), ("m", "f8", (2, 3)), ("v", "V3")], align=True)
PACKED = np.dtype([("b", "?"), ("d", "f8"), ("c", "c8")])  # fields that do not lie aligned
DTYPES = [POINT, INNER, PACKED, np.dtype("V10"), np.dtype("V1"), np.dtype([("only", "i8")])]


def structures(dtype, shape, seed=5):
    """A NumPy array of structures whose bytes are random, but for padding and numbers that compare oddly."""
    made = np.zeros(shape, dtype)
    _fill(made, np.random.default_rng(seed))
    return made


def _fill(a, random):
    if a.dtype.names is None:
        a[...] = np.frombuffer(random.bytes(a.nbytes), a.dtype).reshape(a.shape) if a.dtype.kind == "V" else \
            random.integers(0, 100, a.shape)
    for name in a.dtype.names or ():
        _fill(a[name], random)


def same(ours, theirs):
    """Assert that arrays have one type, shape and elements."""
    assert isinstance(ours, ad.ndarray)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    got = ours.get()
    assert isinstance(got, np.ndarray) and (got.dtype, got.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_array_equal(got, theirs)


def both(run, *hosts):
    """Run a program on NumPy's arrays and on the server's, and compare what comes of it, or the kind of error."""
    try:
        expected = run(np, *[host.copy() for host in hosts])
    except Exception as error:
        kind = next(k for k in (IndexError, TypeError, ValueError, KeyError, AttributeError) if isinstance(error, k))
        with pytest.raises(kind):
            run(ad, *map(ad.array, hosts))
        return
    made = run(ad, *map(ad.array, hosts))
    if isinstance(expected, np.ndarray):
        same(made, expected)
    else:
        assert repr(made.get()[()] if isinstance(made, ad.ndarray) else made) == repr(expected)


# ---- making them, and moving them ----

@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0, 2)])
def test_there_and_back(dtype, shape):
    host = structures(dtype, shape)
    a = ad.array(host)
    same(a, host)
    same(ad.asarray(a), host)
    assert ad.asarray(a) is a
    assert (a.ndim, a.size, a.itemsize, a.nbytes) == (host.ndim, host.size, host.itemsize, host.nbytes)
    if host.size:
        assert a.strides == host.strides
    assert repr(a.tolist()) == repr(host.tolist()) and a.tobytes() == host.tobytes()
    same(pickle.loads(pickle.dumps(a)), host)
    same(copy.deepcopy(a), host)
    same(ad.frombuffer(host.tobytes(), dtype) if host.size else ad.empty(host.size, dtype), host.reshape(-1))


@pytest.mark.parametrize("name", ["zeros", "ones"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["i,f,c16", POINT, [("a", "u1"), ("b", "f8", (2,))]], ids=str)
def test_constants(name, order, dtype):
    expected = getattr(np, name)((2, 3), dtype, order)
    made = getattr(ad, name)((2, 3), dtype, order)
    same(made, expected)
    assert made.flags.c_contiguous == expected.flags.c_contiguous and made.flags["F"] == expected.flags.f_contiguous


def test_like_and_full():
    host = structures(POINT, (2, 3))
    a = ad.array(host)
    for name in ("zeros_like", "ones_like"):
        same(getattr(ad, name)(a), getattr(np, name)(host))
    assert ad.empty_like(a, shape=4).shape == (4,) and ad.empty((2, 3), POINT).dtype == POINT
    for value in (7, 2.5, np.int32(-1), (1, 2, 3), np.void((1, 2, 3), POINT), np.void((3.5, 2, 1), "d,d,d")):
        expected = np.empty((2, 3), POINT)
        expected[...] = value
        made = ad.empty((2, 3), POINT)
        made[...] = value
        same(made, expected)
        made.fill(value)
        same(made, expected)
    same(ad.full(3, np.void((1, 2, 3), POINT)), np.full(3, np.void((1, 2, 3), POINT)))


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_orders(order):
    host = structures(POINT, (2, 3, 4))
    for turned in (host, host.T, host.transpose(1, 0, 2)):
        a = ad.array(turned)
        same(a, turned)
        expected, made = turned.copy(order), a.copy(order)
        same(made, expected)
        assert made.flags.f_contiguous == expected.flags.f_contiguous
        got = a.get(order=order)
        np.testing.assert_array_equal(got, turned)


def test_ndarray_is_made_in_memory_of_others():
    a = ad.array(structures(POINT, 6))
    same(ad.ndarray((2,), POINT), np.zeros(2, POINT))
    there = ad.ndarray((3,), POINT, a.data + 3 * 16)
    there["n"] = -1
    assert a["n"].get()[3:].tolist() == [-1] * 3
    assert ad.may_share_memory(a, there) and ad.shares_memory(a, there["x"])


def test_set_and_get_with_out():
    host, more = structures(POINT, 3), structures(POINT, 3, 6)
    a, out = ad.array(host), np.empty(3, POINT)
    assert a.get(out=out) is out
    np.testing.assert_array_equal(out, host)
    a.set(more)
    same(a, more)
    np.testing.assert_array_equal(ad.asnumpy(a), more)
    with pytest.raises(ValueError, match="Shape mismatch"):
        a.set(more[:2])
    with pytest.raises(ValueError, match="Shape mismatch"):
        a.get(out=np.empty(2, POINT))


def test_text_is_numpys():
    for host in (structures(POINT, (2, 2)), structures(PACKED, 3), np.array([b"abc", b"d"], "V3"), structures(POINT, ())):
        a = ad.array(host)
        assert str(a) == str(host) and repr(a) == repr(host)


# ---- fields ----

@pytest.mark.parametrize("name", ["u", "s", "m", "v", ["m", "u"], ["s"]], ids=str)
def test_fields_are_views(name):
    host = structures(INNER, (2, 3))
    a = ad.array(host)
    same(a[name], host[name])
    same(a[1:, ::-1][name], host[1:, ::-1][name])
    for each in (a, host):
        each[name] = b"ab" if name == "v" else 3
    same(a, host)
    assert ad.may_share_memory(a, a[name])


def test_fields_compute():
    host = structures(INNER, (2, 3))
    a = ad.array(host)
    for each in (a, host):
        each["s"]["q"] += each["m"][..., 0, 1] * 2
        each["m"][0] = each["m"][1] + 1
    same(a, host)
    same(a["m"].sum(axis=0), host["m"].sum(axis=0))


def test_several_fields_are_assigned_by_place():
    host = np.ones(10, "i,f,i,f,i,f")
    for i in range(6):
        host[f"f{i}"] = np.arange(i, 10 + i)
    a = ad.array(host)
    for each in (a, host):
        each[["f1", "f0", "f4"]] = each[["f2", "f1", "f5"]].copy()
    same(a, host)


def test_unaligned_fields_say_what_to_do():
    a = ad.array(structures(PACKED, 3))
    for read in (lambda: a["d"], lambda: a.__setitem__("d", 1)):
        with pytest.raises(ValueError, match=r"'d'.*sufficiently aligned for GPU.*make_aligned_dtype"):
            read()
    same(a["b"], a.get()["b"])
    assert a[:0]["d"].shape == (0,)
    same(ad.array(a.get().astype(ad.make_aligned_dtype(PACKED)))["d"], a.get()["d"])


def test_wrong_names():
    a = ad.zeros(3, POINT)
    with pytest.raises(ValueError, match="no field of name y; there are x, n, z"):
        a["y"]
    with pytest.raises(ValueError, match="no field of name y"):
        a[["x", "y"]]
    with pytest.raises(IndexError, match="bytes without fields"):
        ad.zeros(3, "V4")["x"]
    with pytest.raises(IndexError):
        a["x", 0]


# ---- elements ----

KEYS = [0, -1, (1, 2), (), Ellipsis, None, slice(1, None), (slice(None), slice(None, None, -2)), (Ellipsis, 1), (None, 0),
        [1, 0], ([1, 0], [2, 2]), (slice(None), [2, 0, 2]), ([True, False],), (0, Ellipsis, [1, 2]), np.array([[1], [0]]),
        np.arange(6).reshape(2, 3) % 2 == 0, True, False, (0, 0, 0), 5, "no", 1.5]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("dtype", [POINT, INNER, np.dtype("V6")], ids=str)
def test_elements(key, dtype):
    def at(xp):
        return ad.array(key) if xp is ad and isinstance(key, np.ndarray) else key

    host, one = structures(dtype, (2, 3)), structures(dtype, (), 7)

    def put(xp, a, value):
        a[at(xp)] = value
        return a
    if dtype.names or isinstance(key, str):
        both(lambda xp, a: a[at(xp)] if xp is ad else np.asarray(a[at(xp)], dtype), host)
    both(put, host, one)


@pytest.mark.parametrize("value", [5, (1, 2, 3), [(1, 2, 3), (4, 5, 6), (7, 8, 9)], np.arange(3), np.zeros(3, POINT),
                                   np.zeros((2, 3), "f8,f8,f8"), np.zeros(2, POINT), np.zeros(3, "f4,f4"), (1, 2), "text",
                                   None], ids=repr)
def test_what_is_assigned(value):
    host = structures(POINT, (2, 3))
    uploaded = isinstance(value, np.ndarray)

    def put(xp, a):
        a[...] = ad.array(value) if uploaded and xp is ad else value
        return a
    both(put, host)
    if uploaded:
        both(lambda xp, a: put(np, a), host)


def test_padding_between_fields_stays():
    """A view of several fields has others between them, which assigning all of it must not touch."""
    host = structures(POINT, 4)
    a = ad.array(host)
    for each in (a, host):
        each[["x", "z"]] = each[["x", "z"]][::-1].copy()
        each[1:][["n"]] = (9,)
    same(a, host)


@pytest.mark.parametrize("run", [
    lambda xp, a: a.reshape(3, 2), lambda xp, a: a.reshape(-1, order="F"), lambda xp, a: a.reshape(4, 2), lambda xp, a: a.T,
    lambda xp, a: a.T.ravel(), lambda xp, a: a.T.ravel("K"), lambda xp, a: a.T.flatten("F"), lambda xp, a: a.mT,
    lambda xp, a: a.transpose(1, 0), lambda xp, a: a.transpose((0, -1)), lambda xp, a: a.transpose(0),
    lambda xp, a: a.swapaxes(0, -1), lambda xp, a: a[:1].squeeze(), lambda xp, a: a.squeeze(0), lambda xp, a: a.take([5, 0]),
    lambda xp, a: a.take([2, 0], axis=1), lambda xp, a: a.repeat(2, axis=0), lambda xp, a: len(a), lambda xp, a: list(a)[1],
    lambda xp, a: xp.concatenate([a, a[:1]]), lambda xp, a: xp.stack([a, a], axis=1), lambda xp, a: xp.flip(a, 1),
    lambda xp, a: xp.roll(a, 2), lambda xp, a: xp.tile(a, (2, 1)), lambda xp, a: xp.expand_dims(a, 1),
    lambda xp, a: xp.broadcast_to(a, (2, 2, 3)), lambda xp, a: xp.rot90(a), lambda xp, a: xp.moveaxis(a, 0, 1),
    lambda xp, a: xp.diagonal(a), lambda xp, a: xp.delete(a, 1, axis=1), lambda xp, a: xp.append(a, a, axis=0),
    lambda xp, a: xp.pad(a, 1), lambda xp, a: xp.compress([True, False], a, axis=0), lambda xp, a: xp.atleast_3d(a),
    lambda xp, a: xp.asfortranarray(a), lambda xp, a: xp.split(a, 3, axis=1)[1], lambda xp, a: xp.hstack([a, a]),
    lambda xp, a: np.vstack([a, a]), lambda xp, a: bool(xp.array_equal(a, a)), lambda xp, a: a.item(1, 2), lambda xp, a: a.item(),
    lambda xp, a: bool(a[0, 0]), lambda xp, a: a.nosuch])
@pytest.mark.parametrize("dtype", [POINT, INNER], ids=["point", "inner"])
def test_moving_elements(run, dtype):
    both(run, structures(dtype, (2, 3)))


def test_views_show_the_same_elements():
    a = ad.zeros((2, 3), POINT)
    a.T[1]["n"] = 4
    a.reshape(-1)[:2] = (1, 2, 3)
    assert a.tolist() == [[(1, 2, 3), (1, 2, 3), (0, 0, 0)], [(0, 0, 0), (0, 4, 0), (0, 0, 0)]]


# ---- other types ----

@pytest.mark.parametrize("run", [
    lambda xp, a: a.view("f8"), lambda xp, a: a.view("u1"), lambda xp, a: a.view("V16"), lambda xp, a: a.view("f8,f8"),
    lambda xp, a: a.view("V3"), lambda xp, a: a.view("V8"), lambda xp, a: a[:, ::2].view("V8"), lambda xp, a: a.T.view("u8,u8"),
    lambda xp, a: a[0, 0].view("u8,u8"), lambda xp, a: a[0, 0].view("u8"), lambda xp, a: a.view("u4").view(POINT),
    lambda xp, a: a["n"].astype("i4,i4"), lambda xp, a: a["z"].copy().view("i4,i4"), lambda xp, a: a["z"].copy().view("V8"),
    lambda xp, a: a.astype("f8,f4,i2"), lambda xp, a: a[["n", "x"]].astype("f8,f8"), lambda xp, a: a[["n"]].astype("f8"),
    lambda xp, a: a.astype("f8"), lambda xp, a: a.astype("f8,f8"), lambda xp, a: a.astype("f8,f4,i2", casting="safe"),
    lambda xp, a: a.astype([("a", "f4"), ("b", "f8"), ("c", "f8")], casting="same_kind"), lambda xp, a: a.view()])
def test_views_and_casts(run):
    both(run, structures(POINT, (2, 3)))


@pytest.mark.parametrize("value", [np.arange(6, dtype=t) for t in ("i8", "f4", "i1", "c16")]
                         + [np.arange(6, dtype="i1").view("V1"), np.arange(6).view("V8"), np.arange(12).view("V16")], ids=repr)
def test_bytes_are_cut_off_or_followed_by_zeros(value):
    def put(xp, a, value):
        xp.copyto(a, value, casting="unsafe")
        return a
    both(put, np.full(6, -1).view("V8"), value)


def test_copyto_where():
    host, more, mask = structures(POINT, (2, 3)), structures(POINT, 3, 9), np.array([True, False, True])

    def put(xp, a, b, mask):
        xp.copyto(a, b, where=mask)
        return a
    both(put, host, more, mask)


def test_types_that_arrays_cannot_have():
    for dtype, words in (("3i", "only a field may be a subarray"), ("V", "how many, as in 'V8'")):
        for make in (lambda: ad.empty(3, dtype), lambda: ad.ndarray(3, dtype), lambda: ad.zeros(3).astype(dtype)):
            with pytest.raises(ad.DTypeError, match=f"Unsupported dtype.*{words}"):
                make()
    with pytest.raises(ValueError, match="objects of Python"):
        ad.empty(3, "q,O")
    with pytest.raises(ValueError, match="objects of Python"):
        ad.array(np.zeros(3, "q,O"))
    with pytest.raises(TypeError, match="subclasses"):
        type("Mine", (ad.ndarray,), {})((3,), POINT)
    swapped = ad.array(np.ones(3, [("x", ">i4"), ("s", "S4")]))
    assert swapped.tolist() == [(1, b"1")] * 3  # as bytes they come and go
    with pytest.raises(ad.DTypeError, match="byte-order"):
        swapped["x"]


# ---- comparisons ----

@pytest.mark.parametrize("op", [operator.eq, operator.ne])
@pytest.mark.parametrize("pair", [
    (POINT, POINT), (POINT, [("x", "f8"), ("n", "i8"), ("z", "f4")]), (INNER, INNER), (POINT, "f4,i4,f8"), ("i8,f8", "f8,i8"),
    ("V8", "V8"), ("V8", "V4"), ("V8", "i4,i4"), ("i8", "i4,i4"), ([("a", "i2"), ("b", "u1")], [("a", "i2"), ("b", "u1")])],
    ids=str)
def test_comparisons(op, pair):
    x, y = (structures(np.dtype(kind), (3, 4), 3) for kind in pair)
    y = y.copy()
    y[1] = y[0]
    both(lambda xp, x, y: op(x, y), x, y)
    both(lambda xp, x, y: op(x[:, :1], y[0]), x, y)


def test_comparisons_know_nan_and_minus_zero():
    host = np.array([(0.0, 1), (-0.0, 1), (np.nan, 1)], "f8,i8")
    both(lambda xp, a: a == a[0], host)
    both(lambda xp, a: a != a, host)
    assert (ad.array(host) == host[1]).tolist() == [True, True, False]


@pytest.mark.parametrize("other", [1, None, 1.5, (1, 2), "x", np.ones(3)], ids=repr)
def test_comparisons_with_what_is_none(other):
    a = ad.zeros(3, "i,i")
    for op in (operator.eq, operator.ne):
        with pytest.raises(TypeError):
            op(a, other)
        with pytest.raises(TypeError):
            op(ad.zeros(3), a)


@pytest.mark.parametrize("use", [
    lambda a: a + 1, lambda a: 1 + a, lambda a: ad.ones(3) + a, lambda a: ad.add(a, a), lambda a: ad.add(1, 1, out=a),
    lambda a: np.add(a, a), lambda a: a < a, lambda a: ad.sum(a), lambda a: ad.sort(a), lambda a: ad.sin(a), lambda a: a @ a,
    lambda a: ad.ones(3).__setitem__(..., a), lambda a: ad.ones(3)[a], lambda a: ad.unique(a), lambda a: ad.fft.fft(a),
    lambda a: ad.random.choice(a).sum(), lambda a: ad.where(True, a, a), lambda a: np.asarray(a), lambda a: ad.linalg.norm(a),
    lambda a: hash(a), lambda a: a.sum(), lambda a: float(a), lambda a: ad.ones(3).fill(a[0]), lambda a: a.__dlpack__(),
    lambda a: ad.scipy.ndimage.gaussian_filter(a, 1), lambda a: ad.einsum("i,i", a, a), lambda a: ad.cumsum(a)])
def test_nothing_computes_with_structures(use):
    """The bytes of structures are never taken for numbers."""
    with pytest.raises((TypeError, AttributeError, IndexError, BufferError, ValueError)):
        use(ad.ones(3, "i,i"))


# ---- other processes, libraries and kernels ----

def test_handles_and_names_give_them_to_other_processes():
    host = structures(INNER, (2, 3))
    a = ad.array(host)
    same(ad.share(a).attach(), host)
    assert "[2, 3]" in repr(ad.share(a))
    ad.publish("structures-test", a, writable=True)
    code = ("import sys, pickle, arrayd as ad\n"
            "dtype, handle = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
            "a = ad.attach('structures-test', dtype=dtype)\n"
            "assert (a == handle.attach()).all()\n"
            "a['u'] = 99\n"
            "ad.sync()\n")
    try:
        subprocess.run([sys.executable, "-c", code, pickle.dumps((INNER, ad.share(a))).hex()], check=True, timeout=120,
                       env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        host["u"] = 99
        same(a, host)
        with pytest.raises(ValueError, match="elements of 5 bytes"):
            ad.attach("structures-test", dtype="V5")
    finally:
        ad.unpublish("structures-test")


def test_files(tmp_path):
    host = structures(INNER, 4)
    ad.save(tmp_path / "a.npy", ad.array(host))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), host)
    same(ad.load(tmp_path / "a.npy"), host)
    np.save(tmp_path / "b.npy", host.astype(host.dtype.newbyteorder(">")))
    assert (ad.load(tmp_path / "b.npy") == ad.array(host)).all()
    ad.array(host).tofile(tmp_path / "a.raw")
    same(ad.fromfile(tmp_path / "a.raw", INNER), host)
    ad.array(host).dump(tmp_path / "a.pickle")
    same(ad.load(tmp_path / "a.pickle", allow_pickle=True), host)
    text = "1 2.5\n3 4.5\n"
    for name in ("loadtxt", "genfromtxt"):
        same(getattr(ad, name)(io.StringIO(text), dtype="i4,f8"), getattr(np, name)(io.StringIO(text), dtype="i4,f8"))
    same(ad.genfromtxt(io.StringIO("x y\n" + text), names=True), np.genfromtxt(io.StringIO("x y\n" + text), names=True))


class Described:
    """An object that has the CUDA array interface alone."""

    def __init__(self, a, fields=True):
        self.__cuda_array_interface__ = {"shape": a.shape, "typestr": a.dtype.str, "data": (a.data.ptr, False), "version": 3,
                                         "strides": a.strides, **({"descr": a.dtype.descr} if fields else {})}


def test_cuda_array_interface_tells_fields():
    a = ad.array(structures(ad.make_aligned_dtype("?,q"), 3))
    made = ad.asarray(Described(a))
    same(made, a.get())
    assert ad.may_share_memory(a, made)
    assert ad.asarray(Described(a, fields=False)).dtype == "V16"
    bad = Described(a)
    bad.__cuda_array_interface__["descr"] = [("f0", "|O"), ("f1", "<i8")]
    with pytest.raises(ValueError, match="objects of Python"):
        ad.asarray(bad)


def test_elementwise_kernels_have_fields_by_number():
    dtype = ad.make_aligned_dtype([("a", "f4"), ("c", "c16"), ("s", INNER), ("m", "f4", (2, 3)), ("v", "V3"), ("h", "f2")])
    host = structures(dtype, 5)
    out, more = ad.zeros(5, dtype), ad.zeros(5, "f4")
    kernel = ad.ElementwiseKernel("T x", "T y, float32 s", """
        static_assert(T::field_count == 6, "there are six");
        y = x;
        y.at<1>() = complex<double>(x.at<0>(), 2);
        y.at<2>().template at<1>().template at<1>() = x.at<3>()[1][2];
        y.at<5>() = x.at<0>() + 1;
        s = x.at<3>()[0][1];""", "fields_by_number")
    kernel(ad.array(host)[::-1], out, more)
    expected = host[::-1].copy()
    expected["c"], expected["s"]["s"]["q"], expected["h"] = expected["a"] + 2j, expected["m"][:, 1, 2], expected["a"] + 1
    same(out, expected)
    same(more, expected["m"][:, 0, 1].copy())


def test_kernels_take_one_structure_and_raw_arrays():
    a = ad.array(np.array([(1, 2), (3, 4), (5, 6)], "f4,i4"))
    kernel = ad.ElementwiseKernel("T x, raw T z", "float32 y", "y = x.at<0>() + z[i].template at<1>();", "one_structure")
    same(kernel(np.void((0.5, 7), "f4,i4"), a[::2], ad.zeros(2, "f4")), np.array([2.5, 6.5], "f4"))
    with pytest.raises(ValueError, match="Field f1 with offset 1 is not aligned"):
        ad.ElementwiseKernel("T x", "T y", "y = x", "unaligned")(ad.zeros(3, "?,f8"))
    with pytest.raises(ValueError, match="Itemsize 9 is not a multiple"):
        ad.ElementwiseKernel("T x", "T y", "y = x", "unaligned")(ad.zeros(3, "f8,?"))


def test_reduction_kernels_take_them():
    host = structures(POINT, (3, 40))
    kernel = ad.ReductionKernel("T x", "float64 y", "x.at<2>() * x.at<1>()", "a + b", "y = a", "0", "structures_sum")
    same(kernel(ad.array(host), axis=1), (host["z"] * host["n"]).sum(axis=1))


def test_raw_kernels_take_them_as_pointers():
    a = ad.ones(4, "f4,i4")
    kernel = ad.RawKernel("""struct pair { float x; int n; };
        extern "C" __global__ void count(pair *p, pair q) { p[threadIdx.x].x = threadIdx.x; p[threadIdx.x].n += q.n; }""", "count")
    kernel((1,), (4,), (a, np.void((1.0, 7), "f4,i4")))
    assert a.tolist() == [(0, 8), (1, 8), (2, 8), (3, 8)]


def test_numpys_empty_like_makes_none():
    """Dask asks so whether it may put arrays into fields of NumPy's structures."""
    with pytest.raises(TypeError, match="arrayd.empty_like does"):
        np.empty_like(ad.ones(3), dtype=[("values", int)])
    assert ad.empty_like(ad.ones(3), dtype=[("values", int)]).dtype.names == ("values",)
