"""Arrays as text, by NumPy's readers and writers. Large ones go part by part where NumPy can do that."""
import os
import warnings

import numpy as np
from numpy.lib.npyio import DataSource

from .. import _base
from . import files, progress

_FIRST = 4096  # rows that are read before it is known how many make a part


def _by_path(fname, mode, encoding):
    """A file that NumPy opens by its ending (.gz, .bz2, .xz), or None for what is no path."""
    if not isinstance(fname, (str, os.PathLike)):
        return None
    path = os.fspath(fname)
    if "w" in mode:
        open(path, "w").close()  # DataSource opens only what is there
    return DataSource(None).open(path, mode, encoding=encoding)


def _sent(host):
    """Return what NumPy read, on the server: an array, or a list of columns."""
    if isinstance(host, np.ma.MaskedArray):
        raise TypeError("arrayd has no masked arrays: usemask must be False")
    if isinstance(host, list):
        return [_base.as_array(column) for column in host]
    files.known_type(host.dtype, "columns of several types")
    return _base.as_array(host)


def _rows(fname, kind, options, skiprows, max_rows):
    """NumPy arrays of the rows of a text, each of at least 2 dimensions; the text ends with the last."""
    most, left = _FIRST, max_rows
    while True:
        wanted = most if left is None else min(most, left)
        part = files.read_text(lambda read_as: np.loadtxt(fname, read_as, skiprows=skiprows, max_rows=wanted, ndmin=2,
                                                      **options), kind)
        yield part
        left = left if left is None else left - len(part)
        if len(part) < wanted or left == 0:
            return
        skiprows, most = 0, max(_FIRST, files.CHUNK // max(1, part.nbytes // len(part)))


def _load_parts(fname, dtype, options, skiprows, max_rows):
    parts = []
    with warnings.catch_warnings():
        for part in _rows(fname, dtype, options, skiprows, max_rows):
            if parts and len(part) == 0:
                break
            if parts and part.shape[1] != parts[0].shape[1]:
                raise ValueError(f"the number of columns changed from {parts[0].shape[1]} to {part.shape[1]}")
            parts.append(_base.as_array(part))
            # The next part may be empty, which is no news then.
            warnings.filterwarnings("ignore", "loadtxt: input contained no data", UserWarning)
    if len(parts) == 1:
        return parts[0]
    from .._array.joining import concatenate
    return concatenate(parts)


def loadtxt(fname, dtype=float, comments="#", delimiter=None, converters=None, skiprows=0, usecols=None, unpack=False,
            ndmin=0, encoding=None, max_rows=None, *, quotechar=None, like=None):
    """An array from text with the same number of columns in each row, read by NumPy in parts.

    Parameters: fname: path (.gz, .bz2 and .xz are unpacked), open file, or iterable of lines. dtype, comments,
    delimiter, converters, skiprows, usecols, ndmin, encoding, max_rows, quotechar: as numpy.loadtxt. unpack: whether to
    transpose, so that columns can be assigned to several names. like: ignored.
    Returns: ndarray of shape (rows, columns), without dimensions of 1 as far as ndmin allows.
    Raises: OSError when it cannot be read; ValueError for rows of another length, and for text that is no number;
    TypeError for a type that arrayd does not have.
    Source: numpy.loadtxt
    """
    if ndmin not in (0, 1, 2):
        raise ValueError(f"Illegal value of ndmin keyword: {ndmin}")
    options = {"comments": comments, "delimiter": delimiter, "converters": converters, "usecols": usecols,
               "encoding": encoding, "quotechar": quotechar}
    stream = _by_path(fname, "rt", encoding)
    if stream is not None:
        with stream:
            result = _load_parts(stream, dtype, options, skiprows, max_rows)
    else:
        result = _load_parts(fname if hasattr(fname, "read") else iter(fname), dtype, options, skiprows, max_rows)
    return _shaped(result, ndmin, unpack)


def _shaped(a, ndmin, unpack):
    """An array of rows without dimensions of 1, but of ndmin dimensions."""
    if ndmin < 2:
        a = a.squeeze()
    if a.ndim < ndmin:
        a = a.reshape(-1)
    return a.T if unpack else a


def savetxt(fname, X, fmt="%.18e", delimiter=" ", newline="\n", header="", footer="", comments="# ", encoding=None):
    """Write an array of one or two dimensions as text, one row a line, by NumPy and in parts of 64 MiB.

    Parameters: fname: path (.gz, .bz2 and .xz are compressed) or open file. X: array. fmt: of an element, of each
    column or of the row. delimiter: between columns. newline: between rows. header, footer: text before and after.
    comments: what begins the lines of these. encoding: of the file.
    Returns: None.
    Raises: ValueError for another number of dimensions or a fmt that does not fit; OSError when it cannot be written.
    Source: numpy.savetxt
    """
    X = _base.as_array(X)
    if X.ndim not in (1, 2):
        raise ValueError(f"Expected 1D or 2D array, got {X.ndim}D array instead")
    stream = _by_path(fname, "wt", encoding or "latin1")
    try:
        _save_parts(fname if stream is None else stream, X, header, footer, fmt=fmt, delimiter=delimiter,
                    newline=newline, comments=comments, encoding=encoding)
    finally:
        if stream is not None:
            stream.close()


def _save_parts(stream, X, header, footer, **options):
    step = max(1, files.CHUNK // max(1, X.nbytes // max(1, len(X))))
    with progress.steps(X.nbytes, False) as done:
        for start in range(0, max(1, len(X)), step):
            part = X[start:start + step]
            np.savetxt(stream, part.get(), header=header, footer=footer if start + step >= len(X) else "", **options)
            done(part.nbytes)
            header = ""


def genfromtxt(fname, dtype=float, comments="#", delimiter=None, skip_header=0, skip_footer=0, converters=None,
               missing_values=None, filling_values=None, usecols=None, names=None, excludelist=None,
               deletechars=" !#$%&'()*+,-./:;<=>?@[\\]^{|}~", replace_space="_", autostrip=False, case_sensitive=True,
               defaultfmt="f%i", unpack=None, usemask=False, loose=True, invalid_raise=True, max_rows=None,
               encoding=None, *, ndmin=0, like=None):
    """An array from text in which values may be missing, read by NumPy, whole, and sent.

    Parameters: fname and all others: as numpy.genfromtxt. like: ignored.
    Returns: ndarray, of structures where columns have names or several types; with unpack a list of ndarrays.
    Raises: TypeError where the result would be masked, or columns are text; as numpy.genfromtxt.
    Differs: there are no masked arrays.
    Source: numpy.genfromtxt
    """
    host = np.genfromtxt(fname, dtype, comments, delimiter, skip_header, skip_footer, converters, missing_values,
                         filling_values, usecols, names, excludelist, deletechars, replace_space, autostrip,
                         case_sensitive, defaultfmt, unpack, usemask, loose, invalid_raise, max_rows, encoding,
                         ndmin=ndmin)
    return _sent(host)


def fromstring(string, dtype=float, count=-1, *, sep, like=None):
    """A 1-d array from numbers in a string, read by NumPy.

    Parameters: string: str. dtype: type of the elements. count: how many, -1 for all. sep: what stands between them,
    not empty. like: ignored.
    Returns: ndarray of shape (n,).
    Raises: ValueError for text that is no number, for too few of them, and for an empty sep; TypeError for a type that
    arrayd does not have.
    Source: numpy.fromstring
    """
    return _base.as_array(files.read_text(lambda read_as: np.fromstring(string, read_as, count, sep=sep), dtype))
