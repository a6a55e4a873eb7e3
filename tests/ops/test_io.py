"""Arrays in files: NumPy reads what arrayd writes and the other way round."""
import bz2
import gzip
import io
import os
import pathlib
import threading

import numpy as np
import pytest

import arrayd as ad
from arrayd._io import files as arrays_in_files, progress, text as arrays_as_text
from oracle import DTYPES, check, compare, outcome, same_kind

RNG = np.random.default_rng(4)


def sample(dtype, shape):
    values = RNG.integers(0, 100, shape)
    return values % 2 == 1 if dtype == bool else values.astype(dtype)


# Arrays by what they are to test: of NumPy, and a function that makes of the array of the server what is saved.
LAYOUTS = {
    "c": ((3, 4, 5), lambda a: a), "fortran": ((3, 4, 5), lambda a: a.T), "0-d": ((), lambda a: a),
    "empty": ((0, 3), lambda a: a), "empty turned": ((3, 0), lambda a: a.T), "one": ((1,), lambda a: a),
    "strided": ((20, 9), lambda a: a[::3, 1::2]), "backwards": ((7, 5), lambda a: a[::-1, ::-1]),
    "turned": ((2, 3, 4, 5), lambda a: a.transpose(2, 0, 3, 1)), "part": ((9, 9), lambda a: a[2:5]),
}


@pytest.fixture(params=[None, 16, 40, 1000], ids=lambda n: f"parts of {n}")
def parts(request, monkeypatch):
    """Parts so small that small arrays have many."""
    if request.param:
        monkeypatch.setattr(arrays_in_files, "CHUNK", request.param)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_npy(layout, parts, tmp_path):
    shape, turn = LAYOUTS[layout]
    for dtype in DTYPES:
        host = sample(dtype, shape)
        a, expected = turn(ad.asarray(host)), turn(host)
        ad.save(tmp_path / "ours", a)
        np.save(tmp_path / "theirs", expected)
        back = np.load(tmp_path / "ours.npy")
        compare(expected, back, exact=True)
        assert back.flags.f_contiguous == np.load(tmp_path / "theirs.npy").flags.f_contiguous
        assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()
        for read in (ad.load, lambda path: ad.load(path, mmap_mode="r")):
            again = read(tmp_path / "theirs.npy")
            compare(expected, again.get(), exact=True)
            assert again.flags.f_contiguous == back.flags.f_contiguous
        np.save(tmp_path / "swapped.npy", expected.astype(host.dtype.newbyteorder()))
        compare(expected, ad.load(str(tmp_path / "swapped.npy")).get(), exact=True)


def test_large(tmp_path, monkeypatch):
    """The array is larger than what goes with a message, and takes several parts. Loading waits for room at most."""
    monkeypatch.setattr(arrays_in_files, "CHUNK", 1 << 20)
    host = RNG.random((700, 1031))
    ad.save(tmp_path / "a.npy", ad.asarray(host).T)
    assert np.array_equal(np.load(tmp_path / "a.npy"), host.T)
    a, total = ad.load(tmp_path / "a.npy"), ad.load(tmp_path / "a.npy").sum()
    assert np.array_equal(a.get(), host.T) and np.isclose(float(total), host.sum())
    arrays_in_files.tofile(ad.asarray(host)[::2], tmp_path / "bytes")
    assert (tmp_path / "bytes").read_bytes() == host[::2].tobytes()
    assert np.array_equal(ad.fromfile(tmp_path / "bytes").get(), host[::2].ravel())


def test_waits(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(1000.0))
    np.arange(1000.0).tofile(tmp_path / "raw")
    before = ad.session_info()["round_trips"]
    a = ad.load(tmp_path / "a.npy") + ad.fromfile(tmp_path / "raw") + ad.fromstring("1 2", sep=" ").sum()
    assert ad.session_info()["round_trips"] == before
    ad.save(tmp_path / "b.npy", a)
    assert ad.session_info()["round_trips"] == before + 1


