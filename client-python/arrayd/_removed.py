"""Names of CuPy that arrayd does not have, and what to use instead: many are NumPy 1's, which CuPy 14 carries on."""

_REMOVED = {  # by NumPy 2, which arrayd follows
    "Inf": "inf", "Infinity": "inf", "NAN": "nan", "NINF": "-inf", "NZERO": "-0.0", "NaN": "nan", "PINF": "inf",
    "PZERO": "0.0", "alltrue": "all", "asfarray": "asarray with a dtype", "bool8": "bool", "cfloat": "complex128",
    "complex_": "complex128", "cumproduct": "cumprod", "disp": "print", "find_common_type": "result_type",
    "float_": "float64", "get_array_wrap": None, "in1d": "isin", "infty": "inf", "int0": "intp",
    "issctype": "issubclass(t, generic)", "issubclass_": "issubclass", "issubsctype": "issubdtype",
    "msort": "sort(a, axis=0)", "obj2sctype": "dtype(obj).type", "product": "prod", "round_": "round",
    "row_stack": "vstack", "safe_eval": "ast.literal_eval", "sctype2char": "dtype(obj).char",
    "set_string_function": "set_printoptions", "singlecomplex": "complex64", "sometrue": "any", "trapz": "trapezoid",
    "uint0": "uintp", "who": "locals()",
}
_CANNOT = {
    "byte_bounds": "arrays of the server have no addresses here; shares_memory tells whether two overlap",
    "make_aligned_dtype": "it has no structured types",
}
_LATER = {name: "users' kernels are planned" for name in
          ("ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel", "fuse", "vectorize")}


def why(name):
    """Why arrayd does not have a name of CuPy, or None when it is no such name."""
    if name in _REMOVED:
        instead = _REMOVED[name]
        return "NumPy 2 has removed it" + (f"; use {instead}" if instead else "")
    return _CANNOT.get(name) or _LATER.get(name)
