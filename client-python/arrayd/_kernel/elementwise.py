"""ElementwiseKernel: a piece of C++ for each element of arrays that are broadcast together."""
import operator

import numpy as np

from .. import _core
from .._base import product, units_of
from ..cuda.texture import TextureObject
from . import build, sites
from .parameters import check_argument, is_operand, parse, settle, typedefs
from .strides import broadcast, dims, is_flat, merged, stretched
from .types import as_bytes, c_name, head, is_array

_MOST_BLOCKS = 1 << 30
_BLOCK = 128


class Declared(build.Cached):
    """A kernel that arrayd writes around a user's code, by declarations of its parameters."""

    def __init__(self, in_params, out_params, name, kind, options):
        self.in_params, self.out_params = parse(in_params, "in_params"), parse(out_params, "out_params")
        self.params = self.in_params + self.out_params
        if len({p.name for p in self.params}) != len(self.params):
            raise ValueError("in_params and out_params have a name in common")
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.name = self.__name__ = build.identifier(name, "kernel name")
        self._entry = f"{kind}_{name}"  # CUDA declares functions, such as norm, that no kernel can be named as
        self._options = build.as_options(options)
        self._sources = {}
        self._plans = build.Memo()  # modules by kinds of arguments

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"

    def _built(self, key, source):
        """The module for arguments of a kind; source(): its text."""
        where = build.place()
        found = self._plans.get(where, key)
        if found is None:
            self._sources[key] = text = source()
            found = self._plans.put(where, key, build.module(text, self._options, (), self.name))
        return found


