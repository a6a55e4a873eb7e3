"""vectorize: a function of numbers, translated, for each element of arrays."""
import numpy as np

from .. import _core
from .elementwise import ElementwiseKernel
from .jit_functions import Program
from .jit_kernel import before
from .jit_values import Scalar, Several, Value, cast
from .parameters import check_argument
from .types import default_dtype, is_array


class vectorize:
    """A function of numbers made one of arrays, which are broadcast together. The function is translated (see
    arrayd.cupyx.jit) when it is first called with arguments of certain types, and runs on the server.

        ad.vectorize(lambda x, y: x if x > y else 2 * y)(a, b)

    Parameters: pyfunc: a function of numbers that returns a number or a tuple of numbers. otypes: str of the results'
    types or list of dtypes; those that the function computes unless given. doc: the docstring. excluded, signature:
    must be None. cache: ignored.
    Raises: NotImplementedError for excluded and signature. Calling it: TypeError and others for what cannot be
    translated, naming the line.
    Differs: the function must be one that can be translated; numbers of Python have the types int64, float64,
    complex128 and bool; each operation rounds to its type, as operators of NumPy's arrays do, where numpy.vectorize computes
    with numbers of Python; arguments by name are not taken.
    Source: numpy.vectorize
    """

    def __init__(self, pyfunc, otypes=None, doc=None, excluded=None, cache=False, signature=None):
        if not callable(pyfunc):
            raise TypeError(f"vectorize takes a function, not {type(pyfunc).__name__}")
        if excluded or signature is not None:
            raise NotImplementedError("vectorize: excluded and signature are not taken")
        self.pyfunc, self.cache, self.excluded, self.signature = pyfunc, cache, set(), None
        self.otypes = None if otypes is None else [_core.as_dtype(each) for each in otypes]
        self.__doc__ = pyfunc.__doc__ if doc is None else doc
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")
        self._kernels = {}

    def __call__(self, *args):
        """Run it, without waiting.

        Parameters: args: arrays and numbers.
        Returns: ndarray, or a tuple of ndarrays.
        """
        if not args:
            raise ValueError("vectorize: a function without arguments has nothing to be called for")
        for place, argument in enumerate(args):
            check_argument(self.__name__, argument, f"argument {place}")
        kinds = tuple(a.dtype if is_array(a) else default_dtype(a) for a in args)
        if kinds not in self._kernels:
            self._kernels[kinds] = self._kernel(kinds)
        return self._kernels[kinds](*args)

    def _kernel(self, kinds):
        program = Program(False)
        function = program.function(getattr(self.pyfunc, "_target", self.pyfunc), [Value("", Scalar(k)) for k in kinds])
        several = isinstance(function.returned, Several)
        if function.returned is None:
            raise TypeError(f"{self.__name__} returns nothing")
        found = list(function.returned.types) if several else [function.returned]
        if not all(isinstance(each, Scalar) for each in found):
            raise TypeError(f"{self.__name__} must return numbers")
        results = self.otypes or [each.dtype for each in found]
        if len(results) != len(found):
            raise ValueError(f"otypes has {len(results)} types, and {self.__name__} returns {len(found)} values")
        names = [f"in{place}" for place in range(len(kinds))]
        ins = ", ".join(f"{kind.name} {name}" for kind, name in zip(kinds, names))
        outs = ", ".join(f"{kind.name} out{place}" for place, kind in enumerate(results))
        call = f"{function.name}({', '.join(names)})"
        if several:
            lines = [f"const {function.returned.c} result = {call};"]
            lines += [f"out{place} = {_given(f'result._{place}', each.dtype, kind)};"
                      for place, (each, kind) in enumerate(zip(found, results))]
        else:
            lines = [f"out0 = {_given(call, found[0].dtype, results[0])};"]
        name = self.__name__ if self.__name__.isascii() and self.__name__.isidentifier() else "function"
        return ElementwiseKernel(ins, outs, " ".join(lines), f"vectorize_{name}",
                                 preamble=before(program, " ".join(lines)))


def _given(code, source, target):
    return cast(code, np.dtype(source), np.dtype(target))


