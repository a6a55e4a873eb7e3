"""Blocks of a program: what they send and wait for, and names for them."""
import contextlib
import functools
import time

from ... import _core, cuda

_COUNTED = ("operations", "round_trips", "messages_bytes")


class Profile:
    """Counters of what a block did in this process. Complete when the block has ended.

    Attributes: seconds. operations: sent. round_trips: how often it waited. messages_bytes: sent, without large arrays'
    elements where those are shared.
    """

    seconds = operations = round_trips = messages_bytes = None

    def __repr__(self):
        if self.seconds is None:
            return "<Profile, not complete>"
        return (f"<Profile: {self.seconds * 1e3:.3f} ms, {self.operations} operations, {self.round_trips} round trips, "
                f"{self.messages_bytes} bytes>")


@contextlib.contextmanager
def profile():
    """Count what a block sends to the server and how often it waits. CuPy's starts and stops an outside profiler of
    CUDA; that would have to watch the server, which does not let its clients control one.

    Returns: context manager that gives a Profile: seconds, operations, round_trips and messages_bytes.
    Raises: ConnectionError when there is no server.
    Source: cupyx.profiler.profile
    """
    result, before, start = Profile(), _core.session_info(), time.perf_counter()
    try:
        yield result
    finally:
        result.seconds, after = time.perf_counter() - start, _core.session_info()
        same = before["session"] == after["session"]
        for name in _COUNTED:
            setattr(result, name, after[name] - (before[name] if same else 0))


@contextlib.contextmanager
def counters():
    """Return what the server's counters gain over a block: operations that ran together, temporaries, bytes, failures.
    Both ends ask the server, so what the block asked for is done or queued there when it ends, and not before it began.

    Returns: context manager that gives a dict of ints, filled when the block has ended.
    Raises: ConnectionError when there is no server.
    Source: arrayd
    """
    result, before = {}, _core.stat()
    try:
        yield result
    finally:
        after = _core.stat()
        result.update((name, value - before.get(name, 0)) for name, value in after.items())


class time_range:
    """A name for a block or a function, which nests. Profilers of this process see it where the package nvtx is
    installed; profile() measures.

    Parameters: message: the name; of a function its own unless given. color_id, argb_color: of the range, one of them.
    sync: wait for the server at both ends.
    Raises: ValueError for both colours, or for a block without a name. RuntimeError where cuda.nvtx.available has been set
    to False.
    Source: cupyx.profiler.time_range
    """

    def __init__(self, message=None, color_id=None, argb_color=None, sync=False):
        if not cuda.nvtx.available:
            raise RuntimeError("nvtx is not installed: cuda.nvtx.available is False")
        if color_id is not None and argb_color is not None:
            raise ValueError("Only either color_id or argb_color can be specified")
        self.message, self.color_id, self.argb_color, self.sync = message, color_id, argb_color, sync

    def __enter__(self):
        if self.message is None:
            raise ValueError("when used as a context manager, the message argument cannot be None")
        if self.sync:
            _core.sync()
        if self.argb_color is not None:
            cuda.nvtx.RangePushC(self.message, self.argb_color)
        else:
            cuda.nvtx.RangePush(self.message, -1 if self.color_id is None else self.color_id)
        return self

    def __exit__(self, *_):
        if self.sync:
            _core.sync()
        cuda.nvtx.RangePop()

    def __call__(self, func):
        named = time_range(func.__name__ if self.message is None else self.message, self.color_id, self.argb_color,
                           self.sync)

        @functools.wraps(func)
        def inner(*args, **kwargs):
            with named:
                return func(*args, **kwargs)

        return inner
