"""Run one body under NumPy and under arrayd and compare what comes out: value, dtype, shape, or the exception."""
import threading
import warnings

import numpy as np

import arrayd as ad

BOOL = [np.dtype(bool)]
SIGNED = [np.dtype(name) for name in ("int8", "int16", "int32", "int64")]
UNSIGNED = [np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")]
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")]
COMPLEX = [np.dtype(name) for name in ("complex64", "complex128")]
INTEGERS = SIGNED + UNSIGNED
REALS = BOOL + INTEGERS + FLOATS
DTYPES = REALS + COMPLEX
SOME = [np.dtype(name) for name in ("bool", "int8", "uint16", "int64", "float32", "float64", "complex64")]

def fetch(value):
    """Arrays of the server as NumPy arrays, also within tuples and lists."""
    if isinstance(value, ad.ndarray):
        return value.get()
    if isinstance(value, (tuple, list)):
        return type(value)(fetch(part) for part in value) if type(value) in (tuple, list) else [fetch(p) for p in value]
    return value


def outcome(run):
    """Return what a function returns, or the exception that it raises."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return run(), None
    except Exception as error:
        return None, error


def check(body, *arrays, ulps=8, dtype=True, exact=False):
    """Check that body(numpy, *arrays) and body(arrayd, *their copies on the server) agree.
    """
    expected, wrong = outcome(lambda: fetch(body(np, *(np.array(a, order="K") for a in arrays))))
    actual, error = outcome(lambda: fetch(body(ad, *(ad.asarray(a) for a in arrays))))
    if wrong is not None:
        assert error is not None, f"numpy raises {wrong!r}, arrayd gives {actual!r}"
        assert same_kind(wrong, error), f"numpy raises {wrong!r}, arrayd {error!r}"
        return
    if error is not None:
        raise AssertionError(f"arrayd raises {error!r}, numpy gives {expected!r}") from error
    compare(expected, actual, ulps, dtype, exact)


def same_kind(wrong, error):
    """Tell whether an exception is of the class that NumPy raises, or of the builtin that it is made from."""
    builtin = next(cls for cls in type(wrong).__mro__ if cls.__module__ == "builtins")
    return isinstance(error, builtin)


def compare(expected, actual, ulps=8, dtype=True, exact=False):
    if isinstance(expected, (tuple, list)):
        assert isinstance(actual, (tuple, list)) and len(expected) == len(actual), (expected, actual)
        for one, other in zip(expected, actual):
            compare(one, other, ulps, dtype, exact)
        return
    if expected is None or isinstance(expected, str):
        assert expected == actual, (expected, actual)
        return
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert expected.shape == actual.shape, f"shape {actual.shape}, numpy's is {expected.shape}"
    if dtype:
        assert expected.dtype == actual.dtype, f"dtype {actual.dtype}, numpy's is {expected.dtype}"
    if exact or actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected, strict=dtype)
    else:
        near(expected, actual, ulps)


def in_threads(count, body):
    """Run body(number) in so many threads at once. An error in any of them fails the test."""
    errors, threads = [], []

    def run(number):
        try:
            body(number)
        except BaseException as error:
            errors.append(error)

    for number in range(count):
        threads.append(threading.Thread(target=run, args=(number,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def near(expected, actual, ulps):
    """Floats within ulps units in the last place; complex numbers by the distance in the plane."""
    kind = np.float32 if actual.dtype.name == "bfloat16" else actual.dtype
    eps = 2.0**-7 if actual.dtype.name == "bfloat16" else float(np.finfo(kind).eps)
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    e, a = expected.astype(wide), actual.astype(wide)
    if wide is np.float64:
        tiny = 2.0**-126 if actual.dtype.name == "bfloat16" else float(np.finfo(kind).smallest_subnormal)
        np.testing.assert_allclose(a, e, rtol=ulps * eps, atol=ulps * tiny)
        return
    finite = np.isfinite(e)
    np.testing.assert_array_equal(np.isfinite(a), finite)
    distance = np.abs(a[finite] - e[finite])
    worst = distance - ulps * eps * np.abs(e[finite])
    assert not distance.size or (worst <= 0).all(), f"off by {distance[worst.argmax()]} at {e[finite][worst.argmax()]}"


def random(rng, dtype, shape, domain="ANY", second=False):
    """Seeded elements of a test domain of ufunc.def."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool) | (second and domain == "NZ")
    if dtype.kind in "iu":
        return _integers(rng, dtype, shape, domain, second)
    if dtype.kind == "c":
        half = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
        low, high = _range(domain, second)
        low = -high if domain != "POWER" else low
        parts = [rng.uniform(low, high, shape).astype(half) for _ in range(2)]
        return (parts[0] + 1j * parts[1]).astype(dtype)
    low, high = _range(domain, second)
    values = np.asarray(rng.uniform(low, high, shape))
    if domain in ("COUNT", "MANY"):
        values = np.floor(values)
    if domain == "BOOL":
        values = np.where(rng.integers(0, 2, shape), values, 0.0)
    if domain == "NZ" and second:
        values = np.where(np.abs(values) < 0.25, 0.5, values)
    return values.astype(dtype)


def _range(domain, second):
    return {"POS": (0.01, 50.0), "UNIT": (-1.0, 1.0), "GE1": (1.0, 50.0), "OPEN": (-0.97, 0.97), "SMALL": (-4.0, 4.0),
            "POWER": (-2.0, 3.0) if second else (0.1, 4.0), "EXP": (-8.0, 8.0),
            "PROB": (0.02, 0.98), "GAMMA": (0.1, 12.0), "COUNT": (0.0, 10.0), "MANY": (11.0, 40.0), "ZERO": (0.0, 0.0),
            "TINY": (1e-9, 1e-8)}.get(domain, (-60.0, 60.0))


def _integers(rng, dtype, shape, domain, second):
    info = np.iinfo(dtype)
    low, high = {"POS": (1, 100), "UNIT": (-1, 1), "GE1": (1, 100), "OPEN": (0, 0), "SMALL": (-4, 4),
                 "POWER": (0, 3) if second else (-4, 4), "EXP": (-8, 8) if second else (-50, 50), "BOOL": (0, 1),
                 "PROB": (0, 1), "GAMMA": (1, 9), "COUNT": (0, 10), "MANY": (11, 40), "ZERO": (0, 0), "TINY": (0, 0),
                 "SHIFT": (0, info.bits - 1) if second else (info.min, info.max)}.get(domain, (info.min, info.max))
    values = rng.integers(max(low, info.min), min(high, info.max), shape, dtype=dtype, endpoint=True)
    if domain == "NZ" and second:
        values = np.where(values == 0, dtype.type(3), values)
    return np.asarray(values, dtype)


def seed(*names):
    """A generator that depends on names and nothing else."""
    return np.random.default_rng([*"/".join(str(name) for name in names).encode()])
