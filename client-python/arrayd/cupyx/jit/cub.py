"""cub's reductions, as cupyx.jit.cub has them, and scans: by the threads of a warp or of a block together.

    @jit.rawkernel()
    def sums(x, y):
        BlockReduce = jit.cub.BlockReduce[numpy.float32, 256]
        storage = jit.shared_memory(BlockReduce.TempStorage, 1)
        total = BlockReduce(storage[0]).Sum(x[jit.grid(1)])
        if jit.threadIdx.x == 0:
            y[jit.blockIdx.x] = total
"""
from ..._kernel import jit_collectives as _collectives

__all__ = ["BlockReduce", "BlockScan", "Max", "Min", "Sum", "WarpReduce", "WarpScan"]

BlockReduce, WarpReduce = _collectives.BlockReduce, _collectives.WarpReduce
BlockScan, WarpScan = _collectives.BlockScan, _collectives.WarpScan
Max, Min, Sum = (_collectives.operators[name] for name in ("Max", "Min", "Sum"))
