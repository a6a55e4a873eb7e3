"""Arrays in files, in NumPy's formats. Large ones go part by part, so that this process never holds them whole."""
import collections.abc
import contextlib
import io
import os
import stat
import tokenize
import zipfile

import numpy as np
from numpy.lib import format as npy

from .. import _base, _core
from .._array import creation
from .._array.structured import check_dtype, find_dtype
from . import progress
from .._base import ndarray

CHUNK = 64 << 20  # bytes that this process holds of a file or an array at a time
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


# ---- files ----

@contextlib.contextmanager
def opened(file, mode, suffix=""):
    """An open file: file itself when it is one, else the one at that path, closed in the end. Its errors name it."""
    if hasattr(file, "read" if mode == "rb" else "write"):
        yield file
        return
    path = os.fspath(file)
    path += "" if path.endswith(suffix) else suffix
    try:
        with open(path, mode) as stream:
            yield stream
    except OSError as error:
        if error.errno is not None and error.filename is None:  # as of a failed write
            error.filename = path
        raise


def _write(file, data):
    """All of data, also where the file takes less at a time."""
    while len(data):
        taken = file.write(data)
        data = data[len(data) if taken is None else taken:]


def _fill(file, data):
    """Bytes read from the file into data: fewer than its length only where the file ends."""
    done = 0
    while done < len(data):
        if hasattr(file, "readinto"):
            got = file.readinto(data[done:])
        else:
            read = file.read(len(data) - done)
            got = len(read)
            data[done:done + got] = read
        if not got:
            break
        done += got
    return done


def _bytes_left(file):
    """How many bytes follow in a file, or None where that is not known."""
    if isinstance(file, zipfile.ZipExtFile):
        return None
    if isinstance(file, io.BytesIO):
        return file.getbuffer().nbytes - file.tell()
    raw = getattr(file, "raw", file)
    if isinstance(raw, io.FileIO):
        status = os.fstat(raw.fileno())
        if stat.S_ISREG(status.st_mode):
            return status.st_size - file.tell()
    return None


# ---- parts ----

