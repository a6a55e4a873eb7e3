"""The table of a backend's functions (kernels/backend.h), for tests that talk to it without a worker."""
import ctypes as c
import os
import pathlib

BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
VERSION = 6  # AD_BACKEND_VERSION
NAMES = {0: "OK"}
for line in (pathlib.Path(__file__).resolve().parents[2] / "protocol" / "error.def").read_text().splitlines():
    if line.startswith("AD_ERROR("):
        code, name = line[9:].split(",")[:2]
        NAMES[-int(code)] = name.strip()

P, U64, INT = c.c_void_p, c.c_uint64, c.c_int


class Fault(c.Structure):
    _fields_ = [("code", INT), ("text", c.c_char * 256)]


class Info(c.Structure):
    _fields_ = [("name", c.c_char * 64), ("id", c.c_char * 48), ("memory", U64), ("free", U64), ("major", INT),
                ("minor", INT), ("multiprocessors", INT), ("peers", U64), ("runtime", INT), ("driver", INT)]


class Check(c.Structure):
    _fields_ = [("code", c.c_int32), ("what", c.c_int32), ("value", c.c_int64 * 3)]


class Slab(c.Structure):
    _fields_ = [("base", P), ("size", U64), ("fd", INT)]


class Op(c.Structure):
    _fields_ = [("opcode", c.c_uint8), ("loop", c.c_uint8), ("nout", c.c_uint8), ("nin", c.c_uint8),
                ("nparam", c.c_uint8), ("row", c.c_uint16), ("operand", P), ("param", P)]


class Run(c.Structure):
    _fields_ = [("workspace", P), ("output", P), ("values", P), ("nvalues", INT), ("check", P), ("checked", c.c_bool),
                ("wrote", c.c_bool), ("cancelled", c.c_void_p)]


F = c.POINTER(Fault)
OUT = c.POINTER(P)
TABLE = [
    ("devices", INT, [c.POINTER(INT)]),
    ("device_open", INT, [INT, INT, P, OUT]),
    ("device_close", None, [P]),
    ("device_info", None, [P, c.POINTER(Info)]),
    ("device_plans", None, [P, P]),
    ("slab_create", INT, [P, U64, c.POINTER(Slab)]),
    ("slab_attach", INT, [P, INT, U64, c.POINTER(Slab)]),
    ("slab_close", None, [P, c.POINTER(Slab)]),
    ("slab_create_plain", INT, [P, U64, c.POINTER(Slab)]),
    ("slab_handle", INT, [P, c.POINTER(Slab), P]),
    ("slab_import", INT, [P, P, c.POINTER(Slab)]),
    ("stream_open", INT, [P, INT, OUT]),
    ("stream_close", None, [P]),
    ("stream_wait", INT, [P]),
    ("event_open", INT, [P, c.c_bool, OUT]),
    ("event_close", None, [P]),
    ("event_record", INT, [P, P]),
    ("event_done", INT, [P]),
    ("event_elapsed", INT, [P, P, c.POINTER(c.c_float)]),
    ("stream_follow", INT, [P, P]),
    ("host_alloc", INT, [P, U64, OUT]),
    ("host_free", None, [P, P]),
    ("host_register", INT, [P, P, U64]),
    ("host_unregister", None, [P, P]),
    ("check_open", INT, [P, INT, c.POINTER(c.POINTER(Check))]),
    ("check_close", None, [P, c.POINTER(Check)]),
    ("check_fault", INT, [c.POINTER(Check)]),
    ("zero", INT, [P, P, U64]),
    ("upload", INT, [P, P, P, U64]),
    ("upload_pinned", INT, [P, P, P, U64]),
    ("download", INT, [P, P, P, U64]),
    ("move", INT, [P, P, P, U64]),
    ("run", INT, [P, c.POINTER(Op), c.POINTER(Run)]),
    ("fuse", INT, [P, P, c.POINTER(Run)]),
]


class Failed(Exception):
    def __init__(self, status, text):
        super().__init__(f"{NAMES.get(status, status)}: {text}")
        self.name, self.text = NAMES.get(status, status), text


class Backend:
    """The functions of a backend. One that fails raises Failed; those with an out-parameter return it."""

    def __init__(self, name):
        self.library = c.CDLL(str(BUILD / "bin" / f"libarrayd-{name}.so"))
        get = self.library.ad_backend_get
        get.restype = P
        at = get()
        assert c.c_uint32.from_address(at).value == VERSION
        self.name = c.c_char_p.from_address(at + 8).value.decode()
        self.asynchronous = c.c_bool.from_address(at + 16).value
        for i, (function, result, arguments) in enumerate(TABLE):
            fails = result is INT
            proto = c.CFUNCTYPE(result, *arguments, *([F] if fails else []))
            call = proto(c.c_void_p.from_address(at + 24 + 8 * i).value)
            setattr(self, function, self.checked(call) if fails else call)

    @staticmethod
    def checked(call):
        def checked(*arguments):
            fault = Fault()
            status = call(*arguments, c.byref(fault))
            if status < 0:
                assert fault.code == status and fault.text
                raise Failed(status, fault.text.decode())
            return status
        return checked

    def count(self):
        n = INT()
        self.devices(c.byref(n))
        return n.value

    def made(self, function, *arguments, type=P):
        out = type()
        getattr(self, function)(*arguments, c.byref(out))
        return out

    def open(self, index=0, compiler=None):
        return self.made("device_open", index, 0, compiler)

    def info(self, device):
        info = Info()
        self.device_info(device, c.byref(info))
        return info

    def slab(self, device, size):
        return self.made("slab_create", device, size, type=Slab)

    def attach(self, device, fd, size):
        return self.made("slab_attach", device, fd, size, type=Slab)

    def stream(self, device, priority=0):
        return self.made("stream_open", device, priority)

    def event(self, device, timed=False):
        return self.made("event_open", device, timed)

    def pinned(self, device, size):
        return self.made("host_alloc", device, size)


def load():
    """The cuda backend; None where it or a GPU is not there."""
    if not (BUILD / "bin" / "libarrayd-cuda.so").exists():
        return None
    try:
        found = Backend("cuda")
    except OSError:
        return None
    return found if found.count() else None
