"""The type that SciPy computes in, for the functions where it is not the one of the operands together."""
import numpy as np

# The types of operands that SciPy has a function for, in its order; the last letter is also the result's.
_DOUBLE_FIRST = "cbrt exp2 expm1 i0 log1p"
_DOUBLE_FIRST_OF_2 = "beta betaln ellipeinc ellipkinc gammainc gammaincc gammainccinv gammaincinv xlog1py xlogy"
LOOPS = {"round": ("f", "d"), **dict.fromkeys(_DOUBLE_FIRST.split(), ("d", "f")),
         **dict.fromkeys(_DOUBLE_FIRST_OF_2.split(), ("dd", "ff")),
         **dict.fromkeys("expn pdtri yn".split(), ("ld", "ff", "dd")),
         **dict.fromkeys("radian wright_bessel".split(), ("ddd", "fff")),
         **dict.fromkeys("nbdtr nbdtrc nbdtri".split(), ("lld", "fff", "ddd"))}


def _type_of(loops, operands):
    """The type of SciPy's result: of the loop that fits, else of the first one to which all operands are cast safely.

    None, for the server to choose, where a number adapts to the arrays, or for complex numbers and bfloat16.
    """
    dtypes = [getattr(one, "dtype", None) for one in operands]
    if len(dtypes) != len(loops[0]) or any(one is None or one.kind not in "biuf" for one in dtypes):
        return None
    exact = "".join(one.char for one in dtypes)
    fits = (loop for loop in loops if all(map(np.can_cast, dtypes, loop)))
    loop = exact if exact in loops else next(fits, None)
    return loop and np.dtype(loop[-1])


class Typed:
    """A function of the server that is called with SciPy's choice of a type; its attributes and its class are the function's."""

    def __init__(self, ufunc, loops):
        self._ufunc, self._loops = ufunc, loops
        self.__name__, self.__doc__ = ufunc.__name__, ufunc.__doc__

    @property
    def __class__(self):
        return type(self._ufunc)

    def __call__(self, *args, **options):
        if options.get("dtype") is None:
            options["dtype"] = _type_of(self._loops, args[:self._ufunc.nin])
        return self._ufunc(*args, **options)

    def __getattr__(self, name):
        return getattr(self._ufunc, name)

    def __repr__(self):
        return repr(self._ufunc)
