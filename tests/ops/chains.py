"""Operations that the server executes together, and what its counters say of it."""
import time

import numpy as np

import arrayd as ad
from patience import PATIENCE

WORK = 700 * 700 * 8  # bytes that busy leaves behind


def is_gpu():
    return ad.session_info()["backend"] == "cuda"


def busy():
    """Keep the server at work for a while."""
    a = ad.ones((700, 700))
    if is_gpu():
        ad.linalg.svd(a[:99, :99])  # a product is only enqueued; here the server waits for the device
    for _ in range(2):
        a = a @ a * 1e-3
    return a


def once(body):
    ad.sync()
    before, work = ad.stat(), busy()
    result = body()
    after = ad.stat()
    del work
    return result, {name: after[name] - before[name] for name in after}


def compiled():
    """Wait until nothing is being compiled."""
    until = time.monotonic() + PATIENCE
    while ad.stat()["compile_waiting"]:
        assert time.monotonic() < until


def together(body, **least):
    """Run body with its operations queued. Returns its result, and what the counters say of it. Where chains are compiled
    it runs again when that has been done. It runs until the counters say what is expected at least, as the client may be
    late on a busy machine."""
    for attempt in range(60):
        result, counters = once(body)
        if (attempt > 5 or not counters["unfused_chains"]) and all(counters[name] >= value for name, value in least.items()):
            break
        compiled()
    return result, counters


def bits(a):
    """Return the value's bytes, where any NaN is as good as another."""
    parts = a.view(a.real.dtype) if a.dtype.kind == "c" and a.ndim else a
    if a.dtype.kind in "fc":
        a = np.where(np.isnan(parts), np.nan, parts).astype(parts.dtype)
    return a.tobytes()


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and bits(np.ascontiguousarray(a)) == bits(np.ascontiguousarray(b))


def settled(body, **expected):
    """Run body until the counters say what is expected of them: the client may be late on a machine that is busy."""
    for _ in range(20):
        result, counters = together(body)
        if {name: counters[name] for name in expected} == expected:
            return result
    raise AssertionError({name: counters[name] for name in expected})


def uploaded(*arrays):
    result = [ad.array(a) for a in arrays]
    ad.sync()
    return result


def without_value(x):
    """A vector as long as x that has none: what it was read by was out of bounds."""
    return x[ad.asarray([10 * len(x)] * len(x))]


def random(shape, dtype="float32", seed=1):
    return np.random.default_rng(seed).random(shape).astype(dtype)
