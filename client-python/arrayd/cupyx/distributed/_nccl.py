"""NCCL in this process: the members of a group exchange arrays from GPU to GPU, where each has a GPU of its own.

    array ── lease (.data.ptr) ──▶ address in this process ──▶ NCCL ══ NVLink, network ══ NCCL of the other members

The library is loaded by name when a group may use it. Nothing that it does blocks: a member looks for errors of NCCL, and
for members that have ended, until the work is done. Then it ends the communicator (abort), so that no member hangs.
"""
import contextlib
import ctypes
import importlib.util
import os
import pathlib
import time

from ..._interop.addresses import NOT_EXPORTED, memory_of, offset_of

LIBRARY = "ARRAYD_NCCL_LIBRARY"  # of the environment: the library's path
_STANDS_IN = "arrayd_stands_in_for_nccl"  # a symbol of the library of tests, which has the driver's functions, too
_IN_PROGRESS, _NOT_READY = 7, 600  # results of NCCL and of the driver
_OLDEST = 21800  # 2.18
_TYPES = {"int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8,
          "bfloat16": 9}
_OPERATIONS = {"sum": 0, "prod": 1, "max": 2, "min": 3}
_PATIENCE = 60.0  # seconds in which a communicator must be there
_SPIN = 0.001     # seconds in which a wait looks without a pause
_PAUSE = 0.0005


class Unavailable(ConnectionError):
    """Why this process cannot use NCCL."""


class _UniqueId(ctypes.Structure):
    """The bytes by which the members of a communicator find each other."""

    _fields_ = [("bytes", ctypes.c_uint8 * 128)]


class _Config(ctypes.Structure):
    """ncclConfig_t of version 2.18, which later ones take: they say by `size` and `version` what is there."""

    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("blocking", ctypes.c_int),
                ("cluster", ctypes.c_int), ("least_blocks", ctypes.c_int), ("most_blocks", ctypes.c_int),
                ("network", ctypes.c_char_p), ("shares", ctypes.c_int)]


def _make_config():
    unset = -2**31
    return _Config(ctypes.sizeof(_Config), 0xcafebeef, _OLDEST, 0, unset, unset, unset, None, unset)


# ---- libraries ----

def _candidates():
    """Where the library may be: where the environment says, where the loader finds it, and in NVIDIA's wheel."""
    if given := os.environ.get(LIBRARY):
        return [given]
    with contextlib.suppress(ImportError, ValueError):
        folders = importlib.util.find_spec("nvidia.nccl").submodule_search_locations
        return ["libnccl.so.2", *(str(pathlib.Path(folder, "lib", "libnccl.so.2")) for folder in folders)]
    return ["libnccl.so.2"]


def _load_first(names):
    why = ""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            why = why or str(error)
    raise Unavailable(why)


class Library:
    """NCCL and the driver of CUDA. Unavailable where one of them is not there."""

    def __init__(self):
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast of NVLink needs rights that containers often lack
        self._nccl = _load_first(_candidates())
        self.stands_in = hasattr(self._nccl, _STANDS_IN)
        self._driver = self._nccl if self.stands_in else _load_first(["libcuda.so.1"])
        self._nccl.ncclGetErrorString.restype = ctypes.c_char_p
        self._nccl.ncclGetErrorString.argtypes = [ctypes.c_int]
        version = ctypes.c_int()
        self.call("ncclGetVersion", ctypes.byref(version))
        self.version = version.value
        if self.version < _OLDEST:
            raise Unavailable(f"NCCL {self.version} is older than 2.18")

    def make_unique(self):
        """The bytes by which the members of a new communicator find each other, as text."""
        unique = _UniqueId()
        self.call("ncclGetUniqueId", ctypes.byref(unique))
        return bytes(unique).hex()

    def call(self, name, *args):
        """Call a function of NCCL, which may go on with its work afterwards. ConnectionError with its error."""
        result = getattr(self._nccl, name)(*args)
        if result not in (0, _IN_PROGRESS):
            raise ConnectionError(f"{name}: {self.explain(result)}")

    def explain(self, result):
        """NCCL's words for a result."""
        return self._nccl.ncclGetErrorString(result).decode(errors="replace")

    def drive(self, name, *args):
        """Call a function of the driver. Unavailable with its error."""
        result = getattr(self._driver, name)(*args)
        if result:
            raise Unavailable(f"{name}: CUDA error {result}")

    def is_done(self, stream):
        """Whether a stream of CUDA has completed all. ConnectionError where its device has failed."""
        result = self._driver.cuStreamQuery(stream)
        if result not in (0, _NOT_READY):
            raise ConnectionError(f"cuStreamQuery: CUDA error {result}")
        return not result


