"""Arrays over several devices, beside NumPy: indices, shapes, functions along axes."""
import numpy as np
import pytest

import arrayd as ad
from arrayd.sharding import NamedSharding, PartitionSpec as P, _along, _sorting
from sharded import MESHES, check, draw, list_layouts, put, several_devices  # noqa: F401


# ---- indices ----

KEYS = [3, -1, slice(2, 5), slice(None, None, 2), slice(None, None, -1), slice(5, 1, -2), slice(4, 4), slice(-100, 100), Ellipsis, None,
        (2, 3), (slice(1, 6), slice(None, 4)), (slice(None), -2), (Ellipsis, 0), (None, 1, None), (slice(None, None, -2), slice(1, None, 3)),
        [2, 0, 5], np.array([[0, 6], [-1, 2]]), (slice(None), [1, 1, 0]), ([0, 1, 2], [3, 0, 5]), (slice(1, 5), [4, 0]),
        (2, [1, 0, 3]), np.array([True, False] * 3 + [True]), (slice(None), np.array([True, False] * 3)), [], (Ellipsis, [0, 2]),
        (np.array([[0], [3]]), np.array([1, 5, 2])), (np.array([1, 2]), None)]


@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_reading_by_index(mesh, spec):
    h = draw()
    x = put(h, mesh, spec)
    for key in KEYS:
        check(x[key], h[key], exact=True)
    for condition in (h > 0, h > 100, h == h):
        check(x[condition], h[condition], exact=True)
        check(x[x > 0], h[h > 0], exact=True)
    check(x[ad.asarray(h) > 0], h[h > 0], exact=True)
    check(x[1:6][::-1][:, 2:][x[1:6, 2:] > 0], h[1:6][::-1][:, 2:][h[1:6, 2:] > 0], exact=True)
    places = np.array([6, 0, 0, 3, 5])
    for index in (ad.asarray(places), put(places, "two", P("a")), put(places, mesh, P())):
        check(x[index], h[places], exact=True)
        check(ad.take(x, index, axis=0), h[places], exact=True)
    check(np.take(x, [5, 0], axis=1), h[:, [5, 0]], exact=True)
    check(np.take(x, [[40, 1], [2, 3]]), np.take(h, [[40, 1], [2, 3]]), exact=True)
    check(np.compress([1, 0, 0, 1], x, axis=0), np.compress([1, 0, 0, 1], h, axis=0), exact=True)
    for part, expected in zip(x, h, strict=True):
        check(part, expected, exact=True)
    assert x.item(3, 2) == h[3, 2] and x[2:4, 1].tolist() == h[2:4, 1].tolist()


def test_reading_three_dimensions():
    h = draw((4, 5, 3))
    keys = [(slice(None), [1, 0]), (0, slice(None), [2, 0]), ([1, 2], slice(None), 0), (h > 0), (h[:, :, 0] > 0), (slice(1, None), 2),
            (slice(None), [0, 1], [2, 0]), (1, [3, 4]), (slice(None), h[0] > 0), ([3, 0], None, slice(1, 3))]
    for spec in (P("a"), P(None, "a"), P(None, None, "a"), P("a", "b"), P("b", None, "a"), P()):
        x = put(h, "grid", spec)
        for key in keys:
            check(x[key], h[key], exact=True)


@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_writing_by_index(mesh, spec):
    for key in (3, slice(1, 5), (slice(None), slice(None, None, -2)), (2, 3), (slice(6, 0, -2), 1), None, (slice(4, 4),), Ellipsis):
        for value in (5.0, "whole", "row"):
            h = draw()
            x = put(h, mesh, spec)
            target = h[key]
            if isinstance(value, str):
                value = np.arange(100.0)[:target.size].reshape(target.shape) if value == "whole" else np.arange(float(
                    target.shape[-1] if target.ndim else 1))[:, None][:, 0] if target.ndim else np.asarray(4.0)
                for given in (ad.asarray(value), ad.device_put(value, "all")):
                    x[key] = given
            else:
                x[key] = value
            h[key] = value
            check(x, h)
    for mask in (lambda a: a > 0, lambda a: ad.asarray(draw() > 0), lambda a: draw() > 0):
        h, x = draw(), put(draw(), mesh, spec)
        x[mask(x)] = -7
        h[h > 0] = -7
        check(x, h)


@pytest.mark.parametrize("key, error, text", [
    (7, IndexError, "index 7 is out of bounds for axis 0 with size 7"), ((0, -7), IndexError, "axis 1 with size 6"),
    ((0, 0, 0), IndexError, "too many indices"), ([9], IndexError, "index 9 is out of bounds"), ("a", IndexError, "only integers"),
    ([0.5], IndexError, "integer"), (np.ones((7, 5), bool), IndexError, "did not match"), (np.ones(6, bool), IndexError, "did not match"),
    ((Ellipsis, Ellipsis), IndexError, "single ellipsis")])
