"""Imports, section 14 of wire.md, on a live server: memory of a client that the server uses where it is. Descriptors are
those of host memory here, on a backend whose operations are complete at once, and on one where they are later."""
import contextlib
import os
import random
import socket
import threading

import numpy as np
import pytest

from test_exports import until
from test_sharing import refused, whole
from test_windows import huge_pages
from wire_client import (CALL, CALLS, DTYPE, ERROR, EXPORT, IMPORT, ON, QUERY, STREAM, TIMEOUT, UNPUBLISH, Failed, Loan, Server,
                         fresh, view)

PAGE = 4096
X = np.arange(1000.0)
HELD = ("imports", "imported_bytes", "shared_buffers", "capabilities", "orphans", "used_bytes", "exports")
READONLY, HANDLE = 2, 1


@pytest.fixture(scope="module", params=["at once", "later"])
def server(request, build, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "later":
            patch.setenv("ARRAYD_CPU_LATE", "1")
        with Server(build / "bin" / "arrayd", tmp_path_factory.mktemp("server"), memory="256M") as running:
            yield running


@pytest.fixture(autouse=True)
def clean(server):
    yield
    with server.client() as client:
        until(client, lambda c: c["sessions"] == 1 and not any(c[name] for name in HELD))
        assert client.stat()["principal_bytes"] == 0


@pytest.fixture
def one(server):
    with server.client() as client:
        yield client


def loan_of(values):
    loan = Loan(-(-values.nbytes // PAGE) * PAGE)
    loan.array(values)[...] = values
    return loan


def is_over(lease):
    """Tell whether the server has let go, without waiting."""
    lease.setblocking(False)
    try:
        return lease.recv(1) == b""
    except BlockingIOError:
        return False


def await_end(lease):
    lease.settimeout(TIMEOUT)
    assert lease.recv(1) == b""


def add(client, buffer, value=1.0, values=X):
    client.ufunc("add", "float64", [whole(buffer, values)], [whole(buffer, values), value])


# ---- what is seen ----

def test_both_see_what_the_other_writes(one):
    with loan_of(X) as loan:
        here = loan.array(X)
        buffer, lease = one.lend(loan, X.nbytes)
        assert np.array_equal(one.read(whole(buffer)), X)
        add(one, buffer)
        one.sync()
        assert np.array_equal(here, X + 1)
        here[10] = -5
        assert one.read(whole(buffer))[10] == -5
        counters = one.stat()
        assert counters["imports"] == 1 and counters["imported_bytes"] == X.nbytes == counters["buffer_bytes"]
        assert counters["principal_bytes"] == X.nbytes and not counters["slab_bytes"]
        assert not is_over(lease)
        one.free(buffer)
        await_end(lease)
        assert here[10] == -5


def test_a_piece_of_an_allocation(one):
    """The piece is at an offset, with a strided view. Nobody touches what is beside it."""
    with Loan(4 * PAGE) as loan:
        all_of_it = loan.array(np.zeros(4 * PAGE // 8))
        all_of_it[...] = np.arange(4 * PAGE // 8)
        buffer, lease = one.lend(loan, 800, PAGE + 64)
        first = (PAGE + 64) // 8
        assert np.array_equal(one.read(view(buffer, "float64", [100])), all_of_it[first:first + 100])
        every = view(buffer, "float64", [25], [32])
        one.ufunc("add", "float64", [every], [every, 0.5])
        one.sync()
        expected = np.arange(4 * PAGE / 8)
        expected[first:first + 100:4] += 0.5
        assert np.array_equal(all_of_it, expected)
        one.free(buffer)
        await_end(lease)


def test_chains_take_it_and_leave_it(one):
    """Operations that read it are fused as ever. Elements that are written to it are there, also when the buffer has
    gone before."""
    values = np.arange(50_000.0)
    with loan_of(values) as loan:
        for _ in range(20):
            buffer, lease = one.lend(loan, values.nbytes)
            made, shape = [one.id() for _ in range(4)], values.shape
            all_of_it = whole(buffer, values)
            expected = np.sqrt(loan.array(values) * 2 + 1)
            one.ufunc("multiply", "float64", [fresh(made[0], "float64", shape)], [all_of_it, 2.0])
            one.ufunc("add", "float64", [fresh(made[1], "float64", shape)], [whole(made[0], values), 1.0])
            one.ufunc("sqrt", "float64", [fresh(made[2], "float64", shape)], [whole(made[1], values)])
            one.ufunc("add", "float64", [all_of_it], [all_of_it, 1.0])
            one.ufunc("copy", "float64", [fresh(made[3], "float64", shape)], [all_of_it])
            one.free(buffer, made[0], made[1])
            assert np.array_equal(one.read(whole(made[2], values)), expected)
            await_end(lease)
            assert np.array_equal(one.read(whole(made[3], values)), loan.array(values))
            one.free(made[2], made[3])
        assert np.array_equal(loan.array(values), values + 20)


def test_pieces_that_overlap_are_one_memory(one):
    """An operation on one piece sees what was written to the other. An operation on both gives what it would of one
    array."""
    n = 3000
    values = np.arange(float(n))
    pick = random.Random(3)
    with loan_of(values) as loan:
        model = values.copy()
        lent = []
        for first in (0, 8, 512, 1000):
            count = n - first - 8 * pick.randrange(10)
            lent.append((first, count, *one.lend(loan, 8 * count, 8 * first)))
        for _ in range(400):
            (a, na, bufa, _), (b, nb, bufb, _) = pick.choice(lent), pick.choice(lent)
            k = pick.randrange(1, min(na, nb) - 20)
            i, j = pick.randrange(na - k), pick.randrange(nb - k)
            step = pick.choice((1, 1, -1))
            out = view(bufa, "float64", [k], [8], 8 * i)
            source = view(bufb, "float64", [k], [8 * step], 8 * (j if step > 0 else j + k - 1))
            taken = model[b + j:b + j + k][::step].copy()
            if pick.random() < 0.5:
                one.ufunc("add", "float64", [out], [source, 1.0])
                model[a + i:a + i + k] = taken + 1
            else:
                temporary = one.id()
                one.ufunc("multiply", "float64", [fresh(temporary, "float64", [k])], [source, 0.5])
                one.ufunc("add", "float64", [out], [view(temporary, "float64", [k]), 3.0])
                one.free(temporary)
                model[a + i:a + i + k] = taken * 0.5 + 3
        one.sync()
        assert np.array_equal(loan.array(values), model)
        for *_, buffer, lease in lent:
            assert not is_over(lease)
            one.free(buffer)
            await_end(lease)


def test_streams_are_ordered(one):
    """Streams are ordered also between pieces of one memory, and with one that was given up while it is still used."""
    one.send([STREAM, 64, 0, 0], [STREAM, 65, 0, 0])
    values = np.zeros(200_000)
    with loan_of(values) as loan:
        for i in range(30):
            first, lease = one.lend(loan, values.nbytes)
            second, other = one.lend(loan, values.nbytes - 64, 64)
            tail = values[8:]
            one.send([ON, 64])
            for _ in range(10):
                add(one, first, 1.0, values)
            one.send([ON, 65])
            one.ufunc("multiply", "float64", [whole(second, tail)], [whole(second, tail), 2.0])
            one.free(first, second)
            third, last = one.lend(loan, values.nbytes)
            add(one, third, -loan_value(i), values)
            one.send([ON, 0])
            got = one.read(whole(third, values))
            assert (got[8:] == (loan_value(i, before=True) + 10) * 2 - loan_value(i)).all()
            assert np.array_equal(got, loan.array(values))
            loan.array(values)[...] = loan_value(i + 1, before=True)
            one.free(third)
            for each in (lease, other, last):
                await_end(each)


def loan_value(i, before=False):
    return float(i if before else 2 * i + 1) if i else 0.0 if before else 1.0


def test_it_stays_until_the_stream_has_passed(one):
    """The lease is closed once nothing uses the memory any more, and not before."""
    values = np.zeros(2_000_000)
    with loan_of(values) as loan:
        for i in range(5):
            buffer, lease = one.lend(loan, values.nbytes)
            for _ in range(8):
                add(one, buffer, 1.0, values)
            one.free(buffer)
            await_end(lease)
            assert (loan.array(values) == 8 * (i + 1)).all()


def test_the_session_ends(server, one):
    with loan_of(X) as loan:
        other = server.client()
        leases = [other.lend(loan, X.nbytes)[1] for _ in range(3)]
        assert one.stat()["imports"] == 3
        other.socket.close()
        for lease in leases:
            await_end(lease)


# ---- who else gets it ----

def test_others_get_copies(server, one):
    """Sessions get imported memory by a capability, a name, and a fork. Writes to their copies stay theirs."""
    with loan_of(X) as loan, server.client() as other:
        buffer, lease = one.lend(loan, X.nbytes)
        add(one, buffer)
        capability = one.share(buffer)
        one.publish("lent", whole(buffer))
        child = one.fork()
        child.receive()
        add(one, buffer)
        attached, size, kind = other.attach(capability)
        named, writable = other.attach_name("lent")
        assert size == X.nbytes and kind == 0 and not writable
        for client, theirs in ((other, attached), (other, named[0]), (child, buffer)):
            assert np.array_equal(client.read(whole(theirs)), X + 1)
        add(other, attached), add(child, buffer)
        one.free(buffer)
        await_end(lease)
        for client, theirs in ((other, attached), (child, buffer)):
            assert np.array_equal(client.read(whole(theirs)), X + 2)
        assert np.array_equal(loan.array(X), X + 2)
        with pytest.raises(Failed, match="publish a copy|publish that"):
            again, lease = one.lend(loan, X.nbytes)
            one.publish("common", whole(again), 1)
        one.free(again)
        await_end(lease)
        one.answer(one.ask(UNPUBLISH, "lent"))
        child.socket.close()


def test_its_own_client_has_it_already(one):
    """An export of it waits for what came before, and says so; it has no handle."""
    values = np.zeros(1_000_000)
    with loan_of(values) as loan:
        buffer, lease = one.lend(loan, values.nbytes)
        for flags in (0, 1):
            for _ in range(5):
                add(one, buffer, 1.0, values)
            ours, theirs = socket.socketpair()
            one.request += 1
            with theirs, ours:
                one.pass_along(theirs.fileno(), [EXPORT, one.request, buffer, flags])
                if flags:
                    with pytest.raises(Failed, match="memory of its program"):
                        one.answer(one.request)
                else:
                    assert one.answer(one.request) == ([0, 0, 0], b"")
                    assert (loan.array(values) == 5).all() and one.stat()["exports"] == 0
        one.free(buffer)
        await_end(lease)


def test_it_is_read_only(one):
    with loan_of(X) as loan:
        buffer, lease = one.lend(loan, X.nbytes, flags=READONLY)
        assert np.array_equal(one.read(whole(buffer)), X)
        add(one, buffer)
        with pytest.raises(Failed, match="read-only"):
            one.sync()
        assert np.array_equal(loan.array(X), X)
        one.free(buffer)
        await_end(lease)


# ---- refusals ----

def test_refusals(one):
    with loan_of(X) as loan, Loan(PAGE, seals=0) as shrinks:
        for code, text, arguments in (
                ("EXTENT", "0 bytes at 0", {"size": 0}),
                ("EXTENT", "no piece", {"size": loan.size + 1}),
                ("EXTENT", "no piece", {"size": 64, "offset": 2 ** 64 - 64}),
                ("EXTENT", "no piece", {"size": 64, "whole": 2 ** 63}),
                ("EXTENT", "memfd has", {"size": 64, "whole": loan.size + PAGE}),
                ("VALUE", "multiple of 64", {"size": 64, "offset": 8}),
                ("VALUE", "flags 5", {"flags": 5}),
                ("VALUE", "no device GPU-7", {"device": "GPU-7"}),
                ("VALUE", "no descriptor lay ready", {"laid": b""}),
                ("VALUE", "no descriptor lay ready", {"laid": bytes(64)}),
                ("VALUE", "no handle lay ready", {"flags": HANDLE}),
                ("VALUE", "no handle lay ready", {"flags": HANDLE, "laid": bytes(63)}),
                ("DENIED UNSUPPORTED", "", {"flags": HANDLE, "laid": bytes(64)})):
            with pytest.raises(Failed, match=text) as failed:
                one.lend(loan, **arguments)
            assert failed.value.code in [ERROR[name] for name in code.split()], (arguments, failed.value)
        with pytest.raises(Failed, match="not sealed"):
            one.lend(shrinks)
        buffer, lease = one.lend(loan, X.nbytes)
        with pytest.raises(Failed, match="has not so many bytes"):
            one.lend(loan, whole=1 << 30)
        one.buffer -= 2
        with pytest.raises(Failed, match="in use"):
            one.lend(loan, X.nbytes)
        one.free(buffer)
        await_end(lease)
        assert one.stat()["imports"] == 0


def test_memory_that_could_go_is_refused(one):
    """Memory that could go is refused for imports as it is for windows."""
    with loan_of(X) as loan:
        for why, change in (("is open for reading only", lambda: os.open(f"/proc/self/fd/{loan.fd}", os.O_RDONLY)),
                            ("is of huge pages", huge_pages)):
            own, loan.fd = loan.fd, change()
            try:
                with pytest.raises(Failed, match=why):
                    one.lend(loan, PAGE, whole=PAGE)
            finally:
                os.close(loan.fd)
                loan.fd = own
    assert one.stat()["imports"] == 0


def test_no_descriptor(one):
    assert "Unix socket" in refused("VALUE", one.answer, one.ask(IMPORT, one.id(), 0, 1, PAGE, 0, PAGE, ""))
    read, write = os.pipe()
    one.request += 1
    one.pass_along(write, [IMPORT, one.request, one.id(), 0, 1, PAGE, 0, PAGE, ""])
    os.close(read), os.close(write)
    assert "not a Unix socket" in refused("VALUE", one.answer, one.request)


def test_quotas(build, tmp_path):
    """The memory counts for its user as a module's variable does."""
    principals = tmp_path / "principals"
    principals.write_text(f"uid:{os.getuid()} memory=1M\n")
    values = np.zeros(90_000)
    with Server(build / "bin" / "arrayd", tmp_path, principals=principals) as server, server.client() as client, \
            loan_of(values) as loan:
        buffer, lease = client.lend(loan, values.nbytes)
        with pytest.raises(Failed, match="703 KiB in imports"):
            client.lend(loan, values.nbytes)
        assert client.stat()["memory_refused"] == 1
        client.free(buffer)
        await_end(lease)
        buffer, lease = client.lend(loan, values.nbytes)


def test_there_are_limits(build, tmp_path):
    with Server(build / "bin" / "arrayd", tmp_path) as server, server.client() as client, loan_of(X) as loan:
        leases = [client.lend(loan, 64) for _ in range(1024)]
        with pytest.raises(Failed, match="1024 imports"):
            client.lend(loan, 64)
        client.free(*[buffer for buffer, _ in leases[:512]])
        for _, lease in leases[:512]:
            await_end(lease)
        client.lend(loan, 64)


# ---- all of it at random ----

@pytest.mark.parametrize("seed", range(2))
def test_chaos(server, seed):
    """Beside a model of what each memory holds; clients of all kinds come and go."""
    pick = random.Random(seed)
    with contextlib.ExitStack() as stack:
        loans = [stack.enter_context(loan_of(np.arange(n, dtype=np.int64))) for n in (600, 5000, 70_000)]
        models = [loan.array(np.zeros(loan.size // 8, np.int64)).copy() for loan in loans]
        client, lent = stack.enter_context(server.client()), []

        def lend():
            which = pick.randrange(3)
            first = 8 * pick.randrange(loans[which].size // 64)
            count = pick.randrange(1, loans[which].size // 8 - first + 1)
            lent.append((which, first, count, *client.lend(loans[which], 8 * count, 8 * first, which)))

        def compute():
            (a, i, n, to, _), (b, j, m, source, _) = pick.choice(lent), pick.choice(lent)
            k = min(n, m)
            client.ufunc("add", "int64", [view(to, "int64", [k])], [view(source, "int64", [k]), 1])
            models[a][i:i + k] = models[b][j:j + k] + 1

        def write():
            which, first, count, *_ = pick.choice(lent)
            at = first + pick.randrange(count)
            client.sync()
            loans[which].array(models[which])[at] = models[which][at] = pick.randrange(1000)

        def look():
            which, first, count, buffer, _ = pick.choice(lent)
            assert np.array_equal(client.read(view(buffer, "int64", [count])), models[which][first:first + count])

        def free():
            *_, buffer, lease = lent.pop(pick.randrange(len(lent)))
            client.free(buffer)
            if pick.random() < 0.5:
                await_end(lease)

        for _ in range(500):
            while len(lent) < 3:
                lend()
            pick.choice((lend, compute, compute, compute, write, look, free))()
        client.sync()
        for loan, model in zip(loans, models, strict=True):
            assert np.array_equal(loan.array(model), model)


# ---- what the client writes while it is used ----

def test_indices_and_masks_that_change_while_they_are_used(one):
    """Elements are picked out of sevens, so whatever comes out is sevens. Two states, each of which makes sense now and
    then: indices in bounds and far outside, a mask that picks much and one that picks little."""
    n = 5000
    sevens, index, mask = np.full(n, 7), np.arange(n), np.arange(n) % 3 == 0
    far = np.where(index % 10 == 0, 1 << 50, n + index)
    with loan_of(index) as indices, loan_of(mask) as masks:
        states = [(indices.array(index), index, far), (masks.array(mask), mask, np.ones(n, bool))]
        buffers = [one.lend(indices, index.nbytes), one.lend(masks, mask.nbytes, number=2)]
        (at, end_of_indices), (picks, end_of_masks) = buffers
        x, behind, over = whole(one.upload(sevens), sevens), one.upload(sevens), threading.Event()

        def write():
            while not over.is_set():
                for memory, sense, none in states:
                    memory[...] = none
                    memory[...] = sense
                    memory[...] = sense

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(150):
                out, picked, target = one.id(), one.id(), one.upload(np.zeros(n, int))
                one.send([CALL, CALLS["gather"], DTYPE["int64"], [fresh(out, "int64", [n])], [x, view(at, "int64", [n])], []])
                with contextlib.suppress(Failed):
                    assert (one.read(view(out, "int64", [n])) == 7).all()
                one.send([CALL, CALLS["scatter"], DTYPE["int64"], [view(target, "int64", [n])], [x, view(at, "int64", [n])],
                          [0]])
                with contextlib.suppress(Failed):
                    assert set(one.read(view(target, "int64", [n]))) <= {0, 7}
                with contextlib.suppress(Failed):
                    one.sync()
                (count,), _ = one.answer(one.ask(QUERY, CALLS["compress"], DTYPE["int64"], [[picked, DTYPE["int64"], None]],
                                                 [x, view(picks, "bool", [n])], []))
                assert (one.read(view(picked, "int64", [count])) == 7).all()
                one.free(out, picked, target)
        finally:
            over.set()
            writer.join()
        assert np.array_equal(one.read(view(behind, "int64", [n])), sevens)
        one.free(at, picks, x[0], behind)
        one.sync()
        await_end(end_of_indices)
        await_end(end_of_masks)
        end_of_indices.close()
        end_of_masks.close()
