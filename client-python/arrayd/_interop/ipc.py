"""Arrays for programs that open memory of a GPU by the 64-byte handles of CUDA's interprocess calls."""
from .. import _core


class IpcHandle:
    """The handle with which another program opens an array's memory, which stays where it is for as long as this object
    does.

    Its attributes are plain values that can be sent to that program: `handle` (64 bytes: a cudaIpcMemHandle_t),
    `offset` (bytes from what opening the handle gives to the array's first element), `shape`, `strides` (of bytes),
    `dtype`, `device` (the GPU's number on the server) and `uuid` (its name, "GPU-..." as nvidia-smi has it, by which a
    program finds it that counts its GPUs in another way).

    In a `with` statement it is closed at the end.

    Source: arrayd
    """

    def __init__(self, a):
        self._lease, self.handle, self.offset, self.uuid = _core.export_handle(a)
        self.shape, self.strides, self.dtype, self.device = a.shape, a.strides, a.dtype, a.device.id

    def close(self):
        """Let go of the memory; the other program must have closed it before.

        Returns: None.
        Source: arrayd
        """
        self._lease = None

    @property
    def closed(self):
        """bool: whether it has been closed."""
        return self._lease is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        raise TypeError("an IpcHandle cannot be pickled, as it keeps the memory: send its handle, offset, shape, "
                        "strides and dtype")

    def __repr__(self):
        state = "closed" if self.closed else f"on {self.uuid}"
        return f"<arrayd.IpcHandle of {self.dtype}{list(self.shape)}, {state}>"


def ipc_handle(self):
    """The array's memory for another program that opens it by cudaIpcOpenMemHandle, as cupy.cuda.runtime has it; waits
    for the server. Programs that use DLPack or the CUDA array interface in this process need no handle.

    The object that comes back has the `handle`, `offset`, `shape`, `strides`, `dtype`, `device` and `uuid`, and keeps
    the memory in its place until it is closed, by its close(), by `with`, or by going; it needs the array no more, nor
    its session. The other program closes what it has opened before that. Both see what the other writes; the server has
    to be waited for (sync) before its writes are looked at, and the program's own streams before the server is called.
    The array moves once for this, into memory that goes with the server's worker. While it is exported in another way,
    by DLPack say, it has no handle, and while it has a handle, DLPack gives copies of it: take one of a copy() then.

    Returns: arrayd.IpcHandle.
    Raises: NotImplementedError where the server uses no GPU, is not on this machine, or the array has no elements;
    ValueError for an array that is read-only, or exported in another way; PermissionError without the grant exports;
    LimitError; MemoryError.
    Source: arrayd
    """
    return IpcHandle(self)
