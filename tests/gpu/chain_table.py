"""Chains (kernels/chain.h) for the table of a backend, a compiler (kernels/compile.h) that asks libnvrtc at once, and the
tables of protocol/ that tests need to make them."""
import ctypes as c
import glob
import os
import pathlib
import re

import numpy
from backend_table import Fault, Op

PROTOCOL = pathlib.Path(__file__).resolve().parents[2] / "protocol"
NODES, INPUTS, SCALARS, OUTPUTS, RANDOMS = 64, 32, 32, 16, 4
NODE, INPUT, SCALAR = range(3)
REQ_UFUNC, REQ_REDUCE = 19, 20


def rows(name):
    """The fields of a table's rows, as text."""
    for line in (PROTOCOL / f"{name}.def").read_text().splitlines():
        if match := re.match(r"AD_\w+\((.*)\)", line):
            yield [field.strip() for field in re.findall(r'(?:"[^"]*"|[^,"])+', match[1])]


DTYPES = [row[2] for row in rows("dtype")]
KINDS = [row[4].strip("'") for row in rows("dtype")]
SIZES = [int(row[3]) for row in rows("dtype")]
CODE = {name: i for i, name in enumerate(DTYPES)}
SETS = {"AD_M_ALL": "biufc", "AD_M_NUMBER": "iufc", "AD_M_INT": "iu", "AD_M_BOOL": "b", "AD_M_FLOAT": "f",
        "AD_M_COMPLEX": "c"}
WIDE = {"AD_M_WIDEINT": ["int64", "uint64"], "AD_M_WIDE": ["float64", "complex128"]}


def dtypes_of(masks):
    """The codes of the dtypes that a mask of rule.def names, as text: sets and AD_BIT(AD_FLOAT32) with | between."""
    codes = set()
    for mask in map(str.strip, masks.split("|")):
        if one := re.fullmatch(r"AD_BIT\(AD_(\w+)\)", mask):
            codes.add(CODE[one[1].lower()])
        elif mask in WIDE:
            codes.update(CODE[name] for name in WIDE[mask])
        else:
            codes.update(code for code, kind in enumerate(KINDS) if kind in SETS[mask])
    return sorted(codes)


class Rule:
    def __init__(self, fields):
        self.loops = dtypes_of(fields[1])
        self.into, self.out = fields[3:6], fields[6:8]

    @staticmethod
    def dtype(code, loop):
        real = {"complex64": "float32", "complex128": "float64"}
        return {"T": loop, "R": CODE[real.get(DTYPES[loop], DTYPES[loop])], "B": CODE["bool"], "W": CODE["int32"],
                "L": CODE["int64"], "U": CODE["uint8"]}[code]


RULES = {row[0]: Rule(row) for row in rows("rule")}


class Ufunc:
    def __init__(self, fields):
        self.id, self.name, self.nin, self.nout = int(fields[0]), fields[1], int(fields[2]), int(fields[3])
        self.rule, self.domain = RULES[fields[4]], fields[5]
        self.traits = set(map(str.strip, fields[7].split("|")))

    def into(self, k, loop):
        return Rule.dtype(self.rule.into[k], loop)

    def out(self, k, loop):
        return Rule.dtype(self.rule.out[k], loop)


UFUNCS = {row[1]: Ufunc(row) for row in rows("ufunc")}
REDUCTIONS = {row[1]: int(row[0]) for row in rows("reduction")}


def fusable(row, loop):
    """Tell whether the cuda backend has the row in chains, of inputs that are arrays."""
    if row.name == "power" and KINDS[loop] == "i":
        return False  # the exponent must be a number
    if "AD_U_BODY" in row.traits or KINDS[loop] == "c" and row.traits & {"AD_U_COMPLEX_LIBRARY", "AD_U_SPECIAL"}:
        return False
    return loop in row.rule.loops


def storage(dtype):
    """NumPy's type of the same size; bfloat16 has none of its own."""
    return numpy.dtype(numpy.uint16 if DTYPES[dtype] == "bfloat16" else DTYPES[dtype])


# ---- the structures ----

class Scalar(c.Structure):
    class As(c.Union):
        _fields_ = [("b", c.c_bool), ("i", c.c_int64), ("u", c.c_uint64), ("f", c.c_double), ("c", c.c_double * 2)]
    _fields_ = [("kind", c.c_uint8), ("value", As)]

    @classmethod
    def of(cls, value):
        s = cls()
        if value is None:
            return s
        if isinstance(value, bool):
            s.kind, s.value.b = 1, value
        elif isinstance(value, int):
            s.kind, s.value.i = 2, value
        else:
            s.kind, s.value.f = 4, value
        return s


class Desc(c.Structure):
    _fields_ = [("buffer", c.c_uint64), ("offset", c.c_int64), ("shape", c.c_void_p), ("strides", c.c_void_p),
                ("dtype", c.c_uint8), ("ndim", c.c_uint8), ("form", c.c_uint8)]


class Operand(c.Structure):
    _fields_ = [("is_scalar", c.c_uint8), ("desc", Desc), ("scalar", Scalar), ("data", c.c_void_p)]


class Source(c.Structure):
    _fields_ = [("kind", c.c_uint8), ("index", c.c_uint8), ("part", c.c_uint8)]


class Node(c.Structure):
    _fields_ = [("row", c.c_uint16), ("loop", c.c_uint8), ("nin", c.c_uint8), ("nout", c.c_uint8),
                ("dtype", c.c_uint8 * 2), ("source", Source * 3)]


class Output(c.Structure):
    _fields_ = [("view", Operand), ("origin", Source)]


class Random(c.Structure):
    _fields_ = [("id", c.c_uint8), ("loop", c.c_uint8), ("key", c.c_uint64), ("first", c.c_uint64),
                ("parameter", Scalar * 3)]


