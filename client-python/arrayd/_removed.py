"""Names of CuPy that arrayd does not have, and why: many are NumPy 1's, which CuPy 14 carries on."""

_BY_NUMPY = {
    "Inf": "inf", "Infinity": "inf", "NAN": "nan", "NINF": "-inf", "NZERO": "-0.0", "NaN": "nan", "PINF": "inf",
    "PZERO": "0.0", "alltrue": "all", "asfarray": "asarray with a dtype", "bool8": "bool", "cfloat": "complex128",
    "complex_": "complex128", "cumproduct": "cumprod", "find_common_type": "result_type",
    "float_": "float64", "get_array_wrap": None, "in1d": "isin", "infty": "inf", "int0": "intp",
    "issctype": "issubclass(t, generic)", "issubclass_": "issubclass", "issubsctype": "issubdtype",
    "msort": "sort(a, axis=0)", "obj2sctype": "dtype(obj).type", "product": "prod", "round_": "round",
    "row_stack": "vstack", "safe_eval": "ast.literal_eval", "sctype2char": "dtype(obj).char",
    "set_string_function": "set_printoptions", "singlecomplex": "complex64", "sometrue": "any", "trapz": "trapezoid",
    "uint0": "uintp",
}
_MEMORY = "memory is the server's, and an array the way to get some"
_NO_CUDA = "this process uses no CUDA: the server does"
_REASONS = {
    "": {"disable_experimental_feature_warning": "arrayd warns of no feature as experimental",
         "cudnn": "CuPy 14 has removed it", "core": "CuPy 8 has made it private; use the names of cupy",
         "sparse": "CuPy 8 has moved it to cupyx.scipy.sparse", "util": "CuPy 8 has made it private; memoize is cupy.memoize",
         "cutensor": "CuPy 14 has it as cupyx.cutensor, which arrayd lacks; einsum and tensordot contract arrays"},
    "cupyx": {"cutensor": "this process uses no CUDA; cupy.einsum and cupy.tensordot contract arrays"},
    "cuda": {**dict.fromkeys("CFunctionAllocator PythonFunctionAllocator".split(), _MEMORY),
             **dict.fromkeys("get_cublas_handle get_cuda_path get_hipcc_path get_nvcc_path "
                             "get_rocm_path".split(), _NO_CUDA),
             "Module": "the server loads no client's binaries; RawModule compiles source",
             "compile_with_cache": "CuPy 10 has removed it; use RawModule(code=...).get_function(name)",
             **dict.fromkeys(("cudnn", "cusparselt"), _NO_CUDA)},
}


def why(name, module=""):
    """Why arrayd (or a module of it: cuda, cupyx) does not have a name of CuPy; None when CuPy has no such name."""
    if not module and name in _BY_NUMPY:
        instead = _BY_NUMPY[name]
        return "NumPy 2 has removed it" + (f"; use {instead}" if instead else "")
    return _REASONS.get(module, {}).get(name)


def missing(name, module=""):
    """The AttributeError for a name that a module does not have."""
    reason = None if name.startswith("_") else why(name, module)
    where = "arrayd." + module if module else "arrayd"
    return AttributeError(f"module {where!r} has no attribute {name!r}" + (f": {reason}" if reason else ""))