def test_memory_is_bounded(tmp_path):
    """The client's process holds about one part at a time of a file of 160 MiB, in either direction."""
    code = f"""
import resource, numpy as np, arrayd as ad
from arrayd._io import files as arrays_in_files
arrays_in_files.CHUNK = 4 << 20
ad.sync()
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
a = ad.arange(20 << 20)
ad.save({str(tmp_path / "large.npy")!r}, a[:1000])
before = peak()
ad.save({str(tmp_path / "large.npy")!r}, a)
b = ad.load({str(tmp_path / "large.npy")!r})
assert bool((a == b).all())
assert peak() - before < 80, (before, peak())
"""
    import test_windows
    test_windows.run(code)


def test_file_objects(parts, tmp_path):
    """Files of every kind, several arrays in one, and others' bytes before and after."""
    first, second = RNG.random((5, 7)), np.arange(30)[::3]
    makers = {
        "memory": lambda mode: stream, "plain": lambda mode: open(tmp_path / "f", mode),
        "unbuffered": lambda mode: open(tmp_path / "f", mode, buffering=0),
        "gzip": lambda mode: gzip.open(tmp_path / "f", mode), "bz2": lambda mode: bz2.open(tmp_path / "f", mode),
    }
    for name, make in makers.items():
        stream = io.BytesIO()
        with make("wb") as f:
            f.write(b"head")
            ad.save(f, ad.asarray(first))
            ad.save(f, ad.asarray(second))
            arrays_in_files.tofile(ad.asarray(first), f)
            content = stream.getvalue() if name == "memory" else None
        stream = io.BytesIO(content)
        with make("rb") as f:
            assert f.read(4) == b"head"
            compare(first, np.load(f), exact=True)
            here = f.tell()
            compare(second, ad.load(f).get(), exact=True)
            assert f.read(8) == first.tobytes()[:8]
            f.seek(here)
            ad.load(f)
            compare(first.ravel()[:3], ad.fromfile(f, count=3).get(), exact=True)
            compare(first.ravel()[3:], ad.fromfile(f).get(), exact=True)


class Slow:
    """A file that takes and gives a few bytes at a time."""

    def __init__(self, data=b""):
        self.data, self.at = bytearray(data), 0

    def write(self, data):
        self.data += data[:7]
        return min(7, len(data))

    def read(self, size=-1):
        part = bytes(self.data[self.at:self.at + min(7, size)])
        self.at += len(part)
        return part

    def seek(self, offset, whence=0):
        self.at = offset + (self.at if whence == 1 else 0)
        return self.at

    def tell(self):
        return self.at


class SlowInto(Slow):
    """A slow file that reads into memory."""

    def readinto(self, data):
        part = self.read(len(data))
        data[:len(part)] = part
        return len(part)


def test_a_few_bytes_at_a_time(parts):
    host = RNG.random(50)
    stream = io.BytesIO()
    np.save(stream, host)
    for kind in (Slow, SlowInto):
        file = kind()
        arrays_in_files.tofile(ad.asarray(host), file)
        assert file.data == host.tobytes()
        compare(host, ad.fromfile(file).get(), exact=True)
        compare(host[:3], ad.fromfile(kind(file.data), count=3).get(), exact=True)
        compare(host, ad.load(kind(stream.getvalue())).get(), exact=True)


def test_pipe():
    """A file of unknown size."""
    host = RNG.integers(0, 255, 1 << 20, dtype=np.uint8)
    read, write = os.pipe()
    with open(read, "rb") as source, open(write, "wb") as target:
        def feed():
            with target:
                arrays_in_files.tofile(ad.asarray(host), target)
        thread = threading.Thread(target=feed)
        thread.start()
        got = ad.fromfile(source, np.uint8)
        thread.join()
    assert np.array_equal(got.get(), host)


def test_bfloat16(tmp_path):
    host = RNG.random((3, 5)).astype(ad.bfloat16)
    a = ad.asarray(host)
    ad.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", host)
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    arrays_in_files.tofile(a, tmp_path / "raw")
    ad.savetxt(tmp_path / "text", a)
    for back in (ad.load(tmp_path / "b.npy"), ad.fromfile(tmp_path / "raw", ad.bfloat16).reshape(3, 5),
                 ad.loadtxt(tmp_path / "text", ad.bfloat16)):
        assert back.dtype == ad.bfloat16 and np.array_equal(back.get(), host)


