"""Reading a small array element by element: most reads are answered by the client, and none of them with an old value."""
import os
import threading

import numpy as np
import pytest

import arrayd as ad
from oracle import in_threads, seed
from test_sharing import in_child

ON_CPU = ad.session_info()["backend"] == "cpu"


def count_trips():
    return ad.session_info()["round_trips"]


def read_often(x):
    """All elements one by one, until the client answers by itself."""
    for _ in range(4):
        values = [e.item() for e in x.reshape(-1)]
    return values


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64", "complex128"])
def test_elements_are_read_at_the_cost_of_two_requests(dtype):
    host = np.arange(64).astype(dtype).reshape(8, 8)
    x = ad.asarray(host)
    before = count_trips()
    for i in range(8):
        for j in range(8):
            assert x[i, j].item() == host[i, j].item()
    assert [e.item() for e in x.T[3]] == host[:, 3].tolist()
    assert x[2].tolist() == host[2].tolist() and x.view("uint8").reshape(-1)[9].item() == host.view("uint8").reshape(-1)[9]
    assert count_trips() - before == 2


def test_the_more_bytes_the_more_reads_come_before_the_copy():
    x = ad.arange(2048.0)
    before = count_trips()
    assert [float(x[i]) for i in range(100)] == list(range(100))
    assert count_trips() - before == 16 + 1
    x = ad.arange(2049.0)  # too large to have one
    before = count_trips()
    assert [float(x[i]) for i in range(40)] == list(range(40))
    assert count_trips() - before == 40


def test_an_array_that_changes_between_reads_is_read_as_before():
    x = ad.zeros(4, "int64")
    before = count_trips()
    for i in range(20):
        x += 1
        assert int(x[0]) == i + 1
    assert count_trips() - before == 20


# Each of these changes x, which has 24 elements of float64, in place, and its NumPy twin likewise.
WRITES = {
    "one element": lambda np, x, r: x.__setitem__(r, 5.5),
    "a slice": lambda np, x, r: x.__setitem__(slice(r, None, 2), -1),
    "elements of another array": lambda np, x, r: x.__setitem__(slice(3, 6), np.arange(3.0)),
    "by a mask": lambda np, x, r: x.__setitem__(x > r, 0.25),
    "by indices": lambda np, x, r: x.__setitem__(np.asarray([r, 2]), 9),
    "an operator": lambda np, x, r: x.__iadd__(r),
    "an operator on a view": lambda np, x, r: x[::3].__imul__(1.5),
    "a view of a view": lambda np, x, r: x.reshape(4, 6).T[1:, 2].__isub__(1),
    "as other units": lambda np, x, r: x.view("int64").__setitem__(r, 0),
    "out=": lambda np, x, r: np.sqrt(np.abs(x), out=x),
    "two outputs": lambda np, x, r: np.modf(x * 1.25, out=(x[:], np.zeros(24))),
    "out= of a reduction": lambda np, x, r: x.reshape(4, 6).sum(axis=0, out=x[6:12]),
    "out= of a product": lambda np, x, r: np.matmul(x[:9].reshape(3, 3) / 30, x[9:12], out=x[12:15]),
    "copyto": lambda np, x, r: np.copyto(x, 3.5, where=x < r),
    "fill": lambda np, x, r: x[r:].fill(7),
    "sort": lambda np, x, r: x[: r + 2][::-1].sort(),
    "put": lambda np, x, r: np.put(x, [1, r], [8.0, -8.0]),
}


def test_no_read_is_older_than_what_was_written():
    """A random program over more arrays than have a copy at a time, against NumPy."""
    chance = seed("mirrors")
    hosts = [np.arange(24.0) + 100 * k for k in range(40)]
    arrays = [ad.asarray(h) for h in hosts]
    names = list(WRITES)
    for step in range(400):
        k = int(chance.integers(40)) if step % 3 else int(chance.integers(3))
        r = int(chance.integers(24))
        if chance.random() < 0.6:
            name = names[chance.integers(len(names))]
            WRITES[name](np, hosts[k], r)
            WRITES[name](ad, arrays[k], r)
        for _ in range(int(chance.integers(5))):
            i = int(chance.integers(24))
            np.testing.assert_allclose(float(arrays[k][i]), hosts[k][i], rtol=1e-13, err_msg=f"step {step}")
    for array, host in zip(arrays, hosts):
        np.testing.assert_allclose(array.get(), host, rtol=1e-13)


