"""Streams and events."""
import operator
import threading
import warnings

from .. import _core
from ._thread import apply, current, enter, leave
from .graph import Capture

__all__ = ["Event", "ExternalStream", "Stream", "get_current_stream", "get_elapsed_time"]


class Stream:
    """A stream: operations on different streams may overlap on the device. In a with statement, or after use(), what
    the thread calls on the stream's device runs on it. It is closed with its last reference, after its operations.

    Parameters: null: the default stream of the current device. non_blocking: accepted; no stream waits for the default
    one unless both use the same array. ptds: the default stream of the calling thread, as Stream.ptds. priority: negative
    before others, as in CUDA.
    Raises: ValueError for both null and ptds; TypeError for a priority that is no int.
    Source: cupy.cuda.Stream
    """

    _capture = None  # while it keeps operations: a graph.Capture

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self._serial, self._number = 0, None
        if priority is not None and not hasattr(priority, "__index__"):
            raise TypeError(f"priority must be an int, not {type(priority).__name__}")
        self.priority, self.is_non_blocking = min(0, priority or 0), bool(non_blocking)
        if ptds:
            if null:
                raise ValueError("null and ptds are two streams: give one of them")
            self.__class__ = _ThreadsStream
            return
        if null:
            return
        choice = current()
        self._device = choice.device
        self._number = _core.stream_open(choice.serial, choice.device, self.priority < 0)
        self._serial = choice.serial

    def __del__(self):
        try:
            if self._number is not None and self._serial == _core.session_serial_now():
                _core.stream_drop(self._serial, self._number)
        except Exception:  # the connection has gone, and the stream with it
            pass

    @property
    def ptr(self):
        """The stream's number with the server."""
        return current().device if self._number is None else self._number

    @property
    def device_id(self):
        """The device's number; -1 for the default stream, which each device has."""
        return -1 if self._number is None else self._device

    def _session(self):
        return current().serial if self._number is None else self._serial

    def use(self):
        """Make it the current stream of its device, for this thread."""
        choice = current()
        if self._number is None:
            before = choice.streams.pop(choice.device, None)
            choice.nulls[choice.device] = self
        elif choice.serial != self._serial:
            raise ValueError("the stream belongs to another connection than the current one")
        else:
            before = choice.streams.get(self._device)
            choice.streams[self._device] = self
        apply(choice)
        del before  # only now may it close
        return self

    def __enter__(self):
        enter(self)
        return self

    def __exit__(self, *_):
        leave()

    @property
    def done(self):
        """Whether all its operations so far are complete; False while it is capturing, which fails by that."""
        if self._capture is not None:
            self._capture.broken = True
            return False
        return _core.stream_done(self._session(), self.ptr)

    def synchronize(self):
        """Wait until all its operations so far are complete; raises the first error that no array carries."""
        if self._capture is not None:
            raise self._capture.refuse("synchronize()")
        _core.stream_wait(self._session(), self.ptr)

    def record(self, event=None):
        """Record an event (a new one unless given) at this point of the stream; returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        """Let what comes on the stream from now on wait for an event; for one of a stream that is capturing, it takes
        part in that."""
        if event._captured is not None and not event._captured[0].over:
            capture, other = event._captured
            if self._capture is None:
                return capture.join(self)
            return capture.follow(other)
        if self._capture is not None:
            raise self._capture.refuse("waiting for an event from before")
        if event._number:
            _core.stream_follow(event._serial, self.ptr, event._number)

    @classmethod
    def from_external(cls, stream):
        """Return a stream for another object's stream, when that is one of the server's.

        Parameters: stream: Stream, or an object with CUDA's stream protocol.
        Returns: Stream, which keeps the other; its device_id is -1, as the protocol does not tell it.
        Raises: NotImplementedError for another library's: the server cannot run operations there; TypeError for what is
        no stream."""
        if isinstance(stream, Stream):
            return _AnotherStream(stream)
        if not hasattr(stream, "__cuda_stream__"):
            raise TypeError(f"{type(stream).__name__} does not implement CUDA's stream protocol (__cuda_stream__)")
        _check_protocol(stream.__cuda_stream__())
        raise NotImplementedError("a stream of this process is none of the server's; let it wait for the server by "
                                  "__dlpack__(stream=...), or synchronize it")

    def begin_capture(self, mode=None):
        """Keep what is called on the stream from now on, instead of having it executed, for a cuda.Graph.

        Parameters: mode: accepted.
        Returns: None.
        Raises: RuntimeError for a default stream; cuda.runtime.CUDARuntimeError where it is capturing already. Until
        end_capture(), for what waits for the server, such as reading an array; NotImplementedError for random numbers.
        Differs: modes are as cudaStreamCaptureModeThreadLocal; and operations of libraries are kept, too.
        Source: cupy.cuda.Stream.begin_capture
        """
        if self._number is None:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self._capture is not None:
            raise _core.DeviceError("cudaErrorIllegalState: the stream is capturing already")
        self._capture = Capture(self)
        apply(current())

    def end_capture(self):
        """The end of what begin_capture() has begun.

        Returns: cuda.Graph.
        Raises: cuda.runtime.CUDARuntimeError where the stream is not capturing, or something has failed meanwhile.
        Source: cupy.cuda.Stream.end_capture
        """
        if self._capture is None:
            raise _core.DeviceError("cudaErrorIllegalState: the stream is not capturing")
        return self._capture.end(self)

    def is_capturing(self):
        """Whether what is called on it is kept for a graph.

        Returns: bool.
        Raises: cuda.runtime.CUDARuntimeError for the default stream while one is capturing that is not non_blocking.
        Source: cupy.cuda.Stream.is_capturing
        """
        if self._number is None and Capture.blocking:
            raise _core.DeviceError("cudaErrorStreamCaptureImplicit: a stream is capturing that is not non_blocking")
        return self._capture is not None

    def launch_host_func(self, callback, arg=None):
        """Call a function once all that the stream has been given so far is complete, and before what it is given later.

        Parameters: callback: function of arg. arg: what it gets.
        Returns: None.
        Raises: what the function raises, and the first error of the operations before it that no array carries.
        Differs: it waits, and calls the function in the thread of the caller.
        Source: cupy.cuda.Stream.launch_host_func
        """
        if self._capture is not None:
            self._capture.calls.append((_core.graph_size(self._capture.graph), callback, arg))
            return
        self.synchronize()
        callback(arg)

    def add_callback(self, callback, arg=None):
        """launch_host_func for a function of the stream, a status of CUDA, which is 0 for success, and arg."""
        self.synchronize()
        callback(self, 0, arg)

    def __eq__(self, other):
        return (self._serial, self._number) == (other._serial, other._number) if isinstance(other, Stream) \
            else NotImplemented

    def __hash__(self):
        return hash((self._serial, self._number))

    def __repr__(self):
        return "<Stream default>" if self._number is None else f"<Stream {self._number} (device {self._device})>"


def _check_protocol(told):
    """Raise TypeError unless it is what CUDA's stream protocol gives: (0, address)."""
    if not isinstance(told, tuple) or len(told) != 2:
        raise TypeError(f"__cuda_stream__ must return a 2-tuple of a version and an address, not {told!r}")
    if not all(isinstance(one, int) for one in told):
        raise TypeError(f"__cuda_stream__ must return (int, int), not {told!r}")
    if told[0] != 0:
        raise TypeError(f"__cuda_stream__ has an unsupported version, {told[0]}: arrayd knows version 0")


