"""Collective operations by NCCL. Before each one the members tell each other what they are about to do. If one of them cannot
do it by NCCL, or another thing, all go over their links, which check more and say what is wrong.

    rank 0   all_reduce, sum, 1000 float32, can ─┐ ┌─▶ NCCL       Server operations before it are complete then. The call
    rank 1   all_reduce, sum, 1000 float32, can ─┴─┴─▶ NCCL       returns when NCCL has written, so those after it see that.
"""
import os
import select
import time

from ... import _core
from ..._base import empty
from ._nccl import LIBRARY, Communicator, Library, Place, Unavailable, find_address, type_of

VARIABLE = "ARRAYD_GROUP_TRANSPORT"  # variable of the environment: the choice where a program makes none
WISHES = ("auto", "nccl", "links")
_GRACE = 2.0  # seconds in which an operation may end after a member has: that one may have had all it needed


def read_wish(given):
    """The way that a program, or the environment, wishes. ValueError for another word."""
    name = "transport" if given is not None else VARIABLE
    wish = given if given is not None else os.environ.get(VARIABLE, "auto")
    if wish not in WISHES:
        raise ValueError(f"{name} must be one of {', '.join(WISHES)}, not {wish!r}")
    return wish


class Watch:
    """A look at the connections of a group, by rank: whether the other ends are there."""

    def __init__(self, connections):
        self._connections, self._poll, self._seen = connections, select.poll(), None
        self._ranks = {connection.fileno(): rank for rank, connection in connections.items()}
        for number in self._ranks:
            self._poll.register(number, select.POLLRDHUP)

    def __call__(self):
        """ConnectionError when a member has ended, and what it had begun does not end soon."""
        ended = self._poll.poll(0)
        if not ended:
            self._seen = None
        elif self._seen is None:
            self._seen = time.monotonic()
        elif time.monotonic() > self._seen + _GRACE:
            raise ConnectionError(f"rank {self._ranks[ended[0][0]]} of the group has ended")


# ---- choosing ----

class Choice:
    """How a group's arrays go. direct: by NCCL; None: over the links. reason: why."""

    def __init__(self, direct, reason):
        self.direct, self.reason = direct, reason


def choose(tell, size, rank, wish, spans, watch):
    """Choose, as all members do. tell: a function that gives all members a member's facts, and returns those of all in the
    order of ranks. spans: whether the group has members at several servers."""
    if size == 1:
        return Choice(None, "a group of one has nothing to send")
    library, why = _try_library() if wish == "nccl" or wish == "auto" and spans else (None, None)
    told = tell({"wish": wish, "version": library.version if library else None, "why": why})
    if reason := _refuse(told, wish):
        return Choice(None, reason)
    place, unique, why = _try_place(library, rank)
    told = tell({"uuid": place.uuid if place else None, "unique": unique, "why": why})
    if reason := _find_why(told) or _find_twins(told):
        return Choice(None, reason)
    communicator, why = _try_communicator(library, place, size, rank, told[0]["unique"], watch)
    if reason := _find_why(tell({"why": why})):
        if communicator:
            communicator.abort()
        return Choice(None, reason)
    return Choice(Direct(communicator, tell, size, rank), f"NCCL {library.version}, {size} GPUs")


def _try_library():
    try:
        on_cpu = _core.session_info()["backend"] == "cpu"
        library = None if on_cpu and LIBRARY not in os.environ else Library()
        if on_cpu and not (library and library.stands_in):
            raise Unavailable("the server computes on the CPU")
        return library, None
    except (ConnectionError, AttributeError) as error:
        return None, str(error)


def _refuse(told, wish):
    """Why the wishes and libraries of all do not go together; None: they do."""
    for rank, each in enumerate(told):
        if each["wish"] != wish:
            return f"rank {rank} wishes {each['wish']}, and another one {wish}"
    if wish == "links":
        return "the program, or the environment, says links"
    if reason := _find_why(told):
        return reason
    versions = {each["version"] for each in told}
    if versions == {None}:
        return "all members use one server, which copies"
    return None if len(versions) == 1 else f"the members have several versions of NCCL: {sorted(versions)}"


def _find_why(told):
    """The first member's reason; None: nobody has one."""
    return next((f"rank {rank}: {each['why']}" for rank, each in enumerate(told) if each["why"]), None)


def _find_twins(told):
    """Two members that have one GPU, in words; None: each has its own."""
    first = {}
    for rank, each in enumerate(told):
        if (other := first.setdefault(each["uuid"], rank)) != rank:
            return f"ranks {other} and {rank} use one GPU"
    return None