@pytest.mark.parametrize("name", list(WRITES))
def test_each_way_to_write_is_seen(name):
    host, x = np.arange(24.0), ad.arange(24.0)
    assert read_often(x) == host.tolist()
    WRITES[name](np, host, 7)
    WRITES[name](ad, x, 7)
    np.testing.assert_allclose(read_often(x), host, rtol=1e-13)


def test_kernels_may_write_what_they_are_given():
    x, y = ad.arange(8.0), ad.zeros(8)
    read_often(x), read_often(y)
    ad.ElementwiseKernel("float64 a", "float64 b", "b = a + 1", "add_one")(x, y)
    assert read_often(y) == list(range(1, 9)) and read_often(x) == list(range(8))
    source = 'extern "C" __global__ void change(double *x, const double *y) { x[0] = -1; ((double *)y)[1] = -2; }'
    ad.RawKernel(source, "change")((1,), (1,), (x, y))
    assert read_often(x)[:2] == [-1, 1] and read_often(y)[:2] == [1, -2]


def test_threads_never_read_less_than_they_wrote():
    x = ad.zeros(4, "int64")

    def body(number):
        for i in range(1, 150):
            x[number] = i
            assert int(x[number]) == i and int(x[number]) == i and int(x[number]) == i
    in_threads(4, body)
    assert read_often(x) == [149] * 4


def test_a_reader_beside_a_writer_sees_its_end():
    x = ad.zeros(2, "int64")
    written = threading.Event()

    def write():
        for _ in range(300):
            x.__iadd__(1)
        written.set()
    writer = threading.Thread(target=write)
    writer.start()
    last = 0
    while not written.is_set():
        assert int(x[1]) >= last
        last = int(x[1])
    writer.join()
    assert read_often(x) == [300, 300]


def test_a_fork_has_its_own():
    x = ad.arange(6)
    assert read_often(x) == list(range(6))

    def child():
        before = read_often(x)
        x[0] = 70
        return before, read_often(x)
    assert in_child(child) == (list(range(6)), [70, 1, 2, 3, 4, 5])
    assert read_often(x) == list(range(6))


def test_what_others_may_write_is_read_anew():
    """A published array: this process's reads follow what a child writes, from both sides."""
    x = ad.zeros(4, "int64")
    assert read_often(x) == [0] * 4
    name = f"mirrors-{os.getpid()}"
    ad.publish(name, x, writable=True)
    try:
        assert read_often(x) == [0] * 4
        for i in range(1, 4):
            def child():
                y = ad.attach(name)
                seen = read_often(y)
                y[0] = i
                ad.sync()
                return seen[0]
            assert in_child(child) == i - 1
            assert read_often(x) == [i, 0, 0, 0]
    finally:
        ad.unpublish(name)


@pytest.mark.skipif(not ON_CPU, reason="the host cannot write a GPU's memory")
@pytest.mark.parametrize("read_before", [False, True])
def test_memory_that_was_given_away_is_read_anew(read_before):
    x = ad.arange(8)
    if read_before:
        read_often(x)
    host = np.from_dlpack(x)
    for i in range(5):
        host[2] = -i
        assert int(x[2]) == -i and int(x[2:].sum()) == sum(range(3, 8)) - i


def test_a_failure_reaches_the_next_read_of_what_failed():
    x = ad.arange(6)
    assert read_often(x) == list(range(6))
    y = x[ad.asarray([99])]
    with pytest.raises(IndexError):
        int(y[0])
    x[ad.asarray([99])] = 1
    with pytest.raises(IndexError):
        ad.sync()
    assert read_often(x) == list(range(6))
