"""The protocol library by ctypes: the tables, promotion, loops, extents and messages, as Python sees them."""
import ctypes as c

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128"]
WEAK = {int: 64, float: 65, complex: 66}
NO_DTYPE = 255
CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe"]
CODES = ["N", "T", "R", "B", "W", "L", "U"]


class Fault(c.Structure):
    _fields_ = [("code", c.c_int), ("text", c.c_char * 256)]


class DtypeRow(c.Structure):
    _fields_ = [("name", c.c_char_p), ("size", c.c_uint8), ("kind", c.c_char), ("letter", c.c_char)]


class UfuncRow(c.Structure):
    _fields_ = [("name", c.c_char_p), ("domain", c.c_char_p), ("test", c.c_char_p), ("doc", c.c_char_p),
                ("expression", c.c_char_p), ("nin", c.c_uint8), ("nout", c.c_uint8), ("rule", c.c_uint8),
                ("cost", c.c_uint32), ("traits", c.c_uint16)]


class ReductionRow(c.Structure):
    _fields_ = [("name", c.c_char_p), ("domain", c.c_char_p), ("doc", c.c_char_p), ("rule", c.c_uint8),
                ("empty", c.c_uint8)]


class RuleRow(c.Structure):
    _fields_ = [("name", c.c_char_p), ("loops", c.c_uint32), ("fallback", c.c_uint8), ("ins", c.c_uint8 * 3),
                ("outs", c.c_uint8 * 2)]


class Native:
    def __init__(self, path):
        self.lib = c.CDLL(str(path))
        self.lib.ad__can_cast.restype = c.c_bool
        for name, row, limit in (("ufunc", UfuncRow, 256), ("reduction", ReductionRow, 64)):
            find = getattr(self.lib, f"ad__{name}")
            find.restype, find.argtypes = c.POINTER(row), [c.c_uint64]
            rows = {find(i).contents.name.decode(): find(i) for i in range(limit) if find(i)}
            setattr(self, f"{name}s", rows)
        names = (DtypeRow * len(DTYPES)).in_dll(self.lib, "ad__dtypes")
        assert [row.name.decode() for row in names] == DTYPES
        self.lib.ad__resolve_ufunc.argtypes = [c.POINTER(UfuncRow), c.c_char_p, c.c_int, c.POINTER(c.c_int),
                                               c.POINTER(Fault)]
        self.lib.ad__resolve_reduction.argtypes = [c.POINTER(ReductionRow), c.c_int, c.c_int, c.POINTER(c.c_int),
                                                   c.POINTER(Fault)]
        self.rules = (RuleRow * 64).in_dll(self.lib, "ad__rules")
        self.lib.arrayd_test_text.restype = c.c_int
        self.lib.arrayd_test_again.restype = c.c_long

    def promote(self, a, b):
        return DTYPES[self.lib.ad__promote(DTYPES.index(a), DTYPES.index(b))]

    def promote_all(self, types):
        return DTYPES[self.lib.ad__promote_all(len(types), self.types(types))]

    def can_cast(self, a, b, casting):
        return self.lib.ad__can_cast(DTYPES.index(a), DTYPES.index(b), CASTINGS.index(casting))

    @staticmethod
    def types(types):
        return bytes(WEAK[t] if t in WEAK else DTYPES.index(t) for t in types)

    def code(self, code, loop):
        found = self.lib.ad__code_dtype(code, DTYPES.index(loop))
        return None if found == NO_DTYPE else DTYPES[found]

    def ufunc_loop(self, name, types, dtype=None):
        """(loop, operand types, result types); TypeError with the library's text when there is none."""
        row, loop, fault = self.ufuncs[name], c.c_int(), Fault()
        asked = NO_DTYPE if dtype is None else DTYPES.index(dtype)
        if self.lib.ad__resolve_ufunc(row, self.types(types), asked, c.byref(loop), c.byref(fault)) != 0:
            raise TypeError(fault.text.decode())
        rule, loop = self.rules[row.contents.rule], DTYPES[loop.value]
        return (loop, [self.code(code, loop) for code in rule.ins][:row.contents.nin],
                [self.code(code, loop) for code in rule.outs][:row.contents.nout])

    def reduction_result(self, name, dtype, asked=None):
        row, loop, fault = self.reductions[name], c.c_int(), Fault()
        asked = NO_DTYPE if asked is None else DTYPES.index(asked)
        if self.lib.ad__resolve_reduction(row, DTYPES.index(dtype), asked, c.byref(loop), c.byref(fault)) != 0:
            raise TypeError(fault.text.decode())
        return self.code(self.rules[row.contents.rule].outs[0], DTYPES[loop.value])

    def texts(self, block, allowed=0xf):
        """The messages of a control block as lines of text; ValueError with the reason when it is refused."""
        out = c.create_string_buffer(1 << 16)
        if self.lib.arrayd_test_text(block, c.c_size_t(len(block)), allowed, out, c.c_size_t(len(out))) != 0:
            raise ValueError(out.value.decode())
        return out.value.decode().splitlines()

    def again(self, block):
        """Return messages after the library has decoded and encoded them once more."""
        out = c.create_string_buffer(2 * len(block) + 1024)
        size = self.lib.arrayd_test_again(block, c.c_size_t(len(block)), out, c.c_size_t(len(out)))
        if size < 0:
            raise ValueError(size)
        return out.raw[:size]
