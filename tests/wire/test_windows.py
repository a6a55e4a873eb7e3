"""Windows, section 10 of wire.md, on a live server: what good clients get, and what others cannot do."""
import fcntl
import os
import socket

import msgpack
import numpy as np
import pytest

from wire_client import EMPTY, ERROR, FETCH, LOAD, NEW, SYNC, UNPUBLISH, WINDOW, WINDOW_DROP, Failed, Server, fresh, frame, view

SIZE = 1 << 20


def fails(client, code, name=None):
    """The pending error, by a sync."""
    with pytest.raises(Failed) as failed:
        client.sync()
    assert failed.value.code == ERROR[code], failed.value
    assert name is None or failed.value.name == name
    client.sync()
    return failed.value


def is_refused(client, window):
    """The failure of a fetch of nothing into a window. None: the server has the window."""
    nothing = client.new("uint8", [0])
    try:
        client.answer(client.ask(FETCH, view(nothing, "uint8", [0]), window, 0))
    except Failed as failed:
        return failed
    return None


def fetch(client, description, window, offset=0):
    assert client.answer(client.ask(FETCH, description, window, offset)) == ([], b"")


def test_load_and_fetch(client):
    window, memory = client.window(SIZE)
    a = np.random.default_rng(1).random(50_000)
    memory[4096:4096 + a.nbytes] = a.tobytes()
    x = client.new("float64", [50_000])
    client.send([LOAD, x, 0, window, 4096, a.nbytes])
    assert np.array_equal(client.read(view(x, "float64", [50_000])), a)
    fetch(client, view(x, "float64", [50_000]), window, 8192)
    assert memory[8192:8192 + a.nbytes] == a.tobytes()
    fetch(client, view(x, "float64", [100, 250], [16, 1600], 8), window, SIZE - 200_000)
    expected = np.lib.stride_tricks.as_strided(a[1:], (100, 250), (16, 1600))
    assert memory[SIZE - 200_000:] == np.ascontiguousarray(expected).tobytes()
    client.send([LOAD, x, 8, window, 0, 16])
    a[1:3] = np.frombuffer(memory[:16])
    assert np.array_equal(client.read(view(x, "float64", [50_000])), a)


def test_in_the_order_of_the_stream(client):
    """A load takes place before the operations after it and behind those before it; so does a fetch."""
    window, memory = client.window(SIZE)
    x = client.upload(np.zeros(1000))
    for i in range(20):
        memory[:8000] = np.full(1000, float(i)).tobytes()
        client.ufunc("add", "float64", [view(x, "float64", [1000])], [view(x, "float64", [1000]), 1.0])
        client.send([LOAD, x, 0, window, 0, 4000])
        client.ufunc("multiply", "float64", [view(x, "float64", [1000])], [view(x, "float64", [1000]), 2.0])
        fetch(client, view(x, "float64", [1000]), window, 16_000)
        got = np.frombuffer(memory[16_000:24_000])
        assert (got[:500] == 2 * i).all() and (got[500:] == got[999]).all()


def test_nothing(client):
    window, memory = client.window(4096)
    x = client.new("float32", [0, 3])
    client.send([LOAD, x, 0, window, 4096, 0])
    fetch(client, view(x, "float32", [0, 3]), window, 4096)
    client.sync()
    assert bytes(memory) == bytes(4096)


def test_several(client):
    """Each descriptor belongs to the next window that is asked for."""
    opened = [client.window(4096 * (i + 1)) for i in range(8)]
    x = client.new("uint8", [4096])
    for i, (window, memory) in enumerate(opened):
        memory[:4096] = bytes([i]) * 4096
        client.send([LOAD, x, 0, window, 0, 4096])
        assert (client.read(view(x, "uint8", [4096])) == i).all()
    client.send(*[[WINDOW_DROP, window] for window, _ in opened[::2]])
    client.sync()
    client.send([LOAD, x, 0, opened[0][0], 0, 1])
    fails(client, "STALE", "load")
    client.send([LOAD, x, 0, opened[1][0], 0, 4096])
    assert (client.read(view(x, "uint8", [4096])) == 1).all()