class _ThreadsStream(Stream):
    """The default stream of whatever thread calls, one for each device: opened when it is first used there."""

    _threads = threading.local()

    def _own(self):
        choice, streams = current(), self._threads.__dict__
        key = str((choice.serial, choice.device))
        if key not in streams:
            streams[key] = Stream()
        return streams[key]

    def __del__(self):
        pass

    _serial = property(lambda self: self._own()._serial)
    _number = property(lambda self: self._own()._number)
    _device = property(lambda self: self._own()._device)
    device_id = -1

    def __repr__(self):
        return "<Stream default of the thread>"


class ExternalStream(Stream):
    """A stream that there is, by its number.

    Parameters: ptr: Stream.ptr, or what runtime.streamCreate gave. device_id: number of its device, the current one
    unless given.
    Raises: ValueError for the address of a stream of this process, which is none of the server's.
    Source: cupy.cuda.ExternalStream
    """

    def __init__(self, ptr, device_id=-1):
        warnings.warn("ExternalStream is deprecated by CuPy: use Stream.from_external", DeprecationWarning, stacklevel=2)
        self._stand_for("ExternalStream", ptr, device_id)

    def _stand_for(self, name, ptr, device_id):
        """Check that there is such a stream, and be it. name: what an error calls its number."""
        choice = current()
        self._serial, self._number = choice.serial, operator.index(ptr)
        self._device = choice.device if device_id < 0 else device_id
        self.priority, self.is_non_blocking = 0, False
        try:
            _core.stream_done(self._serial, self._number)
        except (_core.StaleHandleError, ValueError, OverflowError):
            raise ValueError(f"{name}: {ptr} is no stream of the server: a stream that another library has in this process "
                             "cannot be used there; Stream() opens one") from None

    def __del__(self):
        pass