@pytest.mark.parametrize("ours", ["savez", "savez_compressed"])
def test_npz(ours, parts, tmp_path):
    x, y, z = RNG.random((4, 6)), np.arange(3, dtype="int8"), np.array(2.5)
    path = tmp_path / "file"
    getattr(ad, ours)(path, ad.asarray(x), ad.asarray(x).T, y=ad.asarray(y), z=z, names=np.array(["a", "b"]))
    with np.load(f"{path}.npz") as back:
        assert back.files == ["y", "z", "names", "arr_0", "arr_1"]
        for name, expected in {"arr_0": x, "arr_1": x.T, "y": y, "z": z}.items():
            compare(expected, back[name], exact=True)
        assert list(back["names"]) == ["a", "b"]
    with ad.load(f"{path}.npz") as back:
        assert isinstance(back["y"], ad.ndarray) and back.files == list(back) == ["y", "z", "names", "arr_0", "arr_1"]
        for name, expected in {"arr_0": x, "arr_1.npy": x.T, "y": y, "z": z}.items():
            compare(expected, back[name].get(), exact=True)
        assert "y" in back and "q" not in back and len(back) == 5 and "file.npz" in repr(back)
        assert np.array_equal(back.f.y.get(), y) and isinstance(back.get("z"), ad.ndarray) and back.get("q") is None
        with pytest.raises(KeyError, match="q is not"):
            back["q"]
        with pytest.raises(AttributeError):
            back.f.q
        with pytest.raises(TypeError, match="numbers and bool only"):
            back["names"]
    memory = io.BytesIO()
    getattr(ad, ours)(memory, ad.asarray(x))
    compare(x, ad.load(io.BytesIO(memory.getvalue()))["arr_0"].get(), exact=True)
    with pytest.raises(ValueError, match="arr_0"):
        getattr(ad, ours)(path, ad.asarray(x), arr_0=x)


def test_what_is_not_of_the_server(tmp_path):
    """NumPy's arrays and lists are written as NumPy writes them; a pickle is loaded when that is allowed."""
    for value in (np.arange(3), [1, 2], 5, np.array(["text"])):
        ad.save(tmp_path / "a.npy", value)
        assert np.array_equal(np.load(tmp_path / "a.npy"), value)
    ad.save(tmp_path / "a.npy", [ad.arange(2), ad.ones(2)])
    assert np.array_equal(np.load(tmp_path / "a.npy"), [[0, 1], [1, 1]])
    np.save(tmp_path / "object.npy", np.array([None]), allow_pickle=True)
    with pytest.raises(ValueError):
        ad.save(tmp_path / "never.npy", np.array([None]), allow_pickle=False)
    for allow in (False, True):
        with pytest.raises(TypeError, match="numbers and bool only"):
            ad.load(tmp_path / "object.npy", allow_pickle=allow)
    import pickle
    (tmp_path / "pickle").write_bytes(pickle.dumps({"a": 1}))
    assert ad.load(tmp_path / "pickle", allow_pickle=True) == {"a": 1}
    with pytest.raises(ValueError, match="pickle"):
        ad.load(tmp_path / "pickle")


def bad_files():
    stream = io.BytesIO()
    np.save(stream, np.arange(100.0))
    good = stream.getvalue()
    header = b"\x93NUMPY\x01\x00\x76\x00"

    def headed(text):
        return header + text.ljust(117).encode() + b"\n"

    huge = headed("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,), }")
    return {
        "empty": (b"", EOFError), "short": (good[:-1], ValueError), "shorter": (good[:200], ValueError),
        "half a header": (good[:40], ValueError), "magic alone": (good[:6], ValueError),
        "no npy": (b"junk" * 9, ValueError),
        "version": (good[:6] + b"\x09\x00" + good[8:], ValueError), "junk header": (headed("{'a': 1"), ValueError),
        "no dictionary": (headed("[1, 2]"), ValueError), "negative": (good.replace(b"(100,)", b"(-10,)"), ValueError),
        "huge": (huge + bytes(80), ValueError),
        "text": (headed("{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}") + bytes(16), TypeError),
        "half a zip": (b"PK\x03\x04" + bytes(50), Exception),
    }


