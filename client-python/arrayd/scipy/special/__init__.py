"""SciPy's special functions on arrays of the server; arrayd.special has the same names.

The elementwise ones are operations of the server, as add and sin are: they fuse with others and need no permission for
kernels. Results are float32 or float64, as SciPy's are, also where NumPy's function of the name gives float16. Orders of
recurrences (yn, lpmv, spherical_yn) are at most 10,000, beyond which the result is NaN.
"""
from ... import _core
from ._combinatorics import comb, factorial, multigammaln, perm
from ._exponentials import log_softmax, logsumexp, softmax
from ._loops import LOOPS, Typed
from ._orders import ellipj, lambertw, polygamma, sph_harm, sph_harm_y, spherical_yn, zeta

_rows = {name: ufunc for name, ufunc in _core.ufuncs.items() if ufunc.special}
# Functions that other names call, and rows that functions of this package put together.
_aliases = {"digamma": "psi", "btdtr": "betainc", "btdtri": "betaincinv", "round": "rint",
            **{name: name for name in ("cbrt", "exp2", "expm1", "i0", "log1p", "sinc")}}
_parts = {"ellipj_sn_cn", "ellipj_dn_am", "spherical_y"}

__all__ = sorted({*_rows, *_aliases, "comb", "ellipj", "factorial", "lambertw", "log_softmax", "logsumexp",
                  "multigammaln",
                  "perm", "polygamma", "softmax", "sph_harm", "sph_harm_y", "spherical_yn", "zeta"} - _parts)
globals().update({name: ufunc for name, ufunc in _rows.items() if name not in _parts and name not in globals()})
globals().update({name: _core.ufuncs[row] for name, row in _aliases.items()})
globals().update({name: Typed(globals()[name], loops) for name, loops in LOOPS.items()})
del _rows, _aliases, _parts