class NumberedStream(ExternalStream):
    """A stream that there is, by its number, for functions of CUDA's runtime, which are not deprecated."""

    def __init__(self, name, ptr):
        self._stand_for(name, ptr, -1)


class _AnotherStream(Stream):
    """A stream by another object, which is kept."""

    device_id = -1

    def __init__(self, stream):
        self._foreign_stream_ref = stream
        self._serial, self._number, self._device = stream._serial, stream._number, getattr(stream, "_device", None)
        self.priority, self.is_non_blocking = stream.priority, stream.is_non_blocking

    def __del__(self):
        pass


Stream.null = Stream(null=True)  # the default stream of whatever device is current
Stream.ptds = Stream(ptds=True)  # of whatever thread calls


class Event:
    """A point in a stream's work.

    Parameters: block: accepted. disable_timing: get_elapsed_time is not wanted, which makes it cheaper.
    Raises: NotImplementedError for interprocess.
    Source: cupy.cuda.Event
    """

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        if interprocess:
            raise NotImplementedError("arrayd's events belong to one connection")
        self._serial = self._number = 0
        self._captured = None  # of a stream that is capturing: its graph.Capture, and the stream
        self._timed = not disable_timing

    def __del__(self):
        try:
            if self._number and self._serial == _core.session_serial_now():
                _core.event_drop(self._serial, self._number)
        except Exception:  # the connection has gone, and the event with it
            pass

    def record(self, stream=None):
        """Record it at this point of a stream, the current one unless given. It may be recorded again."""
        stream = get_current_stream() if stream is None else stream
        self._captured = None if stream._capture is None else (stream._capture, stream)
        if self._captured:
            return
        serial = stream._session()
        self._number = _core.event_record(serial, stream.ptr, self._number if self._serial == serial else 0, self._timed)
        self._serial = serial

    @property
    def done(self):
        """Whether the stream has come so far; True as long as it is not recorded."""
        return not self._number or _core.event_done(self._serial, self._number)

    def synchronize(self):
        """Wait until the stream has come so far."""
        if self._number:
            _core.event_wait(self._serial, self._number)


def get_current_stream(device_id=None):
    """The calling thread's stream.

    Parameters: device_id: of which device, the current one unless given.
    Returns: Stream.
    Raises: ConnectionError when there is no server.
    Source: cupy.cuda.get_current_stream
    """
    choice = current()
    number = choice.device if device_id is None else int(device_id)
    return choice.streams.get(number) or choice.nulls.get(number, Stream.null)


def get_elapsed_time(start_event, end_event):
    """The time between two events; waits for both.

    Parameters: start_event, end_event: Events that were recorded, with timing.
    Returns: float, milliseconds.
    Raises: ValueError for an event that was not recorded or has no timing.
    Source: cupy.cuda.get_elapsed_time
    """
    for event in (start_event, end_event):
        if not event._number:
            raise ValueError("an event has not been recorded")
        if not event._timed:
            raise ValueError("an event was made with disable_timing=True")
    return _core.event_elapsed(start_event._serial, start_event._number, end_event._number)