@pytest.mark.parametrize("what", bad_files())
def test_bad_files(what, tmp_path):
    """Errors that say what is wrong, from paths, from memory and from what is not known to be so short; nothing is left
    on the server."""
    data, kind = bad_files()[what]
    (tmp_path / "bad").write_bytes(data)
    with gzip.open(tmp_path / "bad.gz", "wb") as f:
        f.write(data)
    ad.sync()
    before = ad.stat()["memory_used"] if "memory_used" in ad.stat() else None
    for open_one in (lambda: str(tmp_path / "bad"), lambda: io.BytesIO(data), lambda: gzip.open(tmp_path / "bad.gz")):
        with pytest.raises(kind) as caught:
            ad.load(open_one())
        assert str(caught.value)
    if what in ("short", "shorter", "huge"):
        with pytest.raises(ValueError, match="of [0-9]+ elements"):
            ad.load(tmp_path / "bad")
    assert before is None or ad.stat()["memory_used"] <= before
    if what == "short":
        assert ad.fromfile(tmp_path / "bad", offset=128).size == 99


def test_errors(tmp_path):
    a = ad.arange(100000)
    writers = [lambda f: ad.save(f, a), lambda f: ad.savez(f, a), lambda f: ad.savez_compressed(f, a),
               lambda f: ad.savetxt(f, a), lambda f: arrays_in_files.tofile(a, f), lambda f: arrays_in_files.tofile(a[:1], f),
               lambda f: arrays_in_files.tofile(a, f, sep=" ")]
    os.symlink("/dev/full", tmp_path / "full.npy")
    os.symlink("/dev/full", tmp_path / "full.npz")
    for i, write in enumerate(writers):
        name = str(tmp_path / ("full.npz" if i in (1, 2) else "full.npy"))
        with pytest.raises(OSError) as caught:
            write(name)
        assert caught.value.errno == 28
        assert i == 3 or caught.value.filename == name
        with pytest.raises(FileNotFoundError):
            write(str(tmp_path / "nowhere" / name[-8:]))
    for read in (ad.load, ad.fromfile, ad.loadtxt, ad.genfromtxt):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "absent")
    for mode in ("w+", "x"):
        with pytest.raises(ValueError, match="mmap_mode"):
            ad.load(tmp_path / "absent", mmap_mode=mode)
    np.save(tmp_path / "wide.npy", np.zeros((1,) * 20))
    with pytest.raises(ValueError, match="max_header_size"):
        ad.load(tmp_path / "wide.npy", max_header_size=10)
    assert ad.load(tmp_path / "wide.npy", max_header_size=10, allow_pickle=True).ndim == 20
    wrong = ad.arange(10).take(ad.array([99]))  # an operation that fails on the server
    with pytest.raises(IndexError):
        ad.save(tmp_path / "wrong.npy", wrong)


def test_fromfile(tmp_path, parts):
    host = sample("int32", (50,))
    path = tmp_path / "raw"
    host.tofile(path)
    with open(path, "ab") as f:
        f.write(b"xyz")
    for options in ({}, {"count": 7}, {"count": 0}, {"count": 500}, {"offset": 8}, {"offset": 9, "count": 3},
                    {"offset": 4000}, {"dtype": "uint8"}, {"dtype": ">i4"}, {"dtype": "complex64"}):
        native = options.get("dtype", "i4").strip(">")
        check(lambda xp: xp.fromfile(path, **{"dtype": "int32", **options}).astype(native), exact=True)
    for kind in (str, pathlib.Path):
        compare(host, ad.fromfile(kind(path), "int32").get(), exact=True)
    with pytest.raises(TypeError, match="numbers and bool only"):
        ad.fromfile(path, "U3")
    text = tmp_path / "text"
    text.write_text("1, 2,3 , 4.5")
    for options in ({}, {"count": 2}, {"dtype": "float32"}):
        check(lambda xp: xp.fromfile(text, sep=",", **options), exact=True)