class End(c.Structure):
    _fields_ = [("op", c.c_void_p), ("origin", Source)]


class Chain(c.Structure):
    _fields_ = [("ndim", c.c_int), ("nnodes", c.c_int), ("ninputs", c.c_int), ("nscalars", c.c_int),
                ("noutputs", c.c_int), ("nrandoms", c.c_int), ("shape", c.c_void_p), ("node", Node * NODES),
                ("input", Operand * INPUTS), ("scalar", Scalar * SCALARS), ("output", Output * OUTPUTS),
                ("random", Random * RANDOMS), ("end", End)]


def dims(values):
    return (c.c_int64 * max(len(values), 1))(*values)


class View:
    """An array of the device: an address, a dtype, a shape and strides in bytes."""

    def __init__(self, data, dtype, shape, strides=None):
        self.data, self.dtype, self.shape = data, dtype, tuple(shape)
        if strides is None:
            strides, step = [], SIZES[dtype]
            for size in reversed(self.shape):
                strides.insert(0, step)
                step *= size
        self.strides = tuple(strides)
        self._shape, self._strides = dims(self.shape), dims(self.strides)

    def operand(self):
        o = Operand()
        o.desc.dtype, o.desc.ndim = self.dtype, len(self.shape)
        o.desc.shape, o.desc.strides = c.addressof(self._shape), c.addressof(self._strides)
        o.data = self.data
        return o


def operation(opcode, row, loop, outputs, inputs, parameters=()):
    """An ad_op; inputs: views, or numbers. It keeps the arrays that it points to."""
    op = Op(opcode=opcode, loop=loop, nout=len(outputs), nin=len(inputs), nparam=len(parameters), row=row)
    op.keep = (Operand * (len(outputs) + len(inputs)))()
    for k, view in enumerate([*outputs, *inputs]):
        if isinstance(view, View):
            op.keep[k] = view.operand()
        else:
            op.keep[k].is_scalar, op.keep[k].scalar = 1, Scalar.of(view)
    op.numbers = (Scalar * max(len(parameters), 1))(*map(Scalar.of, parameters))
    op.views = [*outputs, *inputs]
    op.operand, op.param = c.addressof(op.keep), c.addressof(op.numbers)
    return op


# ---- a compiler ----

class Text(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t)]

    def bytes(self):
        return c.string_at(self.data, self.size) if self.size else b""


class Header(c.Structure):
    _fields_ = [("name", c.c_char_p), ("text", Text)]


class Job(c.Structure):
    _fields_ = [("target", c.c_int), ("arch", c.c_char_p), ("prelude", Text), ("source", Text),
                ("options", c.POINTER(c.c_char_p)), ("noptions", c.c_size_t), ("own", c.POINTER(c.c_char_p)),
                ("nown", c.c_size_t), ("names", c.POINTER(c.c_char_p)), ("nnames", c.c_size_t),
                ("headers", c.POINTER(Header)), ("nheaders", c.c_size_t), ("of_ours", c.c_bool)]


class Binary(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t), ("lowered", c.c_void_p), ("nlowered", c.c_size_t),
                ("log", c.c_char_p)]


GET = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Job), c.POINTER(c.c_void_p), c.POINTER(Fault))
RELEASE = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)


def nvrtc():
    """The library, or None."""
    places = ["libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"]
    for folder in filter(None, [os.environ.get("VIRTUAL_ENV"), *map(str, pathlib.Path(numpy.__file__).parents)]):
        places += glob.glob(f"{folder}/nvidia/cu13/lib/libnvrtc.so.13")
    for place in places:
        try:
            return c.CDLL(place)
        except OSError:
            continue
    return None


class Compiler(c.Structure):
    """An ad_compiler. It answers `delay` times that it is not ready yet, and then has compiled."""
    _fields_ = [("get", GET), ("release", RELEASE)]

    def __init__(self, library, delay=0):
        super().__init__(GET(self.ask), RELEASE(lambda _, binary: None))
        self.library, self.delay = library, delay
        self.asked, self.made, self.log, self.compiled = {}, {}, "", 0

    def ask(self, _, job, out, fault):
        job = job.contents
        key = job.source.bytes()
        self.asked[key] = self.asked.get(key, 0) + 1
        if self.asked[key] <= self.delay:
            return 0
        if key not in self.made:
            self.made[key] = self.compile(job)
        out[0] = c.addressof(self.made[key])
        return 1

    def compile(self, job):
        names = (c.c_char_p * job.nheaders)(*[job.headers[k].name for k in range(job.nheaders)])
        texts = (c.c_char_p * job.nheaders)(*[job.headers[k].text.bytes() for k in range(job.nheaders)])
        options = [job.own[k] for k in range(job.nown)] + [b"-arch=" + job.arch]
        program, size = c.c_void_p(), c.c_size_t()
        made = self.library.nvrtcCreateProgram(c.byref(program), job.source.bytes(), b"chain.cu", len(names), texts, names)
        assert made == 0
        status = self.library.nvrtcCompileProgram(program, len(options), (c.c_char_p * len(options))(*options))
        self.library.nvrtcGetProgramLogSize(program, c.byref(size))
        log = c.create_string_buffer(size.value)
        self.library.nvrtcGetProgramLog(program, log)
        binary = Binary(log=log.value)
        if status == 0:
            self.library.nvrtcGetCUBINSize(program, c.byref(size))
            binary.keep = c.create_string_buffer(size.value)
            self.library.nvrtcGetCUBIN(program, binary.keep)
            binary.data, binary.size = c.addressof(binary.keep), size.value
            self.compiled += 1
        else:
            self.log = log.value.decode() + job.source.bytes().decode()
        self.library.nvrtcDestroyProgram(c.byref(program))
        return binary

