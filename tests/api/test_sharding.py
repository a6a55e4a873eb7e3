"""Arrays over several devices, beside NumPy: making, moving, elementwise functions, reductions, products."""
import pickle

import numpy as np
import pytest

import arrayd as ad
from arrayd.cupyx.distributed import array as darray
from arrayd.sharding import Mesh, NamedSharding, PartitionSpec as P, _move, _products
from sharded import MESHES, check, draw, list_layouts, make_mesh, put, several_devices  # noqa: F401


# ---- meshes and shardings ----

def test_meshes_and_specs():
    mesh = make_mesh((2, 2), ("a", "b"))
    assert mesh.shape == {"a": 2, "b": 2} and mesh.size == 4 and mesh.axis_names == ("a", "b")
    assert mesh == make_mesh((2, 2), ("a", "b")) != make_mesh((2, 2), ("a", "c")) and hash(mesh) == hash(make_mesh((2, 2), ("a", "b")))
    assert pickle.loads(pickle.dumps(mesh)) == mesh
    assert P("a", None, ("a", "b")) == ("a", None, ("a", "b")) and repr(P("a", None)) == "PartitionSpec('a', None)"
    assert pickle.loads(pickle.dumps(P("a", None))) == P("a", None)
    sharding = NamedSharding(mesh, P("b"))
    assert sharding == NamedSharding(mesh, P("b", None)) != NamedSharding(mesh, P("a"))
    assert not sharding.is_fully_replicated and NamedSharding(mesh, P()).is_fully_replicated
    assert sharding.shard_shape((5, 3)) == (3, 3)
    assert Mesh("all", "d").size == ad.session_info()["devices"] == len(ad.sharding.list_devices())
    assert ad.sharding.make_mesh(1, "x").devices[0].id == 0
    boxes = NamedSharding(Mesh("all", "d"), P("d")).devices_indices_map((9, 2))
    assert sum(len(range(9)[index[0]]) for index in boxes.values()) == 9 and set(boxes) == sharding.device_set | set(boxes)


@pytest.mark.parametrize("make, error, text", [
    (lambda: Mesh([99], "a"), ValueError, "device 99 does not exist"),
    (lambda: Mesh([0], ("a", "b")), ValueError, "1 dimensions and axis_names 2 names"),
    (lambda: Mesh([[0, 0]], ("a", "a")), ValueError, "a name twice"),
    (lambda: Mesh([], "a"), ValueError, "one device or more"),
    (lambda: Mesh([0], 3), TypeError, "axis_names|not iterable"),
    (lambda: ad.sharding.make_mesh((99, 2), ("a", "b")), ValueError, "asks for 198 devices"),
    (lambda: P(3), TypeError, "must be a name"),
    (lambda: NamedSharding(Mesh([0], "a"), P("b")), ValueError, "names the axis 'b'"),
    (lambda: NamedSharding(Mesh([0], "a"), P("a", "a")), ValueError, "twice"),
    (lambda: NamedSharding(Mesh([0], "a"), ("a",)), TypeError, "must be a sharding.PartitionSpec"),
    (lambda: NamedSharding([0], P()), TypeError, "must be a sharding.Mesh"),
    (lambda: put(np.ones(3), "one", P(None, "a")), ValueError, "2 dimensions or more"),
    (lambda: ad.device_put(np.ones(3), "some"), TypeError, '"all"'),
    (lambda: ad.zeros(3, device="some"), ValueError, '"all" or a sharding.NamedSharding'),
    (lambda: ad.device_put(np.ones(3), 99), ValueError, "device 99 does not exist"),
])
def test_wrong_meshes_and_shardings(make, error, text):
    with pytest.raises(error, match=text):
        make()


# ---- making and moving ----

