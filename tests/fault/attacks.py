"""Attacks of one user on a server that another one shares: attacks.py UID PATH ATTACK ROUNDS. Each attack is a function of
that name. Prints how many of its messages were refused, and how many connections it lost."""
import contextlib
import json
import os
import socket
import sys

import numpy as np

import raw
from raw import CALL, DTYPES, REDUCTION, REQUEST, UFUNC, Client, Closed, Failed

F4, I8 = DTYPES.index("float32"), DTYPES.index("int64")
FATAL = 6661  # of tests/fault/crashing.c
found = {"refused": 0, "lost": 0, "sent": 0}
user = int(sys.argv[1])


def endless(x, *shape):
    """A view of one element."""
    return [x[0], x[1], 0, list(shape), [0] * len(shape)]


@contextlib.contextmanager
def client(path):
    """A connection that may be lost."""
    os.seteuid(user)  # the server asks who connects; what Python has yet to import may be root's only
    try:
        c = Client(path)
    except (Closed, OSError):
        found["refused"] += 1
        return
    finally:
        os.seteuid(os.getuid())
    try:
        yield c
    except (Closed, OSError):
        found["lost"] += 1
    finally:
        c.close()


def synchronise(c):
    found["sent"] += 1
    try:
        c.sync()
    except (Failed, AssertionError):  # an answer to something that nobody has asked for
        found["refused"] += 1


def sizes(path, round):
    """Shapes of more elements than can be counted, where they are written, viewed, inferred and multiplied."""
    huge = [(1 << 62,) * 17, ((1 << 63) - 1,), (1 << 62, 4), (1 << 32, 1 << 32, 1 << 32), (0,) + (1 << 62,) * 5]
    shape = list(huge[round % len(huge)])
    for send in (
        lambda c, x: c.op("new", [c.fresh(), F4, shape]),
        lambda c, x: c.op("empty", [c.fresh(), F4, shape]),
        lambda c, x: c.op("ufunc", UFUNC["add"], F4, [[c.fresh(), F4, shape]], [endless(x, *shape), 1.0], []),
        lambda c, x: c.op("reduce", REDUCTION["sum"], F4, [[c.fresh(), F4, []]], [endless(x, *shape)],
                          [(1 << len(shape)) - 1, None, None]),
        lambda c, x: c.op("call", CALL["gather"], F4, [[c.fresh(), F4, [2]]],
                          [endless(x, *shape), c.put(np.array([1, 2]))], [0]),
    ):
        with client(path) as c:
            x = c.put(np.ones(1, np.float32))
            send(c, x)
            synchronise(c)


ENDLESS = 1 << int(os.environ.get("AD_TEST_ENDLESS", 45))  # elements of operations that would take days, or as many as a GPU takes


def long_total(c, x, round):
    c.op("reduce", REDUCTION["sum"], F4, [[c.fresh(), F4, []]], [endless(x, ENDLESS)], [1, None, None])


def long_product(c, x, round, dtype="float32"):
    d, x = DTYPES.index(dtype), c.put(np.ones(1, dtype))
    c.op("call", CALL["matmul"], d, [[c.fresh(), d, [1, 1]]], [endless(x, 1, ENDLESS), endless(x, ENDLESS, 1)], [False])


def long_integer_product(c, x, round):
    long_product(c, x, round, "int64")


def long_scatter(c, x, round):
    c.op("call", CALL["scatter"], F4, [x], [1.0, endless(c.put(np.zeros(1, np.int64)), ENDLESS)], [0])


def long_count(c, x, round):
    c.op("call", CALL["bincount"], I8, [[c.fresh(), I8, [1]]], [endless(c.put(np.zeros(1, np.int64)), ENDLESS)], [])


def long_decomposition(c, x, round):
    n, d = 1200, DTYPES.index("float64")
    a = c.put(np.random.default_rng(round).random((n, n)))
    c.op("call", CALL["svdvals"], d, [[c.fresh(), d, [n]]], [a], [])


