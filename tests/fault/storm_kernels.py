"""storm.py with kernels of the program's own, of every kind: the objects go on, whatever becomes of the server's worker.

storm_kernels.py URL FRONT_PID KILLS SEED [MOST [SECONDS]] [CACHE]: as storm.py. CACHE: the server's folder of compiled
kernels, of which the program damages or removes some files now and then.
"""
import os
import pathlib
import sys

import numpy as np

import arrayd as ad
from arrayd.cupyx import jit
from storm import Program, main

RAW = r"""
extern "C" __global__ void scale(const long long *x, long long n, long long factor, long long *y) {
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i] * factor;
}
extern "C" __global__ void turn(long long *x, long long n) {
    extern __shared__ long long part[];
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    part[threadIdx.x] = at < n ? x[at] : 0;
    __syncthreads();
    long long other = blockIdx.x * (long long)blockDim.x + blockDim.x - 1 - threadIdx.x;
    if (other < n && at < n) x[at] = part[blockDim.x - 1 - threadIdx.x];
}
"""
NAMED = r"""
template <typename T, int N> __global__ void add(const T *x, T *y, long long n) {
    for (long long i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] + N + MORE;
}
"""
GROUPS = r"""
#include <cooperative_groups.h>
extern "C" __global__ void rest(const long long *x, long long *y, long long n) {
    long long i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    for (long long k = i; k < n; k += all) y[k] = x[k] + 1;
    cooperative_groups::this_grid().sync();
    if (y[n - 1] != x[n - 1] + 1 || y[0] != x[0] + 1) y[i % n] = -1;
}
"""


def turned(x, block):
    """Return what `turn` makes of x. Each whole block is the other way round; of the last one, what has a partner in
    x."""
    y = x.copy()
    for begin in range(0, len(x), block):
        at = np.arange(begin, min(begin + block, len(x)))
        other = 2 * begin + block - 1 - at
        y[at[other < len(x)]] = x[other[other < len(x)]]
    return y


class Kernels(Program):
    """Random operations, most of them kernels of the program's own."""

    def __init__(self, *given):
        super().__init__(*given)
        self.blend = ad.ElementwiseKernel("int64 x, int64 y", "int64 z", "z = x * 3 - y", "blend")
        self.more = ad.ElementwiseKernel("T x, int64 most", "T y", "y += x % most", "more")
        self.norm = ad.ReductionKernel("int64 x", "int64 y", "abs(x)", "a + b", "y = a", "0", "norm")
        self.scale = ad.RawKernel(RAW, "scale")
        self.module = ad.RawModule(code=RAW + "// a module")
        self.turn = self.module.get_function("turn")
        self.named = ad.RawModule(code=NAMED, options=("-DMORE=40",), name_expressions=["add<long long, 2>"])
        self.groups = ad.RawKernel(GROUPS, "rest", enable_cooperative_groups=True)
        self.fused = ad.fuse(fused)
        self.vectorized = ad.vectorize(vectorized)
        self.kinds = [self.elementwise, self.inplace, self.reduce, self.raw, self.rawplace, self.template,
                                     self.cooperate, self.fuse, self.jitted, self.vectorize, self.fresh]

    def elementwise(self):
        (a, x), (b, y) = self.two()
        self.add(self.blend(a, b) % 100_003, (x * 3 - y) % 100_003)

    def inplace(self):
        (a, x), (b, y) = self.two()
        if a is not b:
            self.more(b, 7, a)
            x += np.fmod(y, 7)

    def reduce(self):
        a, x = self.two()[0]
        self.add(self.norm(a, keepdims=True) + ad.zeros(1, "int64"), np.abs(x).sum(keepdims=True))

    def raw(self):
        a, x = self.two()[0]
        y = ad.empty(len(x), "int64")
        self.scale((4,), (64,), (a, len(x), 5, y))
        self.add(y % 100_003, x * 5 % 100_003)

    def rawplace(self):
        a, x = self.two()[0]
        block = self.random.choice((32, 128))
        self.turn(((len(x) + block - 1) // block,), (block,), (a, len(x)), shared_mem=8 * block)
        x[:] = turned(x, block)

    def template(self):
        a, x = self.two()[0]
        y = ad.empty(len(x), "int64")
        self.named.get_function("add<long long, 2>")((1,), (64,), (a, y, len(x)))
        self.add(y, x + 42)

    def cooperate(self):
        n = self.random.choice(self.sizes)
        x = np.full(n, self.random.randrange(100))
        y = ad.empty(n, "int64")
        self.groups((2,), (64,), (ad.asarray(x), y, n))
        self.add(y, x + 1)

    def fuse(self):
        (a, x), (b, y) = self.two()
        self.add(self.fused(a, b) % 100_003, (np.abs(x - y) * 2 + 1) % 100_003)

    def jitted(self):
        a, x = self.two()[0]
        y = ad.zeros(len(x), "int64")
        jitted[3, 50](a, y, len(x))
        self.add(y, x * 2 + 1)

    def vectorize(self):
        a, x = self.two()[0]
        self.add(self.vectorized(a), np.where(x > 3, x - 1, x + 1))

    def fresh(self):
        """A kernel that was never built before, or one that is built again."""
        number = self.random.randrange(12)
        a, x = self.two()[0]
        kernel = ad.ElementwiseKernel("int64 x", "int64 y", f"y = x + {number}", f"fresh{number}")
        self.add(kernel(a), x + number)

    def cut(self):
        """Somebody has been at the cache."""
        files = sorted(pathlib.Path(CACHE).glob("*.kernel")) if CACHE else []
        for path in self.random.sample(files, min(len(files), 3)):
            try:
                if self.random.random() < 0.5:
                    path.unlink()
                else:
                    os.truncate(path, self.random.randrange(2000))
            except OSError:
                pass

    def step(self):
        if all(x is None for _, x in self.pairs):
            self.upload()
        roll = self.random.random()
        if roll < 0.6:
            self.random.choice(self.kinds)()
            self.operations += 1
        elif roll < 0.605:
            self.cut()
        elif roll < 0.8:
            self.compare()
        else:
            super().step()


@jit.rawkernel()
def jitted(x, y, n):
    for i in range(jit.grid(1), n, jit.gridsize(1)):
        y[i] = x[i] * 2 + 1


def fused(x, y):
    return abs(x - y) * 2 + 1


def vectorized(x):
    if x > 3:
        return x - 1
    return x + 1


CACHE = sys.argv.pop() if len(sys.argv) > 5 and not sys.argv[-1].isdigit() else ""
if __name__ == "__main__":
    main(Kernels)