def blocks(a):
    """Views of an array, of at most CHUNK bytes where rows allow it, that make up its elements in row-major order."""
    if a.flags.c_contiguous:
        a = a.reshape(-1)
    axis, row = 0, a.nbytes // a.shape[0] if a.size and a.ndim else 0
    while row > CHUNK and axis < a.ndim - 1:
        axis += 1
        row //= a.shape[axis]
    step = max(1, CHUNK // max(1, row))
    for index in np.ndindex(a.shape[:axis]):
        part = a[index]
        for start in range(0, part.shape[0] if part.ndim else 1, step):
            yield part[start:start + step] if part.ndim else part


def _raw(host):
    """The bytes of a row-major NumPy array of any type."""
    return memoryview(host.reshape(-1).view(np.uint8))


def _write_elements(file, a):
    with progress.steps(a.nbytes, False) as step:
        for block in blocks(a):
            _write(file, _raw(block.get()))
            step(block.nbytes)


def _read_parts(file, dtype, count):
    """NumPy arrays of the elements that follow in a file, count or (-1) all; the memory of one is that of the next."""
    most = max(1, CHUNK // dtype.itemsize)
    buffer = np.empty(most if count < 0 else min(count, most), dtype)
    done = 0
    while done != count:
        part = buffer if count < 0 else buffer[:count - done]
        got = _fill(file, _raw(part)) // dtype.itemsize
        if got:
            yield part[:got]
        done += got
        if got < len(part):
            return


def _read_elements(file, dtype, count):
    """A 1-d array of count elements, or of the fewer that follow. It is made when the first part has been read, so that
    a file that only claims to be large takes no memory."""
    result, done = None, 0
    with progress.steps(count * dtype.itemsize, True) as step:
        for part in _read_parts(file, dtype, count):
            if result is None:
                result = _base.zeros((count,), dtype.newbyteorder("="))
            result[done:done + len(part)].set(part)
            done += len(part)
            step(part.nbytes)
    if result is None:
        return _base.zeros((0,), dtype.newbyteorder("="))
    return result if done == count else result[:done].copy()


def read_text(read, dtype):
    """Return what a reader of NumPy's makes of text, given the type; of bfloat16, which they do not know, as float64
    before."""
    dtype = known_type(dtype)
    if dtype.name == "bfloat16":
        return read(np.dtype(float)).astype(dtype)
    return read(dtype)


def known_type(dtype, what="dtype"):
    """dtype as numpy.dtype, of any byte order; TypeError when arrayd has no such type."""
    dtype = np.dtype(dtype)
    try:
        _core.as_dtype(dtype.newbyteorder("=")) if find_dtype(dtype) is None else check_dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: arrayd has no {dtype!r}: numbers and bool only, and structures of them") from None
    return dtype


# ---- .npy ----

def _read_header(file, max_header_size):
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"Invalid version {version!r} of the .npy format")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        shape, fortran, dtype = read(file, max_header_size=max_header_size)
    except tokenize.TokenError as error:
        raise ValueError(f"the header of a .npy file is no dictionary: {error}") from None
    if any(n < 0 for n in shape):
        raise ValueError(f"shape {shape} in the header of a .npy file")
    # NumPy writes this for the type of ml_dtypes; arrayd has no other type of that name.
    return shape, fortran, _core.as_dtype("bfloat16") if dtype == np.dtype("V2") else known_type(dtype, "file")


def _read_npy(file, max_header_size, left=None):
    shape, fortran, dtype = _read_header(file, max_header_size)
    count = _base.product(shape)
    left = _bytes_left(file) if left is None else left - file.tell()
    if left is None or left >= count * dtype.itemsize:
        flat = _read_elements(file, dtype, count)
        left = flat.nbytes
    if left < count * dtype.itemsize:
        raise ValueError(f"the file ends after {left // dtype.itemsize} of {count} elements: it was not fully written?")
    return flat.reshape(shape[::-1]).transpose() if fortran else flat.reshape(shape)


def load(file, mmap_mode=None, allow_pickle=False, fix_imports=True, encoding="ASCII", *, max_header_size=10000):
    """An array from a .npy file, or the arrays of an .npz file.

    Parameters: file: path, or file open for reading bytes that can seek. mmap_mode: None, 'r', 'r+' or 'c'; all the
    same, as a file is read and sent in parts of 64 MiB anyway. allow_pickle, fix_imports, encoding: for files of
    pickles, as numpy.load. max_header_size: most characters of a header, unless allow_pickle.
    Returns: ndarray; NpzFile for .npz; what was pickled. Elements of void type of two bytes, as which NumPy saves
    bfloat16, are bfloat16.
    Raises: OSError when it cannot be read; EOFError when it is empty; ValueError when it is in no such format or ends
    too soon; TypeError for a type that arrayd does not have.
    Differs: mmap_mode maps nothing; there are no object, string or date arrays.
    Source: numpy.load
    """
    if mmap_mode not in (None, "r", "r+", "c"):
        raise ValueError(f"mmap_mode must be None, 'r', 'r+' or 'c', not {mmap_mode!r}")
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(opened(file, "rb"))
        magic = stream.read(len(npy.MAGIC_PREFIX))
        if not magic:
            raise EOFError(f"No data left in file {getattr(stream, 'name', stream)!r}")
        stream.seek(-len(magic), os.SEEK_CUR)
        if magic == npy.MAGIC_PREFIX:
            return _read_npy(stream, 2**64 if allow_pickle else max_header_size)
        result = np.load(stream if stream is file else file, None, allow_pickle, fix_imports, encoding,
                         max_header_size=max_header_size)
    return NpzFile(result) if magic.startswith(_ZIP) else result


def _on_server(value):
    """Whether value is an array of the server, or a list of such: then also that as one array."""
    if isinstance(value, (list, tuple)) and creation._holds_arrays(value):
        value = _base.as_array(value)
    return isinstance(value, ndarray), value


def _write_npy(file, value, allow_pickle):
    there, value = _on_server(value)
    if not there:
        npy.write_array(file, np.asanyarray(value), allow_pickle=allow_pickle)
        return
    fortran = value.flags.f_contiguous and not value.flags.c_contiguous
    npy.write_array_header_1_0(file, {"descr": npy.dtype_to_descr(value.dtype), "fortran_order": fortran,
                                      "shape": value.shape})
    _write_elements(file, value.T if fortran else value)


def save(file, arr, allow_pickle=True):
    """Write an array to a .npy file, in parts of 64 MiB.

    Parameters: file: path, to which .npy is added unless it ends so, or file open for writing bytes. arr: array, of
    arrayd's or NumPy's, or anything that is made one. allow_pickle: whether NumPy's arrays of objects may be written.
    Returns: None.
    Raises: OSError when it cannot be written, and what was written stays; the error of the operation that failed to
    compute arr.
    Source: numpy.save
    """
    with opened(file, "wb", ".npy") as stream:
        _write_npy(stream, arr, allow_pickle)


# ---- .npz ----

class _Names:
    """The items of an NpzFile as attributes."""

    def __init__(self, npz):
        self._npz = npz

    def __getattr__(self, name):
        try:
            return self._npz[name]
        except KeyError as error:
            raise AttributeError(*error.args) from None

    def __dir__(self):
        return list(self._npz)


class NpzFile(collections.abc.Mapping):
    """The arrays of an .npz file by name, each read when it is asked for; of load().

    `files` are the names, `f` has them as attributes, `zip` is the zipfile.ZipFile, and `close()` or the end of `with`
    closes it.
    """

    def __init__(self, npz):
        self._npz = npz
        self.files, self.zip, self.f = npz.files, npz.zip, _Names(self)

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()

    def __iter__(self):
        return iter(self.files)

    def __len__(self):
        return len(self.files)

    def __contains__(self, key):
        return key in self._npz

    def __getitem__(self, key):
        for name in (f"{key}.npy", key):
            if name in self.zip.namelist():
                return self._read(self.zip.getinfo(name))
        raise KeyError(f"{key} is not a file in the archive")

    def _read(self, info):
        with self.zip.open(info) as stream:
            magic = stream.read(len(npy.MAGIC_PREFIX))
            if magic != npy.MAGIC_PREFIX:
                return magic + stream.read()
            stream.seek(0)
            return _read_npy(stream, self._npz.max_header_size, info.file_size)

    def __repr__(self):
        return repr(self._npz)

    def close(self):
        """Close the file.

        Returns: None.
        Source: numpy.lib.npyio.NpzFile.close
        """
        self._npz.close()


def _savez(file, compression, allow_pickle, args, kwds):
    named = {f"arr_{i}": value for i, value in enumerate(args)}
    for key in named.keys() & kwds.keys():
        raise ValueError(f"Cannot use un-named variables and keyword {key}")
    with opened(file, "wb", ".npz") as stream, zipfile.ZipFile(stream, "w", compression) as archive:
        for name, value in {**kwds, **named}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_npy(member, value, allow_pickle)


def savez(file, *args, allow_pickle=True, **kwds):
    """Write several arrays to an .npz file, which is not compressed, in parts of 64 MiB.

    Parameters: file: path, to which .npz is added unless it ends so, or file open for writing bytes. args: arrays,
    named arr_0, arr_1 and so on. allow_pickle: as save. kwds: arrays by name.
    Returns: None.
    Raises: ValueError for a name that is used twice; as save.
    Source: numpy.savez
    """
    _savez(file, zipfile.ZIP_STORED, allow_pickle, args, kwds)


def savez_compressed(file, *args, allow_pickle=True, **kwds):
    """Write several arrays to a compressed .npz file.

    Parameters: file, args, allow_pickle, kwds: as savez.
    Returns: None.
    Raises: as savez.
    Source: numpy.savez_compressed
    """
    _savez(file, zipfile.ZIP_DEFLATED, allow_pickle, args, kwds)


# ---- elements alone ----

def fromfile(file, dtype=float, count=-1, sep="", offset=0, *, like=None):
    """A 1-d array from a file of nothing but elements, as bytes or (sep) as text.

    Parameters: file: path, or file open for reading bytes, which is read from where it stands. dtype: type of the
    elements, of any byte order. count: how many, -1 for all. sep: what stands between elements that are text; empty for
    bytes. offset: bytes to pass over first, not with text. like: ignored.
    Returns: ndarray of shape (n,); n is less than count where the file ends before.
    Raises: OSError when it cannot be read; TypeError for a type that arrayd does not have, and for an offset with text;
    ValueError for text that is no number.
    Source: numpy.fromfile
    """
    if sep:
        return _base.as_array(read_text(lambda read_as: np.fromfile(file, read_as, count, sep, offset), dtype))
    dtype = known_type(dtype)
    with opened(file, "rb") as stream:
        if offset:
            stream.seek(offset, os.SEEK_CUR)
        left = _bytes_left(stream)
        if left is not None:
            if left < 0:
                raise ValueError(f"offset {offset} is {-left} bytes past the end of the file")
            left //= dtype.itemsize
            return _read_elements(stream, dtype, left if count < 0 else min(count, left))
        if count >= 0:
            return _read_elements(stream, dtype, count)
        parts = [_base.as_array(part) for part in _read_parts(stream, dtype, -1)]
    from .._array.joining import concatenate
    return concatenate(parts) if parts else _base.zeros((0,), dtype.newbyteorder("="))


def tofile(a, file, sep="", format="%s"):
    """Write the elements of an array in row-major order, and nothing else, as bytes or (sep) as text, in parts of 64
    MiB.

    Parameters: a: array. file: path, or file open for writing bytes. sep: what stands between elements as text; empty
    for bytes. format: of an element as text.
    Returns: None.
    Raises: OSError when it cannot be written; the error of the operation that failed to compute a.
    Source: numpy.ndarray.tofile
    """
    with opened(file, "wb") as stream:
        if not sep:
            _write_elements(stream, a)
            return
        between = ""
        for block in blocks(a):
            if block.size:
                text = sep.join((format or "%s") % (element,) for element in block.get().ravel().tolist())
                _write(stream, (between + text).encode())
                between = sep
