"""Cooperative launches: blocks of a grid that wait for each other."""
import itertools

import numpy as np
import pytest

import arrayd as ad
from arrayd.cupyx import jit

ROTATE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// In each round every element becomes the sum of its neighbours in other blocks, as they were before the round.
extern "C" __global__ void rounds(long long *x, long long *y, int n, int times) {
    cg::grid_group grid = cg::this_grid();
    const int me = (int)grid.thread_rank();
    for (int round = 0; round < times; round++) {
        for (int i = me; i < n; i += (int)grid.size()) y[i] = x[(i + 1) % n] + x[(i + n - 1) % n];
        grid.sync();
        for (int i = me; i < n; i += (int)grid.size()) x[i] = y[i] & 0xffff;
        cg::sync(grid);
    }
}
"""
TOTAL = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// The sum over all blocks, in one launch: each block by shared memory and tiles, then one block.
extern "C" __global__ void total(const int *x, int *part, int *out, int n) {
    __shared__ int tiles[32];
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    int sum = 0;
    for (int i = (int)cg::this_grid().thread_rank(); i < n; i += (int)cg::this_grid().size()) sum += x[i];
    for (int k = 16; k > 0; k /= 2) sum += tile.shfl_down(sum, k);
    if (tile.thread_rank() == 0) tiles[block.thread_rank() / 32] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        part[blockIdx.x] = 0;
        for (unsigned k = 0; k < block.size() / 32; k++) part[blockIdx.x] += tiles[k];
    }
    cg::this_grid().sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *out = 0;
        for (unsigned b = 0; b < gridDim.x; b++) *out += part[b];
    }
}
"""
MANY = r"""
#include <cooperative_groups.h>
extern "C" __global__ void wait_for_all(int *x) {
    x[blockIdx.x] = 1;
    cooperative_groups::this_grid().sync();
    if (x[(blockIdx.x + 1) % gridDim.x] == 1) x[gridDim.x + blockIdx.x] = 1;
}
extern "C" __global__ void some_wait(int *x) {
    if (blockIdx.x != 0) cooperative_groups::this_grid().sync();
    x[blockIdx.x] = 1;
}
"""


@pytest.mark.parametrize(("blocks", "threads"), [(1, 64), (4, 32), (7, 33), (16, 64)])
def test_rounds(blocks, threads):
    n, times = 1000, 20
    expected = np.arange(n)
    for _ in range(times):
        expected = np.roll(expected, -1) + np.roll(expected, 1) & 0xffff
    kernel = ad.RawKernel(ROTATE, "rounds", enable_cooperative_groups=True)
    assert kernel.enable_cooperative_groups
    x, y = ad.arange(n), ad.zeros(n, dtype="int64")
    kernel((blocks,), (threads,), (x, y, np.int32(n), np.int32(times)))
    np.testing.assert_array_equal(x.get(), expected)


def test_one_launch_for_a_sum():
    """Shared memory is each block's own, though all blocks are under way."""
    values = np.random.default_rng(1).integers(0, 1000, 5000, dtype="int32")
    module = ad.RawModule(code=TOTAL, enable_cooperative_groups=True)
    part, out = ad.zeros(8, dtype="int32"), ad.zeros((), dtype="int32")
    module.get_function("total")((8,), (128,), (ad.asarray(values), part, out, np.int32(values.size)))
    assert int(out) == values.sum()
    assert part.get().sum() == values.sum() and (part.get() > 0).all()


def test_as_many_blocks_as_there_can_be():
    """A launch of more blocks is an error of that launch, which changes nothing, and the next one runs."""
    kernel = ad.RawKernel(MANY, "wait_for_all", enable_cooperative_groups=True)
    blocks = 128
    x = ad.zeros(2 * blocks, dtype="int32")
    kernel((blocks,), (1,), (x,))
    assert x.get().tolist() == [1] * (2 * blocks)
    bad = ad.zeros(8, dtype="int32")
    kernel((1 << 20,), (64,), (bad,))
    with pytest.raises(Exception, match="wait_for_all.*(at once|blocks)"):
        bad.get()
        ad.sync()
    y = ad.zeros(4, dtype="int32")
    kernel((2,), (64,), (y,))
    assert y.get().tolist() == [1] * 4


def test_a_kernel_of_the_same_source_is_launched_as_ever():
    """The property is the RawKernel's; without it any number of blocks runs, one after another."""
    source = 'extern "C" __global__ void fill(int *x) { x[blockIdx.x] = 7; }'
    both = [ad.RawKernel(source, "fill", enable_cooperative_groups=flag) for flag in (True, False)]
    x, y = ad.zeros(100, dtype="int32"), ad.zeros(5000, dtype="int32")
    both[0]((100,), (1,), (x,))
    both[1]((5000,), (1,), (y,))
    assert (x.get() == 7).all() and (y.get() == 7).all()
    assert not both[1].enable_cooperative_groups


