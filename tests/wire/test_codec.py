"""Control blocks made by an independent msgpack, read by the library; and the other way round."""
import ctypes
import itertools
import pathlib
import random
import re
import struct

import msgpack
import pytest

import wire_model

TOP = pathlib.Path(__file__).resolve().parents[2]
SECRET = bytes(range(16))
COMPLEX = msgpack.ExtType(1, struct.pack("<dd", 1.5, -2.0))
WELCOME = {"window_ops": 65536, "window_bytes": 1 << 26, "max_payload": 1 << 22, "max_control": 1 << 20,
           "max_buffers": 1 << 24, "backend": "cpu", "devices": 1, "memory": 1 << 34, "device_name": "some processor",
           "server": "arrayd 0.1.0", "pid": 4242, "resume": 60000, "instance": 2**64 - 1, "name": "here",
           "principal": "uid:1", "peers": "there,elsewhere"}
MESSAGES = [
    ([1, 1, 2, 5, "client 1.0", {}], 'hello least 1 greatest 2 features 5 client "client 1.0"'),
    ([1, 1, 2, 5, "client 1.0", {"token": "ad1_secret"}], 'hello least 1 greatest 2 features 5 client "client 1.0"'),
    ([1, 1, 2, 5, "client 1.0", {"process": 4242, "token": "ad1_secret"}], 'hello least 1 greatest 2 features 5 client "client 1.0"'),
    ([3, 1, 255, 77, SECRET, 2**40, {}], "resume version 1 instance 255 session 77 received 1099511627776"),
    ([3, 1, 255, 77, SECRET, 0, {"process": 4242, "token": "ad1_secret"}], "resume version 1 instance 255 session 77 received 0"),
    ([4, SECRET, 2**40], "resumed received 1099511627776"),
    ([2, 1, 0, 77, SECRET, WELCOME], 'welcome version 1 features 0 session 77 window_ops 65536 window_bytes 67108864 max_payload 4194304 max_control 1048576 max_buffers 16777216 backend "cpu" devices 1 memory 17179869184 device_name "some processor" server "arrayd 0.1.0" pid 4242 resume 60000 instance 18446744073709551615 name "here" principal "uid:1" peers "there,elsewhere"'),
    ([16, [7, 11, [16]]], "new #7 f4[16]"),
    ([16, [2**64 - 1, 10, []]], "new #18446744073709551615 bf2[]"),
    ([17, [1, 2, 300]], "free #1 #2 #300"),
    ([17, []], "free"),
    ([18, 7, 4096], "write #7@4096"),
    ([19, 1, 11, [[7, 11, [16]]], [[5, 11, 0, [16]], 2.5], []], "ufunc add float32 -> #7 f4[16] <- #5 f4[16], 2.5"),
    ([19, 3, 14, [[7, 14, [2, 3]]], [[5, 9, 2, [2, 3], [2, -4]], COMPLEX], []],
     "ufunc multiply complex128 -> #7 c16[2,3] <- #5 f2[2,3]@2{2,-4}, (1.5-2j)"),
    ([19, 109, 12, [[7, 12, [3]], [8, 12, [3]]], [[5, 12, 8, [3]]], []],
     "ufunc modf float64 -> #7 f8[3], #8 f8[3] <- #5 f8[3]@8"),
    ([19, 1, 4, [[7, 4, []]], [True, -1], []], "ufunc add int64 -> #7 i8[] <- true, -1"),
    ([19, 1, 8, [[7, 8, []]], [2**64 - 1, 2**63 - 1], []],
     "ufunc add uint64 -> #7 u8[] <- 18446744073709551615, 9223372036854775807"),
    ([20, 1, 12, [[9, 12, []]], [[5, 12, 0, [4, 4]]], [3, None, 0.5]],
     "reduce sum float64 -> #9 f8[] <- #5 f8[4,4]; 3, nil, 0.5"),
    ([21, 8, 5, [[9, 5, [6]]], [[5, 5, 0, [6], [2]]], [0]], "call sort uint8 -> #9 u1[6] <- #5 u1[6]{2}; 0"),
    ([22, 64, 1, 0], "stream 64 device 1 priority 0"),
    ([23, 64], "stream_drop 64"),
    ([24, 2**64 - 1], "on 18446744073709551615"),
    ([25, 1, 64, 1], "event 1 stream 64 timed 1"),
    ([26, 1], "event_drop 1"),
    ([27, 64, 1], "after stream 64 event 1"),
    ([28, 3, 4 << 20], "window 3 bytes 4194304"),
    ([29, 3], "window_drop 3"),
    ([30, 7, 8, 3, 4096, 2**40], "load #7@8 window 3@4096 bytes 1099511627776"),
    ([31, [7, 11, [3]]], "empty #7 f4[3]"),
    ([52, 9, [5, 11, 64, [16]], 3, 4096], "fetch ?9 #5 f4[16]@64 window 3@4096"),
    ([53, 9, 0, 64], "wait ?9 kind 0 id 64"),
    ([54, 10, 1, 2], "done ?10 kind 1 id 2"),
    ([55, 11, 1, 2], "elapsed ?11 from 1 to 2"),
    ([56, 12, 0, 2, 2**40], "pool ?12 device 0 action 2 value 1099511627776"),
    ([57, 13, 1], "device ?13 device 1"),
    ([32, 4], "module_drop 4"),
    ([33, 4, "f<float>", [2, 1, 1, 32, 1, 1, 256, 0, 1, 2, 0, 2], [[7, 11, [16]], [8, 11, 4, [2]]], [[5, 4, 0, [3]]],
      [b"\x01\x02", b""]],
     'launch module 4 kernel "f<float>" numbers 2 1 1 32 1 1 256 0 1 2 0 2 -> #7 f4[16], #8 f4[2]@4 <- #5 i8[3] values 0102, '),
    ([33, 4, "f", [1] * 7, [], [], []], 'launch module 4 kernel "f" numbers 1 1 1 1 1 1 1'),
    ([34, 4, "f", 65537, 0, 2], 'kernel_set module 4 kernel "f" shared 65537 carveout 0 cooperative 2'),
    ([58, 9, 4, "int x;", ["-DN=1", ""], ["f<int>"]],
     'build ?9 module 4 source 6 bytes options "-DN=1" "" names "f<int>"'),
    ([58, 9, 4, "", [], []], "build ?9 module 4 source 0 bytes"),
    ([59, 9, 4, "f"], 'kernel ?9 module 4 kernel "f"'),
    ([60, 9, 4, "table", 77], 'global ?9 module 4 variable "table" #77'),
    ([40, 0, 2**63, SECRET], "fork flags 0 key 9223372036854775808"),
    ([41, 2**64 - 1, 1], "revoke"),
    ([70, 14, 7, 1, 0, 60000], "share ?14 #7 times 1 lasts 0 outlives 60000"),
    ([71, 15, 8, 2**64 - 1, 1], "attach ?15 #8"),
    ([72, 16, [5, 11, 0, [16]], 1, "a/b", "uid:1,*"], 'publish ?16 #5 f4[16] writable 1 name "a/b" grant "uid:1,*"'),
    ([73, 17, 9, "", "weights"], 'attach_name ?17 #9 principal "" name "weights"'),
    ([74, 18, "weights"], 'unpublish ?18 name "weights"'),
    ([75, 19, 10], "names ?19 #10"),
    ([78, 22, 9, 2**64 - 1, 1, "there", "uid:1"], 'pull ?22 #9 server "there" principal "uid:1"'),
    ([76, 20, 7, 1], "export ?20 #7 flags 1"),
    ([77, 21, 11, 2, 3, 2**40, 4096, 64, "GPU-5"], 'import ?21 #11 flags 2 allocation 3 size 1099511627776 offset 4096 bytes 64 device "GPU-5"'),
    ([48, 12, [5, 0, 3, [0, 2]]], "read ?12 #5 b1[0,2]@3"),
    ([49, 2**63], "sync ?9223372036854775808"),
    ([50, 1], "stat ?1"),
    ([51, 3, 13, 11, [[9, 4, None]], [[5, 11, 0, [16]]], []],
     "query ?3 nonzero float32 -> #9 i8[?] <- #5 f4[16]"),
    ([64, 3, 17, []], "reply ?3 done 17"),
    ([64, 3, 17, [1, None, -2.0, True]], "reply ?3 done 17: 1, nil, -2, true"),
    ([65, 3, 17, 4, 16, "gather", "index 7 of \u00fcber"],
     'fail ?3 done 17 code 4 operation 16 "gather" "index 7 of \\xc3\\xbcber"'),
    ([66, 99], "ack done 99"),
    ([67, 9, "no"], 'bye code 9 "no"'),
]


