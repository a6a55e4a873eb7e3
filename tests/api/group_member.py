"""One process of a group: every operation of cupyx.distributed beside what NumPy says of the data of all ranks.

group_member.py SIZE RANK PORT PROGRAM...       port 0: MPI has started the processes, and says their ranks
"""
import os
import signal
import sys

import numpy as np

import arrayd as ad
from arrayd.cupyx import distributed
from arrayd.cupyx.distributed import _group
from arrayd.cupyx.scipy import sparse

REDUCE = {"sum": np.add.reduce, "prod": np.multiply.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce}
TYPES = ["int8", "uint8", "int32", "uint64", "float16", "float32", "float64", "complex64", "bool"]


def data_of(rank, dtype="float64", shape=(3, 4)):
    """Return what a rank has: whole numbers, so that sums are exact."""
    values = np.random.default_rng(rank).integers(0, 4, shape)
    return values.astype(dtype)


def equal(found, expected):
    np.testing.assert_array_equal(found.get(), expected)
    assert found.dtype == expected.dtype


def try_types(group, size, rank):
    for dtype in TYPES:
        all_data = [data_of(r, dtype) for r in range(size)]
        mine, out = ad.asarray(all_data[rank]), ad.zeros((3, 4), dtype)
        group.all_gather(mine, everything := ad.zeros((size, 3, 4), dtype), 12)
        equal(everything, np.stack(all_data))
        for op in ["sum"] if dtype == "complex64" else [] if dtype == "bool" else REDUCE:
            group.all_reduce(mine, out, op)
            equal(out, REDUCE[op](all_data, dtype=dtype) if op in ("sum", "prod") else REDUCE[op](all_data))


def try_patterns(group, size, rank):
    all_data = [data_of(r, shape=(size, 5)) for r in range(size)]
    mine = ad.asarray(all_data[rank])
    for root in range(size):
        group.broadcast(a := ad.asarray(all_data[rank]), root)
        equal(a, all_data[root])
        group.reduce(mine, out := ad.zeros((size, 5)), root, "max")
        equal(out, np.maximum.reduce(all_data) if rank == root else np.zeros((size, 5)))
        group.scatter(mine, row := ad.zeros(5), root)
        equal(row, all_data[root][rank])
        group.gather(mine[0].copy(), rows := ad.zeros((size, 5)), root)
        equal(rows, np.stack([each[0] for each in all_data]) if rank == root else np.zeros((size, 5)))
    group.reduce_scatter(mine, row := ad.zeros(5), 5)
    equal(row, np.add.reduce(all_data)[rank])
    group.all_to_all(mine, swapped := ad.zeros((size, 5)))
    equal(swapped, np.stack([each[rank] for each in all_data]))
    for distance in range(size):  # a ring: all send one way
        group.send_recv(mine, got := ad.zeros((size, 5)), peer := (distance - rank) % size)
        equal(got, all_data[peer])
    group.barrier()


def try_large(group, size, rank):
    """Arrays that are reduced in parts, in place, in Fortran's order, and on a stream."""
    all_data = [data_of(r, shape=(1000, 401)) for r in range(size)]
    total = np.add.reduce(all_data)
    with ad.cuda.Stream() as stream:
        a = ad.asarray(all_data[rank])
    group.all_reduce(a, a, stream=stream)
    stream.synchronize()
    equal(a, total)
    f = ad.asarray(all_data[rank], order="F")
    group.all_reduce(f, f)
    equal(f, total)
    group.broadcast(f, 0)
    equal(f, total)
    _group._CHUNK = 300_000  # of 3.2 MB; they come from other devices, if from any
    group.all_reduce(c := ad.asarray(all_data[rank]), out := ad.zeros((1000, 401)))
    equal(out, total)
    group.all_reduce(c, c, "max")
    equal(c, np.maximum.reduce(all_data))
    before = ad.asarray(all_data[rank])
    if rank == 0:
        for peer in range(1, size):
            group.send(before, peer)
        before += 1  # not seen by who receives it
    else:
        group.recv(got := ad.zeros((1000, 401)), 0)
        equal(got, all_data[0])
    group.barrier()


