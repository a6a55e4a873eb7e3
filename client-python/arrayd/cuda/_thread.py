"""Choices of each thread: a device, and a stream for each device. The choices of an earlier connection are void."""
import threading

from .. import _core


class _Choice(threading.local):
    serial = 0
    device = 0
    capture = None  # what keeps the thread's operations: a graph.Capture

    def __init__(self):
        self.streams = {}  # of devices by number, where another than the default stream was chosen
        self.nulls = {}    # by number: objects of the default stream that were chosen
        self.before = []   # what the with statements that the thread is in will restore


_choice = _Choice()


def current():
    """The calling thread's choice, of the current connection."""
    serial = _core.session_serial()
    if _choice.serial != serial:
        _choice.serial, _choice.device, _choice.streams = serial, 0, {}
    return _choice


def enter(what):
    """Use a device or stream until leave() is called."""
    choice = current()
    choice.before.append((choice.serial, choice.device, dict(choice.streams)))
    try:
        what.use()
    except BaseException:
        choice.before.pop()
        raise


def leave():
    """Back to what was chosen before the last enter()."""
    choice = current()
    serial, device, streams = choice.before.pop()
    if serial != choice.serial:  # of an earlier connection
        device, streams = 0, {}
    now = choice.streams  # not to be closed before another is in use
    choice.device, choice.streams = device, streams
    apply(choice)
    del now


def apply(choice):
    """Let the thread's operations run where it says."""
    stream = choice.streams.get(choice.device)
    _core.stream_use(choice.serial, choice.device if stream is None else stream.ptr)
    capture = None if stream is None else stream._capture
    if capture is not choice.capture:
        choice.capture = capture
        _core.graph_record(None if capture is None else capture.graph)
