"""Kernels written in Python, as cupyx.jit has them: functions that are translated to CUDA C++.

    from arrayd.cupyx import jit

    @jit.rawkernel()
    def copy(x, y, size):
        thread, threads = jit.grid(1), jit.gridsize(1)
        for i in range(thread, size, threads):
            y[i] = x[i]

    copy((128,), (1024,), (x, y, x.size))
    copy[128, 1024](x, y, x.size)                 # the same

A function is translated when it is first called with arguments of certain types. It may have numbers, arrays, tuples,
if, while, for over range, functions of math, NumPy's ufuncs, other functions like it, and the names of this module. A
variable has the type of its first assignment. Numbers have NumPy's types and follow its promotion, but that operations
of integers give integers; a Python number that stands alone is int64, float64 or complex128. Indices are not checked,
and count from the front. Code that cannot be translated is an error that names the line.
"""
from ..._kernel import jit_builtins as _builtins
from ..._kernel.jit_kernel import rawkernel
from . import cg, cub, thrust

__all__ = ["atomic_add", "atomic_and", "atomic_cas", "atomic_dec", "atomic_exch", "atomic_inc", "atomic_max",
           "atomic_min", "atomic_or", "atomic_sub", "atomic_xor", "blockDim", "blockIdx", "cg", "cub", "grid", "gridDim",
           "gridsize", "laneid", "range", "rawkernel", "shared_memory", "shfl_down_sync", "shfl_sync", "shfl_up_sync",
           "shfl_xor_sync", "syncthreads", "syncwarp", "threadIdx", "thrust", "warpsize"]

threadIdx = _builtins.Dim3("threadIdx", "The thread's place in its block: x, y and z, uint32.")
blockIdx = _builtins.Dim3("blockIdx", "The block's place in the grid: x, y and z, uint32.")
blockDim = _builtins.Dim3("blockDim", "How many threads a block has along x, y and z, uint32.")
gridDim = _builtins.Dim3("gridDim", "How many blocks the grid has along x, y and z, uint32.")
warpsize = 32
grid, gridsize, laneid = _builtins.grid, _builtins.gridsize, _builtins.laneid
syncthreads, syncwarp = _builtins.syncthreads, _builtins.syncwarp
range, shared_memory = _builtins.range_, _builtins.shared_memory
atomic_add, atomic_sub, atomic_exch = (_builtins.atomics[name] for name in ("add", "sub", "exch"))
atomic_min, atomic_max, atomic_inc = (_builtins.atomics[name] for name in ("min", "max", "inc"))
atomic_dec, atomic_cas = (_builtins.atomics[name] for name in ("dec", "cas"))
atomic_and, atomic_or, atomic_xor = (_builtins.atomics[name] for name in ("and", "or", "xor"))
shfl_sync, shfl_up_sync = (_builtins.shuffles[name] for name in ("shfl_sync", "shfl_up_sync"))
shfl_down_sync, shfl_xor_sync = (_builtins.shuffles[name] for name in ("shfl_down_sync", "shfl_xor_sync"))
