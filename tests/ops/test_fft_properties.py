"""Properties that hold for every Fourier transform."""
import numpy as np
from hypothesis import given, settings, strategies as st

import arrayd as ad
from test_fft import NORMS, close, compare, transform

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


@st.composite
def arrays(draw):
    shape = draw(SHAPES)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape), tuple(axes)


@settings(max_examples=60, deadline=None)
@given(arrays(), st.sampled_from(NORMS))
def test_there_and_back(array, norm):
    a, axes = array
    x = ad.asarray(a)
    close(a, ad.fft.ifftn(ad.fft.fftn(x, axes=axes, norm=norm), axes=axes, norm=norm).get())
    sizes = [a.shape[axis] for axis in axes]
    close(a.real, ad.fft.irfftn(ad.fft.rfftn(x.real, axes=axes, norm=norm), sizes, axes, norm=norm).get())


@settings(max_examples=60, deadline=None)
@given(arrays())
def test_parseval_and_linearity(array):
    a, axes = array
    x = ad.asarray(a)
    f = ad.fft.fftn(x, axes=axes, norm="ortho")
    np.testing.assert_allclose(float((abs(f)**2).sum()), (np.abs(a)**2).sum(), rtol=1e-12)
    sums = ad.fft.fftn(x * 2 - x.conj() * 3j, axes=axes, norm="ortho")
    parts = f * 2 - ad.fft.fftn(x.conj(), axes=axes, norm="ortho") * 3j
    np.testing.assert_allclose(sums.get(), parts.get(), atol=1e-12 * np.abs(a).max() * a.size)


@settings(max_examples=60, deadline=None)
@given(arrays(), st.data())
def test_as_numpy_does(array, data):
    a, axes = array
    sizes = [data.draw(st.integers(1, 12)) for _ in axes]
    for name in ("fftn", "ifftn", "irfftn"):
        compare(transform(name, sizes, axes), a)
    compare(transform("rfftn", sizes, axes), a.real.copy())
