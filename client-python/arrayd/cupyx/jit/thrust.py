"""thrust's algorithms, as cupyx.jit.thrust has them: each thread that calls one runs it by itself.

    @jit.rawkernel()
    def sort_rows(x):
        row = x[jit.grid(1)]
        jit.thrust.sort(jit.thrust.device, row.begin(), row.end())

Places are iterators: begin() and end() of arrays and of their rows (x[i]), shared memory, and what + and - make of them.
The elements of an array without gaps, and of any row, are counted in C order.
"""
from ..._kernel import jit_algorithms as _algorithms

device, seq = _algorithms.device, _algorithms.seq
globals().update(_algorithms.algorithms)

__all__ = ["device", "seq", *_algorithms.algorithms]
