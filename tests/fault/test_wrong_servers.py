"""The library against servers that answer wrongly: in each field, at each byte, without being asked, and when it comes
back to a session. Each test knows what the program must be told; none may hang."""
import fcntl
import itertools
import os

import msgpack
import pytest

import raw
from raw import REQUEST, frame, message
from wrong_servers import CANCEL, KERNELS, LIMITS, RESUME, SECRET, WrongServer, memory_file, reply, welcome

import arrayd as ad

LOST = REQUEST["bye"]  # a kind of message that ends a connection
DEVICE_LOST, LIMIT, TIMEOUT, DENIED = (next(code for code, name in raw.ERROR.items() if name == wanted)
                                       for wanted in ("device_lost", "limit", "timeout", "denied"))


def fail(code, number=0, name="add", text="it went wrong", done=0):
    return lambda request: frame(message("fail", request, done, code, number, name, text))


def several(*answers):
    """One answer after another, in one go."""
    return lambda request: b"".join(a(request) if callable(a) else a for a in answers)


def compute():
    """Ask for each kind of answer: without values, with some, with an array's bytes, and with bytes of any number."""
    ad.sync()
    ad.cuda.Device().mem_info
    ad.zeros(4).get()
    ad.RawKernel("extern \"C\" __global__ void f() {}", "f").compile()


def outcome(url, use=ad.sync):
    """Return what a program is told that connects and uses its session: an exception, or None."""
    try:
        ad.connect(url)
        use()
    except (Exception, KeyboardInterrupt) as error:  # the number of each error may come, of an interrupt too
        return error
    return None


def told(*answers, use=ad.sync, **more):
    with WrongServer(answers, **more) as server:
        return outcome(server.url, use)


def assert_lost(error, text):
    assert isinstance(error, ConnectionError) and text in str(error), repr(error)


# ---- welcome ----

@pytest.mark.parametrize("answer, kind, text", [
    (welcome(version=2), ad.ProtocolError, "chose protocol version 2"),
    (welcome(max_control=(256 << 10) - 1), ad.ProtocolError, "limits are too small"),
    (welcome(max_payload=0), ad.ProtocolError, "limits are too small"),
    (welcome(window_ops=15), ad.ProtocolError, "limits are too small"),
    (welcome(window_bytes=(64 << 10) - 1), ad.ProtocolError, "limits are too small"),
    (frame(message("ack", 0)), ConnectionError, "did not begin with welcome"),
    (frame(message("new", [1, 1, []])), ConnectionError, "not allowed here"),
    (frame(message("bye", 0, "no")), ConnectionError, "the server closed the connection: no"),
    (frame(message("bye", 2**40, "no")), ConnectionError, "the server closed the connection: no"),
    (frame(message("bye", DENIED, "x" * 500)), PermissionError, "the server closed the connection: xxx"),
    (frame(b"", b"x"), ConnectionError, "a payload that nothing claims"),
    (frame(message("welcome", 1, 0, 5, SECRET, LIMITS), b"x"), None, ""),
    (b"\0" * 16, ConnectionError, "an empty frame"),
    (b"\xff" * 16, ConnectionError, "above the limit"),
    (frame(b"\xc1"), ConnectionError, "control block"),
    (b"\x15\x03\x03\x00\x02\x02\x46", ConnectionError, "the server speaks TLS there"),
    (b"HTTP/1.1 400 Bad Request\r\n", ConnectionError, "that is a web server"),
    (b"", ConnectionError, "the server has gone"),
], ids=range(18))
def test_another_welcome(answer, kind, text):
    error = told(answer)
    if kind:
        assert isinstance(error, kind) and text in str(error), repr(error)
    else:
        assert_lost(error, "protocol violated")


def test_a_second_welcome():
    assert_lost(told(several(welcome(), welcome()), reply()), "a second welcome")


def test_what_this_server_cannot_do():
    def cancel():
        with pytest.raises(NotImplementedError, match="cannot cancel"):
            ad.cancel()
        ad.sync()
    assert told(welcome(features=0), reply(), use=cancel) is None


# ---- answers ----

VALUES = [None, True, -1, 0, 1, 2**63, 2**64 - 1, 1.5, "", "x" * 70, b"", SECRET, [], [1, 2], {}, {"pid": "x"}, {5: 1},
          {"backend": 5, "devices": -1}, msgpack.ExtType(1, bytes(16)), msgpack.ExtType(5, b"")]
FIELDS = {"welcome": [1, KERNELS, 5, SECRET, LIMITS], "reply": [1, 0, []], "fail": [1, 0, 4, 0, "add", "text"], "ack": [0],
          "bye": [9, "text"], "resumed": [SECRET, 0]}


