"""Errors: at once where types and shapes decide, with the data where elements do; and what they say."""
import pickle
import copy

import numpy as np
import pytest

import arrayd as ad


def say(body):
    with pytest.raises(Exception) as caught:
        body()
    return caught.value


@pytest.fixture(autouse=True)
def nothing_pending():
    yield
    try:
        ad.sync()
    except Exception:
        pass
    ad.sync()


def write_in_place():
    n = np.zeros(3)
    n += ad.zeros(3)


@pytest.mark.parametrize(
    "body, kind, words",
    [
        (
            lambda: ad.zeros(3) + ad.zeros(4),
            ValueError,
            ["operands could not be broadcast together with shapes", "(3,) (4,)"],
        ),
        (lambda: ad.invert(ad.zeros(3)), TypeError, ["invert"]),
        (lambda: ad.add(ad.zeros(3, np.uint8), 300), OverflowError, ["300", "uint8"]),
        (lambda: ad.sin(ad.zeros(3), out=ad.zeros(3, int)), TypeError, ["sin", "float64", "int64", "same_kind"]),
        (lambda: ad.zeros((2, 3)).reshape(4, 2), ValueError, ["cannot reshape array of size 6 into shape (4,2)"]),
        (lambda: ad.zeros(3)[7], IndexError, ["index 7 is out of bounds for axis 0 with size 3"]),
        (lambda: ad.zeros(3)[0, 0], IndexError, ["too many indices"]),
        (lambda: ad.sum(ad.zeros(3), axis=2), ValueError, ["axis 2 is out of bounds for array of dimension 1"]),
        (lambda: ad.zeros(3) + np.zeros(3), TypeError, ["asarray"]),
        (lambda: np.zeros(3) * ad.zeros(3), TypeError, ["asarray"]),
        (write_in_place, TypeError, ["add", "arrayd.asarray(n)", "n += a.get()"]),
        (lambda: np.sqrt(ad.zeros(3), out=np.zeros(3)), TypeError, ["sqrt", "asarray"]),
        (lambda: np.asarray(ad.zeros(3)), TypeError, [".get()"]),
        (lambda: bool(ad.zeros(3)), ValueError, ["truth value"]),
        (lambda: ad.array(["a"]), TypeError, ["dtype"]),
        (lambda: ad.max(ad.zeros(0)), ValueError, ["zero-size array to reduction operation", "no identity"]),
        (lambda: ad.matmul(ad.zeros((2, 3)), ad.zeros((2, 3))), ValueError, ["2", "3"]),
        (lambda: ad.connect("gopher://x"), ValueError, ["gopher"]),
        (lambda: ad.connect("unix:/nonexistent/socket"), ConnectionError, ["/nonexistent/socket"]),
        (lambda: ad.no_such_name, AttributeError, ["no_such_name"]),
    ],
)
def test_at_once(body, kind, words):
    error = say(body)
    assert isinstance(error, kind), repr(error)
    for word in words:
        assert word.replace(" ", "") in str(error).replace(" ", ""), str(error)


def test_an_index_on_the_server_fails_with_the_data():
    x = ad.arange(5)
    result = x[ad.asarray([1, 9])]
    later = ad.sqrt(result + 1).sum()
    assert later.shape == ()
    error = say(later.get)
    assert isinstance(error, IndexError) and "9" in str(error) and "gather" in str(error)
    assert isinstance(say(result.get), IndexError), "it says so each time"
    np.testing.assert_array_equal(x.get(), np.arange(5))


def test_a_failed_assignment_is_reported_by_sync_and_changes_nothing():
    x = ad.arange(5)
    x[ad.asarray([0, 9])] = 77
    assert isinstance(say(ad.sync), IndexError)
    ad.sync()
    np.testing.assert_array_equal(x.get(), np.arange(5))


def test_counts_that_do_not_fit():
    x = ad.arange(5)
    assert isinstance(say(lambda: (x.__setitem__(x > 2, ad.arange(3)), ad.sync())), ValueError)