class Place:
    """The GPU of this process: its primary context, and a stream for NCCL."""

    def __init__(self, library, number):
        self._library, self.number = library, number
        self._context, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        device, name = ctypes.c_int(), (ctypes.c_uint8 * 16)()
        library.drive("cuInit", 0)
        library.drive("cuDeviceGet", ctypes.byref(device), max(number, 0))
        library.drive("cuDeviceGetUuid_v2", name, device)
        library.drive("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self.uuid = bytes(name).hex()
        with self:
            library.drive("cuStreamCreate", ctypes.byref(self.stream), 1)  # it waits for no other stream

    def __enter__(self):
        self._library.drive("cuCtxPushCurrent_v2", self._context)

    def __exit__(self, *_):
        self._library.drive("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


# ---- arrays ----

def type_of(a, reduces):
    """NCCL's type for an array's elements, and how many of it an element is. None: NCCL has none. Elements that
    are only moved count as bytes."""
    if not reduces:
        return _TYPES["uint8"], a.dtype.itemsize
    name, parts = {"complex64": ("float32", 2), "complex128": ("float64", 2)}.get(a.dtype.name, (a.dtype.name, 1))
    return (_TYPES[name], parts) if name in _TYPES else None


def find_address(a, number):
    """The address of an array in this process, with all in it that was called so far; None where it lies on another GPU than
    that of this number, or its memory is not to be had."""
    try:
        memory = memory_of(a)
    except NOT_EXPORTED:
        return None
    return memory.base + offset_of(a) if memory.device == number else None


# ---- communicators ----

class Communicator:
    """The members of a group as NCCL has them. look: a function that raises ConnectionError where a member has ended."""

    def __init__(self, library, place, size, rank, unique, look):
        self._library, self._place, self._look, self._comm = library, place, look, ctypes.c_void_p()
        self._config = _make_config()
        identifier = _UniqueId.from_buffer_copy(bytes.fromhex(unique))
        end = time.monotonic() + _PATIENCE
        with self._ending_on_errors(), place:
            self._call("ncclCommInitRankConfig", ctypes.byref(self._comm), size, identifier, rank, ctypes.byref(self._config))
            self._await(self._is_ready, end)

    @property
    def number(self):
        """The number of its GPU in this process."""
        return self._place.number

    # Each runs until it is complete. Addresses are of this process; kind, count: what type_of() says, and how many.

    def all_reduce(self, source, target, count, kind, op):
        """Combine what all have, at all."""
        self._run([("ncclAllReduce", source, target, count, kind, _OPERATIONS[op])])

    def reduce(self, source, target, count, kind, op, root):
        """Combine what all have, at one."""
        self._run([("ncclReduce", source, target, count, kind, _OPERATIONS[op], root)])

    def reduce_scatter(self, source, target, count, kind, op):
        """Combine what all have, and give each a part of so many."""
        self._run([("ncclReduceScatter", source, target, count, kind, _OPERATIONS[op])])

    def broadcast(self, source, count, root):
        """Give all the bytes of one."""
        self._run([("ncclBroadcast", source, source, count, _TYPES["uint8"], root)])

    def all_gather(self, source, target, count):
        """Give all the bytes of all."""
        self._run([("ncclAllGather", source, target, count, _TYPES["uint8"])])

    def exchange(self, sent, received, count):
        """Send bytes to ranks, and receive as many from others: dictionaries of addresses."""
        self._run([*(("ncclSend", address, count, _TYPES["uint8"], rank) for rank, address in sent.items()),
                   *(("ncclRecv", address, count, _TYPES["uint8"], rank) for rank, address in received.items())])

    def _run(self, calls):
        """Enqueue operations as one, and wait until they are complete."""
        with self._ending_on_errors(), self._place:
            self._call("ncclGroupStart")
            for name, *args in calls:
                self._call(name, *map(_as_argument, args), self._comm, self._place.stream)
            self._call("ncclGroupEnd")
            self._await(self._is_ready)
            self._await(lambda: self._library.is_done(self._place.stream))

    def _call(self, name, *args):
        self._library.call(name, *args)

    def _is_ready(self):
        """Whether the communicator has taken all that it was told. ConnectionError with its error."""
        state = ctypes.c_int()
        self._call("ncclCommGetAsyncError", self._comm, ctypes.byref(state))
        if state.value not in (0, _IN_PROGRESS):
            raise ConnectionError(self._library.explain(state.value))
        return not state.value

    def _await(self, is_done, end=None):
        begin = time.monotonic()
        while not is_done():
            self._is_ready()
            self._look()
            now = time.monotonic()
            if end is not None and now > end:
                raise ConnectionError(f"the members did not find each other within {_PATIENCE:.0f} s")
            if now - begin > _SPIN:
                time.sleep(_PAUSE)

    @contextlib.contextmanager
    def _ending_on_errors(self):
        """End the communicator when something fails, also an interrupt of the user's."""
        try:
            yield
        except BaseException:
            self.abort()
            raise

    def abort(self):
        """End it without waiting for the others."""
        comm, self._comm = self._comm, ctypes.c_void_p()
        if comm:
            with contextlib.suppress(ConnectionError):
                self._call("ncclCommAbort", comm)

    def close(self):
        """End it when all that it has sent is gone, or after a while."""
        if not self._comm:
            return
        with contextlib.suppress(ConnectionError), self._ending_on_errors(), self._place:
            self._call("ncclCommFinalize", self._comm)
            self._await(self._is_ready, time.monotonic() + 5)
            comm, self._comm = self._comm, ctypes.c_void_p()
            self._call("ncclCommDestroy", comm)


def _as_argument(value):
    """Numbers of 64 bits, as addresses and counts are; types, operations and ranks are smaller and passed alike."""
    return ctypes.c_size_t(value)