def draw(name):
    """Each message of the kind in which one field is another, is missing, or is one too many."""
    fields = FIELDS[name]
    for at, value in itertools.product(range(len(fields)), VALUES):
        yield [*fields[:at], value, *fields[at + 1:]]
    yield fields[:-1]
    yield [*fields, 0]


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_of_each_message(name):
    """A message that breaks the protocol ends the session, one that is right does not, whatever stands in it."""
    lost = 0
    for fields in draw(name):
        drawn = frame(message(name, *fields))
        answers = [drawn, reply()] if name == "welcome" else [welcome(), several(drawn, reply())]
        error = told(*answers)
        lost += error is not None
        assert error is None or str(error), fields
        if drawn == frame(message(name, *FIELDS[name])):
            assert (error is None) == (name not in ("fail", "bye")), repr(error)
    assert lost > len(FIELDS[name]) * len(VALUES) // 3


SIZED = 32  # bytes of four float64


@pytest.mark.parametrize("answer", [
    reply(SIZED), reply(SIZED, 0, 0), reply(SIZED - 1, 0, payload=bytes(SIZED - 1)), reply(SIZED, 1, payload=bytes(SIZED)),
    reply(SIZED, 0, payload=bytes(SIZED + 1)), reply(SIZED, 0), reply(SIZED, 0, payload=bytes(SIZED - 1)),
    several(reply(SIZED, 0, payload=bytes(8), flags=1), reply(SIZED, 0, payload=bytes(24))),
    several(reply(SIZED, 0, payload=bytes(8), flags=1), reply(SIZED, 8, payload=bytes(25))),
], ids=range(9))
def test_an_array_of_another_size(answer):
    assert_lost(told(welcome(), answer, use=lambda: ad.zeros(4).get()), "another size than the array's")


def test_an_array_in_parts_behind_answers_for_nobody():
    data = bytes(range(8)) * 4

    def get():
        assert bytes(ad.zeros(4).get()) == data
        assert ad.zeros(0).get().size == 0
    parts = several(frame(message("reply", 77, 0, [3, 2**63, True, None, 1.5]), b"payload"), frame(message("fail", 78, 0, 4, 0, "", "")),
                    frame(message("ack", 0)), reply(SIZED, 0, payload=data[:8], flags=1), reply(SIZED, 8, payload=data[8:]))
    assert told(welcome(), parts, reply(0, 0), use=get) is None


def test_numbers_of_every_kind():
    """Counts come as any numbers: what is too large for one is the largest, and what is none is 0."""
    def ask():
        assert ad.cuda.Device().mem_info == (1, 2**63 - 1)
    assert told(welcome(), reply(2**64 - 1, True, None, 1.5, -3, 3), use=ask) is None


def test_what_a_compiler_says_is_too_long():
    def build():
        ad.RawKernel("extern \"C\" __global__ void f() {}", "f").compile()
    for answer in (reply(True, 1 << 22, payload=bytes(1 << 22)), reply(False, 4, payload=b"text", flags=1)):
        assert_lost(told(welcome(), answer, use=build), "a reply that is too long")


@pytest.mark.parametrize("code", [0, 1000, 2**64 - 1, *sorted(raw.ERROR)])
def test_failures_of_every_number(code):
    for number in (0, 3):
        error = told(welcome(), fail(code, number))
        assert error is not None and "it went wrong" in str(error)


def test_acknowledgements():
    assert_lost(told(welcome(), several(frame(message("ack", 1)), reply())), "acknowledged what was not sent")

    def work():
        ad.zeros(4)
        ad.sync()
        ad.sync()
    assert told(welcome(), reply(done=1), reply(done=0), use=work) is None  # one that goes back is passed over


def test_the_last_words_are_told():
    for code, kind in ((DEVICE_LOST, ad.DeviceLostError), (LIMIT, ConnectionError), (0, ConnectionError), (2000, ConnectionError)):
        error = told(welcome(), frame(message("bye", code, "that was it")))
        assert isinstance(error, kind) and "that was it" in str(error)


def test_the_end_at_each_byte():
    """Whatever has come of an answer when the connection ends: the program is told, and nothing is taken for it."""
    whole = reply(SIZED, 0, payload=bytes(SIZED))(1)
    for size in range(len(whole) + 1):
        error = told(welcome(), whole[:size], use=lambda: ad.zeros(4).get())
        assert (error is None) == (size == len(whole)), size
    whole = welcome()
    for size in range(0, len(whole), 7):
        assert_lost(told(whole[:size]), "the server has gone")


def test_a_long_message_in_pieces():
    """A text of more bytes than the library receives at a time."""
    error = told(welcome(), fail(2, text="x" * 65000))
    assert isinstance(error, ValueError) and "xxx" in str(error)
    error = told(welcome(), frame(message("reply", 1, 0, [7] * 200000)))
    assert error is None