def test_moved_bytes_are_counted():
    """Elements on their own device do not count. Resharding moves all but those that are there already."""
    x = put(np.arange(64.0).reshape(8, 8), "four", P("a"))
    other = put(np.ones((8, 8)), "four", P("a"))
    x.get(), other.get()
    before = ad.stat()["peer_bytes"]
    (x + other).get()
    assert ad.stat()["peer_bytes"] == before
    columns = ad.device_put(x, NamedSharding(x.sharding.mesh, P(None, "a")))
    np.testing.assert_array_equal(columns.get(), np.arange(64.0).reshape(8, 8))
    count = ad.session_info()["devices"]  # a block of 2 rows and 2 columns has 32 bytes
    assert ad.stat()["peer_bytes"] == before + 32 * sum(row % count != column % count for row in range(4) for column in range(4))


@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_putting(mesh, spec):
    for dtype in ("float64", "uint8", "bool", "complex64"):
        for shape in ((7, 6), (2, 9), (1, 1), (0, 3)):
            x = draw(shape, dtype)
            for source in (x, ad.asarray(x), put(x, "three", P(None, "a"))):
                made = put(source, mesh, spec)
                assert made.sharding.mesh == make_mesh(*MESHES[mesh]) and made.sharding == NamedSharding(made.sharding.mesh, spec)
                check(made, x, exact=True)
                assert ad.device_put(made, made.sharding) is made
                one = ad.device_put(made, 0)
                assert type(one) is ad.ndarray and one.device.id == 0
                np.testing.assert_array_equal(one.get(), x)
    assert made.devices() <= set(ad.sharding.list_devices())


def test_what_is_put_has_memory_of_its_own():
    a = ad.arange(8.0)
    x = put(a, "four", P("a"))
    y = put(x, "four", P())
    z = put(y, "two", P("a"))
    x += 100
    y += 10
    np.testing.assert_array_equal(a.get(), np.arange(8.0))
    check(x, np.arange(8.0) + 100)
    check(y, np.arange(8.0) + 10)
    check(z, np.arange(8.0))


@pytest.mark.parametrize("target", ["all", P("a"), P(None, "a"), P()])
def test_new_arrays(target):
    device = target if target == "all" else NamedSharding(make_mesh((3,), "a"), target)
    check(ad.zeros((5, 4), "int16", device=device), np.zeros((5, 4), "int16"))
    check(ad.ones((5, 4), device=device), np.ones((5, 4)))
    check(ad.full((5, 4), 7, device=device), np.full((5, 4), 7))
    check(ad.full((5, 4), ad.arange(4.0), device=device), np.full((5, 4), np.arange(4.0)))
    assert ad.empty((5, 4), "float32", device=device).shape == (5, 4)
    check(ad.eye(5, device=device), np.eye(5))
    check(ad.asarray([[1, 2], [3, 4]], device=device), np.array([[1, 2], [3, 4]]))
    x = ad.zeros((5, 4), device=device)
    for found, expected in ((ad.ones_like(x), np.ones((5, 4))), (ad.zeros_like(x, dtype="int8"), np.zeros((5, 4), "int8")),
                            (np.full_like(x, 3), np.full((5, 4), 3.0))):
        check(found, expected)
        assert found.sharding == x.sharding


def test_ranges():
    for arguments in ((10,), (3, 40, 7), (5, -5, -1), (0, 1, 0.1), (2.5,), (0,), (3, 9, 2, "float32"), (0, 2, 1, "bool")):
        check(ad.arange(*arguments[:3], dtype=arguments[3] if arguments[3:] else None, device="all"),
              np.arange(*arguments[:3], dtype=arguments[3] if arguments[3:] else None))
    check(ad.linspace(0, 1, 9, device="all"), np.linspace(0, 1, 9))


