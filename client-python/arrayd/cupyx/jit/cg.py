"""Cooperative groups, as cupyx.jit.cg has them: threads of a block or of all blocks that wait for each other.

    @jit.rawkernel()
    def smooth(x, y):
        grid = jit.cg.this_grid()
        i = grid.thread_rank()
        y[i] = (x[i] + x[(i + 1) % x.size]) / 2
        grid.sync()
        x[i] = y[i]

A kernel that waits for the grid is launched so that its blocks run all at once; more blocks than can are an error.

memcpy_async() copies elements, from an array to shared memory above all, while the kernel goes on:

    @jit.rawkernel()
    def sums(x, y):
        block = jit.cg.this_thread_block()
        part = jit.shared_memory("float32", 256)
        jit.cg.memcpy_async(block, part, 0, x, jit.blockIdx.x * 256, 1024)
        jit.cg.wait(block)
        if block.thread_rank() == 0:
            for i in range(256):
                y[jit.blockIdx.x] += part[i]
"""
from ..._kernel import jit_groups as _groups

__all__ = ["memcpy_async", "sync", "this_grid", "this_thread_block", "wait", "wait_prior"]

this_grid, this_thread_block, sync = _groups.this_grid, _groups.this_thread_block, _groups.sync
memcpy_async, wait, wait_prior = _groups.memcpy_async, _groups.wait, _groups.wait_prior
