"""Section 6 of wire.md on a live server: errors live in results."""
import numpy as np
import pytest

from wire_client import CALL, ERROR, NEW, REDUCE, UFUNC, UFUNCS, Failed, fresh, view


def failure(call):
    with pytest.raises(Failed) as caught:
        call()
    return caught.value


def test_poison_spreads(client):
    """A failed operation's fresh output, and all that is computed from it, tell of the first failure."""
    client.ufunc("add", "float32", [fresh(101, "float32", [4])], [view(999, "float32", [4]), 1])
    number = client.number
    client.ufunc("add", "float32", [fresh(102, "float32", [4])], [view(101, "float32", [4]), 1])
    client.reduce("sum", "float32", fresh(103, "float32", []), [view(102, "float32", [4])], 1)
    for buffer, shape in ((101, [4]), (102, [4]), (103, [])):
        for _ in range(2): # it stays
            error = failure(lambda: client.read(view(buffer, "float32", shape)))
            assert (error.code, error.number, error.name) == (ERROR["STALE"], number, "add") and "999" in error.text
    client.sync() # what has a result to live in is not pending
    client.free(101, 102, 103)
    client.sync()


def test_query_of_poison(client):
    client.ufunc("sqrt", "float32", [fresh(101, "float32", [4])], [view(999, "float32", [4])])
    number = client.number
    error = failure(lambda: client.query("nonzero", "float32", [[102, 4, None]], [view(101, "float32", [4])]))
    assert (error.code, error.number) == (ERROR["STALE"], number)
    error = failure(lambda: client.read(view(102, "int64", [1, 0])))
    assert (error.code, error.number) == (ERROR["STALE"], number)


def test_existing_output_keeps_its_contents(client):
    """An operation that fails before it has begun to write leaves the buffer alone, and is the pending error."""
    x = client.upload(np.arange(4, dtype="float32"))
    whole = view(x, "float32", [4])
    client.ufunc("add", "float32", [whole], [view(999, "float32", [4]), 1])
    first = client.number
    client.ufunc("add", "float32", [whole], [view(998, "float32", [4]), 1])
    error = failure(client.sync)
    assert (error.code, error.number, error.name) == (ERROR["STALE"], first, "add") and "999" in error.text
    client.sync() # only the first is kept, and it is told once
    assert client.read(whole).tolist() == [0, 1, 2, 3]
    index = client.upload(np.array([0, 4]))
    client.call("scatter", "float32", [whole], [5, view(index, "int64", [2])], [0])
    error = failure(lambda: client.read(whole))
    assert (error.code, error.number, error.name) == (ERROR["INDEX"], client.number, "scatter")
    assert client.read(whole).tolist() == [0, 1, 2, 3]


def test_existing_output_of_a_poisoned_input_is_poisoned(client):
    x = client.upload(np.arange(4, dtype="float32"))
    whole = view(x, "float32", [4])
    client.ufunc("add", "float32", [fresh(101, "float32", [4])], [view(999, "float32", [4]), 1])
    number = client.number
    client.ufunc("add", "float32", [whole], [view(101, "float32", [4]), 1])
    error = failure(lambda: client.read(whole))
    assert (error.code, error.number) == (ERROR["STALE"], number)


@pytest.mark.parametrize("ask", ["sync", "read", "query"])
def test_pending_error_is_told_once(client, ask):
    x = client.upload(np.ones(4, "float32"))
    whole = view(x, "float32", [4])
    client.free(777)
    number = client.number
    call = {"sync": client.sync, "read": lambda: client.read(whole),
            "query": lambda: client.query("nonzero", "float32", [[client.id(), 4, None]], [whole])}[ask]
    error = failure(call)
    assert (error.code, error.number, error.name) == (ERROR["STALE"], number, "free")
    call()


def test_write_errors(client):
    x = client.new("float32", [4])
    for buffer, offset, size, code in ((x, 16, 1, "EXTENT"), (x, 2**64 - 1, 8, "EXTENT"), (x, 0, 17, "EXTENT"),
                                       (999, 0, 4, "STALE")):
        client.write(buffer, bytes(size), offset)
        error = failure(client.sync)
        assert (error.code, error.number, error.name) == (ERROR[code], client.number, "write")


def test_ids_are_used_once(client):
    x = client.upload(np.arange(4, dtype="int32"))
    whole = view(x, "int32", [4])
    client.send([NEW, fresh(x, "int32", [4])])
    assert failure(client.sync).number == client.number
    client.ufunc("add", "int32", [fresh(x, "int32", [4])], [whole, 1])
    assert failure(client.sync).number == client.number
    assert client.read(whole).tolist() == [0, 1, 2, 3]


def test_double_free_and_use_after(client):
    x = client.new("int32", [4])
    client.free(x)
    client.free(x)
    assert failure(client.sync).code == ERROR["STALE"]
    assert failure(lambda: client.read(view(x, "int32", [4]))).code == ERROR["STALE"]
    client.free(*[client.new("int8", [1]) for _ in range(3)], 12345) # the known ones go all the same
    assert failure(client.sync).code == ERROR["STALE"]
    assert client.stat()["buffers"] == 0


