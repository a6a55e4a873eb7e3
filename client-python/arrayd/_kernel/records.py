"""Structured types whose values kernels take as arguments: each field lies where CUDA C++ has it."""
import numpy as np

_ALIGNED = "__cuda_alignment__"  # in a dtype's metadata: more alignment than its fields need, under CuPy's name


def make_aligned_dtype(dtype, *, alignment=-1, recurse=True):
    """A structured dtype whose fields lie as those of a struct in CUDA C++, where complex numbers are aligned to their
    size. A kernel takes a NumPy array of one such element as an argument.

    Parameters: dtype: structured dtype, or what NumPy makes one of. alignment: bytes, a power of two; -1: what the fields
    need. recurse: whether structures within it are laid out anew, too; otherwise they stay as they are.
    Returns: numpy.dtype with the same fields, in their order. More alignment than the fields need is in its metadata.
    Raises: ValueError for a dtype without fields, elements that C++ has no type for, and an alignment that is no power of
    two or less than the fields need.
    Source: cupy.make_aligned_dtype
    """
    dtype = np.dtype(dtype)
    if dtype.names is None:
        raise ValueError(f"make_aligned_dtype only supports structured dtypes, and {dtype!r} has no fields")
    return _lay_out(dtype, alignment, recurse)


def _lay_out(dtype, alignment, recurse):
    fields = [(name, _member(dtype.fields[name][0], recurse)) for name in dtype.names]
    offsets, end, most = [], 0, 1
    for _, member in fields:
        needs = alignment_of(member)
        offsets.append(_round_up(end, needs))
        end, most = offsets[-1] + member.itemsize, max(most, needs)
    if alignment != -1 and (alignment < most or alignment & alignment - 1):
        raise ValueError(f"alignment must be -1 or a power of two that is not less than {most}, which the fields need; it is "
                         f"{alignment}")
    whole = max(alignment, most)
    layout = {"names": [name for name, _ in fields], "formats": [member for _, member in fields], "offsets": offsets,
              "itemsize": _round_up(end, whole)}
    return np.dtype(layout, align=True, **({"metadata": {_ALIGNED: whole}} if whole > most else {}))


def _member(dtype, recurse):
    base, shape = dtype.subdtype or (dtype, ())
    if base.names is None or not recurse:
        return dtype
    kept = (base.metadata or {}).get(_ALIGNED, -1)
    return np.dtype((_lay_out(base, kept, True), shape))


def alignment_of(dtype):
    """Bytes to which CUDA C++ aligns elements of a type."""
    base = dtype.base
    if base.names is not None:
        kept = (base.metadata or {}).get(_ALIGNED, 1)
        return max([kept, *(alignment_of(base.fields[name][0]) for name in base.names)])
    if base.kind == "V":
        return 1
    if base.kind not in "biufc":
        raise ValueError(f"make_aligned_dtype: C++ has no type for elements of {base!r}")
    return base.itemsize


def _round_up(size, alignment):
    return -(-size // alignment) * alignment
