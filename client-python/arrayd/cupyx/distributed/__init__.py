"""Groups of processes that exchange arrays: cupyx.distributed.

    from arrayd.cupyx import distributed
    group = distributed.init_process_group(2, rank)     # in each of two processes
    group.all_reduce(gradient, gradient)                # both have the sum now

Processes of one user at one server hand each other handles, and the server copies. Between servers, also of several
hosts, the elements go over a TCP connection of the two processes. Where each process has a GPU of its own, and NCCL, they
go by that (_direct.py).

    rank 0 ─── rank 1        every process has a connection to every other
       ╲       ╱             a message is a line of JSON: handles of arrays, or their types, and then the elements
        rank 2
"""
import os

from ._group import DEFAULT_HOST, DEFAULT_PORT, NCCLBackend

__all__ = ["NCCLBackend", "init_process_group"]


def init_process_group(n_devices, rank, *, backend="nccl", host=None, port=None, use_mpi=False, transport=None):
    """Join a group of processes. The call returns when all of them have joined.

    Parameters: n_devices: how many processes there are. rank: which of them this is, from 0. backend: "nccl", the name
    that CuPy has for it. host, port: where rank 0 waits for the others; None: the environment's
    CUPYX_DISTRIBUTED_HOST and CUPYX_DISTRIBUTED_PORT, else 127.0.0.1 and 13333. use_mpi: the processes find each other
    by mpi4py instead. transport: how the arrays of collective operations go. "nccl": from GPU to GPU by NCCL in these
    processes, each of which has a GPU of its own; "links": by the server, or over the connections; "auto": NCCL where members
    are at several servers and all have it, else the links; None: the environment's ARRAYD_GROUP_TRANSPORT, else "auto". The
    group's `transport` and `transport_reason` say what was chosen. Where the environment has ARRAYD_GROUP_KEY, only processes
    with the same key may join; without it whoever reaches the port may join, or keep the others waiting.
    Returns: NCCLBackend.
    Raises: RuntimeError with "nccl" where that cannot be had; ValueError for a number of processes, a rank, a backend or a
    transport that cannot be, and for a rank that is taken; TimeoutError when rank 0 is not there within 60 seconds;
    multiprocessing.AuthenticationError for another key.
    Source: cupyx.distributed.init_process_group
    """
    if backend != "nccl":
        raise ValueError(f"backend must be 'nccl', not {backend!r}")
    host = host if host is not None else os.environ.get("CUPYX_DISTRIBUTED_HOST", DEFAULT_HOST)
    port = port if port is not None else int(os.environ.get("CUPYX_DISTRIBUTED_PORT", DEFAULT_PORT))
    return NCCLBackend(n_devices, rank, host, port, use_mpi, transport=transport)