def test_other_sessions_ids(client, server):
    with server.client() as other:
        x = other.upload(np.arange(4, dtype="int32"))
        other.sync()
        assert failure(lambda: client.read(view(x, "int32", [4]))).code == ERROR["STALE"]
        client.write(x, bytes(16))
        assert failure(client.sync).code == ERROR["STALE"]
        assert other.read(view(x, "int32", [4])).tolist() == [0, 1, 2, 3]


BAD_VIEWS = {
    "one element too many": ("float32", [5]), "an offset too large": ("float32", [1], [4], 16),
    "a negative stride": ("float32", [2], [-4], 0), "a wild stride unused": ("float32", [1], [2**62], 0),
    "an overflow": ("float32", [2**62, 2**62], [2**62, 2**62], 0), "an odd offset": ("float32", [1], [4], 2),
    "an odd stride": ("float32", [2], [6], 0), "a wider dtype": ("complex128", [2]),
    "the least stride": ("int8", [2], [-2**63], 0), "all of 2^63": ("int8", [2**63 - 1]),
    "a product of 2^64": ("int8", [2**32, 2**32], [0, 0], 0),
}


@pytest.mark.parametrize("name", BAD_VIEWS)
def test_views_beyond(client, name):
    x = client.upload(np.arange(4, dtype="float32"))
    bad = view(x, *BAD_VIEWS[name])
    kind, shape = BAD_VIEWS[name][:2]
    assert failure(lambda: client.read(bad)).code in (ERROR["EXTENT"], ERROR["VALUE"])
    client.ufunc("negative" if kind != "bool" else "copy", kind, [fresh(101, kind, [1])], [bad])
    assert failure(lambda: client.read(view(101, kind, [1]))).number == client.number
    client.ufunc("copy", kind, [bad], [1])
    assert failure(client.sync).number == client.number
    assert client.read(view(x, "float32", [4])).tolist() == [0, 1, 2, 3]


def test_wrong_operations(client):
    """Types, shapes and parameters that do not fit: each fails alone."""
    x = client.upload(np.arange(4, dtype="float32"))
    f, g = view(x, "float32", [4]), view(x, "float32", [2, 2])
    wrong = [
        ([UFUNC, UFUNCS["add"], 11, [[0, 11, [4]]], [f], []], "VALUE"),
        ([UFUNC, UFUNCS["add"], 11, [[0, 11, [4]]], [f, view(x, "float32", [3])], []], "VALUE"),
        ([UFUNC, UFUNCS["add"], 11, [[0, 11, [5]]], [f, f], []], "VALUE"),
        ([UFUNC, UFUNCS["add"], 11, [[0, 11, [4]]], [f, f, f], []], "TYPE"), # the mask is not bool
        ([UFUNC, UFUNCS["subtract"], 0, [[0, 0, [4]]], [f, f], []], "TYPE"),
        ([UFUNC, UFUNCS["floor"], 13, [[0, 13, [4]]], [f], []], "TYPE"),
        ([REDUCE, 1, 11, [[0, 11, []]], [f], [2, None, None]], "VALUE"),
        ([REDUCE, 1, 11, [[0, 11, []]], [f], [1]], "VALUE"),
        ([REDUCE, 3, 11, [[0, 11, []]], [view(x, "float32", [0])], [1, None, None]], "VALUE"),
        ([REDUCE, 5, 11, [[0, 0, []]], [f], [1, None, 1]], "TYPE"),
        ([CALL, 8, 11, [[0, 11, [4]]], [f], [1]], "VALUE"),
        ([CALL, 8, 11, [[0, 11, [4]]], [f], [0.5]], "TYPE"),
        ([CALL, 12, 11, [[0, 11, [4]]], [f, f], []], "VALUE"),
        ([CALL, 12, 11, [[0, 11, [2, 2]]], [g, view(x, "float32", [1, 2])], []], "VALUE"),
        ([CALL, 2, 11, [[0, 11, [4]]], [f, f], []], "TYPE"), # indices that are not int64
    ]
    for message, code in wrong:
        message[3][0][0] = buffer = client.id() + 1000
        client.send(message)
        error = failure(lambda: client.read([buffer, message[3][0][1], 0, message[3][0][2]]))
        assert (error.code, error.number) == (ERROR[code], client.number), (message, str(error))
    client.sync()


def test_out_of_memory(client, server):
    limit = client.limits["memory"]
    x = client.new("int8", [min(2**62, limit * 4)])
    error = failure(lambda: client.read(view(x, "int8", [1])))
    assert (error.code, error.number, error.name) == (ERROR["MEMORY"], client.number, "new")
    x = client.new("float64", [2**62])
    assert failure(lambda: client.read(view(x, "float64", [1]))).number == client.number
    assert client.read(view(client.new("int8", [4]), "int8", [4])).tolist() == [0] * 4
