"""Graphs: operations of a stream that are kept, and executed as often as the graph is launched (cupy.cuda.graph)."""
import contextlib
import typing

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


class _Node(typing.NamedTuple):
    """An operation as debug_dot_str draws it."""

    name: str
    details: str

    @classmethod
    def of_text(cls, text):
        """Make a node of what $ARRAYD_TRACE prints: the kind of request, its name (of a launch, the kernel), its operands."""
        kind, name, details = text.split(" ", 2)
        if kind == "launch":
            return cls(details.partition('kernel "')[2].partition('"')[0], text)
        return cls(f"cupy_{name}" if kind in ("ufunc", "reduce") else name, f"{kind} {details}")

    def label(self, flags):
        text = f"{self.name}\n{self.details}" if flags else self.name
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Graph:
    """The operations that a stream has kept: Stream.end_capture() gives it.

    They write the same arrays at each launch, those that they have made while they were kept, too. It keeps all memory that
    they use as long as it is there.

    Raises: NotImplementedError when it is called, as in CuPy.
    Differs: operations of several streams are launched on one, in the order of their calls; a function of the host is called
    by launch(), which waits for what comes before.
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

    def debug_dot_str(self, flags=0):
        """Draw the graph in the language of Graphviz: a node for each operation, in the order of execution.

        Parameters: flags: cuda.runtime.cudaGraphDebugDotFlagsVerbose and others; with any of them a node also says which
        memory the operation writes and reads (#3 is the third array of the session, f8[5] its type and shape).
        Returns: str.
        Differs: operations have the names of functions, with the cupy_ of CuPy's kernels before ufuncs and reductions.
        Source: cupy.cuda.Graph.debug_dot_str
        """
        nodes = [_Node.of_text(_core.graph_text(self._kept, i)) for i in range(_core.graph_size(self._kept))]
        for before, function, _ in reversed(self._calls):
            nodes.insert(before, _Node(getattr(function, "__qualname__", repr(function)), "a function of the host"))
        lines = [f'"node_{i}" [label="{node.label(flags)}"];' for i, node in enumerate(nodes)]
        lines += [f'"node_{i}" -> "node_{i + 1}";' for i in range(len(nodes) - 1)]
        return "\n".join(["digraph dot {", *lines, "}", ""])

    def upload(self, stream=None):
        """Nothing is to be done: the client sends its operations at each launch.

        Parameters: stream: accepted.
        Returns: None.
        Source: cupy.cuda.Graph.upload
        """