@pytest.mark.parametrize("offset, size", [(0, SIZE + 1), (SIZE, 1), (1, SIZE), (2**64 - 1, 2), (2**63, 2**63), (2**64 - 4096, 8192)])
def test_beyond_the_window(client, offset, size):
    window, _ = client.window(SIZE)
    x = client.new("uint8", [2 * SIZE])
    client.send([LOAD, x, 0, window, offset, size])
    fails(client, "EXTENT", "load")
    if size <= 2 * SIZE:
        with pytest.raises(Failed) as failed:
            fetch(client, view(x, "uint8", [size]), window, offset)
        assert failed.value.code == ERROR["EXTENT"]
    assert (client.read(view(x, "uint8", [2 * SIZE])) == 0).all()


@pytest.mark.parametrize("offset, size", [(0, 101), (100, 1), (2**64 - 1, 2), (2**64 - 50, 100)])
def test_beyond_the_buffer(client, offset, size):
    window, _ = client.window(4096)
    x = client.new("uint8", [100])
    client.send([LOAD, x, offset, window, 0, size])
    fails(client, "EXTENT", "load")


def test_what_is_not_there(client):
    window, _ = client.window(4096)
    x = client.new("uint8", [100])
    for message in ([LOAD, 999, 0, window, 0, 1], [LOAD, x, 0, 999, 0, 1], [WINDOW_DROP, 999]):
        client.send(message)
        fails(client, "STALE")
    for description, id in ((view(x, "uint8", [100]), 999), (view(999, "uint8", [1]), window)):
        with pytest.raises(Failed) as failed:
            fetch(client, description, id)
        assert failed.value.code == ERROR["STALE"]


def test_poison(client):
    window, memory = client.window(4096)
    x = client.id()
    client.ufunc("add", "float64", [fresh(x, "float64", [4])], [view(998, "float64", [4]), 1])
    client.send([LOAD, x, 0, window, 0, 32])
    with pytest.raises(Failed) as failed:
        fetch(client, view(x, "float64", [4]), window)
    assert failed.value.code == ERROR["STALE"] and failed.value.name == "add"
    assert bytes(memory) == bytes(4096)


# ---- descriptors ----

def test_only_sealed_memory(client, tmp_path):
    """The server refuses memory that the client could take away from under it."""
    client.window(4096, seals=0)
    fails(client, "VALUE", "window")
    client.window(4096, seals=fcntl.F_SEAL_GROW)
    fails(client, "VALUE", "window")
    client.window(4096, claim=8192)
    fails(client, "EXTENT", "window")
    client.window(4096, claim=0)
    fails(client, "VALUE", "window")
    (tmp_path / "file").write_bytes(bytes(8192))
    r, w = os.pipe()
    for fd in (os.open(tmp_path / "file", os.O_RDWR), os.open("/dev/zero", os.O_RDWR), r, w):
        client.windows += 1
        client.pass_along(fd, [WINDOW, client.windows, 4096])
        os.close(fd)
        fails(client, "VALUE", "window")
    window, _ = client.window(4096, seals=fcntl.F_SEAL_SHRINK)
    fetch(client, view(client.new("uint8", [5]), "uint8", [5]), window)


def refused(client, fd, size=4096):
    """Return what the server says of a descriptor."""
    client.windows += 1
    client.pass_along(fd, [WINDOW, client.windows, size])
    return fails(client, "VALUE", "window").text


EXPECTED = "expected is a memfd of ordinary pages, open for reading and writing, with F_SEAL_SHRINK"


def huge_pages():
    """Two MiB of such memory."""
    try:
        fd = os.memfd_create("huge", os.MFD_ALLOW_SEALING | os.MFD_HUGETLB)
        os.ftruncate(fd, 2 << 20)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    except OSError as error:
        pytest.skip(f"this kernel makes no memory of huge pages: {error}")
    return fd


