"""Arrays whose parts lie on several devices: cupyx.distributed.array.

    from arrayd.cupyx.distributed import array as darray
    a = darray.distributed_array(x, {0: slice(0, 500), 1: slice(500, 1000)})     # rows by device
    y = ad.cos(a * a)                        # each part where it lies
    total = y.sum(axis=0)                    # parts of a sum; .get() adds them up

    device 0 │ rows 0 to 499      a part is a chunk: an index and an array of the server.
    device 1 │ rows 500 to 999    Chunks may overlap: the mode says what that means.
"""
from ._array import DistributedArray, distributed_array
from ._boxes import make_2d_index_map
from ._modes import MAX, MIN, PROD, REPLICA, SUM, Mode
from ._product import matmul

__all__ = ["MAX", "MIN", "PROD", "REPLICA", "SUM", "DistributedArray", "Mode", "distributed_array", "make_2d_index_map",
           "matmul"]