def test_wrong_indices(key, error, text):
    with pytest.raises(error, match=text):
        put(draw(), "three", P("a"))[key]


def test_wrong_values():
    x = put(draw(), "three", P("a"))
    with pytest.raises(ValueError, match="could not broadcast"):
        x[1:3] = ad.ones(5)
    with pytest.raises(TypeError, match="slices"):
        x[[1, 2]] = 3
    with pytest.raises(TypeError, match="number"):
        x[x > 0] = ad.ones(3)
    with pytest.raises(TypeError, match="does not upload"):
        x[1] = np.ones(6)


# ---- shapes ----

@pytest.mark.parametrize("mesh, spec", list_layouts(3))
def test_shapes(mesh, spec):
    h = draw((4, 6, 5))
    x = put(h, mesh, spec)
    for found, expected in ((x.T, h.T), (x.transpose(1, 2, 0), h.transpose(1, 2, 0)), (np.swapaxes(x, 0, -1), np.swapaxes(h, 0, -1)),
                            (np.moveaxis(x, 0, 2), np.moveaxis(h, 0, 2)), (x.mT, h.mT), (np.expand_dims(x, (0, 2)), np.expand_dims(h, (0, 2))),
                            (ad.squeeze(x[:, :1]), h[:, :1].squeeze()), (x[None].squeeze(0), h), (np.broadcast_to(x, (2, 4, 6, 5)), np.broadcast_to(h, (2, 4, 6, 5))),
                            (np.broadcast_to(x[:, :1], (4, 6, 5)), np.broadcast_to(h[:, :1], (4, 6, 5))),
                            (np.flip(x), np.flip(h)), (ad.flip(x, 1), np.flip(h, 1)), (np.roll(x, 2, 1), np.roll(h, 2, 1)), (np.roll(x, 7), np.roll(h, 7)),
                            (np.roll(x, (1, -2), (0, 2)), np.roll(h, (1, -2), (0, 2))), (np.diff(x, axis=0), np.diff(h, axis=0)),
                            (np.diff(x, 2), np.diff(h, 2)), (x.copy(), h), (x.ravel(), h.ravel()), (x.flatten("F"), h.flatten("F"))):
        check(found, expected)
    for shape in ((120,), (24, 5), (4, 30), (2, 2, 6, 5), (4, 2, 3, 5), (5, 24), (8, 15), (1, 4, 6, 5, 1), (3, -1), (2, 60), (120, 1), (10, 12)):
        check(x.reshape(shape), h.reshape(shape), exact=True)
        check(x.reshape(shape, order="F"), h.reshape(shape, order="F"), exact=True)
    check(x[1:, 1:5, ::2].reshape(-1, 2), h[1:, 1:5, ::2].reshape(-1, 2), exact=True)
    check(x[:1, :1, :1].reshape(()), h[:1, :1, :1].reshape(()))
    for parts, expected in ((np.split(x, 3, axis=1), np.split(h, 3, axis=1)), (np.array_split(x, 3), np.array_split(h, 3)),
                            (ad.split(x, [1, 3]), np.split(h, [1, 3]))):
        for a, b in zip(parts, expected, strict=True):
            check(a, b)
    for wrong in ((7,), (-1, -1), (0, -1)):
        with pytest.raises(ValueError):
            x.reshape(wrong)


@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_joining(mesh, spec):
    h, k = draw((4, 6)), draw((4, 6), "float32", seed=8)
    x, y = put(h, mesh, spec), put(k, "three", P("a"))
    for axis in (0, 1, None):
        check(np.concatenate([x, y, x], axis), np.concatenate([h, k, h], axis))
        check(ad.concatenate([ad.asarray(k), x[:, :6]], axis), np.concatenate([k, h], axis))
    for axis in (0, 1, -1):
        check(np.stack([x, y], axis), np.stack([h, k], axis))
    check(np.vstack([x, y]), np.vstack([h, k]))
    check(ad.hstack([x, y]), np.hstack([h, k]))
    check(np.hstack([x[0], y[1]]), np.hstack([h[0], k[1]]))
    with pytest.raises(ValueError, match="must match exactly"):
        np.concatenate([x, y[:, 1:]])


def test_reshaping_whole_parts_moves_nothing():
    x = put(draw((8, 6)), "four", P("a"))
    before = ad.sharding.moved_bytes()
    made = x.reshape(4, 2, 3, 2).reshape(8, 6).ravel().reshape(-1, 3)
    assert ad.sharding.moved_bytes() == before and made.sharding == NamedSharding(x.sharding.mesh, P("a"))