def test_huge_pages_are_refused(client):
    """Pages of a hole come from a pool that may be empty: whoever touches it gets SIGBUS."""
    fd = huge_pages()
    said = refused(client, fd, 2 << 20)
    os.close(fd)
    assert "huge pages" in said and EXPECTED in said


def test_what_is_expected_is_said(client):
    """The server says what it expects of each descriptor that it refuses."""
    fd = os.memfd_create("window", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 4096)
    assert "is not sealed against shrinking" in refused(client, fd)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    for flags, why in ((os.O_RDONLY, "is open for reading only"), (os.O_WRONLY, "is open for writing only")):
        other = os.open(f"/proc/self/fd/{fd}", flags)
        said = refused(client, other)
        os.close(other)
        assert why in said and EXPECTED in said
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    said = refused(client, fd)
    os.close(fd)
    assert "is sealed against writing" in said and EXPECTED in said
    with socket.socket() as other:  # a file may lie where memfds do, as on machines whose /tmp is in memory
        said = refused(client, other.fileno())
    assert "is not a memfd" in said and EXPECTED in said


def test_no_descriptor(client):
    client.send([WINDOW, 5, 4096])
    fails(client, "VALUE", "window")
    window, memory = client.window(4096)
    memory[0] = 7
    x = client.new("uint8", [1])
    client.send([LOAD, x, 0, window, 0, 1])
    assert client.read(view(x, "uint8", [1])) == 7


def test_an_id_twice(client):
    window, _ = client.window(4096)
    client.windows -= 1
    client.window(4096)
    fails(client, "VALUE", "window")
    client.windows = -1
    client.window(4096)  # id 0
    fails(client, "VALUE", "window")


def test_descriptors_that_nobody_asks_for(server):
    """With more than a few the connection ends; the server does not."""
    with server.client() as c:
        fd = os.memfd_create("x")
        try:
            for _ in range(100):
                socket.send_fds(c.socket, [frame(msgpack.packb([NEW, fresh(c.id(), "int8", [1])]))], [fd])
        except OSError:
            pass
        os.close(fd)
        c.is_closed()
    assert server.alive()
    with server.client() as c:
        window, memory = c.window(4096)
        memory[:3] = b"abc"
        x = c.new("uint8", [3])
        c.send([LOAD, x, 0, window, 0, 3])
        assert c.read(view(x, "uint8", [3])).tobytes() == b"abc"