class ElementwiseKernel(Declared):
    """A kernel that runs a piece of CUDA C++ for each element of arrays, which are broadcast together.

        squared_diff = ad.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_diff")
        squared_diff(a, b)

    In the code, parameters are elements; those that are declared raw are arrays: x[i], x[index], x.size(), x.shape(),
    x.strides(). i is the element's number in C order and _ind.size() how many there are, as is n, where no parameter has
    these names; _ind.get() is its index, in dimensions of which some have been merged unless reduce_dims is False. _raw_x
    is the array (CArray) that an element x is of: _raw_x[i], _raw_x[_ind.get()].

    Parameters: in_params: inputs: types and names, "float32 x, raw T y"; one letter stands for whatever type the
    arguments have. out_params: outputs, the same. operation: the code. name: the kernel's. reduce_dims: merge
    dimensions where the arrays allow it. preamble: code before the kernel. no_return: return nothing. return_tuple:
    return a tuple also for one output. kwargs: loop_prep and after_loop: code before and after the loop over elements;
    options: tuple of options of the compiler.
    Raises: ValueError for declarations that are none. Calling it: arrayd.CompileError with what the compiler says.
    Source: cupy.ElementwiseKernel
    """

    def __init__(self, in_params, out_params, operation, name="kernel", reduce_dims=True, preamble="",
                 no_return=False, return_tuple=False, **kwargs):
        super().__init__(in_params, out_params, name, "elementwise", kwargs.pop("options", ()))
        self.operation, self.preamble = operation, preamble
        self.reduce_dims, self.no_return, self.return_tuple = reduce_dims, no_return, return_tuple
        self._prepare, self._after = kwargs.pop("loop_prep", ""), kwargs.pop("after_loop", "")
        if kwargs:
            raise TypeError(f"ElementwiseKernel has no parameter {', '.join(kwargs)}")

    def __call__(self, *args, size=None, block_size=_BLOCK):
        """Run it, without waiting.

        Parameters: args: the inputs, and the outputs or none; arrays, numbers and textures. size: how many elements there are,
        where all arrays are raw. block_size: threads of a block.
        Returns: ndarray, or a tuple of ndarrays where there are several outputs: new ones unless given.
        Raises: TypeError for a wrong number of arguments and for types that do not fit; ValueError for shapes that do
        not; arrayd.CompileError.
        """
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"{self.name}: wrong number of arguments: {self.nin} inputs, or {self.nargs} with outputs, "
                            f"and given {len(args)}")
        if not 1 <= block_size <= 1024:
            raise ValueError(f"{self.name}: block_size must be 1 to 1024, not {block_size}")
        args = tuple(_Texture(a) if isinstance(a, TextureObject) else a for a in args)
        for parameter, argument in zip(self.params, args):
            if not is_operand(argument):
                return self._hand_over(argument, parameter.name, args)
        inputs, outputs = args[:self.nin], args[self.nin:]
        if not all(map(is_array, outputs)):
            raise TypeError(f"{self.name}: outputs must be arrays")
        ins, outs, types = settle(self.name, self.in_params, self.out_params, inputs, outputs)
        shape = self._shape(args, size)
        if not outputs:
            outputs = tuple(self._empty(p, shape, dtype, size) for p, dtype in zip(self.out_params, outs))
        self._launch(inputs + outputs, ins + outs, types, shape, block_size)
        if self.no_return:
            return None
        return outputs[0] if self.nout == 1 and not self.return_tuple else outputs

    def _hand_over(self, argument, name, args):
        """Return what the type of an argument makes of the call, where it has its own way to run kernels. TypeError
        elsewhere."""
        override = getattr(type(argument), "__cupy_override_elementwise_kernel__", None)
        if override is None:
            check_argument(self.name, argument, name)
        return override(argument, self, *args)

    def _shape(self, args, size):
        """The shape that the kernel runs over."""
        given = [(p.name, a.shape) for p, a in zip(self.out_params, args[self.nin:]) if not p.raw]
        taken = [a.shape for p, a in zip(self.params, args) if is_array(a) and not p.raw]
        if size is not None:
            if taken:
                raise ValueError(f"Specified 'size' can be given only if all of the arrays of {self.name} are raw")
            return (operator.index(size),)
        if not taken and any(map(is_array, args)):
            raise ValueError(f"Loop size is undecided. {self.name}: all arrays are raw, so size must be given")
        shape = broadcast(taken)
        for name, out in given:
            if out != shape:
                raise ValueError(f"Out shape is mismatched: {name} of {self.name} has {out}, and it must be {shape}")
        return shape

    def _empty(self, parameter, shape, dtype, size):
        if parameter.raw and size is None:
            raise ValueError(f"{self.name}: output array size is undefined: {parameter.name} is raw, so it or "
                             "size must be given")
        return _core.empty(shape, dtype)

    def _launch(self, args, dtypes, types, shape, block_size):
        total = product(shape)
        if total == 0:
            return
        several = [stretched(a, shape) for p, a in zip(self.params, args) if is_array(a) and not p.raw]
        if self.reduce_dims:
            shape, several = merged(shape, several)
        several, kinds, values, written = iter(several), [], [], 0
        for place, (parameter, argument, dtype) in enumerate(zip(self.params, args, dtypes)):
            if place >= self.nin:
                written |= 1 << len(values)
            strides = None if parameter.raw or not is_array(argument) else next(several)
            kind, given = passed(argument, dtype, shape, strides, f"{self.name}: {parameter.name}")
            kinds.append(kind)
            values += given
        values.append(dims(shape))
        blocks = min(-(-total // block_size), _MOST_BLOCKS)
        module = self._module(tuple(kinds), dtypes, types, len(shape))
        sites.note(self._entry)
        module.launch(self._entry, (blocks, 1, 1), (block_size, 1, 1), 0, tuple(values), written)

    def _module(self, kinds, dtypes, types, ndim):
        return self._built((kinds, tuple(dtypes), ndim), lambda: self._source(kinds, dtypes, types, ndim))

    # ---- the source ----

    def _source(self, kinds, dtypes, types, ndim):
        declared, before, each = [], [], []
        for p, kind, dtype in zip(self.params, kinds, dtypes):
            const = "" if p in self.out_params else "const "
            _declare(p.name, kind, f"{const}{c_name(dtype)}", ndim, declared, before, each)
        declared.append(f"ad_kernel::dims<{ndim}> _shape")
        lines = [head(dtypes, self.preamble, self.operation, self._prepare, self._after), typedefs(types),
                 code(self.preamble, f"preamble of {self.name}"),
                 f'extern "C" __global__ void {self._entry}({", ".join(declared)}) {{',
                 f"ad_kernel::indexer<{ndim}> _ind(_shape);", "const ptrdiff_t _n = _ind.size();",
                 "" if any(p.name == "n" for p in self.params) else "[[maybe_unused]] const ptrdiff_t n = _n;", *before,
                 code(self._prepare, f"loop_prep of {self.name}", ";"),
                 "for (ptrdiff_t _i = (ptrdiff_t)blockIdx.x * blockDim.x + threadIdx.x; _i < _n; "
                 "_i += (ptrdiff_t)blockDim.x * gridDim.x) {",
                 "" if any(p.name == "i" for p in self.params) else "[[maybe_unused]] const ptrdiff_t i = _i;",
                 "_ind.set(_i);", *each, "{", code(self.operation, self.name, ";"), "}}",  # the operation may have names of its own
                 code(self._after, f"after_loop of {self.name}", ";"), "}"]
        return "\n".join(filter(None, lines)) + "\n"


class _Texture(np.uint64):
    """A texture as a number, the type of whose parameter is what CUDA calls a cudaTextureObject_t."""

    def __new__(cls, texture):
        self = super().__new__(cls, 0)
        self.memory = texture._shown.memory()
        return self


def passed(argument, dtype, shape, strides, what):
    """Choose how an argument is passed, and encode it. The way is "value", or for an element of an array in a shape "flat"
    or "strided". For a raw array, of which strides is None, it is (ndim, whether flat)."""
    if isinstance(argument, _Texture):
        return "value", [argument.memory]
    if not is_array(argument):
        return "value", [as_bytes(argument, dtype, what)]
    memory = units_of(argument)
    if strides is None:
        flat = is_flat(argument.shape, argument.strides, dtype.itemsize)
        return (argument.ndim, flat), [memory, dims(argument.shape), dims(argument.strides)]
    if is_flat(shape, strides, dtype.itemsize):
        return "flat", [memory]
    return "strided", [memory, dims(strides)]


def raw_array(name, kind, element):
    """The parameters of a raw array, and the line that makes an array of them."""
    ndim, flat = kind
    const, plain = _split_const(element)
    return ([f"{element} *_data_{name}", f"ad_kernel::dims<{ndim}> _shape_{name}",
             f"ad_kernel::dims<{ndim}> _strides_{name}"],
            f"{const}CArray<{plain}, {ndim}, {str(flat).lower()}> {name}(({plain} *)_data_{name}, _shape_{name}, "
            f"_strides_{name});")


def _split_const(element):
    """const, or nothing, and the type without it."""
    return ("const ", element.removeprefix("const ")) if element.startswith("const ") else ("", element)


def _declare(name, kind, element, ndim, declared, before, each):
    """Add a parameter to those that are declared, and what makes of it what the code sees: before the loop or in it.
    The array that an element is of is called _raw_ and its name."""
    if kind == "value":
        declared.append(f"{element} {name}")
        return
    if isinstance(kind, tuple):
        parameters, line = raw_array(name, kind, element)
        declared += parameters
        before.append(line)
        return
    declared.append(f"{element} *_data_{name}")
    place, strides = f"_data_{name}[_i]", ""
    if kind == "strided":
        declared.append(f"ad_kernel::dims<{ndim}> _strides_{name}")
        place, strides = f"ad_kernel::at(_data_{name}, _ind.offset(_strides_{name}))", f", _strides_{name}"
    const, plain = _split_const(element)
    before.append(f"[[maybe_unused]] {const}CArray<{plain}, {ndim}, {str(not strides).lower()}> "
                  f"_raw_{name}(({plain} *)_data_{name}, _shape{strides});")
    each.append(f"{element} {'' if const else '&'}{name} = {place};")


def code(source, what, end=""):
    """A piece of the user's code with its own numbers of lines, under a name that messages will show."""
    return f'#line 1 "{what}"\n{source}\n#line 1 "around {what}"\n{end}' if source.strip() else ""
