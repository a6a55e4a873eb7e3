"""Kernels and chains of operations on arrays that other processes hold, too."""
import gc

import numpy as np
import pytest

import arrayd as ad
from arrayd import _core
from chains import settled, together
from test_sharing import X, in_child, nothing_left, run  # noqa: F401 (a fixture)

SCALE = r"""
extern "C" __global__ void scale(double *x, double factor, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= factor;
}
__device__ double weight = 2;
"""


def scale(kernel, a, factor):
    kernel((8,), (64,), (a, np.float64(factor), np.int32(a.size)))


def test_a_chain_writes_a_published_array():
    """The array is written in place, queued with others. A process that attached it keeps what it was."""
    b = ad.asarray(X / 7)

    def body():
        a = ad.asarray(X)
        ad.publish("chain", a)
        theirs = ad.attach("chain")
        ad.unpublish("chain")
        a += 1
        a *= b
        a -= 3
        return a, theirs

    a, theirs = settled(body, fused_chains=1, fused_ops=3)
    assert np.array_equal(a.get(), (X + 1) * (X / 7) - 3) and np.array_equal(theirs.get(), X)


def test_a_chain_writes_what_a_child_has():
    """The arrays of both are written, each for itself."""
    def body():
        a = ad.asarray(X)

        def child():
            nonlocal a
            a += 1
            a *= 2
            return float(a.sum())

        a *= 3
        a -= 1
        return in_child(child), a

    (total, a), _ = together(body)
    assert total == ((X * 3 - 1 + 1) * 2).sum()
    assert np.array_equal(a.get(), X * 3 - 1)


def test_a_kernel_writes_a_published_array():
    """All arrays of a RawKernel count as written: the publisher's is copied first, once."""
    kernel = ad.RawKernel(SCALE, "scale")
    a = ad.asarray(X)
    ad.publish("raw", a)
    theirs = ad.attach("raw")
    for factor in (2, 5):
        scale(kernel, a, factor)
    assert np.array_equal(a.get(), X * 10) and np.array_equal(theirs.get(), X)
    ad.unpublish("raw")


def test_a_kernel_is_not_given_what_is_read_only():
    """A kernel that might write an array of somebody else does not get it. Where it says what it writes, reading is
    fine."""
    a = ad.asarray(X)
    ad.publish("raw", a)
    assert run(f"""
        import numpy as np
        import arrayd as ad
        from arrayd import RawKernel, ElementwiseKernel
        a = ad.attach("raw")
        kernel = RawKernel({SCALE!r}, "scale")
        for array in (a, a[1:, ::2]):
            try: kernel((1,), (1,), (array, np.float64(2), np.int32(5)))
            except ValueError as error: print(error)
        twice = ElementwiseKernel("float64 x", "float64 y", "y = 2 * x", "twice")
        try: twice(a, a)
        except ValueError as error: print(error)
        print(float(twice(a).sum()) == 2 * float(a.sum()), float(a.sum()))
        b = a.copy(); kernel((1,), (1,), (b, np.float64(2), np.int32(b.size))); print(float(b.sum()))
        ad.sync()
        """).splitlines() == [f"parameter {i}: the array is read-only, and the kernel might write it: give it a copy"
                              for i in (0, 0, 1)] + [f"True {X.sum()}", f"{2 * X.sum()}"]
    ad.unpublish("raw")


def test_a_child_builds_kernels_again():
    """The parent's modules are not the child's, whether it uses them or drops them. Its kernels are compiled when
    needed."""
    kernel = ad.RawKernel(SCALE, "scale")
    module = _core.build(SCALE, (), ("scale",))
    a = ad.asarray(X)
    scale(kernel, a, 2)

    def child():
        scale(kernel, a, 3)
        return float(a.sum())

    def stale():
        try:
            module.launch("scale", (1, 1, 1), (1, 1, 1), 0, (a, np.float64(2).tobytes(), np.int32(1).tobytes()), 1)
        except ad.StaleHandleError as error:
            return str(error), float(a.sum())

    def drop():
        nonlocal module, kernel
        module = kernel = None
        gc.collect()
        ad.RawKernel(SCALE.replace("2;", "3;"), "scale").attributes  # other modules are forgotten with this
        ad.sync()
        return ad.stat()["modules"], float(a.sum())

    assert in_child(child) == (X * 6).sum()
    assert in_child(stale) == ("the module is the parent process's: build it again after a fork", (X * 2).sum())
    assert in_child(drop) == (1, (X * 2).sum())
    scale(kernel, a, 2)
    assert np.array_equal(a.get(), X * 4)


def test_variables_of_modules_stay():
    """Variables stay with their module, in the process that built it."""
    module = ad.RawModule(code=SCALE)
    values = module.get_global("weight")
    for call in (ad.share, lambda array: ad.publish("weight", array)):
        with pytest.raises(ValueError, match="variable of a module"):
            call(values)
    assert "variable of a module" in in_child(lambda: values.get())
    assert in_child(lambda: float((ad.asarray(X) + 1).sum())) == (X + 1).sum()
