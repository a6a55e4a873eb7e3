"""Cooperative groups, as cupyx.jit.cg has them: threads of a block or of all blocks that wait for each other.

    @jit.rawkernel()
    def smooth(x, y):
        grid = jit.cg.this_grid()
        i = grid.thread_rank()
        y[i] = (x[i] + x[(i + 1) % x.size]) / 2
        grid.sync()
        x[i] = y[i]

A kernel that waits for the grid is launched so that its blocks run all at once; more blocks than can are an error.
"""
from ..._kernel import jit_groups as _groups

__all__ = ["sync", "this_grid", "this_thread_block"]

this_grid, this_thread_block, sync = _groups.this_grid, _groups.this_thread_block, _groups.sync
