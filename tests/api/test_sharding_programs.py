"""Random programs over random meshes, beside NumPy."""
import numpy as np
import pytest

import arrayd as ad
from arrayd.sharding import NamedSharding, PartitionSpec as P
from sharded import check, make_mesh, several_devices  # noqa: F401


# ---- random programs ----

def step(rng, h, x):
    """One step of a program on a NumPy array and on one over several devices."""
    axis = int(rng.integers(h.ndim))
    kind = rng.choice(["unary", "binary", "broadcast", "reduce", "slice", "transpose", "reshape", "take", "mask", "sort", "cumsum",
                       "fft", "matmul", "reshard", "flip", "concatenate", "mean"])
    if kind == "unary":
        name = str(rng.choice(["tanh", "sin", "negative", "absolute", "arctan"]))
        return getattr(np, name)(h), getattr(np, name)(x)
    if kind == "binary":
        return h * 0.5 + h, x * 0.5 + place(rng, h)
    if kind == "broadcast":
        k = rng.standard_normal(h.shape[axis:])
        return h - k, x - (place(rng, k) if rng.random() < 0.5 else ad.asarray(k))
    if kind == "reduce" and h.size:
        name = str(rng.choice(["sum", "max", "min", "std"]))
        return getattr(h, name)(axis=axis, keepdims=True) + 0 * h, getattr(x, name)(axis=axis, keepdims=True) + 0 * x
    if kind == "mean" and h.ndim > 1 and h.size:
        return h.mean(axis=axis), x.mean(axis=axis)
    if kind == "slice":
        start, stop = sorted(int(i) for i in rng.integers(0, h.shape[axis] + 1, 2))
        key = (slice(None),) * axis + (slice(start, stop + 1, int(rng.integers(1, 3))),)
        return h[key], x[key]
    if kind == "transpose":
        return h.T, x.T
    if kind == "reshape":
        n = next(n for n in (3, 2, 5, 1) if h.size % n == 0)
        return h.reshape(n, -1) if h.size else h, x.reshape(n, -1) if h.size else x
    if kind == "take" and h.shape[axis]:
        index = rng.integers(0, h.shape[axis], int(rng.integers(1, 7)))
        return np.take(h, index, axis), np.take(x, place(rng, index) if rng.random() < 0.5 else ad.asarray(index), axis)
    if kind == "mask":
        return h[h > -1], x[x > -1]
    if kind == "sort":
        return np.sort(h, axis), np.sort(x, axis)
    if kind == "cumsum":
        return np.cumsum(h, axis) * 0.1, np.cumsum(x, axis) * 0.1
    if kind == "fft" and h.shape[axis]:
        return np.fft.ifft(np.fft.fft(h, axis=axis), axis=axis).real, np.fft.ifft(np.fft.fft(x, axis=axis), axis=axis).real
    if kind == "matmul" and h.ndim == 2:
        k = rng.standard_normal((h.shape[1], int(rng.integers(1, 6))))
        return h @ k * 0.3, x @ place(rng, k) * 0.3
    if kind == "reshard":
        return h, ad.device_put(x, choose(rng, h))
    if kind == "flip":
        return np.flip(h, axis), np.flip(x, axis)
    if kind == "concatenate" and h.size < 500:
        return np.concatenate([h, h], axis), np.concatenate([x, place(rng, h)], axis)
    return h + 1, x + 1


def choose(rng, h):
    """A random sharding for an array."""
    count = int(rng.integers(1, 5))
    shape = (2, 2) if count == 4 and rng.random() < 0.5 else (count,)
    mesh = make_mesh(shape, ("a", "b")[:len(shape)])
    axes, spec = list(rng.permutation(list(mesh.axis_names))), []
    for _ in range(h.ndim):
        spec.append(str(axes.pop()) if axes and rng.random() < 0.6 else None)
    return NamedSharding(mesh, P(*spec))


def place(rng, h):
    return ad.device_put(h, choose(rng, h))


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    h = rng.standard_normal(tuple(rng.integers(1, 9, int(rng.integers(1, 4)))))
    x = place(rng, h)
    for _ in range(12):
        h, x = step(rng, h, x)
        assert x.shape == h.shape
    check(x, h)
