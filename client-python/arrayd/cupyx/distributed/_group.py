"""A group's operations: each is a pattern of messages between pairs, and arithmetic that the server does."""
import contextlib
import weakref

import numpy as np

from ... import _core
from ...cuda.device import Device
from ...sharding._move import copying
from . import _sparse
from ._direct import Watch, choose, read_wish
from ._link import Link
from ._rendezvous import join_by_mpi, join_by_tcp

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 13333

_CHUNK = 1 << 27    # bytes that are combined while the next ones come from another device
_AT_ONCE = 1 << 20  # bytes up to which everybody sends a whole array to everybody: one exchange instead of two
_OPERATIONS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


class NCCLBackend:
    """A process's place in a group, which init_process_group() gives. All processes of the group call the same methods in
    the same order. Arrays are C- or F-contiguous, and their elements are taken in the order of memory. A stream is the
    one whose operations come before and after; None: the current one.

    Attributes: rank: which process of the group this is. transport: "nccl" or "links", how the arrays of collective operations
    go. transport_reason: why, in words.
    Source: cupyx.distributed.NCCLBackend
    """

    def __init__(self, n_devices, rank, host=DEFAULT_HOST, port=DEFAULT_PORT, use_mpi=False, *, transport=None):
        for name, number in (("n_devices", n_devices), ("rank", rank)):
            if not isinstance(number, (int, np.integer)):
                raise TypeError(f"{name} must be an int, not {type(number).__name__}")
        if n_devices <= 0:
            raise ValueError(f"n_devices must be 1 or more, not {n_devices}")
        if not 0 <= rank < n_devices:
            raise ValueError(f"rank must be from 0 to {n_devices - 1}, as n_devices is {n_devices}, not {rank}")
        wish = read_wish(transport)
        self.rank, self._n_devices, self._direct = rank, n_devices, None
        found = join_by_mpi(n_devices, rank) if use_mpi else join_by_tcp(n_devices, rank, host, port)
        self._links = {theirs: Link(connection, theirs) for theirs, connection in found.items()}
        for theirs in self._partners():
            self._links[theirs].meet(asking=rank < theirs)
        self._choose_transport(wish, found)

    def _choose_transport(self, wish, connections):
        spans = not all(link.is_at_one_server for link in self._links.values())
        choice = choose(self._tell, self._n_devices, self.rank, wish, spans, Watch(connections))
        if wish == "nccl" and choice.direct is None and self._n_devices > 1:
            raise RuntimeError(f"transport='nccl' cannot be had: {choice.reason}; transport='links' goes without it")
        self._direct, self.transport_reason = choice.direct, choice.reason
        self.transport = "links" if choice.direct is None else "nccl"
        if choice.direct:
            weakref.finalize(self, choice.direct.closing)

    def _tell(self, facts):
        """Give all members this one's facts. Those of all, in the order of ranks."""
        found = {theirs: message[1] for theirs, message in self._exchange(lambda _: ([], facts)).items()}
        found[self.rank] = facts
        return [found[theirs] for theirs in range(self._n_devices)]

    def _try_direct(self, name, *args):
        """Let NCCL do an operation. False: it goes over the links. Where it fails the group is over for all."""
        if self._direct is None:
            return False
        try:
            return getattr(self._direct, name)(*args)
        except BaseException:
            self._direct.abort()
            for link in self._links.values():
                link.close()
            raise

    # ---- messages ----

    def _partners(self):
        """The other ranks in an order in which all can exchange: when i comes to j, j comes to i."""
        turns = ((turn - self.rank) % self._n_devices for turn in range(self._n_devices))
        return [theirs for theirs in turns if theirs != self.rank]

    def _exchange(self, outgoing):
        """Send outgoing(rank) to each rank, and receive one message from each. The messages by rank."""
        found = {}
        for theirs in self._partners():
            link, (arrays, facts) = self._links[theirs], outgoing(theirs)
            if self.rank < theirs:
                link.send(arrays, **facts)
            found[theirs] = link.receive()
            if self.rank > theirs:
                link.send(arrays, **facts)
        return found

    def _exchange_parts(self, part, like):
        """Each rank's array for this one, of the size and type of another; part(rank) is this one's for that rank."""
        found = {theirs: _take(message, like, theirs) for theirs, message in
                 self._exchange(lambda theirs: ([part(theirs)], {})).items()}
        found[self.rank] = part(self.rank)
        return found

    def _collect(self, flat, root):
        """Return what every rank has sent to the root, by rank; None elsewhere."""
        if self.rank != root:
            self._links[root].send([flat])
            return None
        found = {theirs: _take(self._links[theirs].receive(), flat, theirs) for theirs in self._partners()}
        found[root] = flat
        return found

    def _check_peer(self, peer, name):
        if not 0 <= peer < self._n_devices:
            raise ValueError(f"{name} must be from 0 to {self._n_devices - 1}, not {peer}")

    def _check_other(self, peer):
        self._check_peer(peer, "peer")
        if peer == self.rank:
            raise ValueError(f"peer must be another rank than this process's own, which is {peer}")

    # ---- between two ----

    def send(self, array, peer, stream=None):
        """Send an array, which the other process receives by recv().

        Parameters: array: ndarray or sparse matrix. peer: rank of the receiver. stream: Stream or None.
        Source: cupyx.distributed.NCCLBackend.send
        """
        self._check_other(peer)
        with _on(stream):
            if _sparse.is_sparse(array):
                _sparse.send(self._links[peer], array)
            else:
                self._links[peer].send([_flatten(array, "array")])

    def recv(self, out_array, peer, stream=None):
        """Receive the array that another process sends.

        Parameters: out_array: ndarray of the sender's size and type, or a sparse matrix, whose shape and elements become
        the sender's. peer: rank of the sender. stream: Stream or None.
        Raises: ValueError when size or type are not the sender's; ConnectionError when the sender has ended.
        Source: cupyx.distributed.NCCLBackend.recv
        """
        self._check_other(peer)
        with _on(stream):
            if _sparse.is_sparse(out_array):
                _sparse.assign(out_array, *self._links[peer].receive())
            else:
                out = _flatten(out_array, "out_array")
                out[...] = _take(self._links[peer].receive(), out, peer)

    def send_recv(self, in_array, out_array, peer, stream=None):
        """Send an array to a process and receive another from it.

        Parameters: in_array: what is sent. out_array: what is written. peer: rank of the other; the own one copies.
        stream: Stream or None.
        Source: cupyx.distributed.NCCLBackend.send_recv
        """
        self._check_peer(peer, "peer")
        if peer == self.rank:
            with _on(stream):
                _copy_here(in_array, out_array)
            return
        for first in (self.rank < peer, self.rank > peer):
            if first:
                self.send(in_array, peer, stream)
            else:
                self.recv(out_array, peer, stream)

    # ---- among all ----

    def broadcast(self, in_out_array, root=0, stream=None):
        """Give all processes the array of one.

        Parameters: in_out_array: what the root sends and the others receive. root: rank of the sender. stream: Stream
        or None.
        Source: cupyx.distributed.NCCLBackend.broadcast
        """
        self._check_peer(root, "root")
        if self._direct and not _sparse.is_sparse(in_out_array):
            with _on(stream):
                if self._try_direct("broadcast", _flatten(in_out_array, "in_out_array"), root):
                    return
        if self.rank != root:
            self.recv(in_out_array, root, stream)
            return
        for theirs in self._partners():
            self.send(in_out_array, theirs, stream)

    def reduce(self, in_array, out_array, root=0, op="sum", stream=None):
        """Combine the arrays of all processes, elementwise and in the order of ranks, at one of them.

        Parameters: in_array: what is sent. out_array: what the root writes. root: rank that gets the result. op: "sum",
        "prod", "min" or "max"; of complex elements "sum" alone. Of sparse matrices "prod" is the matrix product, and
        there is no "min" nor "max". stream: Stream or None.
        Source: cupyx.distributed.NCCLBackend.reduce
        """
        self._check_peer(root, "root")
        with _on(stream):
            if _sparse.is_sparse(in_array):
                parts = self._gather_sparse(in_array, root)
                if parts is not None:
                    _sparse.copy(_sparse.combine(parts, op), out_array)
                return
            combine = _operation(op, in_array)
            flat = _flatten(in_array, "in_array")
            if self.rank == root:
                _check_same(out_array, "out_array", flat, "in_array")
            out = _flatten(out_array, "out_array") if self.rank == root else None
            if self._try_direct("reduce", flat, out, op, root):
                return
            found = self._collect(flat, root)
            if found is not None:
                out[...] = _combine(combine, found)

    def all_reduce(self, in_array, out_array, op="sum", stream=None):
        """Combine the arrays of all processes, elementwise and in the order of ranks. All have the same result.

        Parameters: in_array: what is sent. out_array: what is written; it may be in_array. op, stream: as of reduce().
        Source: cupyx.distributed.NCCLBackend.all_reduce
        """
        if _sparse.is_sparse(in_array):
            self.reduce(in_array, out_array, 0, op, stream)
            self.broadcast(out_array, 0, stream)
            return
        with _on(stream):
            combine, n = _operation(op, in_array), self._n_devices
            flat, out = _flatten(in_array, "in_array"), _flatten(out_array, "out_array")
            _check_same(out, "out_array", flat, "in_array")
            if self._try_direct("all_reduce", flat, out, op):
                return
            if n <= 2 or flat.nbytes <= _AT_ONCE:
                _combine_into(out, combine, self._exchange_parts(lambda _: flat, flat))
                return
            cuts = [flat.size * i // n for i in range(n + 1)]
            pieces = [slice(*each) for each in zip(cuts, cuts[1:])]
            mine = _combine(combine, self._exchange_parts(lambda theirs: flat[pieces[theirs]], flat[pieces[self.rank]]))
            for theirs, (arrays, _) in self._exchange(lambda _: ([mine], {})).items():
                out[pieces[theirs]] = arrays[0]
            out[pieces[self.rank]] = mine

    def reduce_scatter(self, in_array, out_array, count, op="sum", stream=None):
        """Combine the arrays of all processes, and give each process its part of the result.

        Parameters: in_array: n_devices parts of count elements; or as many sparse matrices. out_array: what is written,
        count elements. count: elements of a part; of no effect for sparse matrices. op, stream: as of reduce().
        Source: cupyx.distributed.NCCLBackend.reduce_scatter
        """
        with _on(stream):
            if _sparse.is_sparse(in_array):
                _sparse.copy(_sparse.combine(self._exchange_sparse(in_array), op), out_array)
                return
            combine = _operation(op, in_array)
            parts = _parts(in_array, count, self._n_devices, "in_array")
            out = _parts(out_array, count, 1, "out_array")[0]
            _check_same(out, "out_array", parts[0], "a part of in_array")
            whole = _flatten(in_array, "in_array")[:count * self._n_devices]
            if self._try_direct("reduce_scatter", whole, out, op):
                return
            out[...] = _combine(combine, self._exchange_parts(lambda theirs: parts[theirs], out))

    def all_gather(self, in_array, out_array, count, stream=None):
        """Give all processes the arrays of all.

        Parameters: in_array: what is sent, count elements. out_array: what is written, n_devices times as many; or a
        list, to which the sparse matrices of all are appended. count: elements; of no effect for sparse matrices.
        stream: Stream or None.
        Source: cupyx.distributed.NCCLBackend.all_gather
        """
        with _on(stream):
            if _sparse.is_sparse(in_array):
                out_array += self._exchange_sparse([in_array] * self._n_devices)
                return
            flat = _parts(in_array, count, 1, "in_array")[0]
            parts = _parts(out_array, count, self._n_devices, "out_array")
            _check_same(parts[0], "a part of out_array", flat, "in_array")
            whole = _flatten(out_array, "out_array")[:count * self._n_devices]
            if self._try_direct("all_gather", flat, whole):
                return
            for theirs, a in self._exchange_parts(lambda _: flat, parts[0]).items():
                parts[theirs][...] = a

    def scatter(self, in_array, out_array, root=0, stream=None):
        """Give each process its part of one process's array.

        Parameters: in_array: at the root an array of n_devices rows, or a list of as many sparse matrices. out_array:
        what is written. root: rank of the sender. stream: Stream or None.
        Source: cupyx.distributed.NCCLBackend.scatter
        """
        self._check_peer(root, "root")
        if self.rank == root:
            _check_rows(in_array, self._n_devices, "in_array")
        if self._direct and not _sparse.is_sparse(out_array) and self._scatter_directly(in_array, out_array, root, stream):
            return
        if self.rank != root:
            self.recv(out_array, root, stream)
            return
        for theirs in self._partners():
            self.send(in_array[theirs], theirs, stream)
        with _on(stream):
            _copy_here(in_array[root], out_array)

    def _scatter_directly(self, in_array, out_array, root, stream):
        with _on(stream):
            out, sent = _flatten(out_array, "out_array"), {}
            if self.rank == root:
                sent = {theirs: _flatten(in_array[theirs], "in_array") for theirs in self._partners()}
                for row in sent.values():
                    _check_same(out, "out_array", row, "a row of in_array")
            received = {} if self.rank == root else {root: out}
            done = self._try_direct("exchange", "scatter", out, sent, received, root)
            if done and self.rank == root:
                _copy_here(in_array[root], out_array)
            return done

    def gather(self, in_array, out_array, root=0, stream=None):
        """Collect the arrays of all processes at one.

        Parameters: in_array: what is sent. out_array: at the root an array of n_devices rows, or a list, to which the
        sparse matrices of all are appended. root: rank of the receiver. stream: Stream or None.
        Source: cupyx.distributed.NCCLBackend.gather
        """
        self._check_peer(root, "root")
        with _on(stream):
            if _sparse.is_sparse(in_array):
                out_array += self._gather_sparse(in_array, root) or []
                return
            if self.rank == root:
                _check_rows(out_array, self._n_devices, "out_array")
            if self._direct and self._gather_directly(_flatten(in_array, "in_array"), out_array, root):
                return
            found = self._collect(_flatten(in_array, "in_array"), root)
            for theirs, a in (found or {}).items():
                _flatten(out_array[theirs], "out_array")[...] = a

    def _gather_directly(self, flat, out_array, root):
        received = {}
        if self.rank == root:
            received = {theirs: _flatten(out_array[theirs], "out_array") for theirs in self._partners()}
            for row in received.values():
                _check_same(row, "a row of out_array", flat, "in_array")
        done = self._try_direct("exchange", "gather", flat, {} if self.rank == root else {root: flat}, received, root)
        if done and self.rank == root:
            _copy_here(flat, out_array[root])
        return done

    def all_to_all(self, in_array, out_array, stream=None):
        """Give each process its part of every process's array.

        Parameters: in_array: n_devices rows, or a list of as many sparse matrices. out_array: as many rows, or a list,
        to which the matrices are appended. stream: Stream or None.
        Source: cupyx.distributed.NCCLBackend.all_to_all
        """
        _check_rows(in_array, self._n_devices, "in_array")
        with _on(stream):
            if _sparse.is_sparse(in_array):
                out_array += self._exchange_sparse(in_array)
                return
            _check_rows(out_array, self._n_devices, "out_array")
            if self._direct and self._swap_directly(in_array, out_array):
                return
            found = self._exchange_parts(lambda theirs: _flatten(in_array[theirs], "in_array"),
                                         _flatten(out_array[0], "out_array"))
            for theirs, a in found.items():
                _flatten(out_array[theirs], "out_array")[...] = a

    def _swap_directly(self, in_array, out_array):
        sent = {theirs: _flatten(in_array[theirs], "in_array") for theirs in self._partners()}
        received = {theirs: _flatten(out_array[theirs], "out_array") for theirs in self._partners()}
        like = _flatten(in_array[self.rank], "in_array")
        for row in (*sent.values(), *received.values()):
            _check_same(row, "a row", like, "that of this process")
        done = self._try_direct("exchange", "all_to_all", like, sent, received)
        if done:
            _copy_here(in_array[self.rank], out_array[self.rank])
        return done

    def barrier(self):
        """Wait until all processes of the group have come here. The call does not wait for the server.

        Source: cupyx.distributed.NCCLBackend.barrier
        """
        self._exchange(lambda _: ([], {}))

    # ---- sparse matrices ----

    def _exchange_sparse(self, matrices):
        """Each rank's matrix for this one, in the order of ranks, where matrices[rank] is this one's for that."""
        _check_rows(matrices, self._n_devices, "in_array")
        found = self._exchange(lambda theirs: _sparse.take_apart(matrices[theirs]))
        return [matrices[theirs] if theirs == self.rank else _sparse.build(matrices[theirs], *found[theirs])
                for theirs in range(self._n_devices)]

    def _gather_sparse(self, matrix, root):
        if self.rank != root:
            _sparse.send(self._links[root], matrix)
            return None
        return [matrix if theirs == root else _sparse.build(matrix, *self._links[theirs].receive())
                for theirs in range(self._n_devices)]


# ---- arrays ----

def _on(stream):
    return contextlib.nullcontext() if stream is None else stream


def _flatten(a, name):
    """The elements in the order of memory, as a view. RuntimeError for an array that is not contiguous."""
    if not isinstance(a, _core.ndarray):
        raise TypeError(f"{name} must be an array of the server, not {type(a).__name__}")
    if a.flags.c_contiguous:
        return a.reshape(-1)
    if a.flags.f_contiguous:
        return a.T.reshape(-1)
    raise RuntimeError(f"{name} must be C- or F-contiguous; ascontiguousarray() makes it so")


def _parts(a, count, n, name):
    """An array as n views of count elements. ValueError when it is shorter."""
    flat = _flatten(a, name)
    if flat.size < count * n:
        raise ValueError(f"{name} has {flat.size} elements, and {n} parts of {count} are {n * count}")
    return [flat[i * count:(i + 1) * count] for i in range(n)]


def _check_rows(a, n, name):
    rows = len(a) if isinstance(a, (list, tuple)) else a.shape[0] if a.ndim else 0
    if rows != n:
        raise RuntimeError(f"{name} must have {n} rows, one for each process, not {rows}")


def _check_same(a, name, other, others_name):
    """Check that two arrays have as many elements of one type. ValueError."""
    if a.size != other.size or a.dtype != other.dtype:
        raise ValueError(f"{name} has {a.size} elements of {a.dtype}, and {others_name} {other.size} of {other.dtype}")


def _take(message, like, theirs):
    """The one array of a message, which must have the size and the type of another. ValueError."""
    a = message[0][0]
    _check_same(like, "the array of this process", a, f"that of rank {theirs}")
    return a


def _copy_here(source, target):
    if _sparse.is_sparse(source):
        _sparse.copy(source, target)
        return
    a, out = _flatten(source, "in_array"), _flatten(target, "out_array")
    _check_same(out, "out_array", a, "in_array")
    out[...] = a


def _operation(op, a):
    """The ufunc of a reduction. RuntimeError for another name; ValueError for one that complex elements do not have."""
    if op not in _OPERATIONS:
        raise RuntimeError(f"op must be one of {', '.join(_OPERATIONS)}, not {op!r}")
    if np.dtype(a.dtype).kind == "c" and op != "sum":
        raise ValueError(f"op must be 'sum' for complex arrays, not {op!r}")
    return _core.ufuncs[_OPERATIONS[op]]


def _combine(combine, found):
    """A combination of the arrays by rank, in that order, so that all who do it get equal bits."""
    total = _bring(found[0])
    for theirs in range(1, len(found)):
        total = combine(total, _bring(found[theirs]), dtype=total.dtype)
    return total


def _combine_into(out, combine, found):
    """Write a combination of flat arrays by rank. Large ones that lie on other devices come in chunks. While one is combined,
    the next one is copied."""
    device = Device()
    if out.nbytes <= _AT_ONCE or all(a.device == device for a in found.values()):
        out[...] = _combine(combine, found)
        return
    step = max(1, _CHUNK // out.itemsize)
    chunks = [slice(at, at + step) for at in range(0, out.size, step)]
    coming = _bring_chunk(found, chunks[0], device)
    for chunk, following in zip(chunks, [*chunks[1:], None]):
        here, coming = coming, following and _bring_chunk(found, following, device)
        out[chunk] = _combine(combine, here)


def _bring_chunk(found, chunk, device):
    with copying(device):
        return {theirs: a[chunk] if a.device == device else a[chunk].copy() for theirs, a in found.items()}


def _bring(a):
    """An array as an operand of the current device: a copy where it is large and lies on another one. Two H100 copy twice as
    fast as a kernel reads what lies on the other."""
    return a.copy() if a.nbytes >= _AT_ONCE and a.device != Device() else a
