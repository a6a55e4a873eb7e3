"""byte_bounds, who and disp; capsules of DLPack."""
import inspect
import io

import numpy as np
import pytest

import arrayd as ad


@pytest.mark.parametrize("key", [..., slice(1, None), (slice(None, None, 2), slice(None, None, 3)), slice(None, None, -1),
                                 (slice(None, None, -2), slice(None, None, 2)), (slice(None), 4), (slice(1, 2), slice(2, 3)), slice(0, 0)],
                         ids=repr)
def test_byte_bounds(key):
    host = np.arange(28, dtype="int16").reshape(4, 7)
    a = ad.asarray(host)
    low, high = ad.byte_bounds(a[key])
    want = np.lib.array_utils.byte_bounds(host[key])
    if host[key].size:
        assert (low - a.data.ptr, high - a.data.ptr) == tuple(each - host.ctypes.data for each in want)
    else:
        assert low == high


def test_byte_bounds_of_something_else():
    with pytest.raises(TypeError, match="must be an arrayd.ndarray"):
        ad.byte_bounds(np.zeros(3))


def test_who(capsys):
    ad.who({"n": 5, "host": np.zeros(3)})
    assert capsys.readouterr().out == "\nUpper bound on total bytes  =       0\n"
    a = ad.zeros((2, 5), "float32")
    ad.who({"a": a, "b": a.T, "other": ad.arange(3)})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["Name", "Shape", "Bytes", "Type"]
    assert lines[3:6] == [["a", "2", "x", "5", "40", "float32"], ["b", "5", "x", "2", "40", "(a's)", "float32"],
                          ["other", "3", "24", "int64"]]
    assert lines[-1][-1] == "64"
    ad.who()
    assert "Upper bound" in capsys.readouterr().out


def test_disp(capsys):
    ad.disp(ad.arange(3))
    ad.disp("x", linefeed=False)
    assert capsys.readouterr().out == "[0 1 2]\nx"
    written = io.StringIO()
    ad.disp(5, device=written)
    assert written.getvalue() == "5\n"


@pytest.mark.skipif(ad.session_info()["backend"] != "cpu", reason="capsules of a GPU's memory: tests/gpu")
def test_capsules():
    a = ad.arange(6).reshape(2, 3)
    capsule = a.toDlpack()
    b = ad.fromDlpack(capsule)
    np.testing.assert_array_equal(b.get(), a.get())
    b += 1
    assert (a == b).all()  # an array's own capsule is a view of it
    with pytest.raises(ValueError, match="consumed multiple times"):
        ad.fromDlpack(capsule)
    with pytest.raises(TypeError, match="from_dlpack takes arrays"):
        ad.fromDlpack(a)


@pytest.mark.parametrize("kind", [ad.ndarray, ad.ufunc, ad.cuda.Stream, ad.cuda.Event, ad.cuda.PinnedMemoryPointer, ad.cuda.MemoryPointer],
                         ids=lambda kind: kind.__name__)
def test_signatures(kind):
    """help(), editors and documentation ask for them."""
    assert inspect.signature(kind)
    for name in dir(kind):
        method = getattr(kind, name)
        # Python's own, which have none in its classes either.
        if callable(method) and name not in ("__class__", "__init_subclass__", "__subclasshook__", "__class_getitem__", "__reduce__"):
            inspect.signature(method)
    assert list(inspect.signature(ad.ndarray.reshape).parameters)[:1] == ["self"]


def test_the_constructors_signature():
    parameters = inspect.signature(ad.ndarray).parameters
    assert list(parameters) == ["shape", "dtype", "memptr", "strides", "order"]
    assert ad.ndarray((2,), parameters["dtype"].default).dtype == np.float64