def try_fetched(group, size, rank):
    """Arrays that are large enough for servers to fetch them from each other, also views of larger ones."""
    shape = 3000, 2801
    all_data = [data_of(r, shape=shape) for r in range(size)]
    mine = ad.asarray(all_data[rank])
    group.all_reduce(mine, out := ad.zeros(shape))
    equal(out, np.add.reduce(all_data))
    group.broadcast(a := mine.T, 0)
    equal(a, all_data[0].T)
    group.send_recv(ad.asarray(np.repeat(all_data[rank], 4, 0))[:3000], got := ad.zeros(shape), size - 1 - rank)
    equal(got, np.repeat(all_data[size - 1 - rank], 4, 0)[:3000])


def try_direct(group, size, rank):
    """What NCCL does: no elements go over the links. Operations of the server before are seen by NCCL, and its results after."""
    assert group.transport == "nccl", group.transport_reason
    sends = {link: link.send for link in group._links.values()}

    def send_no_elements(link):
        def send(arrays, **facts):
            assert not arrays, facts
            sends[link](arrays, **facts)
        return send

    for link in sends:
        link.send = send_no_elements(link)
    shape = size, 70_001
    for dtype in [each for each in TYPES if each != "bool"] + ["complex128"]:
        all_data = [data_of(r, dtype, shape) for r in range(size)]
        a = ad.zeros(shape, dtype)
        for _ in range(5):
            a += ad.asarray(all_data[rank])
        group.all_reduce(a, a)
        equal(a * 2, (np.add.reduce(all_data, dtype=dtype) * 5 * 2).astype(dtype))
        mine, row = ad.asarray(all_data[rank]), ad.zeros(shape[1:], dtype)
        group.reduce_scatter(mine, row, row.size)
        equal(row, np.add.reduce(all_data, dtype=dtype)[rank])
        for root in range(size):
            group.reduce(mine, out := ad.zeros(shape, dtype), root)
            equal(out, np.add.reduce(all_data, dtype=dtype) if rank == root else np.zeros(shape, dtype))
            group.broadcast(b := ad.asarray(all_data[rank]), root)
            equal(b, all_data[root])
            group.scatter(mine, row, root)
            equal(row, all_data[root][rank])
            group.gather(row, rows := ad.zeros(shape, dtype), root)
            equal(rows, all_data[root] if rank == root else np.zeros(shape, dtype))
        group.all_gather(row, rows, row.size)
        equal(rows, all_data[size - 1])
        group.all_to_all(mine, rows)
        equal(rows, np.stack([each[rank] for each in all_data]))
    for link, send in sends.items():
        link.send = send


def try_why(group, size, rank):
    print(group.transport_reason)


def try_refused(group, size, rank):
    """Operations that NCCL lacks go over the links, and so do mistakes, which are told there."""
    short, read = data_of(rank, "int16"), ad.asarray(data_of(rank))
    group.all_reduce(ad.asarray(short), out := ad.zeros((3, 4), "int16"))
    equal(out, np.add.reduce([data_of(r, "int16") for r in range(size)], dtype="int16"))
    read.flags.writeable = False
    group.all_reduce(read, out := ad.zeros((3, 4)))
    equal(out, np.add.reduce([data_of(r) for r in range(size)]))
    group.all_gather(whole := ad.zeros(0), whole, 0)
    expect(ValueError, "of float64", group.all_reduce, a := ad.zeros(3 + rank), a)


def try_broken(group, size, rank):
    """A member ends, or NCCL fails at one: the others are told, also those that call later."""
    a = ad.ones(1000)
    for _ in range(2):
        try:
            group.all_reduce(a, a)
        except ConnectionError as error:
            print(error)


def try_killed(group, size, rank):
    """Rank 1 is killed behind its first sum, and the others wait for it in the next one."""
    a = ad.ones(1 << 20, "float32")
    group.all_reduce(a, a)
    equal(a, np.full(1 << 20, size, "float32"))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    expect(ConnectionError, "rank 1 of the group has ended", group.all_reduce, a, a)
    print("rank 1 of the group has ended")


