"""Finding out whether a piece of program waits for the server."""
import contextlib
import threading

from .. import _core


class DeviceSynchronized(RuntimeError):
    """A block under allow_synchronize(False) waited for the server.

    Source: cupyx.DeviceSynchronized
    """


class _Excused(threading.local):
    waits = 0  # in blocks under allow_synchronize(True)


_excused = _Excused()


def _waits():
    """How often the current connection has waited; 0 where there is none."""
    return _core.session_info()["round_trips"] if _core.session_serial_now() else 0


@contextlib.contextmanager
def allow_synchronize(allow):
    """Say whether a block may wait for the server.

    Parameters: allow: False: it must not; True, in such a block: here it may.
    Returns: context manager. Waits are counted for the connection, so other threads' count as well, and the error comes
    at the end of the block, where CuPy's comes at the wait.
    Raises: DeviceSynchronized at the end of a block that must not wait and has; an exception of the block's own goes
    before.
    Source: cupyx.allow_synchronize
    """
    serial, start, excused = _core.session_serial_now(), _waits(), _excused.waits
    try:
        yield
        waited = _waits() - (start if serial == _core.session_serial_now() else 0)
        unexcused = waited - (_excused.waits - excused)
        if not allow and unexcused > 0:
            raise DeviceSynchronized(f"the block waited for the server {unexcused} time{'s' if unexcused > 1 else ''}")
    finally:
        _excused.waits = excused
    if allow:
        _excused.waits += waited
