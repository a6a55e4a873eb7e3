"""rawkernel: functions of Python that are launched as kernels."""
import functools
import warnings

import numpy as np

from . import build, sites, text
from .jit_functions import Function, Program
from .jit_groups import headers, waits_for_grid
from .jit_values import Array, Scalar, Value
from .strides import dims, is_flat
from .types import as_bytes, c_name, default_dtype, head, is_array, three


def before(program, used):
    """The text before translated functions, after that of types.head; used: text in which they are used."""
    used += program.text()
    return "".join([headers(used), *(f"#include <arrayd/{name}.cuh>\n" for name in ("algorithm", "collective")
                                     if f"ad_{name}::" in used),
                    text.COMPLEX if "complex" in used else "", text.MATH, text.ATOMICS if "atomic_" in used else "",
                    program.text()])


class _JitRawKernel:
    """A function that is translated to CUDA C++ and launched as a kernel.

    Source: cupyx.jit._interface._JitRawKernel
    """

    def __init__(self, function, mode, device):
        functools.update_wrapper(self, function)
        self._target, self._integers, self._device = function, mode == "cuda", device
        self._translated, self._modules = {}, build.Memo()

    def __repr__(self):
        return f"<{'device function' if self._device else 'kernel'} {self.__name__}>"

    def __call__(self, grid, block, args, shared_mem=0, stream=None):
        """Launch it, without waiting.

        Parameters: grid, block: int or tuple of up to 3. args: tuple of arrays and numbers. shared_mem: bytes of
        dynamic shared memory. stream: ignored: it runs on the current stream.
        Returns: None.
        Raises: TypeError and others for what cannot be translated; arrayd.CompileError.
        """
        if self._device:
            raise TypeError(f"{self.__name__} is a device function: only kernels can call it")
        grid, block = three(grid, "grid"), three(block, "block")
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"a kernel's arguments must be a tuple, not {type(args).__name__}")
        kinds, values = [], []
        for place, argument in enumerate(args):
            kind, given = _argument(argument, f"argument {place} of {self.__name__}")
            kinds.append(kind)
            values += given
        module, written = self._module(tuple(kinds))
        if 0 in grid:
            return
        sites.note(self._name)
        module.launch(self._name, grid, block, shared_mem, tuple(values), written)

    def __getitem__(self, grid_and_block):
        """kernel[grid, block](*args): launch it; kernel[grid, block, shared_mem] too."""
        if not isinstance(grid_and_block, tuple) or not 2 <= len(grid_and_block) <= 3:
            raise ValueError("kernel[grid, block] or kernel[grid, block, shared_mem] is how to launch a kernel")
        grid, block, *shared = grid_and_block
        return lambda *args: self(grid, block, args, *shared)

    @property
    def _name(self):
        name = self.__name__
        return "jit_" + (name if name.isascii() and name.isidentifier() else "kernel")

    def _module(self, kinds):
        """The module for arguments of certain kinds, and which of what is sent the kernel writes."""
        where = build.place()
        found = self._modules.get(where, kinds)
        if found is None:
            if kinds not in self._translated:
                self._translated[kinds] = self._translate(kinds)
            source, written = self._translated[kinds]
            module = build.module(source, (), (), self.__name__)
            if waits_for_grid(source):
                module.set(self._name, cooperative=True)
            found = self._modules.put(where, kinds, (module, written))
        return found

    def _translate(self, kinds):
        program = Program(self._integers)
        arguments = [Value("", Scalar(kind[1]) if kind[0] == "value" else Array(*kind[1:])) for kind in kinds]
        function = Function(program, self._target, arguments, self._name, kernel=True)
        declared, arrays, written, place = [], [], 0, 0
        for name, kind, code in function.parameters:
            if isinstance(kind, Scalar):
                declared.append(f"{kind.c} {code}")
                place += 1
                continue
            n, element = kind.ndim, c_name(kind.dtype)
            declared += [f"{element} *r{code}", f"ad_kernel::dims<{n}> n{code}", f"ad_kernel::dims<{n}> s{code}"]
            arrays.append(f"{kind.c} {code}(r{code}, n{code}, s{code});")
            written |= (name in function.written) << place
            place += 3
        parameters, body = ", ".join(declared), "\n".join([*arrays, function.body()])
        used = parameters + body
        source = f'{head((), used, program.text())}{before(program, used)}' \
                 f'extern "C" __global__ void {self._name}({parameters}) {{\n{body}}}\n'
        return source, written

    @property
    def cached_codes(self):
        """dict of the sources that have been translated, by kinds of arguments."""
        return {kinds: source for kinds, (source, _) in self._translated.items()}

    @property
    def cached_code(self):
        """str: the source that has been translated; one of them, with a warning, where there are several."""
        codes = list(self.cached_codes.values())
        if not codes:
            raise RuntimeError(f"{self.__name__} has not been called, so there is no code")
        if len(codes) > 1:
            warnings.warn(f"{self.__name__} has been translated for arguments of several types; cached_codes has all",
                          RuntimeWarning, stacklevel=2)
        return codes[0]


def _argument(argument, what):
    """An argument's kind, and what is sent for it."""
    if is_array(argument):
        dtype = argument.dtype
        flat = is_flat(argument.shape, argument.strides, dtype.itemsize)
        return ("array", dtype, argument.ndim, flat), [argument, dims(argument.shape), dims(argument.strides)]
    if not isinstance(argument, (bool, int, float, complex, np.number, np.bool_)):
        raise TypeError(f"{what} must be an arrayd.ndarray or a number, not {type(argument).__name__}")
    dtype = default_dtype(argument)
    return ("value", dtype), [as_bytes(argument, dtype, what)]


def rawkernel(*, mode="cuda", device=False):
    """A decorator that makes a kernel of a function of Python, launched as kernel[grid, block](*args) or
    kernel(grid, block, args, shared_mem=0).

    Parameters: mode: "cuda": operations of integers give integers, also where NumPy goes to float64 (uint64 with
    int64); "numpy": NumPy's types. device: make a function that kernels call.
    Returns: decorator.
    Raises: ValueError for another mode.
    Source: cupyx.jit.rawkernel
    """
    if mode not in ("cuda", "numpy"):
        raise ValueError(f"mode must be 'cuda' or 'numpy', not {mode!r}")
    return lambda function: _JitRawKernel(function, mode, device)