@pytest.mark.parametrize("shape", [(9,), (5, 8), (3, 2, 4), (), (0, 3)])
def test_random_numbers_are_those_of_one_device(shape):
    for name, arguments in (("random", ()), ("normal", (3.0, 2.0)), ("uniform", (1.0, 5.0)), ("standard_normal", ()),
                            ("integers", (0, 100))):
        one, several = ad.random.default_rng(5), ad.random.default_rng(5)
        for _ in range(2):
            expected = getattr(one, name)(*arguments, size=shape)
            check(getattr(several, name)(*arguments, size=shape, device="all"), expected.get(), exact=True)
    check(ad.random.default_rng(5).random(shape, device=NamedSharding(make_mesh((2, 2), ("a", "b")), P())),
          ad.random.default_rng(5).random(shape).get(), exact=True)
    ad.random.seed(3)
    assert ad.random.random((4, 3), device="all").shape == (4, 3)


# ---- elementwise ----

@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_elementwise(mesh, spec):
    h, k = draw(), draw(seed=8)
    x = put(h, mesh, spec)
    others = [put(k, mesh, spec), put(k, "three", P(None, "a")), put(k, "grid", P("b", "a")), ad.asarray(k)]
    for other in others:
        for found, expected in ((x + other, h + k), (other - x, k - h), (x * other, h * k), (x > other, h > k),
                                (np.maximum(x, other), np.maximum(h, k)), (ad.hypot(other, x), np.hypot(k, h))):
            check(found, expected)
    assert (x + others[0]).sharding == x.sharding
    for found, expected in ((x + 1, h + 1), (2.0 - x, 2 - h), (x ** 2, h ** 2), (-x, -h), (abs(x), abs(h)), (np.exp(x / 9), np.exp(h / 9)),
                            (np.float32(2) * x, np.float32(2) * h), (ad.where(x > 0, x, 0), np.where(h > 0, h, 0)),
                            (ad.clip(x, -3, 3), np.clip(h, -3, 3)), (x.clip(None, 1), h.clip(None, 1)), (x.round(1), h.round(1)),
                            (np.isclose(x, h[0, 0]), np.isclose(h, h[0, 0])), (~(x > 0), ~(h > 0)), (ad.special.erf(x * 0), h * 0)):
        check(found, expected)
    quotient, rest = divmod(x, 3)
    check(quotient, h // 3)
    check(rest, h % 3)


@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_broadcasting(mesh, spec):
    h = draw()
    x = put(h, mesh, spec)
    for shape in ((6,), (1, 6), (7, 1), (1,), (3, 1, 6), (2, 7, 6), (1, 1, 1), ()):
        k = draw(shape, seed=9)
        for other in (ad.asarray(k), ad.device_put(k, "all"), put(k, "three", P())):
            check(x - other, h - k)
            check(other * x, k * h)
    with pytest.raises(ValueError, match="broadcast"):
        x + ad.ones(5)


def test_in_place_and_out():
    h = draw()
    x = put(h, "four", P("a"))
    same = x
    x += put(h, "three", P(None, "a"))
    x *= 2
    assert same is x and x.sharding == NamedSharding(make_mesh((4,), "a"), P("a"))
    check(x, h * 4)
    out = ad.zeros((7, 6), device=NamedSharding(make_mesh((2, 2), ("a", "b")), P("b", "a")))
    assert np.add(x, 1, out=out) is out
    check(out, h * 4 + 1)
    quotient, rest = put(h, "two", P("a")) * 0, put(h, "four", P(None, "a")) * 0
    np.divmod(x, 3, out=(quotient, rest))
    check(quotient, h * 4 // 3)
    check(rest, h * 4 % 3)
    np.negative(x, out=x, where=x > 0)
    check(x, np.where(h > 0, -4 * h, 4 * h))
    x.fill(3)
    check(x, np.full((7, 6), 3.0))
    with pytest.raises(TypeError, match="out must be an array over several devices"):
        ad.add(x, x, out=ad.zeros((7, 6)))
    with pytest.raises(ValueError, match="broadcast"):
        np.add(x, 1, out=put(np.zeros((2, 7, 6)), "two", P()))
    with pytest.raises(TypeError, match="device_put"):
        x + h


def test_types():
    h = draw()
    x = put(h, "grid", P("a", "b"))
    for dtype in ("float32", "int64", "uint8", "bool", "complex128", "float16"):
        check(x.astype(dtype), h.astype(dtype) if dtype != "uint8" else x.astype("int64").get().astype("uint8"))
    assert x.astype("float64", copy=False) is x and ad.astype(x, "float32").dtype == np.float32
    z = put(draw(dtype="complex128"), "three", P("a"))
    check(z.real, z.get().real)
    check(np.conj(z), z.get().conj())
    check(z.conj().imag, -z.get().imag)
    check((x.astype("float32") + 1).astype("int8") + np.int8(1), (h.astype("float32") + 1).astype("int8") + np.int8(1))


def test_kernels():
    x, y = draw(), draw(seed=8)
    kernel = ad.ElementwiseKernel("float64 a, float64 b", "float64 c", "c = (a - b) * (a - b)", "squared_distance")
    check(kernel(put(x, "four", P("a")), put(y, "grid", P("b", "a"))), (x - y) ** 2)


def test_elementwise_work_moves_nothing_where_operands_align():
    x, y = (put(draw((64, 64), seed=seed), "four", P("a")) for seed in (1, 2))
    before = ad.sharding.moved_bytes()
    z = np.sqrt(abs(x * y + 1)) - x
    total = z.sum(axis=1)
    turned = z.T + x.T
    assert ad.sharding.moved_bytes() == before
    check(total, z.get().sum(axis=1))
    check(turned, z.get().T + x.get().T)
    if ad.session_info()["devices"] >= 4:
        z + put(y, "four", P(None, "a"))  # a quarter of each device's part lies there already
        moved = ad.sharding.moved_bytes() - before
        assert moved == 2 * 64 * 64 * 8 * 3 // 4
        before = ad.sharding.moved_bytes()
        x[1:] - x[:-1]  # a row for each cut
        assert ad.sharding.moved_bytes() - before == 3 * 64 * 8


# ---- reductions ----

REDUCTIONS = "sum prod max min any all mean var std argmax argmin count_nonzero ptp nansum nanmax nanmin median nanmean".split()


@pytest.mark.parametrize("mesh, spec", list_layouts(3))
def test_reductions(mesh, spec):
    h = draw((5, 4, 3)) / 5
    x = put(h, mesh, spec)
    for name in REDUCTIONS:
        for axis in (None, 0, 1, -1, (0, 2)):
            if isinstance(axis, tuple) and name.startswith("arg"):
                continue
            check(getattr(np, name)(x, axis=axis), getattr(np, name)(h, axis=axis))
    for axis in (None, 1):
        check(ad.sum(x, axis=axis, keepdims=True), h.sum(axis=axis, keepdims=True))
        check(x.argmax(axis=axis, keepdims=True), h.argmax(axis=axis, keepdims=True))
        check(ad.std(x, axis=axis, ddof=1, keepdims=True), h.std(axis=axis, ddof=1, keepdims=True))
    check(np.sum(x, axis=0, where=x > 0), np.sum(h, axis=0, where=h > 0))
    check(np.mean(x, axis=(0, 1), where=x > -9), np.mean(h, axis=(0, 1), where=h > -9))
    check(np.max(x, axis=0, where=x > 0, initial=0.5), np.max(h, axis=0, where=h > 0, initial=0.5))
    check(x.sum(axis=0, initial=10.0), h.sum(axis=0, initial=10.0))
    check(np.add.reduce(x, axis=1), np.add.reduce(h, axis=1))
    check(x - x.mean(axis=0), h - h.mean(axis=0))
    out = x.sum(axis=0) * 0
    assert x.sum(axis=0, out=out) is out
    check(out, h.sum(axis=0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "complex64"])
def test_types_of_reductions(dtype):
    h = (draw((6, 5)) % 3).astype(dtype)
    x = put(h, "three", P("a"))
    for name in ("sum", "mean", "var", "prod", "max", "argmin"):
        if np.dtype(dtype).kind == "c" and name in ("max", "argmin"):
            continue
        if not (dtype == "bool" and name == "prod"):
            check(getattr(x, name)(axis=0), getattr(h, name)(axis=0))
            check(getattr(x, name)(), np.asarray(getattr(h, name)()))
    check(x.sum(axis=0, dtype="float64"), h.sum(axis=0, dtype="complex128" if dtype == "complex64" else "float64").real)


def test_extremes_are_the_first_ones():
    for values in ([3, 1, 3, 3, 1, 1, 3], [1.0, np.nan, 5, np.nan, 9, 9, 9], [0.0] * 7):
        h = np.array(values)
        for mesh in ("two", "three", "four"):
            x = put(h, mesh, P("a"))
            check(x.argmax(), h.argmax())
            check(x.argmin(), h.argmin())
    h = np.zeros((4, 6))
    h[1, 4] = h[2, 0] = 5  # in row-major order the one of another column comes first
    check(put(h, "two", P(None, "a")).argmax(), h.argmax())
    check(put(h, "grid", P("b", "a")).argmax(), h.argmax())


def test_empty_parts():
    x = put(np.arange(3.0), "four", P("a"))
    for name in ("sum", "max", "mean", "argmax", "std"):
        check(getattr(x, name)(), np.asarray(getattr(np.arange(3.0), name)()))
    nothing = put(np.zeros((0, 3)), "four", P("a"))
    check(nothing.sum(axis=0), np.zeros(3))
    check(nothing.max(axis=1), np.zeros(0))
    with pytest.raises(ValueError):
        nothing.max()
    with pytest.raises(ValueError, match="empty"):
        nothing.argmax()


def test_large_parts_of_a_sum_are_shared_out():
    h = draw((4, 300000), "float32")
    x = put(h, "four", P("a"))
    before = ad.sharding.moved_bytes()
    made = x.sum(axis=0)
    if ad.session_info()["devices"] >= 4:  # each device sums a quarter, and gets three
        assert ad.sharding.moved_bytes() - before == 2 * 3 * 300000 * 4
    check(made, h.sum(axis=0))
    parts = [shard.data.get().tobytes() for shard in made.addressable_shards]
    assert len(set(parts)) == 1


def test_devices_take_turns():
    devices = [ad.cuda.Device(0)] * 2 if ad.session_info()["devices"] < 3 else [ad.cuda.Device(i) for i in (2, 0, 1)]
    assert _move.take_turns(devices[0], devices) == list(range(len(devices)))
    if len(devices) == 3:
        assert _move.take_turns(devices[1], devices) == [1, 2, 0] and _move.take_turns(devices[2], devices) == [2, 0, 1]
        assert _move.take_turns(devices[1], devices[::2]) == [0, 1] and _move.take_turns(devices[1], []) == []


@pytest.mark.parametrize("mesh, spec", [("three", P("a")), ("four", P("a")), ("grid", P("b", "a")), ("grid", P(("a", "b")))])
@pytest.mark.parametrize("shape", [(7, 6), (2, 5), (1, 1, 9), (0, 4)])
def test_large_parts_of_a_sum_come_in_chunks(mesh, spec, shape, monkeypatch):
    """Chunks of two elements; there are places without rows, and more chunks at one place than at another."""
    monkeypatch.setattr(_move, "_LARGE", 0)
    monkeypatch.setattr(_move, "_CHUNK", 16)
    h = draw(shape)
    x = put(h, mesh, spec)
    for name in ("sum", "max", "prod", "any", "count_nonzero", "nansum", "mean"):
        for axis in (None, 0, 1):
            if name in ("max", "mean") and not h.size:
                continue
            made = getattr(np, name)(x, axis=axis)
            check(made, getattr(np, name)(h, axis=axis))
            bits = {}
            for shard in made.addressable_shards:
                bits.setdefault(str(shard.index), set()).add(shard.data.get().tobytes())
            assert all(len(each) == 1 for each in bits.values())
    check(x.T.sum(axis=-1), h.T.sum(axis=-1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint64", "float16", "float32", "complex64"])
def test_reductions_of_parts_of_one_element(dtype):
    """Parts of one element along the axes are combined as they are."""
    h = draw((4, 6)).astype(dtype)
    x = put(h, "four", P("a"))
    for name in ("sum", "prod", "max", "min"):
        if dtype != "complex64" or name in ("sum", "prod"):
            check(getattr(x, name)(axis=0), getattr(h, name)(axis=0))
            check(getattr(x[:, 2:3], name)(), np.asarray(getattr(h[:, 2:3], name)()))
            check(getattr(x, name)(axis=0, keepdims=True, initial=0), getattr(h, name)(axis=0, keepdims=True, initial=0))
    if np.dtype(dtype).kind in "fc":
        check(x.sum(axis=0, dtype="complex128"), h.sum(axis=0, dtype="complex128"))
        zeros = put(np.full((4, 3), -0.0, dtype), "four", P("a"))
        assert not np.signbit(zeros.sum(axis=0).get().real).any() and np.signbit(zeros.max(axis=0).get().real).all()
    assert x.sum(axis=0).addressable_shards[0].data.shape == (6,)


# ---- products ----

@pytest.fixture(params=["whole", "blocks"])
def way(request, monkeypatch):
    """Operands of products come whole, or, as large ones do, in blocks."""
    if request.param == "blocks":
        monkeypatch.setattr(_products, "_LARGE", 0)
        monkeypatch.setattr(_products, "_NARROW", 1)


@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_products(mesh, spec, way):
    h, k = draw((7, 6)), draw((6, 9), seed=8)
    a = put(h, mesh, spec)
    for other, own in list_layouts_of(mesh):
        b = put(k, mesh, own)
        check(a @ b, h @ k)
    for b in (ad.asarray(k), put(k, "three", P("a")), put(k, "grid", P("b", "a"))):
        check(a @ b, h @ k)
        check(b.T @ a.T, (h @ k).T)
    v = put(k[:, 0], mesh, spec if len(spec) < 2 else P())
    check(a @ v, h @ k[:, 0])
    check(v @ a.T, k[:, 0] @ h.T)
    check(v @ v, np.asarray(k[:, 0] @ k[:, 0]))
    check(ad.dot(a, b), h @ k)
    check(np.vdot(a, a), np.vdot(h, h))
    check(np.inner(a, a), np.inner(h, h))
    check(np.outer(v, v), np.outer(k[:, 0], k[:, 0]))


def list_layouts_of(mesh):
    return [pair.values for pair in list_layouts(2) if pair.values[0] == mesh]


def test_stacks_of_products(way):
    h, k = draw((3, 4, 5)), draw((3, 5, 2), seed=8)
    for spec in (P("a"), P(None, "a"), P(None, None, "a"), P("a", "b"), P(None, "b", "a")):
        for other in (P("a"), P(None, "a"), P("b", None, "a"), P()):
            check(put(h, "grid", spec) @ put(k, "grid", other), h @ k)
        check(put(h, "grid", spec) @ ad.asarray(k[1]), h @ k[1])
        check(ad.matmul(ad.asarray(h[:1]), put(k, "grid", other)), h[:1] @ k)
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        put(h, "two", P("a")) @ put(h, "two", P("a"))
    with pytest.raises(ValueError, match="no dimensions"):
        put(h, "two", P("a")) @ 3


def test_products_of_rows_and_columns_move_nothing():
    a, b = put(draw((8, 8)), "grid", P("a")), put(draw((8, 8), seed=8), "grid", P(None, "b"))
    before = ad.sharding.moved_bytes()
    product = a @ b
    assert ad.sharding.moved_bytes() == before
    assert product.sharding == NamedSharding(a.sharding.mesh, P("a", "b"))


@pytest.mark.parametrize("dtype", ["int8", "uint64", "bool", "float16", "bfloat16", "float32", "complex64"])
def test_types_of_products(dtype, way):
    """Sums of half precision are rounded once: those products come whole."""
    h = np.random.default_rng(3).integers(-3, 4, (24, 24)).astype("float32" if dtype == "bfloat16" else dtype)
    a, b = (ad.asarray(each).astype(dtype) for each in (h, h.T.copy()))
    expected = (a @ b).get()
    for left, right in ((P("a", "b"), P("a", "b")), (P("a"), P("a")), (P(None, "a"), P(None, "a")), (P("b"), P(("a", "b")))):
        mesh = make_mesh((2, 2), ("a", "b"))
        x, y = ad.device_put(a, NamedSharding(mesh, left)), ad.device_put(b, NamedSharding(mesh, right))
        made = x @ y
        np.testing.assert_array_equal(made.get(), expected)
        z = ad.empty_like(made)
        assert np.matmul(x, y, out=z) is z
        np.testing.assert_array_equal(z.get(), expected)


# ---- Python's protocols, and what there is not ----

def test_protocols():
    x = put(np.arange(6.0).reshape(2, 3), "three", P(None, "a"))
    assert len(x) == 2 and float(x[1, 2]) == 5 and bool(x[0, 1] == 1) and int(x.sum()) == 15 and complex(x[0, 1]) == 1
    assert repr(x) == f"<ShardedArray float64[2, 3] over devices {[d.id for d in x.sharding.mesh.devices.flat]}, PartitionSpec(None, 'a')>"
    assert str(x) == str(x.get()) and x.nbytes == 48 and x.itemsize == 8 and x.size == 6 and x.ndim == 2
    assert ad.array_equal(x, x.copy()) and not ad.array_equal(x, x + 1) and ad.allclose(x, x + 1e-12) and not np.array_equal(x, x[0])
    check(pickle.loads(pickle.dumps(x)), x.get())
    check(ad.asarray(x), x.get())
    check(ad.asarray(x, "float32"), x.get().astype("float32"))
    assert type(ad.asarray(x, device=0)) is ad.ndarray
    np.testing.assert_array_equal(ad.asnumpy(x), x.get())
    with ad.implicit():
        np.testing.assert_array_equal(np.asarray(x), x.get())
    out = np.empty((2, 3))
    assert x.get(out=out) is out and out[1, 2] == 5
    np.testing.assert_array_equal(ad.average(x, axis=0).get(), np.average(x.get(), axis=0))
    for wrong in (lambda: bool(x), lambda: float(x), lambda: x.get(out=np.empty(3))):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("call", [
    lambda x: np.unique(x), lambda x: ad.unique(x), lambda x: np.einsum("ij->i", x), lambda x: np.add.at(x, 0, 1), lambda x: x.strides,
    lambda x: np.asarray(x), lambda x: np.where(x)])
def test_what_there_is_not(call):
    with pytest.raises((TypeError, AttributeError), match="several devices|not allowed"):
        call(put(draw(), "two", P("a")))


def test_functions_of_one_device_are_as_before():
    a = ad.arange(6.0).reshape(2, 3)
    assert type(ad.sum(a)) is ad.ndarray and type(np.sort(a)) is ad.ndarray and type(ad.concatenate([a, a])) is ad.ndarray
    assert ad.sum.__doc__.startswith("Sum of the elements") and ad.sum.__name__ == "sum"


@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_distributed_arrays(mesh, spec):
    """CuPy's arrays in chunks become such and are made of such."""
    count = ad.session_info()["devices"]
    h = draw((8, 6))
    x = put(h, mesh, spec)
    maps = ({0: slice(0, 5), count - 1: slice(3, None)}, {0: (slice(None), slice(0, 6, 2)), count - 1: slice(None)})
    for index_map in maps if count > 1 else maps[1:]:  # the first needs two devices to have all rows
        for mode in (darray.REPLICA, darray.SUM):
            chunks = darray.distributed_array(x, index_map, mode)
            np.testing.assert_allclose(chunks.get(), h)
            check(put(chunks, mesh, spec), h)
            np.testing.assert_allclose(ad.device_put(chunks, 0).get(), h)