# ---- along axes ----

@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_along_axes(mesh, spec):
    h = draw((7, 6))
    h[3, 2] = np.nan
    x = put(h, mesh, spec)
    for axis in (0, 1, -1):
        for name in ("sort", "argsort", "cumsum", "cumprod", "median", "nanmedian"):
            check(getattr(np, name)(x, axis=axis), getattr(np, name)(h, axis=axis))
        check(ad.partition(x, 2, axis=axis)[(slice(None),) * (axis % 2) + (2,)], np.sort(h, axis=axis)[(slice(None),) * (axis % 2) + (2,)])
    check(np.cumsum(x), np.cumsum(h))
    check(x.cumsum(axis=0, dtype="float32"), h.cumsum(axis=0, dtype="float32"))
    check(np.add.accumulate(x), np.add.accumulate(h))
    check(np.sort(x, axis=None), np.sort(h, axis=None))
    x.sort(axis=0)
    check(x, np.sort(h, axis=0))
    check(np.linalg.norm(put(np.nan_to_num(h), mesh, spec), axis=1), np.linalg.norm(np.nan_to_num(h), axis=1))
    check(np.linalg.norm(put(np.nan_to_num(h), mesh, spec)), np.linalg.norm(np.nan_to_num(h)))
    check(np.linalg.norm(put(np.nan_to_num(h), mesh, spec), 1, axis=0), np.linalg.norm(np.nan_to_num(h), 1, axis=0))


@pytest.mark.parametrize("kind", ["random", "equal", "few", "ascending", "descending", "nan", "short", "empty", "uint8"])
@pytest.mark.parametrize("mesh", MESHES)
def test_sorting_one_axis(mesh, kind):
    rng = np.random.default_rng(3)
    h = {"random": rng.standard_normal(5000), "equal": np.full(5000, 3.0), "few": rng.integers(0, 3, 5001), "short": np.array([2, 1]),
         "ascending": np.arange(999), "descending": np.arange(999.0)[::-1], "nan": np.where(rng.random(2000) < 0.3, np.nan, rng.random(2000)),
         "empty": np.zeros(0), "uint8": rng.integers(0, 255, 4000).astype("uint8")}[kind]
    x = put(h, mesh, P("a"))
    made = np.sort(x)
    check(made, np.sort(h), exact=True)
    check(np.argsort(x, kind="stable"), np.argsort(h, kind="stable"), exact=True)
    check(x, h, exact=True)
    sizes = [shard.data.size for shard in made.addressable_shards]
    assert max(sizes) <= len(h) / len(set(shard.index[0].start for shard in x.addressable_shards)) * 1.2 + 70
    assert [shard.data.size for shard in np.argsort(x).addressable_shards] == sizes


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "float64", "complex64", "complex128"])
def test_sorting_in_pieces(mesh, dtype, monkeypatch):
    """Large sections are copied on a stream of their own, and merged piece by piece; both zeros are equal, NaN comes last.
    Places of more than 2^32 elements have eight bytes."""
    monkeypatch.setattr(_sorting, "_LARGE", 0)
    if dtype in ("bool", "float64"):
        monkeypatch.setattr(_sorting, "_NARROW", 0)
    rng = np.random.default_rng(5)
    h = rng.integers(-9, 9, 3001).astype(dtype)
    if h.dtype.kind in "fc":
        h[rng.random(h.size) < 0.1] = np.nan
        h[rng.random(h.size) < 0.1] = -0.0
    if h.dtype.kind == "c":
        h.imag = rng.integers(-2, 3, h.size)
    for x in (put(h, mesh, P("a")), put(h, mesh, P("a"))[5:2000]):
        expected = x.get()
        check(np.sort(x), np.sort(expected), exact=True)
        check(np.argsort(x), np.argsort(expected, kind="stable"), exact=True)
        check(np.argsort(x, axis=None), np.argsort(expected, kind="stable"), exact=True)


def test_uneven_parts_are_made_even_before_they_are_sorted():
    """A slice may leave all elements on one device, which would sort alone."""
    h = np.random.default_rng(4).random(4000)
    x = put(h, "four", P("a"))[:1000]
    assert [shard.data.size for shard in x.addressable_shards] == [1000, 0, 0, 0]
    devices = len({shard.data.device.id for shard in x.addressable_shards})
    before = ad.sharding.moved_bytes()
    made, order = np.sort(x), np.argsort(x)
    check(made, np.sort(h[:1000]), exact=True)
    check(order, np.argsort(h[:1000], kind="stable"), exact=True)
    assert max(shard.data.size for shard in made.addressable_shards) < 400
    assert devices < 4 or ad.sharding.moved_bytes() - before > 2 * x.nbytes