def pack(*messages):
    return b"".join(msgpack.packb(m) for m in messages)


def rows_of(table, pattern, operands):
    text = (TOP / "protocol" / table).read_text()
    return {int(m[1]): operands(m) for m in re.finditer(pattern, text, re.M)}


@pytest.fixture(scope="module")
def model():
    calls = r'^AD_CALL\((\d+), \w+, (\d+), \d+, (\d+), "(\w*)", (\w+)'

    def of_kind(*kinds):
        return {row: limits[:3] for row, limits in rows_of("call.def", calls, lambda m: (
            int(m[2]), int(m[3]), len(m[4]), m[5])).items() if limits[3] in kinds}
    return wire_model.Model({
        19: rows_of("ufunc.def", r"^AD_UFUNC\((\d+), \w+, (\d), (\d)", lambda m: (int(m[3]), int(m[2]) + 1, 0)),
        20: rows_of("reduction.def", r"^AD_REDUCTION\((\d+)", lambda m: (1, 2, 3)),
        21: of_kind("OP", "UPDATE"), 51: of_kind("ASK")})


@pytest.mark.parametrize("message, text", MESSAGES, ids=[text[:30] for _, text in MESSAGES])
def test_message(native, model, message, text):
    assert model.accepts(message)
    assert native.texts(pack(message)) == [text]
    assert native.again(pack(message)) == pack(message) # both write the shortest forms


