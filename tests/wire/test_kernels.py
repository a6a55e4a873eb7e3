"""Section 11 of wire.md: modules and launches, by a client that shares no code with the library."""
import itertools
import random
import struct

import numpy as np
import pytest

from wire_client import (BUILD, ERROR, GLOBAL, HELLO, KERNEL, KERNEL_SET, LAUNCH, MODULE_DROP, Closed, Failed, Server, fresh,
                         view)

SOURCE = r"""
__device__ int calls;
template <class T> __global__ void fill(T *x, T v) { x[threadIdx.x] = v; }
extern "C" __global__ void add(const int *x, int *y, int n) {
    if (threadIdx.x == 0) calls++;
    y[threadIdx.x] = x[threadIdx.x] + n;
}
"""
ONE = [1, 1, 1]


@pytest.fixture(scope="module")
def server(build, tmp_path_factory):
    with Server(build / "bin" / "arrayd", tmp_path_factory.mktemp("server"), kernels_cache="none") as running:
        yield running


@pytest.fixture
def module(client):
    """A module with its id."""
    (compiles, size), log = client.answer(client.ask(BUILD, 7, SOURCE, [], ["fill<double>"]))
    assert compiles is True and size == len(log)
    return 7


def launch(client, module, kernel, block, kinds, written, read, values, grid=ONE, shared=0):
    client.send([LAUNCH, module, kernel, [*grid, *block, shared, *kinds], written, read, values])


def failure(call):
    with pytest.raises(Failed) as failed:
        call()
    return failed.value


def test_the_feature_is_negotiated(server):
    with server.client(hello=False) as c:
        c.send([HELLO, 1, 1, 2**64 - 1, "test", {}])
        message, _ = c.receive()
        assert message[2] == 1 | 2 | 4 | 8  # sessions resume, operations are cancelled, structures have addresses


def test_launches(client, module):
    x = client.upload(np.arange(5, dtype="int32"))
    y = client.id()
    launch(client, module, "add", [5, 1, 1], [1, 0, 2], [fresh(y, "int32", [5])], [view(x, "int32", [5])],
           [struct.pack("i", 100)])
    assert client.read(view(y, "int32", [5])).tolist() == [100, 101, 102, 103, 104]
    launch(client, module, "fill<double>", [3, 1, 1], [0, 2], [fresh(client.id(), "float64", [3])], [],
           [struct.pack("d", 2.5)])
    assert client.read(view(client.buffer, "float64", [3])).tolist() == [2.5] * 3
    assert client.stat()["launches"] == 2 and client.stat()["modules"] == 1
    (size,), _ = client.answer(client.ask(GLOBAL, module, "calls", client.id()))
    calls = client.buffer
    client.send([MODULE_DROP, module])  # the buffer keeps the variable
    assert size == 4 and client.read(view(calls, "int32", [1])).tolist() == [1]
    client.free(calls)
    client.sync()


def test_attributes(client, module):
    client.send([KERNEL_SET, module, "add", (64 << 10) + 1, 0, 0])
    values, _ = client.answer(client.ask(KERNEL, module, "add"))
    assert len(values) == 10 and values[8] == 64 << 10


def test_what_does_not_compile(client):
    (compiles, size), log = client.answer(client.ask(BUILD, 9, "int x = y;", [], []))
    assert compiles is False and size == len(log) and b"'y'" in log
    launch(client, 9, "f", ONE, [], [], [], [])
    assert failure(client.sync).code == ERROR["STALE"]


STALE, VALUE = ERROR["STALE"], ERROR["VALUE"]


@pytest.mark.parametrize(("message", "code"), [
    ([MODULE_DROP, 8], STALE), ([KERNEL_SET, 8, "add", 0, 0, 0], STALE), ([KERNEL_SET, 7, "no", 0, 0, 0], VALUE),
    ([KERNEL_SET, 7, "add", 2**32 - 1, 0, 0], VALUE), ([KERNEL_SET, 7, "add", 0, 200, 0], VALUE),
    ([LAUNCH, 8, "add", ONE + ONE + [0], [], [], []], STALE), ([LAUNCH, 7, "no", ONE + ONE + [0], [], [], []], VALUE),
    ([LAUNCH, 7, "add\0", ONE + ONE + [0], [], [], []], VALUE), ([LAUNCH, 7, "", ONE + ONE + [0], [], [], []], VALUE),
    ([LAUNCH, 7, "add", ONE + ONE + [0], [], [], []], VALUE),
    ([LAUNCH, 7, "add", [2**32 - 1] * 3 + ONE + [0, 2, 2, 2], [], [], [bytes(8), bytes(8), bytes(4)]], VALUE),
    ([LAUNCH, 7, "add", ONE + [2**32 - 1] * 3 + [0, 2, 2, 2], [], [], [bytes(8), bytes(8), bytes(4)]], VALUE),
    ([LAUNCH, 7, "add", ONE + ONE + [2**32 - 1, 2, 2, 2], [], [], [bytes(8), bytes(8), bytes(4)]], VALUE),
    ([LAUNCH, 7, "add", ONE + ONE + [0, 2, 2, 2], [], [], [bytes(8), bytes(8), bytes(65535)]], VALUE),
    ([LAUNCH, 7, "add", ONE + ONE + [0, 1, 0, 2], [[999, 3, 0, [1]]], [[999, 3, 0, [1]]], [bytes(4)]], STALE),
])
def test_operations_that_cannot_be(client, module, message, code):
    client.send(message)
    assert failure(client.sync).code == code
    client.sync()


