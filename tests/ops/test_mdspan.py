"""Arrays as cuda::std::mdspan in users' kernels."""
import numpy as np
import pytest

import arrayd as ad

SCALE = r"""
#include <cuda/std/mdspan>
#include <cupy/complex.cuh>
template <class T, class I, class L> using span = cuda::std::mdspan<T, cuda::std::dextents<I, 2>, L>;
template <class T, class I, class L> __global__ void scale(span<T, I, L> x, span<T, I, L> y) {
    static_assert(decltype(x)::rank() == 2 && decltype(x)::rank_dynamic() == 2, "all extents are dynamic");
    for (I i = threadIdx.x; i < x.extent(0); i += blockDim.x)
        for (I j = threadIdx.y; j < x.extent(1); j += blockDim.y) y(i, j) = x(i, j) * T(3);
}
"""


@pytest.fixture(scope="module")
def module():
    return ad.RawModule(code=SCALE, name_expressions=[
        f"scale<{t}, {i}, cuda::std::{layout}>" for t in ("float", "complex<double>") for i in ("int", "long long")
        for layout in ("layout_stride", "layout_right", "layout_left")])


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_layouts(module, dtype, index):
    names = {"float32": "float", "complex128": "complex<double>", np.int32: "int", np.int64: "long long"}
    whole = np.arange(7 * 9, dtype=dtype).reshape(7, 9)
    for layout, view in (("stride", lambda a: a[1::2, ::3]), ("stride", lambda a: a.T), ("stride", lambda a: a[::-1, ::-2]),
                         ("stride", lambda a: a[:, :0]), ("right", lambda a: a), ("left", lambda a: a.T)):
        x, y = ad.asarray(whole), ad.zeros((7, 9), dtype)
        kernel = module.get_function(f"scale<{names[dtype]}, {names[index]}, cuda::std::layout_{layout}>")
        spans = [view(a).mdspan(index_type=index, allow_unsafe=True) for a in (x, y)]
        del x
        kernel((1,), (4, 8), tuple(spans))
        expected = np.zeros_like(whole)
        view(expected)[...] = view(whole) * 3
        np.testing.assert_array_equal(y.get(), expected)


def test_other_numbers_of_dimensions():
    kernel = ad.RawKernel(r"""
#include <cuda/std/mdspan>
using namespace cuda::std;
extern "C" __global__ void f(mdspan<int, extents<int>> one, mdspan<const int, dextents<int, 1>, layout_stride> x,
                             mdspan<double, extents<int, 2, dynamic_extent, 2>> y) {
    one() = x(x.extent(0) - 1) + int(y.size());
    y(1, y.extent(1) - 1, 1) = x.stride(0);
}""", "f", options=("-std=c++17",))
    one, x, y = ad.zeros((), "int32"), ad.arange(10, dtype="int32")[2::3], ad.zeros((2, 3, 2))
    assert x.tolist() == [2, 5, 8]
    with pytest.raises(TypeError, match="index_type"):
        one.mdspan()
    middle = y.ravel()[:3].mdspan(index_type=np.int32)  # the one extent is unknown to the compiler
    kernel((1,), (1,), (one.mdspan(index_type=np.int32), x.mdspan(index_type=np.int32), middle))
    assert int(one) == 8 + 12 and float(y[1, 2, 1]) == 3 and y.sum() == 3


def test_a_comma_behind_the_last_argument_of_a_template():
    """NVRTC takes one. In texts and comments it stays."""
    kernel = ad.RawKernel(r"""
#include <cuda/std/mdspan> // f<int,>
extern "C" __global__ void f(cuda::std::mdspan<int, cuda::std::extents<int, >> one) {
    const char text[] = "f<int,>", letters[] = R"(",>)", one_letter = ',';
    one() = sizeof(text) + 10 * sizeof(letters) + 100 * (one_letter == 44);
}""", "f", options=("-std=c++17",))
    one = ad.zeros((), "int32")
    kernel((1,), (1,), (one.mdspan(index_type=np.int32),))
    assert int(one) == 8 + 10 * 4 + 100


def test_what_an_mdspan_is_not_for():
    a = ad.arange(12.0).reshape(3, 4)
    for array, message in (
            (a[:0], "0-th dimension has size zero"), (a[:, :0], "1-th dimension has size zero"),
            (a[:, ::-1], "1-th dimension has non-positive stride"),
            (ad.broadcast_to(a[0], (2, 4)), "0-th dimension has non-positive stride")):
        with pytest.raises(RuntimeError, match=message):
            array.mdspan(index_type=np.int64)
        assert "mdspan" in repr(array.mdspan(index_type=np.int64, allow_unsafe=True))
    for wrong in (np.int16, "int32", None, np.dtype("int32")):
        with pytest.raises(ValueError, match="index_type"):
            a.mdspan(index_type=wrong)
    with pytest.raises(ValueError, match="int32 maximum"):
        ad.broadcast_to(ad.zeros(1, "i1"), (1 << 31,)).mdspan(index_type=np.int32, allow_unsafe=True)