def matrix_of(rank, format):
    return sparse.random(6, 6, density=0.3, format=format, dtype="float64", random_state=rank)


def try_sparse(group, size, rank):
    for format in ("csr", "csc", "coo"):
        empty = lambda: getattr(sparse, format + "_matrix")((1, 1), dtype="float64")  # noqa: E731
        dense = [matrix_of(r, format).toarray().get() for r in range(size)]
        mine = matrix_of(rank, format)
        group.broadcast(a := matrix_of(rank, format) if rank == 0 else empty(), 0)
        equal(a.toarray(), dense[0])
        group.all_reduce(mine, total := empty())
        np.testing.assert_allclose(total.toarray().get(), np.add.reduce(dense))
        group.all_gather(mine, found := [], 0)
        for got, expected in zip(found, dense, strict=True):
            equal(got.toarray(), expected)
            assert got.data.device == ad.cuda.Device()
        group.all_to_all([mine * (r + 1) for r in range(size)], found := [])
        for got, expected in zip(found, dense, strict=True):
            np.testing.assert_allclose(got.toarray().get(), expected * (rank + 1))
        group.scatter([matrix_of(r, format) for r in range(size)], part := empty(), 0)
        equal(part.toarray(), dense[rank])
        group.gather(mine, found := [], 0)
        assert len(found) == (size if rank == 0 else 0)
        group.reduce_scatter([matrix_of(r, format) for r in range(size)], part := empty(), 0)
        np.testing.assert_allclose(part.toarray().get(), size * dense[rank])
        if format != "coo":
            group.reduce(mine, product := empty(), 0, "prod")
            if rank == 0:
                np.testing.assert_allclose(product.toarray().get(), np.linalg.multi_dot(dense) if size > 1 else dense[0])


def expect(error, text, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except error as found:
        assert text in str(found), found
    else:
        raise AssertionError(f"no {error.__name__} with {text!r}")


def try_mistakes(group, size, rank):
    a = ad.zeros((4, 4))
    expect(RuntimeError, "C- or F-contiguous", group.broadcast, a[:, ::2])
    expect(ValueError, "root must be from 0", group.broadcast, a, size)
    expect(ValueError, "another rank", group.send, a, rank)
    expect(RuntimeError, "op must be one of", group.all_reduce, a, a, "mean")
    expect(ValueError, "must be 'sum' for complex", group.all_reduce, a + 0j, a + 0j, "max")
    expect(ValueError, "in_array 16 of float64", group.all_reduce, a, ad.zeros(3))
    expect(TypeError, "array of the server, not ndarray", group.broadcast, np.zeros(3), 0)
    expect(RuntimeError, f"must have {size} rows", group.all_to_all, ad.zeros((size + 1, 2)), a)
    group.barrier()
    if rank == 0:
        group.send(ad.zeros(3, "int32"), 1)
    elif rank == 1:
        expect(ValueError, "of rank 0 3 of int32", group.recv, a, 0)


def try_end(group, size, rank):
    """The last rank ends where the others wait for it."""
    if rank == size - 1:
        return
    expect(ConnectionError, f"rank {size - 1} of the group has ended", group.recv, ad.zeros(3), size - 1)


def run(size, rank, port, *programs):
    """The programs in a group whose processes take turns with the server's devices."""
    if not port:
        from mpi4py import MPI
        rank = MPI.COMM_WORLD.Get_rank()
    ad.cuda.Device(rank % ad.session_info()["devices"]).use()
    group = distributed.init_process_group(size, rank, port=port, use_mpi=not port)
    for program in programs:
        globals()["try_" + program](group, size, rank)
    link = group._links[min(group._links)] if group._links else None
    if group.transport == "nccl":
        print("by NCCL")
        return
    print("by handle" if link is None or link._one_server else "by servers" if link._fetched else "by value")


if __name__ == "__main__":
    run(*map(int, sys.argv[1:4]), *sys.argv[4:])
