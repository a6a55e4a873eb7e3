"""array-api-strict as the oracle: the standard's names, its arrays beside arrayd's, and how results are compared."""
import warnings

import array_api_strict as xs
import numpy as np

import arrayd as ad

VERSION = "2024.12"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    xs.set_array_api_strict_flags(api_version=VERSION)

INTEGER = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATING = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = ["bool", *INTEGER, *FLOATING, *COMPLEX]
# Names that array-api-strict has beside that version of the standard.
OWN = {"ArrayAPIStrictFlags", "Device", "broadcast_shapes", "get_array_api_strict_flags", "isin",
       "reset_array_api_strict_flags", "set_array_api_strict_flags"}


def names(space):
    """The standard's names in the main namespace or an extension."""
    return sorted(set(space.__all__) - OWN)


def find(space, name):
    """The function of that name, such as "sum", "linalg.qr" or "fft.fft"."""
    for part in name.split("."):
        space = getattr(space, part)
    return space


def of(space, value):
    """Return the value with each NumPy array, and each name of a type, as the namespace's own."""
    if isinstance(value, np.ndarray):
        return space.asarray(value.copy())
    if isinstance(value, str) and value in DTYPES:
        return getattr(space, value)
    if isinstance(value, (list, tuple)):
        return type(value)(of(space, each) for each in value)
    if isinstance(value, dict):
        return {key: of(space, each) for key, each in value.items()}
    return value


def host(value):
    """A result with each array as NumPy's."""
    if isinstance(value, ad.ndarray):
        return value.get()
    if isinstance(value, type(xs.asarray(1))):
        return np.asarray(value)
    if isinstance(value, (list, tuple)):
        return [host(each) for each in value]
    return value


def name_of(dtype):
    """The standard's name of a type of either library."""
    return getattr(dtype, "_canonical_name", None) or np.dtype(dtype).name


def same(got, want, what, ulps=0.0):
    """Assert that two results are the same in structure, shape, type and elements (but for ulps)."""
    if hasattr(want, "_fields"):
        assert got._fields == want._fields, f"{what}: fields {got._fields}, not {want._fields}"
    if isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(got) == len(want), what
        for one, other in zip(got, want):
            same(one, other, what, ulps)
        return
    if not isinstance(want, type(xs.asarray(1))):
        assert got == want and not isinstance(got, ad.ndarray), f"{what}: {got!r}, not {want!r}"
        return
    assert isinstance(got, ad.ndarray), f"{what}: {type(got)}"
    got, want = got.get(), np.asarray(want)
    assert got.dtype == want.dtype, f"{what}: {got.dtype}, not {want.dtype}"
    equal(got, want, what, ulps)


def equal(got, want, what, ulps):
    """Assert that NumPy arrays are equal, the signs of zeros too; with ulps nearly, as far as the largest goes."""
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    if want.dtype.kind == "c":
        equal(got.real, want.real, what + " real", ulps)
        equal(got.imag, want.imag, what + " imag", ulps)
    elif ulps and want.dtype.kind == "f":
        near = ulps * np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, rtol=near, atol=near, err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)
        if want.dtype.kind == "f":
            zero = want == 0
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]), err_msg=what)