def test_sorting_moves_sections():
    """Each device gets what it has not got: of four about three quarters of the elements, or of them and their places, which have four bytes."""
    x = put(np.random.default_rng(2).random(40_000), "four", P("a"))
    devices = [shard.data.device.id for shard in x.addressable_shards]
    moved = np.mean([here != there for here in devices for there in devices])
    for function, share in ((np.sort, x.nbytes), (np.argsort, 1.5 * x.nbytes)):
        before = ad.sharding.moved_bytes()
        function(x)
        assert (ad.sharding.moved_bytes() - before) / share == pytest.approx(moved, abs=0.05)


@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_fourier_transforms_in_blocks(mesh, spec, monkeypatch):
    """Blocks of large parts come from the other devices one after the other."""
    monkeypatch.setattr(_along, "_LARGE", 0)
    monkeypatch.setattr(_along, "_NARROW", 1)
    h = draw((17, 19, 2))
    x, z = put(h, mesh, spec), put(h + 1j * draw((17, 19, 2), seed=3), mesh, spec)
    for axis in (0, 1):
        for name in ("fft", "rfft", "ihfft"):
            check(getattr(np.fft, name)(x, axis=axis), getattr(np.fft, name)(h, axis=axis))
        check(np.fft.hfft(z, axis=axis), np.fft.hfft(z.get(), axis=axis))
        check(ad.fft.ifft(z, 5, axis, "ortho"), np.fft.ifft(z.get(), 5, axis, "ortho"))
    check(np.fft.fftn(z), np.fft.fftn(z.get()))
    check(np.fft.fft(x[:, :, 1], axis=0), np.fft.fft(h[:, :, 1], axis=0))


def test_blocks_bring_what_a_device_lacks(monkeypatch):
    monkeypatch.setattr(_along, "_LARGE", 0)
    monkeypatch.setattr(_along, "_NARROW", 1)
    x = put(draw((16, 32), "complex64"), "two", P("a"))
    devices = {shard.data.device.id for shard in x.addressable_shards}
    before = ad.sharding.moved_bytes()
    made = np.fft.fft(x, axis=0)
    assert ad.sharding.moved_bytes() - before == (x.nbytes // 2 if len(devices) > 1 else 0)
    assert made.sharding.spec == P(None, "a") and made.addressable_shards[0].data.flags.c_contiguous


@pytest.mark.parametrize("mesh, spec", list_layouts(2))
def test_fourier_transforms(mesh, spec):
    h = draw((8, 6))
    x, z = put(h, mesh, spec), put(h + 1j * draw((8, 6), seed=3), mesh, spec)
    for axis in (0, 1):
        for name in ("fft", "ifft", "rfft", "ihfft"):
            check(getattr(np.fft, name)(x, axis=axis), getattr(np.fft, name)(h, axis=axis))
        for name in ("irfft", "hfft"):
            check(getattr(np.fft, name)(z, axis=axis), getattr(np.fft, name)(z.get(), axis=axis))
        check(ad.fft.fft(z, 5, axis, "ortho"), np.fft.fft(z.get(), 5, axis, "ortho"))
    for name in ("fft2", "ifftn", "rfft2", "rfftn"):
        check(getattr(np.fft, name)(x), getattr(np.fft, name)(h))
    for name in ("irfft2", "irfftn", "ifft2", "fftn"):
        check(getattr(np.fft, name)(z), getattr(np.fft, name)(z.get()))
    check(np.fft.fftn(z, (4, 9), axes=(1, 0)), np.fft.fftn(z.get(), (4, 9), axes=(1, 0)))
    check(np.fft.fft(x.ravel()), np.fft.fft(h.ravel()))
    with pytest.raises(ValueError, match="different lengths"):
        np.fft.fftn(x, (3,), axes=(0, 1))


def test_matrices():
    h = draw((5, 3, 3)) + 9 * np.eye(3)
    for spec in (P("a"), P(None, "a"), P(None, None, "a"), P()):
        x = put(h, "three", spec)
        check(np.linalg.inv(x), np.linalg.inv(h))
        check(np.linalg.det(x), np.linalg.det(h))
        check(np.linalg.slogdet(x).logabsdet, np.linalg.slogdet(h).logabsdet)
        u, s, vh = np.linalg.svd(x)
        check(s, np.linalg.svd(h)[1])
        check((u * s[:, None]) @ vh, h)
    np.testing.assert_allclose(np.linalg.inv(x[2]).get(), np.linalg.inv(h[2]))
