"""Operations that come again: the worker knows them by their bytes, and still believes nothing but what is there."""
import numpy as np
import pytest

from wire_client import ERROR, Failed, fresh, view

AGAIN = 5  # times that a message comes, so that it is known


def refused(client, description):
    with pytest.raises(Failed) as caught:
        client.read(description)
    return caught.value


def test_buffers_offsets_and_numbers_differ(client):
    """A loop whose messages differ in their buffers, offsets and scalars alone."""
    x = np.arange(4096.0)
    source = client.upload(x)
    for turn in range(40):
        for i in range(8):
            out = 100000 + 100 * turn + i
            client.ufunc("multiply", "float64", [fresh(out, "float64", [16])],
                         [view(source, "float64", [16], offset=8 * (turn * 7 + i)), 0.5 * turn + i])
            client.ufunc("add", "float64", [view(out, "float64", [16])], [view(out, "float64", [16]), turn * 9 + i])
        for i in range(8):
            at = turn * 7 + i
            found = client.read(view(100000 + 100 * turn + i, "float64", [16]))
            assert np.array_equal(found, x[at:at + 16] * (0.5 * turn + i) + (turn * 9 + i))
        client.free(*(100000 + 100 * turn + i for i in range(8)))


def test_a_view_beyond_its_buffer_is_refused_each_time(client):
    """A known message of another buffer, or at another offset, reaches beyond it."""
    large, small = client.upload(np.ones(4096)), client.upload(np.ones(8))
    for i in range(AGAIN):
        client.ufunc("add", "float64", [fresh(100000 + i, "float64", [64])], [view(large, "float64", [64], offset=256), 1])
        client.reduce("sum", "float64", fresh(110000 + i, "float64", []), [view(large, "float64", [64], offset=256)], 1)
        assert client.read(view(110000 + i, "float64", [])) == 64
    for i, (buffer, offset) in enumerate([(small, 256), (large, 8 * 4090), (large, 257), (999, 256)]):
        client.ufunc("add", "float64", [fresh(120000 + i, "float64", [64])], [view(buffer, "float64", [64], offset=offset), 1])
        client.reduce("sum", "float64", fresh(130000 + i, "float64", []), [view(buffer, "float64", [64], offset=offset)], 1)
        for out, shape in ((120000 + i, [64]), (130000 + i, [])):
            error = refused(client, view(out, "float64", shape))
            assert error.code == ERROR["STALE" if buffer == 999 else "EXTENT"], (i, error)


def test_a_backward_view_of_complex_numbers_is_checked_each_time(client):
    """A view with a negative stride reaches below its offset, which is a multiple of half a number, read or written."""
    x = np.arange(32) + 1j
    source, target = client.upload(x), client.upload(np.zeros(33 * 2))
    backward = [16], [-16]
    for i in range(AGAIN):
        client.ufunc("negative", "complex128", [view(target, "complex128", *backward, offset=8 + 16 * (15 + i))],
                     [view(source, "complex128", *backward, offset=16 * (15 + i))])
        found = client.read(view(target, "complex128", [16], offset=8 + 16 * i))
        assert np.array_equal(found, -x[i:i + 16])
    for out, offset in ((8 + 16 * 15, 16 * 14), (8 + 16 * 15, 16 * 15 + 4), (8 + 16 * 14 - 16, 16 * 15), (16 * 33, 16 * 15)):
        client.ufunc("negative", "complex128", [view(target, "complex128", *backward, offset=out)],
                     [view(source, "complex128", *backward, offset=offset)])
        with pytest.raises(Failed) as caught:
            client.sync()
        assert caught.value.code == ERROR["EXTENT"], (out, offset, caught.value)
    assert np.array_equal(client.read(view(target, "complex128", [16], offset=8 + 16 * (AGAIN - 1))), -x[AGAIN - 1:AGAIN + 15])


def test_a_wrong_shape_is_refused_each_time(client):
    """A message that fails its check is not taken for a good one when it comes again."""
    x = client.upload(np.ones((4, 8)))
    for i in range(AGAIN):
        client.call("matmul", "float64", [fresh(100000 + i, "float64", [4, 8])],
                    [view(x, "float64", [4, 8]), view(x, "float64", [4, 8])])
        assert refused(client, view(100000 + i, "float64", [4, 8])).code == ERROR["VALUE"]


def test_memory_is_charged_each_time(client):
    """A new array counts, whether its message was known or not; and its number must be new."""
    x = client.upload(np.ones(1024))
    before = client.stat()["buffer_bytes"]
    for i in range(AGAIN):
        client.ufunc("sqrt", "float64", [fresh(100000 + i, "float64", [1024])], [view(x, "float64", [1024])])
        client.sync()
        assert client.stat()["buffer_bytes"] == before + 8192 * (i + 1)
    client.ufunc("sqrt", "float64", [fresh(100000, "float64", [1024])], [view(x, "float64", [1024])])
    with pytest.raises(Failed):
        client.sync()
    client.free(*(100000 + i for i in range(AGAIN)))
    client.sync()
    assert client.stat()["buffer_bytes"] == before