def test_out_of_memory_is_an_error_of_the_result():
    x = ad.zeros((1 << 24, 1 << 20), np.uint8)  # 16 TiB
    error = say((x[:1, :1]).get)
    assert isinstance(error, MemoryError), repr(error)
    assert float(ad.ones(3).sum()) == 3


@pytest.mark.parametrize("make, shape", [
    (lambda: ad.zeros((1 << 24, 1 << 20), np.uint8)[:1], "(16777216, 1048576) of uint8"),
    (lambda: ad.empty(1 << 44, np.int16)[:1], "(17592186044416,) of int16"),
    (lambda: (ad.broadcast_to(ad.zeros(1, np.float32), (1 << 22, 1 << 22)) + 1)[:1, :1], "(4194304, 4194304) of float32"),
    (lambda: ad.broadcast_to(ad.zeros(1, np.float32), (1 << 22, 1 << 20)).astype("int8")[:1, :1].copy(), "(4194304, 1048576) of int8"),
])
def test_out_of_memory_names_the_shape(make, shape):
    error = say(lambda: make().get())
    assert isinstance(error, MemoryError) and f"no room for shape {shape}: out of" in str(error), repr(error)


def test_errors_are_classes_of_python():
    for name in ("StaleHandleError", "ProtocolError", "LimitError", "DeviceError", "DeviceLostError", "ServerError",
                 "TLSError"):
        assert issubclass(getattr(ad, name), ad.ArraydError)
    assert issubclass(ad.linalg.LinAlgError, np.linalg.LinAlgError)


def test_the_server_dies(own_server):
    process, url = own_server()
    import os
    old = os.environ["ARRAYD_URL"]
    try:
        ad.connect(url)
        x = ad.arange(5)
        ad.sync()
        process.kill()
        process.wait()
        # The worker may outlive the front; ending it too is what a dead server means.
        try:
            os.kill(ad.stat()["worker_pid"], 9)
        except (ConnectionError, ProcessLookupError):
            pass
        assert isinstance(say(lambda: (x + 1).get()), ConnectionError)
        assert isinstance(say(lambda: (x + 1).get()), ConnectionError)
    finally:
        ad.connect(old)
    assert ad.arange(5).sum().item() == 10


def test_copies_and_pickles():
    x = ad.arange(6).reshape(2, 3)[:, ::2]
    for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x), copy.deepcopy([x])[0]):
        assert other.dtype == x.dtype and not ad.shares_memory(x, other)
        np.testing.assert_array_equal(other.get(), x.get())


def test_information(capsys):
    ad.sync()
    info = ad.session_info()
    assert info["backend"] and info["operations"] > 0
    assert set(ad.stat()) >= {"ops_done", "buffers", "worker_pid"}
    ad.show_config()
    printed = capsys.readouterr().out
    assert ad.__version__ in printed and np.__version__ in printed and info["url"] in printed


def test_memory_is_freed_with_the_last_view():
    ad.sync()
    before = ad.stat()["buffers"]
    x = ad.zeros(1000)
    view = x[5:10].reshape(5, 1)
    assert ad.stat()["buffers"] == before + 1
    del x
    assert ad.stat()["buffers"] == before + 1
    del view
    ad.sync()
    assert ad.stat()["buffers"] == before


@pytest.mark.parametrize("many", range(56, 72))
def test_failures_behind_many_operations(many):
    """A device that completes operations later has 64 places for what they find out. Each operation gets one, and so do
    those that are queued. Shapes differ, so that each is a launch of its own."""
    arrays, minus, index = [ad.arange(n) for n in range(1, many + 1)], ad.full(many, -1), ad.array([many])
    ad.sync()
    sums = [x + 1 for x in arrays]
    no_element = arrays[-1][index]
    no_integer = arrays[-1] ** minus
    behind = no_integer + 1
    assert isinstance(say(no_element.get), IndexError)
    for result in no_integer, behind:
        assert isinstance(say(result.get), ValueError)
    for n, result in enumerate(sums, 1):
        assert np.array_equal(result.get(), np.arange(n) + 1)
