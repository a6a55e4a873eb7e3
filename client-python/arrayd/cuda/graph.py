"""Graphs: operations of a stream that are kept, and executed as often as the graph is launched (cupy.cuda.graph)."""
import contextlib

from .. import _core
from ._thread import apply, current

__all__ = ["Graph"]


def _failed(name, message):
    return _core.DeviceError(f"cudaErrorStreamCapture{name}: {message}")


class Capture:
    """A capture under way: operations of streams from begin_capture to end_capture of one of them, its origin."""

    blocking = set()  # captures that are under way of streams that are blocking

    def __init__(self, origin):
        self.origin, self.streams, self.unjoined = origin, [origin], []
        self.graph = _core.graph_new(origin._serial)
        self.calls = []  # functions of the host: how many operations come before, the function, its argument
        self.broken = self.over = False
        if not origin.is_non_blocking:
            self.blocking.add(self)

    def refuse(self, what):
        """The error for what a stream cannot do meanwhile. The capture has failed with it."""
        self.broken = True
        return _failed("Unsupported", f"operation not permitted when stream is capturing: {what}")

    def join(self, stream):
        """A stream that waits for an event of one of these takes part."""
        self.streams.append(stream)
        self.unjoined.append(stream)
        stream._capture = self
        apply(current())

    def follow(self, stream):
        """One of the streams waits for an event of another one, which has come back by that."""
        self.unjoined = [other for other in self.unjoined if other is not stream]

    def end(self, stream):
        """Return what has been kept, for the stream that began it."""
        if stream is not self.origin:
            self.broken = True
            raise _failed("Unmatched", "the capture was begun by another stream")
        self.over = True
        for each in self.streams:
            each._capture = None
        self.blocking.discard(self)
        apply(current())
        if self.broken:
            raise _failed("Invalidated", "the capture has failed by an earlier error")
        if self.unjoined:
            raise _failed("Unjoined", "a stream that took part has not been waited for by the one that began")
        return Graph._of(self)


class Graph:
    """The operations that a stream has kept: Stream.end_capture() gives it.

    They write the same arrays at each launch, those that they have made while they were kept, too. It keeps all memory that
    they use as long as it is there.

    Raises: NotImplementedError when it is called, as in CuPy.
    Differs: operations of several streams are launched on one, in the order of their calls; a function of the host is called
    by launch(), which waits for what comes before; and there is no debug_dot_str.
    Source: cupy.cuda.Graph
    """

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("currently this class cannot be initiated by the user and must be created via stream "
                                  "capture")

    @classmethod
    def _of(cls, capture):
        graph = cls.__new__(cls)
        graph._kept, graph._calls = capture.graph, capture.calls
        return graph

    def launch(self, stream=None):
        """Execute it.

        Parameters: stream: Stream, the current one unless given.
        Returns: None.
        Raises: cuda.runtime.CUDARuntimeError where a stream is capturing; what a function of the host raises. Later failures
        are raised where the arrays are read.
        Source: cupy.cuda.Graph.launch
        """
        with contextlib.nullcontext() if stream is None else stream:
            done = 0
            for before, function, argument in [*self._calls, (_core.graph_size(self._kept), None, None)]:
                _core.graph_launch(self._kept, done, before - done)
                done = before
                if function is not None:
                    _core.sync()
                    function(argument)

    def upload(self, stream=None):
        """Nothing is to be done: the client sends its operations at each launch.

        Parameters: stream: accepted.
        Returns: None.
        Source: cupy.cuda.Graph.upload
        """