@pytest.mark.skipif("ad.session_info()['backend'] != 'cpu'", reason="a GPU waits for ever, or goes on")
def test_blocks_that_wait_in_vain_are_told():
    """A launch that does not wait for the grid as it must: an error, not a hang."""
    for name, cooperative, message in (("some_wait", True, "for the grid, that others never reach"),
                                       ("wait_for_all", False, "enable_cooperative_groups=True")):
        x = ad.zeros(16, dtype="int32")
        ad.RawKernel(MANY, name, enable_cooperative_groups=cooperative)((3,), (2,), (x,))
        with pytest.raises(ValueError, match=message):
            x.get()


@jit.rawkernel()
def spread(x, y, times):
    """In each round every element becomes the sum of its neighbours, and y is what they were."""
    grid = jit.cg.this_grid()
    i = grid.thread_rank()
    for _ in range(times):
        y[i] = x[(i + 1) % x.size] + x[(i + x.size - 1) % x.size]
        grid.sync()
        x[i] = y[i]
        jit.cg.sync(grid)


@jit.rawkernel()
def places(out):
    block, grid = jit.cg.this_thread_block(), jit.cg.this_grid()
    i = grid.thread_rank()
    jit.cg.sync(block)
    out[i, 0] = block.thread_rank()
    out[i, 1] = block.group_index().x
    out[i, 2] = block.dim_threads().x
    out[i, 3] = grid.num_blocks()
    out[i, 4] = grid.block_rank()
    out[i, 5] = grid.size()


def test_kernels_in_python():
    x, y = ad.arange(96, dtype="int64"), ad.zeros(96, dtype="int64")
    spread((6,), (16,), (x, y, 9))
    expected = np.arange(96)
    for _ in range(9):
        expected = np.roll(expected, -1) + np.roll(expected, 1)
    np.testing.assert_array_equal(x.get(), expected)
    assert "cooperative_groups" in spread.cached_code
    out = ad.zeros((12, 6), dtype="int32")
    places[3, 4](out)  # does not wait for the grid
    np.testing.assert_array_equal(out.get(), [(i % 4, i // 4, 4, 3, i // 4, 12) for i in range(12)])


def test_groups_outside_of_kernels():
    with pytest.raises(RuntimeError, match="this_grid can only be called in a function"):
        jit.cg.this_grid()

    @jit.rawkernel()
    def wrong(x):
        jit.cg.sync(x)
    with pytest.raises(TypeError, match="group must be this_grid"):
        wrong((1,), (1,), (ad.zeros(3),))


BLOCK = 64


@jit.rawkernel()
def turn(x, y, n):
    """Each block turns its part of x round, by way of shared memory, with two copies under way at a time."""
    block = jit.cg.this_thread_block()
    part = jit.shared_memory(x.dtype, 2 * BLOCK)
    first, rank = jit.blockIdx.x * n * BLOCK, block.thread_rank()
    jit.cg.memcpy_async(block, part, 0, x, first, BLOCK * x.itemsize)
    for k in range(n):
        now = k % 2 * BLOCK
        if k + 1 < n:
            jit.cg.memcpy_async(block, part, BLOCK - now, x, first + (k + 1) * BLOCK, BLOCK * x.itemsize)
            jit.cg.wait_prior(block, 1)
        else:
            jit.cg.wait(block)
        y[first + k * BLOCK + rank] = part[now + BLOCK - 1 - rank]
        block.sync()


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "int32", "float64", "complex64", "complex128"])
def test_copies_by_a_block(dtype):
    blocks, n = 3, 5
    x = (ad.arange(blocks * n * BLOCK) % 7).astype(dtype)
    y = ad.zeros_like(x)
    turn[blocks, BLOCK](x, y, n)
    np.testing.assert_array_equal(y.get(), x.get().reshape(-1, BLOCK)[:, ::-1].ravel())


@jit.rawkernel()
def aligned(x, y):
    block = jit.cg.this_thread_block()
    part = jit.shared_memory(np.float32, 32, alignment=16)
    jit.cg.memcpy_async(block, part, 4, x, 8, 64, aligned_size=16)
    jit.cg.wait(block)
    jit.cg.memcpy_async(block, y, 0, part, 4, 64, aligned_size=4)
    jit.cg.wait(block)


@jit.rawkernel()
def whole(x, y, bytes_):
    """Arrays of several dimensions count in C order; any number of bytes."""
    if jit.blockIdx.x == 0:
        jit.cg.memcpy_async(jit.cg.this_thread_block(), y, 3, x, 1, bytes_)
    jit.cg.wait(jit.cg.this_grid())


def test_copies_to_arrays():
    x, y = ad.arange(40, dtype="float32"), ad.zeros(16, dtype="float32")
    aligned[1, 10](x, y)
    np.testing.assert_array_equal(y.get(), np.arange(8, 24))
    x, y = ad.arange(30).reshape(5, 6), ad.zeros((4, 5), dtype="int64")
    whole[2, 8](x, y, 8 * 13)
    expected = np.zeros(20)
    expected[3:16] = np.arange(1, 14)
    np.testing.assert_array_equal(y.get().ravel(), expected)


@jit.rawkernel()
def moved(x, y, to, start, count):
    jit.cg.memcpy_async(jit.cg.this_thread_block(), y, to, x, start, count)
    jit.cg.wait(jit.cg.this_thread_block())


@pytest.mark.parametrize("dtype", ["int8", "bool", "int16"])
def test_copies_from_anywhere_to_anywhere(dtype):
    """Copies work whatever the places are aligned to, and for any size."""
    x = ad.asarray(np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 99, 60).astype(dtype))
    size = x.dtype.itemsize
    for to, start, count in [*itertools.product(range(5), range(5), (1, 5, 16)), (16, 1, 40), (3, 1, 41), (0, 2, 39)]:
        y, expected = ad.zeros(60, dtype=dtype), np.zeros(60, dtype)
        moved[1, 32](x, y, to, start, np.int32(count * size))
        expected[to:to + count] = x.get()[start:start + count]
        np.testing.assert_array_equal(y.get(), expected, err_msg=f"{to}, {start}, {count}")


