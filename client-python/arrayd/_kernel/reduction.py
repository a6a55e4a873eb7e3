"""ReductionKernel: pieces of C++ that map elements, reduce them along axes, and make of that what is returned."""
from .. import _core
from .._base import normalize_axes, product, units_of
from . import sites
from .elementwise import Declared, code, passed, raw_array
from .parameters import check_argument, settle, typedefs
from .strides import broadcast, dims, merged, stretched
from .types import c_name, head, is_array

_THREADS = 256     # of a block
_MOST_BLOCKS = 1 << 30
_ENOUGH = 1024     # outputs with which a device is busy without sharing one among blocks
_LONG = 1 << 14    # elements of a part of one output, at least


class ReductionKernel(Declared):
    """A kernel that reduces arrays, which are broadcast together, along axes.

        l2norm = ad.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
        l2norm(a, axis=1)

    Parameters: in_params, out_params: as for ElementwiseKernel; raw inputs need axes that begin with 0, 1, ....
    map_expr: expression of the inputs' elements (and _J, the element's number along the reduced axes, i, its number in
    C order where these are the first axes, and _in_ind.size(), how many there are). reduce_expr: expression of a and b,
    two such results; associative and commutative. post_map_expr: statement that sets the outputs from a, the result.
    identity: expression that a reduction of nothing gives; None or "" where there is none. name: the kernel's.
    reduce_type: the type in which it is reduced, in C++; the first output's unless given. reduce_dims: merge dimensions
    where the arrays allow it. preamble: code before the kernel. options: tuple of options of the compiler.
    Raises: ValueError for declarations that are none. Calling it: arrayd.CompileError with what the compiler says.
    Source: cupy.ReductionKernel
    """

    def __init__(self, in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name="reduce_kernel",
                 reduce_type=None, reduce_dims=True, preamble="", options=()):
        super().__init__(in_params, out_params, name, "reduction", options)
        if not self.in_params or not self.out_params:
            raise ValueError("a reduction has at least one input and one output")
        if any(p.raw for p in self.out_params):
            raise ValueError("outputs of a reduction cannot be raw")
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.reduce_type, self.reduce_dims, self.preamble = reduce_type, reduce_dims, preamble

    def __call__(self, *args, axis=None, dtype=None, out=None, keepdims=False, stream=None, block_size=None):
        """Run it, without waiting.

        Parameters: args: the inputs, and the outputs or none. axis: axis or axes along which is reduced, None: all.
        dtype: of outputs whose type nothing else says. out: the output. keepdims: keep reduced axes, with size 1.
        stream: ignored: it runs on the current stream. block_size: threads of a block, a power of two.
        Returns: ndarray, or a tuple of ndarrays where there are several outputs.
        Raises: TypeError for a wrong number of arguments and for types that do not fit; ValueError for shapes that do
        not, and where nothing is reduced and there is no identity; AxisError; arrayd.CompileError.
        """
        if out is not None:
            if len(args) != self.nin or self.nout != 1:
                raise ValueError(f"{self.name}: out is given twice, or is not the only output")
            args += (out,)
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"{self.name}: wrong number of arguments: {self.nin} inputs, or {self.nargs} with outputs, "
                            f"and given {len(args)}")
        for parameter, argument in zip(self.params, args):
            check_argument(self.name, argument, parameter.name)
        inputs, outputs = args[:self.nin], args[self.nin:]
        if not all(map(is_array, outputs)):
            raise TypeError(f"{self.name}: outputs must be arrays")
        given = None if dtype is None else _core.as_dtype(dtype)
        ins, outs, types = settle(self.name, self.in_params, self.out_params, inputs, outputs, given)
        shape = broadcast([a.shape for p, a in zip(self.in_params, inputs) if is_array(a) and not p.raw])
        axes = normalize_axes(axis, len(shape))
        if any(p.raw for p in self.in_params) and sorted(axes) != list(range(len(axes))):
            raise ValueError(f"{self.name} has a raw input, so that it can only reduce the first axes, not {axis}")
        kept = [n for d, n in enumerate(shape) if d not in axes]
        wanted = tuple(1 if d in axes else n for d, n in enumerate(shape)) if keepdims else tuple(kept)
        outputs = outputs or tuple(_core.empty(wanted, each) for each in outs)
        for parameter, each in zip(self.out_params, outputs):
            if each.shape != wanted:
                raise ValueError(f"{self.name}: output {parameter.name} has shape {each.shape}, the result {wanted}")
        self._run(inputs, ins, outputs, outs, types, shape, axes, block_size)
        return outputs[0] if self.nout == 1 else outputs

    def _run(self, inputs, ins, outputs, outs, types, shape, axes, block_size):
        """Launch it: as one kernel, or where few outputs are made of many elements as two."""
        along, rest = sorted(axes), [d for d in range(len(shape)) if d not in axes]
        count, length = product(shape[d] for d in rest), product(shape[d] for d in along)
        if not self.identity and length == 0:
            raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
        if count == 0:
            return
        strides = [stretched(a, shape) for p, a in zip(self.in_params, inputs) if not p.raw and is_array(a)]
        results = [_left(a.strides, shape, rest) for a in outputs]
        beside = _is_across(strides, along, rest)
        merge = merged if self.reduce_dims else lambda sizes, several: (sizes, several)
        along, inner = merge([shape[d] for d in along], [[s[d] for d in along] for s in strides])
        rest, outer = merge([shape[d] for d in rest], [[s[d] for d in rest] for s in strides] + results)
        kinds, values, each = [], [], iter(zip(inner, outer))
        for parameter, argument, dtype in zip(self.in_params, inputs, ins):
            mine = next(each) if is_array(argument) and not parameter.raw else None
            if mine:
                kinds.append("element")
                values += [units_of(argument), dims(mine[0]), dims(mine[1])]
                continue
            kind, given = passed(argument, dtype, (), None, f"{self.name}: {parameter.name}")
            kinds.append(kind)
            values += given
        written = 0
        for argument, mine in zip(outputs, outer[len(strides):]):
            written |= 1 << len(values)
            values += [units_of(argument), dims(mine)]
        values += [dims(along), dims(rest)]
        threads = self._threads(block_size)
        beside = min(threads, 32, _power(count)) if beside else 1
        kernel = _Kernel(self, tuple(kinds), ins, outs, types, len(along), len(rest), threads, beside)
        kernel.launch(values, written, count, length)

    def _threads(self, block_size):
        # On the CPU threads of a block that meet a barrier cost more than they bring.
        threads = block_size or (1 if _core.session_info()["backend"] == "cpu" else _THREADS)
        if threads & threads - 1 or not 1 <= threads <= 1024:
            raise ValueError(f"{self.name}: block_size must be a power of two up to 1024, not {threads}")
        return threads