@pytest.mark.parametrize("number", [1, 15, 16, 17, 30, 253])
def test_many_descriptors_in_one_message(server, number):
    """Up to 16 may wait; more end the connection."""
    with server.client() as c:
        made = []
        for i in range(number):
            made.append(os.memfd_create("x", os.MFD_ALLOW_SEALING))
            os.ftruncate(made[-1], 4096 * (i + 1))
            fcntl.fcntl(made[-1], fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        socket.send_fds(c.socket, [frame(msgpack.packb([WINDOW, 1, 4096]))], made)
        c.number += 1
        for fd in made:
            os.close(fd)
        if number > 16:
            assert c.is_closed()
            return
        for i in range(1, number):
            c.send([WINDOW, i + 1, 4096 * (i + 1)])
        c.sync()
        c.send([WINDOW, number + 1, 4096])
        assert "no descriptor" in fails(c, "VALUE", "window").text


def test_a_client_that_goes_in_the_middle(server):
    for _ in range(20):
        with server.client() as c:
            window, _ = c.window(1 << 22)
            x = c.new("float64", [1 << 18])
            for i in range(50):
                c.send([LOAD, x, 0, window, i * 8, 1 << 21])
            c.ask(FETCH, view(x, "float64", [1 << 18]), window, 1 << 21)
    assert server.alive()
    with server.client() as c:
        c.sync()


def test_as_much_as_the_option_says(build, tmp_path):
    with Server(build / "bin" / "arrayd", tmp_path, windows="1M") as server, server.client() as c:
        first, _ = c.window(1 << 19)
        assert is_refused(c, c.window((1 << 19) + 4096)[0]).code == ERROR["LIMIT"]
        second, _ = c.window(1 << 19)
        assert not is_refused(c, second)
        third, _ = c.window(4096)
        assert "option windows" in is_refused(c, third).text
        c.send([WINDOW_DROP, first])
        fourth, _ = c.window(4096)
        assert not is_refused(c, fourth)
        assert is_refused(c, third).code == ERROR["LIMIT"]
        c.sync()


def test_a_refused_window_fails_no_other_request(build, tmp_path):
    """Other threads of the client ask for something else meanwhile. They hear nothing of it, whatever comes first."""
    with Server(build / "bin" / "arrayd", tmp_path, windows="1M") as server, server.client() as c:
        x = c.new("uint8", [64])
        refused = [c.window(2 << 20)[0] for _ in range(20)]
        c.sync()
        assert not c.read(view(x, "uint8", [64])).any()
        codes = [is_refused(c, window).code for window in refused]
        assert codes == [ERROR["STALE"]] * 4 + [ERROR["LIMIT"]] * 16  # the server knows of the last ones why
        c.send([LOAD, x, 0, refused[-1], 0, 64])
        fails(c, "LIMIT", "load")
        assert c.stat()["ops_failed"] == 21


def empty(client, size):
    x = client.id()
    client.send([EMPTY, fresh(x, "uint8", [size])])
    return x


def is_lost(client, x, size, name):
    """The array has the error of the request with that name, which no other question gets."""
    client.sync()
    with pytest.raises(Failed) as failed:
        client.read(view(x, "uint8", [size]))
    assert failed.value.name == name
    client.sync()
    return True


@pytest.mark.parametrize("part", range(3))
def test_an_array_whose_part_is_refused_is_not_whole(client, part):
    """A new array is filled in parts. Where one of them is refused, the array would have bytes of arrays before it."""
    window, memory = client.window(3 * 4096)
    memory[:] = bytes([7]) * (3 * 4096)
    x = empty(client, 3 * 4096)
    for i in range(3):
        client.send([LOAD, x, i * 4096, 999 if i == part else window, i * 4096, 4096])
    assert is_lost(client, x, 3 * 4096, "load")


@pytest.mark.parametrize("used", ["filled", "zeros", "an output", "an output in part", "published"])
def test_a_refused_part_leaves_a_whole_array_as_it_is(client, used):
    window, memory = client.window(8192)
    memory[:] = bytes([7]) * 8192
    x = client.new("uint8", [8192]) if used == "zeros" else empty(client, 8192)
    if used == "filled":
        client.send(*[[LOAD, x, at, window, at, 4096] for at in (0, 4096)])
    elif used.startswith("an output"):
        output = view(x, "uint8", [8192]) if used == "an output" else view(x, "uint8", [4096], [1], 4096)
        client.ufunc("add", "uint8", [output], [view(client.new("uint8", output[3]), "uint8", output[3]), 7])
    elif used == "published":
        client.publish("whole", view(x, "uint8", [8192]))
    client.sync()
    client.send([LOAD, x, 0, 999, 0, 4096], [LOAD, x, 4096, 999, 0, 4096])
    fails(client, "STALE", "load")
    got = client.read(view(x, "uint8", [8192]))
    assert used == "published" or (got[4096:] == (0 if used == "zeros" else 7)).all()
    if used == "published":
        client.answer(client.ask(UNPUBLISH, "whole"))


def test_what_the_client_changes_meanwhile(client):
    """Only the client's own results suffer."""
    window, memory = client.window(1 << 22)
    x = client.new("uint8", [1 << 22])
    for i in range(30):
        client.send([LOAD, x, 0, window, 0, 1 << 22])
        memory[:] = bytes([i + 1]) * (1 << 22)
    got = client.read(view(x, "uint8", [1 << 22]))
    assert got.max() <= 30
    assert client.answer(client.ask(SYNC)) == ([], b"")