@pytest.mark.parametrize(("call", "message"), [
    (lambda b, x, y: jit.cg.memcpy_async(b, x, 0, y, 0, 8), "of one type, not float64 and int32"),
    (lambda b, x, y: jit.cg.memcpy_async(b, 3, 0, x, 0, 8), "dst must be an array or shared memory"),
    (lambda b, x, y: jit.cg.memcpy_async(b, x, 1.5, x, 0, 8), "dst_idx must be an integer"),
    (lambda b, x, y: jit.cg.memcpy_async(b, x, 0, x, 0, 8.0), "size must be an integer"),
    (lambda b, x, y: jit.cg.memcpy_async(b, x, 0, x, 0, 8, aligned_size=12), "aligned_size must be a power of two"),
    (lambda b, x, y: jit.cg.memcpy_async(x, x, 0, x, 0, 8), "group must be this_grid"),
    (lambda b, x, y: jit.cg.memcpy_async(jit.cg.this_grid(), x, 0, x, 0, 8), "group must be this_thread_block"),
    (lambda b, x, y: jit.cg.wait(x), "group must be this_grid"),
    (lambda b, x, y: jit.cg.wait_prior(b, -1), "step must be an int from 0 on"),
    (lambda b, x, y: jit.cg.wait_prior(b, y[0]), "constant is needed"),
])
def test_wrong_copies(call, message):
    used = jit.rawkernel(device=True)(call)

    @jit.rawkernel()
    def wrong(x, y):
        used(jit.cg.this_thread_block(), x, y)
    with pytest.raises((TypeError, ValueError), match=message):
        wrong((1,), (1,), (ad.zeros(3), ad.zeros(3, dtype="int32")))


def test_only_what_lies_in_c_order_is_copied():
    with pytest.raises(TypeError, match="src must be C-contiguous"):
        whole((1,), (1,), (ad.zeros((4, 4))[:, ::2], ad.zeros(8), 8))
    with pytest.raises(TypeError, match="dst must be C-contiguous"):
        whole((1,), (1,), (ad.zeros(8), ad.zeros(8)[::2], 8))
    with pytest.raises(RuntimeError, match="memcpy_async can only be called in a function"):
        jit.cg.memcpy_async(None, None, 0, None, 0, 0)


COPIES = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

extern "C" __global__ void copies(const int *x, int *y) {
    __shared__ int part[64];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    int *own = part + tile.meta_group_rank() * 16;
    cg::memcpy_async(tile, own, 20, x + tile.meta_group_rank() * 16, 16);
    cg::wait(tile);
    y[threadIdx.x] = own[15 - tile.thread_rank()];
}
"""


def test_copies_in_cuda():
    x, y = ad.arange(64, dtype="int32"), ad.zeros(64, dtype="int32")
    ad.RawKernel(COPIES, "copies")((1,), (64,), (x, y))
    np.testing.assert_array_equal(y.get(), np.arange(64).reshape(4, 16)[:, ::-1].ravel())