def test_a_trace_shows_what_comes(monkeypatch, capfd):
    monkeypatch.setenv("AD_TRACE", "1")
    assert told(welcome(), several(frame(message("ack", 0)), reply(1, 2.5))) is None
    assert_lost(told(welcome(), frame(b"\xc1")), "control block")
    err = capfd.readouterr().err
    assert "<- reply ?1 done 0: 1, 2.5" in err and "-> sync ?1" in err and SECRET.hex() not in err


def test_tcp_is_the_same():
    assert told(welcome(), reply(), tcp=True) is None
    assert_lost(told(welcome(), frame(message("ack", 5)), tcp=True), "acknowledged what was not sent")


# ---- descriptors ----

SEALED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def count_descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_descriptors_that_are_no_ring():
    """Descriptors that come along are closed, and the session goes on over the socket."""
    before = None
    for seals, size, count in ((0, 1, 1), (SEALED, 1 << 20, 1), (SEALED, 1 << 24, 1), (SEALED, 1 << 24, 3), (0, 0, 4)):
        def offer(request, size=size, seals=seals, count=count):
            return reply()(request), [memory_file(bytes(size), seals) for _ in range(count)]
        assert told(welcome(), offer, reply(), use=lambda: (ad.sync(), ad.sync())) is None
        before = before or count_descriptors()
        assert count_descriptors() == before


# ---- coming back ----

def resuming(**limits):
    return welcome(features=RESUME | CANCEL, resume=60000, **limits)


def resumed(secret=SECRET, received=None):
    return frame(message("resumed", secret, received))


def come_back(*answers, resume=60000):
    """Return what a program is told whose connection ends before its first request is answered, the requests to resume,
    and all that was heard. There is one answer for each further connection; behind the last one the request is answered.
    """
    connections = [[welcome(features=RESUME, resume=resume)], *([a] for a in answers[:-1]), [answers[-1], reply()]]
    with WrongServer(*connections) as server:
        error = outcome(server.url)
        asked = [m for m in server.heard if m[0] == REQUEST["resume"]]
        return error, asked, server.heard


def test_a_session_is_taken_up():
    error, asked, heard = come_back(resumed(b"y" * 16, 0))
    assert error is None and len(asked) == 1
    assert asked[0][1:6] == [1, LIMITS["instance"], 5, SECRET, 0]
    assert heard[-1][0] == REQUEST["sync"]  # it was sent again


def test_the_server_may_want_time():
    """Out of something, not yet, or gone in the middle of its answer: the library asks again."""
    whole = resumed(b"y" * 16, 0)
    for first in (frame(message("bye", LIMIT, "full")), frame(message("bye", TIMEOUT, "later")), b"", whole[:5], whole[:20]):
        error, asked, _ = come_back(first, whole)
        assert error is None and len(asked) == 2, repr(error)


@pytest.mark.parametrize("answer, text", [
    (frame(message("bye", DENIED, "never" * 100)), "never"),
    (frame(message("bye", DENIED, "")), "could not be taken up again"),
    (frame(message("resumed", b"short", 0)), "no answer to resume"),
    (frame(message("resumed", SECRET, -1)), "no answer to resume"),
    (frame(message("resumed", SECRET, 0) * 2), "another answer to resume"),
    (frame(message("ack", 0)), "another answer to resume"),
    (frame(message("new", [1, 1, []])), "no answer to resume"),
    (frame(b"\xc1"), "no answer to resume"),
    (frame(message("resumed", SECRET, 0), flags=1), "no answer to resume"),
    (frame(message("resumed", SECRET, 0), b"x"), "no answer to resume"),
    (frame(bytes(5000)), "no answer to resume"),
    (frame(b""), "no answer to resume"),
    (b"HTTP/1.1 400 Bad Request\r\n", "no answer to resume"),
    (resumed(received=2**40), "the server has received what was not sent"),
], ids=range(14))
def test_no_answer_to_resume(answer, text):
    error, asked, _ = come_back(answer)
    assert_lost(error, text)
    assert len(asked) == 1


def test_the_time_is_over():
    """A session whose server answers nothing any more is given up when the time is over that the server has told."""
    error, asked, _ = come_back(*[b""] * 100, resume=60)
    assert_lost(error, "could not be taken up again")
    assert asked


def test_a_server_that_is_the_peer_itself_has_ended_with_its_sessions():
    """Nobody listens any more where the server's own process did: no further attempt is made."""
    with WrongServer([welcome(features=RESUME, resume=600_000, pid=os.getpid())]) as server:
        ad.connect(server.url)
        server.listener.close()
        os.unlink(server.path)
        with pytest.raises(ConnectionError, match="could not be taken up again"):
            ad.sync()