def test_tofile_text(tmp_path, parts):
    for host in (RNG.random(30), np.arange(12).reshape(3, 4), np.array([True, False]), np.array(1.5), np.zeros((0, 3)),
                 np.array([1 + 2j, -1j])):
        for sep, format in ((" ", "%s"), (", ", ""), ("\n", "%.3f")):
            if host.dtype.kind == "c" and format == "%.3f":
                continue
            host.tofile(tmp_path / "theirs", sep=sep, format=format)
            arrays_in_files.tofile(ad.asarray(host), tmp_path / "ours", sep=sep, format=format)
            assert (tmp_path / "ours").read_text() == (tmp_path / "theirs").read_text()


LOADTXT = [
    ("1 2\n3 4\n", {}), ("1 2\n3 4\n", {"unpack": True}), ("1 2\n3 4\n", {"dtype": int}), ("1\n2\n3\n", {}),
    ("1 2 3\n", {}),
    ("1 2 3\n", {"ndmin": 1}), ("1 2 3\n", {"ndmin": 2}), ("1\n2\n", {"ndmin": 2}), ("5\n", {}), ("5\n", {"ndmin": 1}),
    ("5\n", {"ndmin": 2, "unpack": True}), ("", {}), ("", {"ndmin": 2}), ("# only\n", {"dtype": "i4"}),
    ("1,2\n3,4", {"delimiter": ","}),
    ("a b\n1 2\n", {"skiprows": 1}), ("1 2 3\n4 5 6\n", {"usecols": (2, 0)}), ("1 2 3\n4 5 6\n", {"usecols": 1}),
    ("1\n2\n3\n4\n", {"max_rows": 2}), ("1\n2\n", {"max_rows": 0}), ("% x\n1 2\n", {"comments": "%"}),
    ("1 2\n3 4\n", {"converters": {0: lambda v: float(v) * 2}}), ("'1' '2'\n", {"quotechar": "'"}), ("1 2\n3\n", {}),
    ("1 x\n", {}), ("1 2\n", {"ndmin": 3}), ("1\n\n2\n# c\n3\n4\n5\n6\n7\n8\n9\n", {"max_rows": 6, "skiprows": 1}),
    ("".join(f"{i} {i * i}\n" for i in range(50)), {}), ("".join(f"{i}\n" for i in range(16)), {}),
    ("".join(f"{i}\n" for i in range(9)) + "1 2\n", {}), ("1e400 nan -inf\n", {}), ("(1+2j) 3j\n", {"dtype": complex}),
]


@pytest.mark.parametrize("first", [4096, 8, 1])
def test_loadtxt(first, tmp_path, monkeypatch):
    monkeypatch.setattr(arrays_as_text, "_FIRST", first)
    monkeypatch.setattr(arrays_in_files, "CHUNK", first * 8)
    path = tmp_path / "text"
    for text, options in LOADTXT:
        path.write_text(text)
        for source in (lambda: path, lambda: io.StringIO(text), lambda: text.splitlines(), lambda: open(path, "rb")):
            check(lambda xp: xp.loadtxt(source(), **options), exact=True)
    with gzip.open(tmp_path / "text.gz", "wt") as f:
        f.write("1 2\n3 4\n")
    check(lambda xp: xp.loadtxt(tmp_path / "text.gz"), exact=True)
    with pytest.raises(TypeError):
        ad.loadtxt(path, dtype="U5")


