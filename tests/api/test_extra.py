"""array-api-extra's functions, and array-api-compat's helpers as libraries carry them, on arrays of the server."""
import array_api_compat
import array_api_extra as xpx
import numpy as np
from users import POSITIVE, X, agree

import arrayd as ad

IDS = np.array([3, 1, 1, 4, 3, 9])


def test_compat_helpers():
    x = ad.asarray(X)
    assert array_api_compat.array_namespace(x, x) is ad and array_api_compat.is_array_api_obj(x)
    assert array_api_compat.device(x) == x.device and array_api_compat.to_device(x, x.device) is x
    assert array_api_compat.size(x) == X.size and not array_api_compat.is_lazy_array(x)
    assert array_api_compat.is_writeable_array(x) and not array_api_compat.is_cupy_array(x)


def test_functions():
    agree(lambda of: xpx.atleast_nd(of(IDS), ndim=3))
    agree(lambda of: xpx.cov(of(X.T.copy())))
    agree(lambda of: xpx.create_diagonal(of(X[0].copy()), offset=1))
    agree(lambda of: xpx.kron(of(X[:3].copy()), of(X[:2].copy())))
    agree(lambda of: xpx.nunique(of(IDS)))
    agree(lambda of: xpx.pad(of(X), 2, constant_values=1.5))
    agree(lambda of: xpx.setdiff1d(of(IDS), of(np.array([1, 9]))))
    agree(lambda of: xpx.sinc(of(X)))
    agree(lambda of: xpx.isclose(of(X), of(X + 1e-9)))
    agree(lambda of: xpx.one_hot(of(IDS), 10))
    agree(lambda of: xpx.expand_dims(of(X), axis=(0, -1)))
    agree(lambda of: xpx.argpartition(of(X[:, 0].copy()), 0)[0])
    agree(lambda of: xpx.nan_to_num(of(np.array([1.0, np.nan, np.inf]))))
    agree(lambda of: xpx.apply_where(of(POSITIVE) > 0.5, of(POSITIVE), lambda v: v * 2, lambda v: -v))
    agree(lambda of: xpx.apply_where(of(POSITIVE) > 0.5, (of(POSITIVE), of(X)), lambda v, w: v * w, fill_value=-1.0))


def test_assignments():
    def changed(of, name, copy):
        a = of(X.copy())
        return getattr(xpx.at(a)[1:3, 0], name)(2.0, copy=copy)
    for name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max"):
        for copy in (None, True, False):
            agree(lambda of: changed(of, name, copy))
    agree(lambda of: xpx.at(of(X.copy()), of(X) > 0).set(0.0))


def test_defaults():
    assert xpx.default_dtype(ad) == ad.float64 and xpx.default_dtype(ad, "integral") == ad.int64
    agree(lambda of: xpx.angle(of(X + 1j)))
