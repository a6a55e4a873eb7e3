"""Functions of a program that transforms read and write their elements by, and plans, against numpy.fft."""
import numpy as np
import pytest

import arrayd as ad
from oracle import random, seed

LOAD = """
#include <cufftXt.h>
__device__ {complex} read_it(void *data, {offset} offset, void *info, void *shared) {{
    {complex} x = (({complex} *)data)[offset];
    x.x *= {factor};
    return x;
}}
{pointer}
"""
STORE = """
__device__ void write_it(void *data, {offset} offset, cufftComplex x, void *info, void *shared) {{
    x.y = x.y * x.y / *(float *)info;
    ((cufftComplex *)data)[offset] = x;
}}
"""
JIT = {"offset": "unsigned long long", "pointer": ""}


def points(dtype, shape):
    return random(seed("callbacks", dtype, shape), dtype, shape, "UNIT")


@pytest.mark.parametrize("dtype, name", [("F", "cufftComplex"), ("D", "cufftDoubleComplex")])
def test_load(dtype, name):
    x = points(dtype, (6, 10))
    text = LOAD.format(complex=name, factor="((double *)info)[offset]", **JIT)
    weights = np.arange(60, dtype=np.float64).reshape(10, 6)  # the transformed axis goes fastest
    with ad.fft.config.set_cufft_callbacks(cb_load=text, cb_load_data=ad.asarray(weights).data, cb_ver="jit"):
        actual = ad.fft.fft(ad.asarray(x), axis=0)
    x.real *= weights.T
    np.testing.assert_allclose(actual.get(), np.fft.fft(x, axis=0), rtol=1e-4, atol=1e-3)


def test_store_sees_what_the_norm_has_not_scaled():
    x = points("F", (5, 8))
    by = ad.asarray(np.float32(3))
    with ad.fft.config.set_cufft_callbacks(cb_store=STORE.format(**JIT), cb_store_data=by.data, cb_ver="jit",
                                           cb_store_name="write_it"):
        actual = ad.fft.ifftn(ad.asarray(x), norm="ortho")
    expected = np.fft.ifftn(x, norm="forward")
    np.testing.assert_allclose(actual.get(), (expected.real + 1j * expected.imag ** 2 / 3) / np.sqrt(40), rtol=1e-4,
                               atol=1e-4)


def test_the_old_way_warns_and_calls_by_the_pointer():
    x = points("F", (12,))
    text = LOAD.format(complex="cufftComplex", factor="2", offset="size_t",
                       pointer="__device__ cufftCallbackLoadC d_loadCallbackPtr = read_it;")
    with pytest.warns(DeprecationWarning, match="legacy callback is considered deprecated"):
        callbacks = ad.fft.config.set_cufft_callbacks(cb_load=text)
    with callbacks:
        actual = ad.fft.fft(ad.asarray(x))
    x.real *= 2
    np.testing.assert_allclose(actual.get(), np.fft.fft(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options, message", [
    ({}, "give cb_load or cb_store"),
    ({"cb_load": "x", "cb_ver": "new"}, "cb_ver must be"),
    ({"cb_load": "int x;", "cb_ver": "jit"}, "has no __device__ function"),
    ({"cb_load": b"x", "cb_ver": "jit"}, "must be source text")])
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ad.fft.config.set_cufft_callbacks(**options)


def test_a_plan_is_that_of_the_transforms_inside():
    from arrayd.scipy.fft import get_fft_plan
    a, b = ad.asarray(points("F", (10,))), ad.asarray(points("F", (4, 5)))
    plan = get_fft_plan(a)
    assert isinstance(plan, ad.cuda.cufft.Plan1d) and ad.cuda.cufft.get_current_plan() is None
    with plan:
        assert ad.cuda.cufft.get_current_plan() is plan
        np.testing.assert_allclose(ad.fft.fft(a).get(), np.fft.fft(a.get()), rtol=1e-4, atol=1e-4)
        with pytest.raises(ValueError, match="Target array size does not match the plan"):
            ad.fft.fft(a, n=5)
    with get_fft_plan(b) as plan, pytest.raises(ValueError, match="The cuFFT plan and a.shape do not match"):
        assert isinstance(plan, ad.cuda.cufft.PlanNd)
        ad.fft.fftn(b, s=(2, 5), axes=(0, 1))
