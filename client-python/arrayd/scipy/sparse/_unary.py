"""Functions of one element for which f(0) is 0: they keep which elements are stored."""
import numpy as np

import arrayd as ad

_FUNCTIONS = ("arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p", "rad2deg", "rint",
              "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")


class UnaryMethods:
    """One method for each of these functions, and parts of complex numbers."""

    def _real(self):
        return self._with_data(self.data.real.copy(), copy=True)

    def _imag(self):
        imag = self.data.imag.copy() if self.dtype.kind == "c" else ad.zeros_like(self.data)
        return self._with_data(imag, copy=True)


def _make_method(name):
    def method(self):
        data = self.data.astype(np.float32) if self.dtype.kind == "b" and name != "sign" else self.data
        return self._with_data(getattr(ad, name)(data), copy=True)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{name} of each element, as arrayd.{name}."
    return method


for _name in _FUNCTIONS:
    setattr(UnaryMethods, _name, _make_method(_name))
del _name
