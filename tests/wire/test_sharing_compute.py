"""Arrays that several sessions hold, in operations that are executed together, in kernels of users, and in modules."""
import socket
import struct

import numpy as np
import pytest

from test_sharing import X, clean, refused, two, whole  # noqa: F401 (fixtures)
from wire_client import (BUILD, DTYPE, ERROR, FREE, GLOBAL, LAUNCH, MODULE_DROP, SHARE, UFUNC, UFUNCS, UNPUBLISH,
                         Failed, fork, fresh, view)

def op(name, output, *inputs, loop="float64"):
    return [UFUNC, UFUNCS[name], DTYPE[loop], [output], list(inputs), []]


def chain(client, array, other):
    """Send one frame that changes the array in place, in three operations that go together. Return what comes out."""
    between = client.id()
    before = client.stat()["fused_chains"]
    client.send(op("add", array, array, 1.0), op("multiply", fresh(between, "float64", X.shape), array, other),
                op("subtract", array, array, whole(between)), [FREE, [between]])
    return client.stat()["fused_chains"] - before, X + 1 - (X + 1) * (X * 2)


def test_a_chain_copies_what_others_hold(two):
    """The session's own writes of what it has published, or attached by a capability."""
    a, b = two
    array = whole(a.upload(X))
    a.publish("x", array)
    theirs, _ = b.attach_name("x")
    chains, expected = chain(a, array, whole(a.upload(X * 2)))
    assert chains == 1
    assert np.array_equal(a.read(array), expected) and np.array_equal(b.read(theirs), X)
    mine = whole(b.attach(a.share(array[0]))[0])
    b_chains, _ = chain(b, mine, whole(b.upload(X * 2)))
    assert b_chains == 1
    changed = expected + 1 - (expected + 1) * (X * 2)
    assert np.array_equal(b.read(mine), changed) and np.array_equal(a.read(array), expected)
    a.answer(a.ask(UNPUBLISH, "x"))
    a.sync(), b.sync()


def test_a_chain_that_writes_what_must_not_be_written(two):
    """The operations that would are refused; those around them are not."""
    a, b = two
    a.publish("x", whole(a.upload(X)))
    theirs, _ = b.attach_name("x")
    first, second = b.id(), b.id()
    b.send(op("add", fresh(first, "float64", X.shape), theirs, 1.0), op("add", theirs, theirs, 5.0),
           op("multiply", fresh(second, "float64", X.shape), theirs, whole(first)))
    assert "read-only" in refused("VALUE", b.sync)
    assert np.array_equal(b.read(whole(second)), X * (X + 1)) and np.array_equal(b.read(theirs), X)
    b.sync()
    chains, _ = chain(b, theirs, whole(first))
    assert chains == 0
    refused("VALUE", b.sync)
    assert np.array_equal(b.read(theirs), X)
    a.answer(a.ask(UNPUBLISH, "x"))


def test_a_fork_or_a_capability_comes_after_what_waits(two):
    """All is in one frame. Operations that were to be executed together are, before anybody else has the array."""
    a, b = two
    array, made = whole(a.upload(X)), a.id()
    ours, theirs = socket.socketpair()
    with theirs:
        a.pass_along(theirs.fileno(), op("add", array, array, 1.0), op("multiply", fresh(made, "float64", X.shape), array, 2.0),
                     fork(), op("add", array, array, 1.0), op("add", whole(made), array, 1.0))
    child = type(a)(ours, hello=False)
    with child:
        child.receive()
        assert np.array_equal(child.read(whole(made)), (X + 1) * 2) and np.array_equal(child.read(array), X + 1)
    assert np.array_equal(a.read(whole(made)), X + 3) and np.array_equal(a.read(array), X + 2)
    a.request += 1
    a.send(op("add", array, array, 1.0), op("add", array, array, 1.0), [SHARE, a.request, array[0], 0, 0, 0],
           op("add", array, array, 1.0), op("add", array, array, 1.0))
    (first, second, _), _ = a.answer(a.request)
    got = b.attach((first % 2**64, second % 2**64))[0]
    assert np.array_equal(b.read(whole(got)), X + 4) and np.array_equal(a.read(array), X + 6)


