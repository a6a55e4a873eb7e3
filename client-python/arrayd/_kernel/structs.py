"""Structured types in CUDA C++: a struct whose fields are reached by their number, x.at<1>()."""
import functools
import hashlib

from .records import alignment_of

_NUMBERS = "namespace ad_kernel { template <int N> struct number {}; }\n"


def struct_name(dtype):
    """The name of the struct of a dtype.

    Parameters: dtype: numpy.dtype with fields.
    Returns: str, the same for dtypes whose fields have the same types and places.
    Raises: ValueError for fields that do not lie as C++ can have them.
    Source: arrayd
    """
    return _define(dtype)[0]


def define_structs(dtypes):
    """The definitions of the structs of dtypes, each once, and those within others before them.

    Parameters: dtypes: numpy.dtypes, of which any may have fields.
    Returns: str, empty where none has.
    Raises: as struct_name.
    Source: arrayd
    """
    texts = dict.fromkeys(text for dtype in dtypes for text in _texts(dtype))
    return _NUMBERS + "".join(texts) if texts else ""


def _texts(dtype):
    """The texts of the structs that a dtype needs, the innermost first."""
    if dtype.names is None:
        return
    for name in dtype.names:
        yield from _texts(dtype.fields[name][0].base)
    yield _define(dtype)[1]


@functools.lru_cache(256)
def _define(dtype):
    """Name and text of a struct."""
    members, getters, end = {}, [], 0
    places = [(dtype.fields[name][1], number, name) for number, name in enumerate(dtype.names)]
    for offset, number, name in sorted(places):
        kind = dtype.fields[name][0]
        _check_place(name, kind, offset, end)
        if offset > end:
            members[f"_before_{number}"] = f"unsigned char _before_{number}[{offset - end}];"
        members[number] = _member(kind, f"_{number}")
        for const in ("", "const "):
            getters.append(f"__device__ auto &_get(ad_kernel::number<{number}>) {const}{{ return _{number}; }}")
        end = offset + kind.itemsize
    if dtype.itemsize % alignment_of(dtype):
        raise ValueError(f"Itemsize {dtype.itemsize} is not a multiple of {alignment_of(dtype)}, to which the fields of {dtype!r} "
                         "are aligned in kernels; make_aligned_dtype() lays them out")
    if dtype.itemsize > end:
        members["_behind"] = f"unsigned char _behind[{dtype.itemsize - end}];"
    body = "\n".join([f"static constexpr int field_count = {len(dtype.names)};", *members.values(), *getters,
                      *(f"template <int N> __device__ auto &at() {const}{{ return _get(ad_kernel::number<N>()); }}"
                        for const in ("", "const "))])
    name = f"ad_struct_{hashlib.sha256(body.encode()).hexdigest()[:16]}"
    return name, f"struct {name} {{\n{body}\n}};\nstatic_assert(sizeof({name}) == {dtype.itemsize}, \"fields lie otherwise\");\n"


def _check_place(name, kind, offset, end):
    needs = alignment_of(kind)
    if offset % needs:
        raise ValueError(f"Field {name} with offset {offset} is not aligned to the {needs} bytes that kernels need; "
                         "make_aligned_dtype() lays fields out")
    if offset < end:
        raise ValueError(f"the field {name} with offset {offset} overlaps another, which kernels cannot have")


def _member(kind, name):
    """The declaration of a field."""
    from .types import c_name
    base, shape = kind.subdtype or (kind, ())
    if base.names is None and base.kind == "V":
        base_name, shape = "unsigned char", (*shape, base.itemsize)
    else:
        base_name = c_name(base)
    return f"{base_name} {name}{''.join(f'[{n}]' for n in shape)};"