def many_decompositions(c, x, round):
    """Decompose many small matrices: there is little for each element."""
    n, d = 1 << 17, DTYPES.index("complex128")
    a = [*c.put(np.eye(3).astype("complex128"))[:3], [n, 3, 3], [0, 48, 16]]
    c.op("call", CALL["eig"], d, [[c.fresh(), d, [n, 3]], [c.fresh(), d, [n, 3, 3]]], [a], [])


def long_sort(c, x, round):
    n = 1 << 22
    a = c.put(np.random.default_rng(round).random(n).astype(np.float32))
    c.op("call", CALL["sort"], F4, [[c.fresh(), F4, [n]]], [a], [0])


def long_functions(c, x, round):
    """Functions that take long for an element, of as many as seem short."""
    n, d = 1 << 21, DTYPES.index("complex128")
    a = endless(c.put(np.full(1, 1e150 + 1e-150j)), n)
    for name in ("power", "arcsinh", "tanh", "log2"):
        c.op("ufunc", UFUNC[name], d, [[c.fresh(), d, [n]]], [a] * (1 + (name == "power")), [])


LONG = {f.__name__: f for f in (long_total, long_product, long_integer_product, long_scatter, long_count, long_decomposition,
                                many_decompositions, long_sort, long_functions)}


def do_long(path, round, some):
    """Operations that would take long, in four sessions of one user, whose client goes away."""
    sessions = [client(path) for _ in range(4)]
    with contextlib.ExitStack() as stack:
        for i, session in enumerate(sessions):
            c = stack.enter_context(session)
            some[(round + i) % len(some)](c, c.put(np.ones(1, np.float32)), round)
            c.ask("sync")
            found["sent"] += 1
        with client(path) as other:  # a session of the same user
            synchronise(other)


def work(path, round):
    do_long(path, round, list(LONG.values()))


def windows(path, round):
    """Descriptors that are no memory which a server could map, or too many of them."""
    def pass_on(c, *fds):
        c.flush()
        control = raw.message("window", 1000 + round, 1 << 20)
        socket.send_fds(c.socket, [raw.frame(control)], fds)
        c.operations += 1
        synchronise(c)

    with contextlib.ExitStack() as stack:
        def own(fd):
            stack.callback(os.close, fd)
            return fd

        memory = own(os.memfd_create("m", os.MFD_ALLOW_SEALING))
        os.ftruncate(memory, 1 << 20)
        kinds = [[memory], [own(os.open("/dev/zero", os.O_RDWR))], [own(os.open(f"/proc/self/fd/{memory}", os.O_RDONLY))],
                 [memory] * 16, [memory] * 17, [own(os.dup(0))]]
        with contextlib.suppress(OSError):
            huge = own(os.memfd_create("huge", os.MFD_ALLOW_SEALING | os.MFD_HUGETLB))
            os.ftruncate(huge, 2 << 20)
            kinds.append([huge])
        for fds in kinds:
            with client(path) as c:
                pass_on(c, *fds)


def room(path, round):
    """Take all sessions and all names."""
    with contextlib.ExitStack() as stack:
        kept = []
        for _ in range(300):
            before = found["refused"]
            with contextlib.suppress(RuntimeError):  # one that was refused
                kept.append(stack.enter_context(client(path)))
            if found["refused"] > before:
                break
        c = kept[0]
        x = c.put(np.ones(1))
        for i in range(1100):
            found["sent"] += 1
            try:
                c.reply(c.ask("publish", x, 0, f"name-{i}", "*"))
            except Failed:
                found["refused"] += 1
                break


def requests(path, round):
    """Every request of the table, with fields that are none of its own."""
    for name in REQUEST:
        with client(path) as c:
            c.send(raw.frame(raw.message(name, *[(1 << 64) - 1 - round] * (round % 5))))
            synchronise(c)


def crash(path, round):
    """An operation of which the backend dies."""
    with client(path) as c:
        x = c.put(np.ones(4, np.int64))
        c.ufunc("add", "int64", [4], x, FATAL)
        synchronise(c)


if __name__ == "__main__":
    _, where, attack, rounds = sys.argv[1:]
    for number in range(int(rounds)):
        do_long(where, number, [LONG[attack]]) if attack in LONG else globals()[attack](where, number)
    print(json.dumps(found))