def test_every_field_of_every_row_is_traced(native):
    """Each row has a message above and a word for each field. A field without the word "-" is printed, no other is."""
    text = (TOP / "protocol" / "request.def").read_text()
    rows = {int(m[1]): m.groups()[1:] for m in
            re.finditer(r'^AD_REQUEST\((\d+), \w+, (\w+), \w+, \w+, \w+, [\w| ]+, "(.*?)", "(.*?)",', text, re.M)}
    assert set(rows) == {message[0] for message, _ in MESSAGES}
    assert len(rows) == text.count("\nAD_REQUEST(")
    views, fresh = ([5, 11, 64, [16]], "#5 f4[16]@64"), ([6, 11, [16]], "#6 f4[16]")
    for number, (name, fields, words) in rows.items():
        letters, words = re.findall(r"\[?\w\]?", fields), words.split()
        assert len(letters) == len(words), name
        assert all(word == "-" for letter, word in zip(letters, words) if letter == "k"), name
        if name in ("ufunc", "reduce", "call", "query", "launch"):  # their fields must fit together
            assert "-" not in words
            continue
        make = {"u": iter((n, str(n)) for n in range(1001, 1020)), "s": iter([("first", '"first"'), ("second", '"second"')]),
                "t": iter([("source", "6 bytes")]), "k": iter([(SECRET, SECRET.hex())]), "D": iter([views]),
                "F": iter([fresh]), "m": iter([(WELCOME, 'window_ops 65536')]), "[u]": iter([([7, 8], "#8")]),
                "[s]": iter([(["x", "y"], '"x" "y"'), (["z"], '"z"')]), "[v]": iter([([3, None], "3, nil")])}
        values = [next(make[letter]) for letter in letters]
        if name == "kernel_set":
            values[-1] = 2, "cooperative 2"
        line = native.texts(pack([number, *(value for value, _ in values)]))[0]
        assert line.startswith(name)
        for (value, printed), word in zip(values, words):
            assert (printed in line) == (word != "-"), (value, line)