@pytest.mark.parametrize(("fields", "code"), [
    ([BUILD, 0, "", [], []], VALUE), ([BUILD, 7, "", [], []], VALUE), ([BUILD, 8, "", ["a\0b"], []], VALUE),
    ([BUILD, 8, "", [], ["a\0b"]], VALUE), ([KERNEL, 8, "add"], STALE), ([KERNEL, 7, "no"], VALUE),
    ([KERNEL, 7, "calls"], VALUE), ([GLOBAL, 7, "no", 50], VALUE), ([GLOBAL, 7, "add", 50], VALUE),
    ([GLOBAL, 7, "calls", 0], VALUE), ([GLOBAL, 8, "calls", 50], STALE),
])
def test_requests_that_cannot_be(client, module, fields, code):
    assert failure(lambda: client.answer(client.ask(*fields))).code == code
    client.sync()


def test_an_id_in_use_is_left_alone(client, module):
    client.answer(client.ask(GLOBAL, module, "calls", 50))
    assert failure(lambda: client.answer(client.ask(GLOBAL, module, "calls", 50))).code == VALUE
    assert client.read(view(50, "int32", [1])).tolist() == [0]
    client.free(50)


def test_a_launch_that_cannot_be_poisons_what_it_would_have_made(client, module):
    y = client.id()
    launch(client, module, "no", ONE, [0], [fresh(y, "int32", [4])], [], [])
    assert failure(lambda: client.read(view(y, "int32", [4]))).code == VALUE
    client.free(y)


def test_structures_begin_with_an_address(client):
    client.answer(client.ask(BUILD, 9, """struct S { int *at; int n; }; struct L { S s; long long more[8]; };
        extern "C" __global__ void f(S y, S x, int z) { y.at[threadIdx.x] = x.at[threadIdx.x] * y.n + x.n + z; }
        extern "C" __global__ void g(L y) { y.s.at[0] = 1; }""", [], []))
    x, y = client.upload(np.arange(5, dtype="int32")), client.id()
    new = fresh(y, "int32", [5])
    launch(client, 9, "f", [5, 1, 1], [3, 4, 2], [new], [view(x, "int32", [5])],
           [struct.pack("qii", -1, 10, 0), struct.pack("qqqq", 0, 7, 1, 2), bytes(4)])  # the second is longer than S
    assert client.read(view(y, "int32", [5])).tolist() == [7, 17, 27, 37, 47]
    launch(client, 9, "g", ONE, [3], [view(y, "int32", [5])], [], [bytes(16)])
    assert failure(client.sync).code == VALUE
    client.free(x)
    client.free(y)


@pytest.mark.parametrize("values", [[bytes(7)], [], [bytes(8)] * 2])
def test_structures_have_room_for_an_address(server, values):
    with server.client() as c:
        c.send([LAUNCH, 7, "f", [*ONE, *ONE, 0, 3], [fresh(c.id(), "int32", [5])], [], values])
        with pytest.raises(Exception, match="launch"):
            c.sync()


def test_views_are_checked(client, module):
    x = client.upload(np.arange(4, dtype="int32"))
    launch(client, module, "add", ONE, [0, 0, 2], [view(x, "int32", [4]), view(x, "int32", [2], offset=12)], [],
           [bytes(4)])
    assert failure(client.sync).code == ERROR["EXTENT"]
    client.free(x)


PARTS = [[], [1], ONE + ONE + [0], ONE + ONE + [0, 0], ONE + ONE + [0, 1, 2], ONE + ONE + [0, 5],
         ONE + ONE + [0, 3], ONE + ONE + [0, 4, 2], [2**32] * 7,
         ONE + ONE + [0] + [2] * 256, [[5, 3, 0, [1]]], [[5, 3, [1]]], [[5, 3, None]], [1.5], [b"x"], [bytes(65536)], ["x"], 5]


def test_nothing_ends_the_server(server, bystander):
    """Launches put together from anything: refused with the connection, or an error of the operation."""
    rng, ends = random.Random(11), 0
    for numbers, written, read, values in rng.sample(list(itertools.product(PARTS, repeat=4)), 150):
        with server.client() as c:
            try:
                c.send([LAUNCH, 7, "f", numbers, written, read, values])
                c.sync()
            except Failed:
                pass
            except (Closed, BrokenPipeError, ConnectionResetError):
                ends += 1
    assert ends > 100


def test_a_client_that_goes_while_the_compiler_works(server, bystander):
    for _ in range(5):
        with server.client() as c:
            c.ask(BUILD, 1, SOURCE + "// %d" % id(c), [], ["fill<int>"])