def _power(n):
    return 1 << max(n - 1, 0).bit_length()


def _left(strides, shape, rest):
    """An output's strides along the axes that are left, whether it has kept the others or not."""
    return [strides[d] for d in rest] if len(strides) == len(shape) else list(strides)


def _is_across(strides, along, rest):
    """Whether elements of neighbouring outputs lie closer together than those of one."""
    return bool(strides and rest and along) and abs(strides[0][rest[-1]]) < abs(strides[0][along[-1]])


class _Kernel:
    """A reduction of arguments of certain kinds: its sources and launches."""

    def __init__(self, what, kinds, ins, outs, types, along, rest, threads, beside):
        self.what, self.kinds, self.ins, self.outs, self.types = what, kinds, ins, outs, types
        self.along, self.rest, self.threads, self.beside = along, rest, threads, beside

    def launch(self, values, written, count, length):
        parts = self._parts(count, length)
        groups = -(-count // self.beside)
        if parts == 1:
            self._one("whole", values, [1, length], None, written, groups)
            return
        partial = _core.empty((parts * count,), self._reduced())
        self._one("part", values, [parts, length], partial, 0, groups * parts)
        self._one("join", values, [1, parts], partial, written, groups)

    def _one(self, stage, values, counts, partial, written, blocks):
        values = [*values, *(n.to_bytes(8, "little") for n in counts)]
        if partial is not None:
            written |= (stage == "part") << len(values)
            values.append(partial)
        parts = counts[0]
        blocks = min(blocks, _MOST_BLOCKS // parts * parts)
        sites.note(self.what._entry)
        self._module(stage).launch(self.what._entry, (blocks, 1, 1), (self.threads, 1, 1), 0, tuple(values), written)

    def _parts(self, count, length):
        """How many blocks share the elements of an output: a second kernel reduces what they have found."""
        if count >= _ENOUGH or length < 2 * _LONG or self._reduced() is None:
            return 1
        return min(-(-length // _LONG), -(-_ENOUGH // count))

    def _reduced(self):
        """The dtype whose elements are of the type in which it is reduced; None for a type of the user's own."""
        kind = self.what.reduce_type
        if kind is None:
            return self.outs[0]
        return self.types.get(kind) or next((d for d in map(_core.as_dtype, _NAMES) if c_name(d) == kind), None)

    def _module(self, stage):
        key = stage, self.kinds, tuple(self.ins + self.outs), self.along, self.rest, self.threads, self.beside
        return self.what._built(key, lambda: self._source(stage))

    # ---- the source ----

    def _source(self, stage):
        what = self.what
        declared, before, bases, elements = [], [], [], []
        for p, kind, dtype in zip(what.in_params, self.kinds, self.ins):
            element = f"const {c_name(dtype)}"
            if kind == "value":
                declared.append(f"{element} {p.name}")
            elif kind == "element":
                declared += [f"{element} *_raw_{p.name}", f"ad_kernel::dims<{self.along}> _along_{p.name}",
                             f"ad_kernel::dims<{self.rest}> _rest_{p.name}"]
                bases.append(f"{element} *_base_{p.name} = &{_at('_raw', '_rest', p.name)};")
                elements.append(f"{element} {p.name} = {_at('_base', '_along', p.name)};")
            else:
                parameters, line = raw_array(p.name, kind, element)
                declared += parameters
                before.append(line)
        results = []
        for p, dtype in zip(what.out_params, self.outs):
            declared += [f"{c_name(dtype)} *_raw_{p.name}", f"ad_kernel::dims<{self.rest}> _rest_{p.name}"]
            results.append(f"{c_name(dtype)} &{p.name} = {_at('_raw', '_rest', p.name)};")
        declared += [f"ad_kernel::dims<{self.along}> _along", f"ad_kernel::dims<{self.rest}> _rest",
                     "long long _parts", "long long _items"]
        if stage != "whole":
            declared.append("_type_reduce *_partial")
        return self._text(stage, declared, "\n".join(before), "\n".join(bases), "\n".join(elements), "\n".join(results))

    def _text(self, stage, declared, before, bases, elements, results):
        what, name = self.what, self.what.name
        lanes = self.threads // self.beside
        reduced = what.reduce_type or c_name(self.outs[0])
        value = code(what.map_expr, f"map_expr of {name}")
        number = "" if any(p.name == "i" for p in what.params) \
            else "[[maybe_unused]] const ptrdiff_t i = _J * _count + _o;"
        mapped = f"""_along_ind.set(_J);
{number}
{elements}
return (_type_reduce)(
{value});""" if stage != "join" else "return _partial[_J * _count + _o];"
        start, end = "_map(_j < _items ? _j : _items - 1)", ""
        if stage != "part" and what.identity:
            start = f"_items ? {start} : ad_identity()"
            end = "if (_items) a = ad_reduce(ad_identity(), a);"
        put = "_partial[_part * _count + _o] = a;" if stage == "part" else f"""{end}
{results}
{code(what.post_map_expr, f"post_map_expr of {name}", ";")}"""
        return f"""{head(self.ins + self.outs, what.preamble, what.map_expr, what.post_map_expr, reduced)}
{typedefs(self.types)}{code(what.preamble, f"preamble of {name}")}
typedef {reduced} _type_reduce;
struct _extent {{ ptrdiff_t size_; __device__ ptrdiff_t size() const {{ return size_; }} }};
static inline __device__ _type_reduce ad_reduce(_type_reduce a, _type_reduce b) {{
return (_type_reduce)(
{code(what.reduce_expr, f"reduce_expr of {name}")});
}}
{self._identity()}
extern "C" __global__ void {what._entry}({", ".join(declared)}) {{
{_SHARED.format(threads=self.threads) if lanes > 1 else ""}
ad_kernel::indexer<{self.along}> _along_ind(_along);
ad_kernel::indexer<{self.rest}> _rest_ind(_rest);
const ptrdiff_t _length = _along_ind.size(), _count = _rest_ind.size();
[[maybe_unused]] const _extent _in_ind = {{_length * _count}}, _out_ind = {{_count}};
{before}
const ptrdiff_t _lane = threadIdx.x / {self.beside}, _column = threadIdx.x % {self.beside}, _part = blockIdx.x % _parts;
for (ptrdiff_t _first = blockIdx.x / _parts * {self.beside}; _first < _count;
     _first += gridDim.x / _parts * {self.beside}) {{
const ptrdiff_t _o = _first + _column < _count ? _first + _column : _count - 1;
_rest_ind.set(_o);
{bases}
auto _map = [&](ptrdiff_t _J) -> _type_reduce {{
{mapped}
}};
ptrdiff_t _j = _part * {lanes} + _lane;
_type_reduce a = {start};
for (_j += _parts * {lanes}; _j < _items; _j += _parts * {lanes}) a = ad_reduce(a, _map(_j));
{_JOIN.format(lanes=lanes, beside=self.beside) if lanes > 1 else ""}
if (_lane == 0 && _first + _column < _count) {{
{put}
}}
}}
}}
"""

    def _identity(self):
        what = self.what
        return f"""static inline __device__ _type_reduce ad_identity() {{
return (_type_reduce)(
{code(what.identity, f"identity of {what.name}")});
}}""" if what.identity else ""


def _at(base, side, name):
    """The C++ of an element, along the axes that are reduced or over the rest."""
    return f"ad_kernel::at({base}_{name}, {side}_ind.offset({side}_{name}))"


_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
_SHARED = "__shared__ ad_kernel::shared_bytes<{threads} * sizeof(_type_reduce)> _bytes;"
# The lanes' results reduced in shared memory; lanes past the last element have none.
_JOIN = """_type_reduce *_shared = (_type_reduce *)_bytes.at;
_shared[threadIdx.x] = a;
__syncthreads();
for (int _half = {lanes} / 2; _half; _half /= 2) {{
    if (_lane < _half && _part * {lanes} + _lane + _half < _items)
        _shared[threadIdx.x] = ad_reduce(_shared[threadIdx.x], _shared[threadIdx.x + _half * {beside}]);
    __syncthreads();
}}
a = _shared[_column];
__syncthreads();"""