def test_run_of_messages(native):
    block = pack(*[m for m, _ in MESSAGES])
    assert native.texts(block) == [text for _, text in MESSAGES]
    assert native.again(block) == block
    assert native.texts(b"") == []


@pytest.mark.parametrize("number", [0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
def test_any_encoding_of_a_number(native, number):
    for size, code in ((1, 0xcc), (2, 0xcd), (4, 0xce), (8, 0xcf), (1, 0xd0), (2, 0xd1), (4, 0xd2), (8, 0xd3)):
        if number < 2**(8 * size - (code >= 0xd0)):
            assert native.texts(b"\x92\x42" + bytes([code]) + number.to_bytes(size, "big")) == [f"ack done {number}"]


@pytest.mark.parametrize("allowed", range(16))
def test_classes(native, model, allowed):
    for message, _ in MESSAGES:
        try:
            accepted = bool(native.texts(pack(message), allowed))
        except ValueError:
            accepted = False
        assert accepted == model.accepts(message, allowed)


BOMBS = {
    "2 GiB of array": b"\xdd\x04\x00\x00\x00", "4 GiB of map": b"\xdf\x04\x00\x00\x00",
    "31 nested arrays": b"\xdd\x00\x80\x00\x00" * 31, "a megabyte of nil": b"\xc0" * (1 << 20),
    "an array of nil": b"\xdd\x00\x0f\xff\x00" + b"\xc0" * 0xfff00, "nine deep": b"\x91" * 9 + b"\xc0",
    "empty nine deep": b"\x91" * 8 + b"\x90", "a string beyond": b"\x91\xdb\xff\xff\xff\xff",
    "an ext beyond": b"\x91\xc9\xff\xff\xff\xff\x01", "an unused byte": b"\x91\xc1", "cut off": b"\x92\x42",
    "half a number": b"\x92\x42\xcf\x00", "not an array": b"\x80", "a map as id": b"\x91\x80", "no id": b"\x90",
    "a map of more pairs than bytes": b"\x91\x8f" + b"\xc0" * 29, "half a million maps": b"\x91\xdd\x00\x08\x00\x00" + b"\x80" * (1 << 19),
    "text that is not UTF-8": b"\x93\x43\x09\xa2\xc3\x28", "an overlong character": b"\x93\x43\x09\xa2\xc0\x80",
    "a surrogate": b"\x93\x43\x09\xa3\xed\xa0\x80",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(native, name):
    with pytest.raises(ValueError):
        native.texts(BOMBS[name])


def test_limits_are_reached(native):
    """A message that just fits is read."""
    ids = list(range(60_000))
    assert native.texts(pack([17, ids])) == ["free " + " ".join(f"#{i}" for i in ids[:16]) + " ... 60000 in all"]
    most = 2**19 - 3  # the message, its id, the list
    assert native.texts(b"\x92\x11\xdd" + most.to_bytes(4, "big") + bytes(most))
    with pytest.raises(ValueError):
        native.texts(b"\x92\x11\xdd" + (most + 1).to_bytes(4, "big") + bytes(most + 1))
    assert native.texts(pack([67, 9, "x" * 65535]))
    with pytest.raises(ValueError):
        native.texts(pack([67, 9, "x" * 65536]))
    deep = {"a": [[[[[[[]]]]]]]}  # a list, a map and seven lists are nine
    with pytest.raises(ValueError):
        native.texts(pack([1, 1, 1, 0, "x", deep]))
    assert native.texts(pack([1, 1, 1, 0, "x", {"a": deep["a"][0]}]))


def places(value, path=()):
    """Every place in a message."""
    yield path
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, path + (i,))


def changed(rng, value, path):
    """A copy of a message with one place changed."""
    if path:
        value = list(value)
        value[path[0]] = changed(rng, value[path[0]], path[1:])
        return value
    junk = [None, True, 0, 1, -1, 14, 15, 2**63 - 1, 2**63, 2**64 - 1, -2**63, 1.5, "x", "x" * 65536, b"x", b"x" * 65536,
            [], [1], {}, {"a": 1}, {1: 2}, COMPLEX, msgpack.ExtType(2, bytes(16)), msgpack.ExtType(1, bytes(15)),
            [7, 11, [16]], [7, 11, None], [5, 11, 0, [16]], [5, 11, 0, [16], [4]], [5, 11, 0, [16], [4, 4]],
            [5, 11, -1, [16]], [0, 11, 0, [-1]], [0, 11, [1]], [5, 11, 0, [1] * 33], [5, 11, 0, [1] * 32], [5, 11]]
    if isinstance(value, list) and rng.random() < 0.5:
        value = list(value)
        if value and rng.random() < 0.5:
            del value[rng.randrange(len(value))]
        else:
            value.insert(rng.randrange(len(value) + 1), rng.choice(junk + value))
        return value
    return rng.choice(junk)


def test_changed_messages(native, model):
    """Any one change to a good message is accepted or refused as wire.md has it."""
    rng, outcomes = random.Random(5), {True: 0, False: 0}
    for _ in range(40_000):
        message = rng.choice(MESSAGES)[0]
        for _ in range(rng.choice([1, 1, 1, 2])):
            message = changed(rng, message, rng.choice(list(places(message))))
        block = msgpack.packb(message)
        try:
            text = native.texts(block)
        except ValueError as error:
            text = str(error)
        accepted = model.accepts(message)
        outcomes[accepted] += 1
        assert isinstance(text, list) == accepted, (message, text)
        if accepted and (message[0] == 72 and message[3] > 1 or message[0] == 40 and message[1]):
            continue # the encoder writes 0 or 1; no flags
        if accepted and message[0] not in (65, 67): # their codes are C statuses in the encoder
            again = native.again(block)
            assert native.again(again) == again
            assert native.texts(again) == text or "{" in text[0] # strides that are never walked become 0
    assert min(outcomes.values()) > 2000, outcomes


def is_text(data):
    try:
        return data.decode() is not None
    except UnicodeDecodeError:
        return False


def test_utf8_is_what_python_decodes(native):
    """Every sequence of up to four bytes that are the first or last of their kind."""
    check = native.lib.ad__is_utf8
    check.restype, check.argtypes = ctypes.c_bool, [ctypes.c_char_p, ctypes.c_size_t]
    first = [0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4,
             0xf5, 0xff]
    later = [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff]
    for length in range(4):
        for data in itertools.product(first, *[later] * length):
            assert check(bytes(data), len(data)) == is_text(bytes(data)), data


def test_changed_bytes(native):
    """Any change to the bytes of good messages leaves the reader standing."""
    rng = random.Random(6)
    whole = pack(*[m for m, _ in MESSAGES])
    for _ in range(40_000):
        block = bytearray(whole[rng.randrange(len(whole)):] if rng.random() < 0.3 else whole)
        for _ in range(rng.randrange(1, 6)):
            block[rng.randrange(len(block))] = rng.choice([rng.randrange(256), 0xc1, 0xdd, 0xdf, 0xdb, 0x91, 0xff])
        del block[rng.randrange(1, len(block) + 1):]
        try:
            native.texts(bytes(block))
        except ValueError:
            pass
