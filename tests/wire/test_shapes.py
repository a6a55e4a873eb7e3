"""Descriptions of arrays that nobody could have: section 3 of wire.md bounds them. They fail alone, and at once."""
import contextlib
import math
import os
import random

import numpy as np
import pytest

from test_errors import failure
from wire_client import (CALL, CALLS, DTYPE, EMPTY, ERROR, NEW, QUERY, READ, REDUCE, REDUCTIONS, UFUNC, UFUNCS, Failed,
                         Server, fresh, view)

MOST_BYTES = 2**62 - 1
TOO_BIG = "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."
SIZES = {"bool": 1, "int8": 1, "float16": 2, "float32": 4, "float64": 8, "complex128": 16}


def is_too_big(shape, dtype):
    count = SIZES[dtype]
    for n in shape:
        count *= n or 1
    return count > MOST_BYTES


@contextlib.contextmanager
def somebody_else(server):
    """A client of another principal, where this one may be somebody else."""
    server.path.parent.chmod(0o755)
    if os.getuid() == 0:
        server.path.chmod(0o666)
        os.seteuid(54321)
    try:
        client = server.client()
    finally:
        os.seteuid(os.getuid())
    with client:
        yield client


@pytest.fixture(scope="module")
def own(build, tmp_path_factory):
    with Server(build / "bin" / "arrayd", tmp_path_factory.mktemp("shapes"), memory="64M", slab="8M",
                kernels="none") as running:
        yield running


@pytest.fixture
def pair(own):
    with own.client() as client, somebody_else(own) as other:
        yield client, other


def computes(other):
    """Check that another principal, in the same worker, goes on meanwhile."""
    values = np.arange(1000.0)
    buffer = other.upload(values)
    whole = view(buffer, "float64", [1000])
    other.ufunc("multiply", "float64", [whole], [whole, 3])
    assert np.array_equal(other.read(whole), values * 3)
    other.free(buffer)


HUGE = {"17 dimensions of 2^62": [2**62] * 17, "32 dimensions of 2^63-1": [2**63 - 1] * 32, "2^62 bytes": [2**59],
        "a product of 2^64": [2**32, 2**32], "beside a 0": [0, 2**62, 2**62]}


@pytest.mark.parametrize("opcode", [NEW, EMPTY])
@pytest.mark.parametrize("name", HUGE)
def test_a_new_array_of_any_size_stalls_nobody(pair, opcode, name):
    client, other = pair
    buffer = client.id()
    client.send([opcode, fresh(buffer, "float64", HUGE[name])])
    computes(other)
    error = failure(lambda: client.read(view(buffer, "float64", [1])))
    assert (error.code, error.number, error.text) == (ERROR["VALUE"], client.number, TOO_BIG)
    client.sync()


def messages_with(client, shape, dtype):
    """Yield each kind of operation, with a view of this shape of one element: (message, its output) or (request,
    None)."""
    x = client.upload(np.zeros(2, "int8" if dtype == "bool" else "uint8").repeat(SIZES[dtype]))
    huge, flat = view(x, dtype, shape, [0] * len(shape)), view(client.upload(np.zeros(2, "int64")), "int64", [2])
    loop = DTYPE[dtype]
    out = fresh(client.id(), dtype, shape)
    yield [UFUNC, UFUNCS["copy"], loop, [out], [huge], []], out[0]
    out = fresh(client.id(), dtype, [2])
    yield [CALL, CALLS["gather"], loop, [out], [huge, flat], []], out[0]
    out = fresh(client.id(), "int64", [])
    yield [REDUCE, REDUCTIONS["argmax"], loop, [out], [huge], [2**len(shape) - 1, None, None]], out[0]
    yield [READ, huge], None
    yield [QUERY, CALLS["nonzero"], loop, [[client.id(), DTYPE["int64"], None]], [huge], []], None


@pytest.mark.parametrize("dtype", ["int8", "float64"])
@pytest.mark.parametrize("name", HUGE)
def test_a_view_of_any_size_stalls_nobody(pair, name, dtype):
    client, other = pair
    if not is_too_big(HUGE[name], dtype):
        pytest.skip("bytes are few enough")
    for message, out in messages_with(client, HUGE[name], dtype):
        if out is None:
            error = failure(lambda: client.answer(client.ask(message[0], *message[1:])))
        else:
            client.send(message)
            error = failure(lambda: client.read(view(out, "int8", [1])))
        computes(other)
        assert error.code == ERROR["VALUE"] and TOO_BIG in error.text, (message, error)