def _try_place(library, rank):
    """The GPU that the session uses now, and rank 0's bytes for the others."""
    from ..._interop.addresses import NOT_EXPORTED, memory_of
    try:
        place = Place(library, memory_of(empty(1, "uint8")).device)
        with place:
            return place, library.make_unique() if rank == 0 else None, None
    except (ConnectionError, AttributeError, *NOT_EXPORTED) as error:
        return None, None, str(error) or type(error).__name__


def _try_communicator(library, place, size, rank, unique, watch):
    try:
        return Communicator(library, place, size, rank, unique, watch), None
    except (ConnectionError, AttributeError) as error:
        return None, str(error)


# ---- operations ----

class Direct:
    """Operations by NCCL on flat arrays, of which all members have checked their own. Each returns False, having done nothing,
    where the members do not all have what it takes."""

    def __init__(self, communicator, tell, size, rank):
        self._communicator, self._tell, self._size, self._rank = communicator, tell, size, rank

    @property
    def closing(self):
        """A function that ends the communicator, and does not keep the group."""
        return self._communicator.close

    def abort(self):
        """End the communicator without waiting for the others."""
        self._communicator.abort()

    def _agree(self, name, kind, like, sources, targets, *facts, in_place=False):
        """The addresses of arrays that are read and written, where all members can do the same; else None."""
        arrays = [*sources, *targets]
        addresses = [find_address(a, self._communicator.number) if a.size else None for a in arrays] if kind else [None]
        can = None not in addresses and (in_place or not _overlap(arrays, addresses, len(sources)))
        told = self._tell({"nccl": [name, *facts, like.dtype.name, like.size, can]})
        same = all(each.get("nccl") == told[self._rank]["nccl"] for each in told)
        return (addresses[:len(sources)], addresses[len(sources):]) if can and same else None

    def all_reduce(self, flat, out, op):
        """all_reduce of arrays of one size."""
        kind = type_of(flat, True)
        found = self._agree("all_reduce", kind, flat, [flat], [out], op, in_place=_is_same(flat, out))
        if found:
            self._communicator.all_reduce(*found[0], *found[1], flat.size * kind[1], kind[0], op)
        return bool(found)

    def reduce(self, flat, out, op, root):
        """reduce; out: None elsewhere than at the root."""
        kind, targets = type_of(flat, True), [] if out is None else [out]
        found = self._agree("reduce", kind, flat, [flat], targets, op, root, in_place=out is None or _is_same(flat, out))
        if found:
            self._communicator.reduce(*found[0], *(found[1] or [0]), flat.size * kind[1], kind[0], op, root)
        return bool(found)

    def reduce_scatter(self, flat, out, op):
        """reduce_scatter: flat has as many parts of out's size as there are members."""
        kind = type_of(flat, True)
        found = self._agree("reduce_scatter", kind, out, [flat], [out], op)
        if found:
            self._communicator.reduce_scatter(*found[0], *found[1], out.size * kind[1], kind[0], op)
        return bool(found)

    def broadcast(self, flat, root):
        """broadcast of an array of all."""
        found = self._agree("broadcast", type_of(flat, False), flat, [], [flat], root)
        if found:
            self._communicator.broadcast(*found[1], flat.nbytes, root)
        return bool(found)

    def all_gather(self, flat, out):
        """all_gather: out has as many parts of flat's size as there are members."""
        found = self._agree("all_gather", type_of(flat, False), flat, [flat], [out])
        if found:
            self._communicator.all_gather(*found[0], *found[1], flat.nbytes)
        return bool(found)

    def exchange(self, name, like, sent, received, *facts):
        """Arrays to ranks, and from ranks: dictionaries. like: an array of their size and type."""
        found = self._agree(name, type_of(like, False), like, list(sent.values()), list(received.values()), *facts)
        if found:
            self._communicator.exchange(dict(zip(sent, found[0])), dict(zip(received, found[1])), like.nbytes)
        return bool(found)


def _is_same(a, b):
    return _core.shares_buffer(a, b) and _core.layout(a) == _core.layout(b)


def _overlap(arrays, addresses, sources):
    """Whether one of the first so many arrays has bytes of one of the others."""
    return any(a < other + b.nbytes and other < a + source.nbytes
               for source, a in zip(arrays[:sources], addresses) for b, other in zip(arrays[sources:], addresses[sources:]))