def test_savetxt(tmp_path, parts):
    x = RNG.random((9, 3))
    for host, options in ((x, {}), (x.T, {}), (x[:, 0], {}), (x[::-2, ::2], {"fmt": "%.2f", "delimiter": ","}),
                          (x, {"fmt": ["%d", "%.1f", "%g"]}), (x, {"fmt": "%.1f | %.2f %.3f", "newline": "\r\n"}),
                          (x, {"header": "two\nlines", "footer": "end", "comments": "% "}), (x[:0], {"header": "h"}),
                          (x[0] + 1j, {}), (np.arange(3), {"fmt": "%d", "encoding": "utf-8"})):
        for name in ("t", "t.gz"):
            np.savetxt(tmp_path / f"theirs{name}", host, **options)
            ad.savetxt(tmp_path / f"ours{name}", ad.asarray(host), **options)
            read = gzip.open if name == "t.gz" else open
            with read(tmp_path / f"ours{name}") as ours, read(tmp_path / f"theirs{name}") as theirs:
                assert ours.read() == theirs.read()
        for make in (io.StringIO, io.BytesIO):
            ours, theirs = make(), make()
            np.savetxt(theirs, host, **options)
            ad.savetxt(ours, ad.asarray(host), **options)
            assert ours.getvalue() == theirs.getvalue()
    for bad, options in ((np.zeros(()), {}), (np.zeros((2, 2, 2)), {}), (x, {"fmt": ["%d"]}), (x, {"fmt": "%d %d"})):
        wrong = outcome(lambda: np.savetxt(io.StringIO(), bad, **options))[1]
        error = outcome(lambda: ad.savetxt(io.StringIO(), ad.asarray(bad), **options))[1]
        assert error is not None and same_kind(wrong, error), (wrong, error)


def test_genfromtxt():
    for text, options in (("1,2\n3,\n", {"delimiter": ","}), ("1,2\n3,\n", {"delimiter": ",", "filling_values": 7}),
                          ("1 2\n3 4\n", {"dtype": int, "unpack": True}), ("x\n1\n2\n", {"skip_header": 1}),
                          ("1 2\n3 N\n", {"missing_values": "N", "usecols": 1}), ("1\n", {"ndmin": 2})):
        check(lambda xp: xp.genfromtxt(io.StringIO(text), **options), exact=True)
    columns = ad.genfromtxt(io.StringIO("1 2.5\n3 4.5\n"), dtype=None, unpack=True)
    compare([np.array([1, 3]), np.array([2.5, 4.5])], [c.get() for c in columns])
    for options in ({"usemask": True}, {"dtype": "U3"}):
        with pytest.raises(TypeError):
            ad.genfromtxt(io.StringIO("1 2.5\n3 4.5\n"), **options)


def test_strings_and_buffers():
    for options in ({"sep": " "}, {"sep": " ", "dtype": int}, {"sep": " ", "count": 2}, {"sep": ""}):
        check(lambda xp: xp.fromstring("1 2 3", **options), exact=True)
    with pytest.raises(TypeError, match="numbers and bool only"):
        ad.fromstring("a b", "U1", sep=" ")
    for options in ({}, {"dtype": "int16"}, {"offset": 8}, {"count": 1}, {"count": 9}, {"offset": 3}):
        check(lambda xp: xp.frombuffer(bytes(range(32)), **options), exact=True)


def test_progress(tmp_path, monkeypatch):
    """A bar for more than a GiB, with the bytes of every part, closed also when the transfer fails."""
    seen = []

    class Bar:
        def __init__(self, total, desc, **options):
            seen.append([desc, total, 0])

        def update(self, size):
            seen[-1][2] += size

        def close(self):
            seen[-1].append("closed")

    monkeypatch.setattr(progress, "_tqdm", lambda: Bar)
    monkeypatch.setattr(progress, "LEAST", 999)
    monkeypatch.setattr(arrays_in_files, "CHUNK", 300)
    a = ad.arange(125)
    path = tmp_path / "a.npy"
    ad.save(path, a)
    ad.load(path)
    ad.fromfile(path, "int64", 125)
    ad.savetxt(tmp_path / "text", a)
    ad.save(tmp_path / "b.npy", a[:100])
    assert seen == [["from the server", 1000, 1000, "closed"], ["to the server", 1000, 1000, "closed"],
                    ["to the server", 1000, 1000, "closed"], ["from the server", 1000, 1000, "closed"]]
    with pytest.raises(IndexError):
        ad.save(path, ad.arange(200).take(ad.full(200, 999)))
    assert seen[-1] == ["from the server", 1600, 0, "closed"]