def test_what_operations_would_make(pair):
    """Inputs may be as they are; it is the result that is too big."""
    client, other = pair
    one, indices = client.upload(np.zeros(1, "int8")), client.upload(np.zeros(1, "int64"))
    row, column = view(one, "int8", [1, 2**40], [0, 0]), view(one, "int8", [2**40, 1], [0, 0])
    half = [view(one, "int8", shape, [0, 0]) for shape in ([2**31, 1], [1, 2**31])]
    cases = [("ufunc", [UFUNC, UFUNCS["add"], DTYPE["int8"], None, [row, column], []], [2**40, 2**40], "int8"),
             ("cast", [UFUNC, UFUNCS["add"], DTYPE["int8"], None, half, []], [2**31, 2**31], "int8"),
             ("wider", [CALL, CALLS["argsort"], DTYPE["int8"], None, [view(one, "int8", [2**60], [0])], [0]], [2**60],
              "int64"),
             ("matmul", [CALL, CALLS["matmul"], DTYPE["int8"], None, [column, row], [False]], [2**40, 2**40], "int8"),
             ("gather", [CALL, CALLS["gather"], DTYPE["int8"], None, [row, view(indices, "int64", [2**40], [0])], []],
              [2**40, 2**40], "int8"),
             ("svd", [CALL, CALLS["svdvals"], DTYPE["float64"], None, [view(one, "int8", [2**61, 1, 2], [0, 0, 0])],
                      []], [2**61, 1], "float64")]
    for name, message, shape, dtype in cases:
        out = fresh(client.id(), dtype, shape)
        message[3] = [out]
        client.send(message)
        error = failure(lambda: client.read(view(out[0], "int8", [1])))
        assert error.code == ERROR["VALUE"], (name, error)
        assert TOO_BIG in error.text, (name, error)
        computes(other)


def test_random_extremes(pair):
    """A shape that is too big is VALUE. One that is only too big for this server is MEMORY."""
    client, other = pair
    rng = random.Random(2262)
    x = client.upload(np.zeros(16, "int8"))
    met = {"VALUE": 0, "MEMORY": 0}
    for _ in range(600):
        shape = [rng.choice([0, 1, 1, 2, 3, 2**rng.randrange(63) + rng.randrange(-1, 2), 2**63 - 1])
                 for _ in range(rng.randrange(1, 7))]
        dtype = rng.choice(list(SIZES))
        if not is_too_big(shape, dtype) and SIZES[dtype] * math.prod(shape) <= 2**40:
            continue
        out = fresh(client.id(), dtype, shape)
        client.send(rng.choice([
            [NEW, out], [EMPTY, out],
            [UFUNC, UFUNCS["copy"], DTYPE[dtype], [out], [rng.choice([view(x, "int8", [1]), 7])], []],
            [UFUNC, UFUNCS["copy"], DTYPE[dtype], [out], [view(x, "int8", shape, [0] * len(shape))], []]]))
        error = failure(lambda: client.read(view(out[0], "int8", [1])))
        expected = "VALUE" if is_too_big(shape, dtype) else "MEMORY"
        assert error.code == ERROR[expected], (shape, dtype, error)
        met[expected] += 1
        client.free(out[0])
    computes(other)
    client.sync()
    assert min(met.values()) > 30, met


def test_scatter_of_too_many(pair):
    """The selection is bounded, too, though nothing of that size is made."""
    client, other = pair
    x, indices = client.upload(np.zeros((1, 16), "int8")), client.upload(np.zeros(1, "int64"))
    client.call("scatter", "int8", [view(x, "int8", [1, 16])], [1, view(indices, "int64", [2**59 - 1], [0])], [0])
    error = failure(client.sync)
    assert error.code == ERROR["VALUE"] and TOO_BIG in error.text
    computes(other)
    assert not client.read(view(x, "int8", [1, 16])).any()
    with pytest.raises(Failed):
        client.read(view(x, "int8", [2**63 - 1], [0]))


@pytest.mark.parametrize("sections, state, wrong", [
    ((1, 2, 3), (1, 2, 5), None), ((2, 3), (1, 2, 5), 1), ((1, 3, 3), (1, 2, 5), 1), ((1, 2, 0), (1, 2, 5), 1),
    ((1, 2, 3), (2, 5), 2), ((1, 2, 3), (2, 2, 5), 2), ((1, 2, 3), (1, 3, 5), 2), ((1, 2, 3), (1, 2, 4), 2)])
def test_a_filter_whose_sections_or_state_do_not_fit(client, sections, state, wrong):
    """A filter of the second order along axis 0 of (4, 5). Its factors are 1 and its state 0."""
    x = np.arange(20.0).reshape(4, 5)
    factors = np.zeros(sections)
    if wrong is None:
        factors[0, :, 0] = 1
    given = [client.upload(x), client.upload(factors), client.upload(np.zeros(state))]
    out, end = client.id(), client.id()
    client.call("iir", "float64", [fresh(out, "float64", x.shape), fresh(end, "float64", state)],
                [view(buffer, "float64", shape) for buffer, shape in zip(given, (x.shape, sections, state))], [0])
    if wrong is None:
        assert np.array_equal(client.read(view(out, "float64", x.shape)), x)
    else:
        with pytest.raises(Failed, match=f"iir: input {wrong} must be of shape") as failed:
            client.read(view(out, "float64", x.shape))
        assert failed.value.code == ERROR["VALUE"]
    client.free(out, end, *given)