def test_the_order_of_chains_on_one_to_be_written(server):
    """Operations on it are executed as they come, also where others around them wait for more."""
    with server.client() as a, server.client() as b:
        array = whole(a.upload(X))
        a.publish("sum", array, 1)
        theirs, _ = b.attach_name("sum")
        before = [client.stat() for client in (a, b)]
        for _ in range(20):
            for client, target in ((a, array), (b, theirs)):
                ids = [client.id() for _ in range(2)]
                double, result = (fresh(i, "float64", X.shape) for i in ids)
                client.send(op("multiply", double, target, 2.0), op("subtract", result, whole(ids[0]), target),
                            op("add", target, whole(ids[1]), 1.0), [FREE, ids])  # the array as it is, plus one
                client.sync()
        assert np.array_equal(a.read(array), X + 40) and np.array_equal(b.read(theirs), X + 40)
        for client, counters in zip((a, b), before):
            after = client.stat()
            assert all(after[name] == counters[name] for name in ("ops_failed", "fused_chains"))
        a.answer(a.ask(UNPUBLISH, "sum"))


# ---- kernels ----

KERNELS = r"""
__device__ double factor[2] = {3, 4};
extern "C" __global__ void scale(double *x, int n) { for (int i = 0; i < n; i++) x[i] *= factor[0]; }
extern "C" __global__ void copy(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = x[i]; }
"""


def build_kernels(client):
    (compiles, _), log = client.answer(client.ask(BUILD, 7, KERNELS, [], []))
    assert compiles is True, log


def launch(client, kernel, kinds, written, read):
    client.send([LAUNCH, 7, kernel, [1, 1, 1, 1, 1, 1, 0, *kinds], written, read, [struct.pack("i", X.size)]])


def test_a_kernel_copies_what_others_hold(two):
    """Before it writes; and it gets the address of the copy. Memory that it only reads stays where it is."""
    a, b = two
    build_kernels(a)
    array = whole(a.upload(X))
    a.publish("x", array)
    theirs, _ = b.attach_name("x")
    copied = a.id()
    launch(a, "copy", [1, 0, 2], [fresh(copied, "float64", X.shape)], [array])
    assert a.stat()["shared_bytes"] == X.nbytes and np.array_equal(a.read(whole(copied)), X)
    launch(a, "scale", [0, 2], [array], [])
    assert np.array_equal(a.read(array), X * 3) and np.array_equal(b.read(theirs), X)
    launch(a, "scale", [0, 2], [array], [])
    assert np.array_equal(a.read(array), X * 9) and np.array_equal(b.read(theirs), X)
    a.answer(a.ask(UNPUBLISH, "x"))
    a.sync()


def test_a_kernel_that_must_not_write(two):
    a, b = two
    build_kernels(b)
    a.publish("x", whole(a.upload(X)))
    theirs, _ = b.attach_name("x")
    launch(b, "scale", [0, 2], [theirs], [])
    assert "read-only" in refused("VALUE", b.sync)
    copied = b.id()
    launch(b, "copy", [1, 0, 2], [fresh(copied, "float64", X.shape)], [theirs])
    assert np.array_equal(b.read(whole(copied)), X) and np.array_equal(b.read(theirs), X)
    a.answer(a.ask(UNPUBLISH, "x"))
    b.sync()


def test_a_kernel_writes_what_is_common(two):
    """The kernel writes in place, between the operations of others."""
    a, b = two
    build_kernels(b)
    array = whole(a.upload(X))
    a.publish("x", array, 1)
    theirs, _ = b.attach_name("x")
    for i in range(1, 10):
        a.ufunc("add", "float64", [array], [array, 1.0])
        a.sync()
        launch(b, "scale", [0, 2], [theirs], [])
        b.sync()
        assert np.array_equal(a.read(array), X * 3**i + sum(3**k for k in range(1, i + 1)))
    a.answer(a.ask(UNPUBLISH, "x"))


def test_variables_of_modules_are_not_shared(two):
    """The variables' memory is the module's. A child has neither, and may build its own."""
    a, _ = two
    build_kernels(a)
    variable = a.id()
    a.answer(a.ask(GLOBAL, 7, "factor", variable))
    assert "variable of a module" in refused("VALUE", a.share, variable)
    refused("VALUE", a.publish, "factor", view(variable, "float64", [2]))
    array = whole(a.upload(X))
    with a.fork() as child:
        child.receive()
        with pytest.raises(Failed) as failed:
            child.read(view(variable, "float64", [2]))
        assert failed.value.code == ERROR["STALE"] and "variable" in failed.value.text
        launch(child, "scale", [0, 2], [array], [])
        refused("STALE", child.sync)
        build_kernels(child)
        launch(child, "scale", [0, 2], [array], [])
        assert np.array_equal(child.read(array), X * 3) and np.array_equal(a.read(array), X)
    a.free(variable)
    a.send([MODULE_DROP, 7])
    a.sync()
