"""RawKernel and RawModule: CUDA C++ as the user has written it."""
import os
import re

from . import build
from .launch import Function, NotFoundError

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]cuComplex\.h[>"]', re.M)
# A comma behind the last argument of a template, which NVRTC takes and C++ does not; what may hide one is found with it.
_LAST_COMMA = re.compile(r'''//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'''
                         r"""|'(?:\\.|[^'\\\n])+'|(?P<comma>,)(?=\s*>)""", re.S)
# cuComplex.h's names over complex<T>.
_CUCOMPLEX = "#include <cupy/complex.cuh>\n" + "".join(f"""
typedef complex<{real}> {kind};
static inline __device__ {kind} make_{kind}({real} re, {real} im) {{ return {kind}(re, im); }}
static inline __device__ {real} cuCreal{f}({kind} z) {{ return z.real(); }}
static inline __device__ {real} cuCimag{f}({kind} z) {{ return z.imag(); }}
static inline __device__ {real} cuCabs{f}({kind} z) {{ return abs(z); }}
static inline __device__ {kind} cuConj{f}({kind} z) {{ return conj(z); }}
static inline __device__ {kind} cuCadd{f}({kind} a, {kind} b) {{ return a + b; }}
static inline __device__ {kind} cuCsub{f}({kind} a, {kind} b) {{ return a - b; }}
static inline __device__ {kind} cuCmul{f}({kind} a, {kind} b) {{ return a * b; }}
static inline __device__ {kind} cuCdiv{f}({kind} a, {kind} b) {{ return a / b; }}
static inline __device__ {kind} cuCfma{f}({kind} a, {kind} b, {kind} c) {{ return a * b + c; }}
""" for real, kind, f in (("float", "cuFloatComplex", "f"), ("double", "cuDoubleComplex", ""))) + """
typedef cuFloatComplex cuComplex;
static inline __device__ cuComplex make_cuComplex(float re, float im) { return cuComplex(re, im); }
static inline __device__ cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return cuFloatComplex(z); }
static inline __device__ cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return cuDoubleComplex(z); }
"""

_AS_NVCC = ("--device-as-default-execution-space",)  # it takes functions that are not marked, NVRTC only by this


class _Source:
    """Source text with what it is compiled with, and its functions that have been asked for."""

    def __init__(self, code, options, backend, translate_cucomplex, enable_cooperative_groups, names=()):
        if not isinstance(code, str):
            raise TypeError(f"code must be a str, not {type(code).__name__}")
        if backend not in ("nvrtc", "nvcc"):
            raise ValueError(f"backend must be 'nvrtc' or 'nvcc', not {backend!r}: the server compiles with NVRTC for both")
        if backend == "nvcc" and names:
            raise ValueError("name_expressions need backend='nvrtc'")
        self.text = _LAST_COMMA.sub(lambda found: "" if found["comma"] else found[0], code)
        if translate_cucomplex:
            self.text = _over_complex(self.text)
        self.enable_cooperative_groups = bool(enable_cooperative_groups)
        if self.enable_cooperative_groups:  # a module of its own: its kernels are launched in another way
            self.text += "\n// cooperative"
        self.code, self.options, self.names, self.backend = code, build.as_options(options), tuple(names), backend
        self._translated = translate_cucomplex
        self._functions = build.Memo()

    def __reduce__(self):
        return type(self), (self.code, self.options, self.backend, self._translated, self.enable_cooperative_groups,
                            self.names)

    def module(self, name="module"):
        options = self.options + _AS_NVCC if self.backend == "nvcc" else self.options
        return build.module(self.text, options, self.names, name)

    def function(self, name):
        where = build.place()
        found = self._functions.get(where, name)
        if found is None:
            found = self._functions.put(where, name, Function(self.module(name), name))
            if self.enable_cooperative_groups:
                found._module.set(name, cooperative=True)
        return found


def _over_complex(code):
    """code without its include of cuComplex.h, after the names of that over complex<T>."""
    return f"{_CUCOMPLEX}#line 1\n{_INCLUDE.sub('', code)}"


def _attribute(name, doc, setting=None):
    def get(self):
        return self.attributes[name]

    def put(self, value):
        self.kernel._module.set(self.name, **{setting: value})

    return property(get, put if setting else None, doc=doc)


class _OfSource:
    """Properties of a source of CUDA C++."""

    @property
    def code(self):
        """str: the source."""
        return self._source.code

    @property
    def options(self):
        """tuple of the compiler's options."""
        return self._source.options

    @property
    def backend(self):
        """str: "nvrtc" or "nvcc", as it was given."""
        return self._source.backend

    @property
    def enable_cooperative_groups(self):
        """bool: whether the blocks of a launch run all at once."""
        return self._source.enable_cooperative_groups


class RawKernel(_OfSource):
    """A kernel in CUDA C++, whose grid, block and arguments the caller chooses. It is compiled when first used.

        add = ad.RawKernel(r'''
        extern "C" __global__ void add(const float *x, const float *y, float *z) {
            int i = blockDim.x * blockIdx.x + threadIdx.x;
            z[i] = x[i] + y[i];
        }''', "add")
        add((5,), (5,), (x, y, z))

    Parameters: code: the source. name: of the function, which is extern "C". options: tuple of options of the compiler.
    -I names folders of this host: what the source includes of them goes with it, while CUDA's and CuPy's headers are the
    server's. -O and --gpu-architecture change nothing, as the server knows its device. backend: "nvrtc" or "nvcc": the
    server compiles with NVRTC for both, so there is no code for the host: functions that are not marked are the device's
    with "nvcc", and options for the host's compiler change nothing; no kernel launches others, and Thrust's headers do not
    compile. translate_cucomplex: take the names of cuComplex.h for complex<T>. enable_cooperative_groups:
    the blocks of a launch run all at once, so that they may wait for each other (grid_group); more blocks than can are
    an error. jitify: ignored, what headers there are is the server's choice.
    Raises: TypeError; ValueError for another backend. Calling it: arrayd.CompileError with what the compiler says; OSError
    for a header that cannot be read.
    Source: cupy.RawKernel
    """

    def __init__(self, code, name, options=(), backend="nvrtc", translate_cucomplex=False, *,
                 enable_cooperative_groups=False, jitify=False):
        names = (name,) if isinstance(name, str) and "<" in name else ()
        self._set(_Source(code, options, backend, translate_cucomplex, enable_cooperative_groups, names), name)

    def _set(self, source, name):
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        self._source, self._name = source, name

    @classmethod
    def _of(cls, source, name):
        kernel = cls.__new__(cls)
        kernel._set(source, name)
        return kernel

    def __call__(self, grid, block, args, *, shared_mem=0):
        """Launch it on the current stream, without waiting.

        Parameters: grid, block: int or tuple of up to 3; a grid with a 0 has no blocks, and nothing runs. args: one array
        or a tuple: arrays go as pointers to their first element, and so do addresses within them (a.data.ptr), which an
        int may be; a.mdspan(...) as a cuda::std::mdspan; cuda.texture's objects as cudaTextureObject_t and
        cudaSurfaceObject_t;
        Python's int, float, complex and bool as long long, double, complex<double> and bool; NumPy scalars and arrays
        of one element, also of structured types, as they are; None as a null pointer. Neither number nor types are
        compared with the kernel's before it runs. shared_mem: bytes of dynamic shared memory.
        Returns: None.
        Raises: TypeError for an argument that cannot be sent; arrayd.CompileError. A later failure is raised where an
        array of args is read.
        """
        self.kernel(grid, block, args, shared_mem)

    def compile(self, log_stream=None):
        """Compile it now, for the current device.

        Parameters: log_stream: file open for text to which it is written what the compiler says, warnings too.
        Returns: None.
        Raises: arrayd.CompileError.
        """
        _compile(self._source, log_stream, self._name)

    @property
    def kernel(self):
        """The cuda.Function on the current device, compiled if need be."""
        return self._source.function(self._name)

    @property
    def name(self):
        """str: the function's name."""
        return self._name

    __name__ = name

    @property
    def attributes(self):
        """dict of all of these attributes; waits for the server."""
        return self.kernel.attributes

    max_threads_per_block = _attribute("max_threads_per_block", "int: the most threads that a block may have.")
    shared_size_bytes = _attribute("shared_size_bytes", "int: bytes of static shared memory.")
    const_size_bytes = _attribute("const_size_bytes", "int: bytes of constant memory.")
    local_size_bytes = _attribute("local_size_bytes", "int: bytes of local memory of each thread.")
    num_regs = _attribute("num_regs", "int: registers of each thread.")
    ptx_version = _attribute("ptx_version", "int: ten times the version of PTX.")
    binary_version = _attribute("binary_version", "int: ten times the architecture that it is compiled for.")
    cache_mode_ca = _attribute("cache_mode_ca", "int: whether it was compiled to cache global loads in L1.")
    max_dynamic_shared_size_bytes = _attribute(
        "max_dynamic_shared_size_bytes", "int: the most dynamic shared memory that a launch may ask for; can be set.",
        "max_dynamic_shared")
    preferred_shared_memory_carveout = _attribute(
        "preferred_shared_memory_carveout", "int: per cent of the cache that should be shared memory, -1: as it likes; "
        "can be set.", "carveout")


def _compile(source, log_stream, name):
    try:
        said = source.module(name).log()
    except build.CompileException as error:
        if log_stream is not None:
            log_stream.write(error.get_message())
        raise
    if log_stream is not None and said:
        log_stream.write(said)


class RawModule(_OfSource):
    """CUDA C++ with several kernels, templates or global variables. It is compiled when first used.

        module = ad.RawModule(code=source, name_expressions=("scale<float>", "scale<double>"))
        module.get_function("scale<float>")((1,), (n,), (a, 3))

    Parameters: code: the source. path: must be None: the server takes no binaries from clients. options, backend,
    translate_cucomplex, enable_cooperative_groups, jitify: as for RawKernel. name_expressions: sequence of names of
    template instances, as C++ would write them.
    Raises: TypeError; ValueError for a path: cuda.driver.CUDADriverError where there is no such file.
    Differs: there are no binaries.
    Source: cupy.RawModule
    """

    def __init__(self, *, code=None, path=None, options=(), backend="nvrtc", translate_cucomplex=False,
                 enable_cooperative_groups=False, name_expressions=None, jitify=False):
        if code is not None and path is not None:
            raise TypeError("RawModule takes code or a path, not both")
        if path is not None and not os.path.exists(path):
            raise NotFoundError(f"CUDA_ERROR_FILE_NOT_FOUND: file not found: {path!r}")
        if path is not None:
            raise ValueError(f"path={path!r}: the server loads no cubin or PTX of a client, only what it has compiled "
                             "itself; give the source as code")
        if code is None:
            raise TypeError("RawModule needs code, the source")
        names = () if name_expressions is None else name_expressions
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise TypeError(f"name_expressions must be a sequence of strings, not {names!r}")
        self._source = _Source(code, options, backend, translate_cucomplex, enable_cooperative_groups, names)

    def get_function(self, name):
        """A kernel of the module.

        Parameters: name: of an extern "C" function, or one of name_expressions.
        Returns: RawKernel.
        Raises: arrayd.CompileError; cuda.driver.CUDADriverError, which is a ValueError too, where there is no such
        function.
        """
        kernel = RawKernel._of(self._source, name)
        kernel.kernel
        return kernel

    def get_global(self, name):
        """A global variable (__device__ or __constant__) of the module, as it is on the current device.

        Parameters: name: of the variable; one with a mangled name is found by one of name_expressions ("&name").
        Returns: ndarray of bytes that is the variable: view(dtype) gives it a type, as ndarray(shape, dtype, memptr) does,
        and assigning to its elements changes it.
        Raises: arrayd.CompileError; ValueError where there is no such variable.
        Differs: CuPy gives a MemoryPointer.
        """
        return self._source.module().get_global(name)

    def compile(self, log_stream=None):
        """Compile it now, for the current device.

        Parameters: log_stream: as for RawKernel.compile.
        Returns: None.
        Raises: arrayd.CompileError.
        """
        _compile(self._source, log_stream, "module")

    @property
    def name_expressions(self):
        """tuple of the names of template instances."""
        return self._source.names
