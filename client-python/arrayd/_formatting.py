"""Text for arrays: NumPy's, made from as few elements as will be shown."""
import numpy as np

from ._base import ndarray
from ._indexing import ix_


def _shown(a):
    """The elements that NumPy would show, as a NumPy array, and whether some were left out.

    Of a large array only the edges are fetched, with one more element along each long axis: NumPy, told to summarise
    it, writes dots for that one just as it would for the whole array.
    """
    options = np.get_printoptions()
    edge = options["edgeitems"]
    if a.size <= options["threshold"]:
        return a.get(), False
    lines = [np.r_[0:edge + 1, n - edge:n] if n > 2 * edge else np.arange(n) for n in a.shape]
    if all(len(line) == n for line, n in zip(lines, a.shape)):
        return a.get(), True
    return a[ix_(*lines)].get(), True


def _body(a, max_line_width, precision, suppress_small, prefix, suffix, separator):
    host, summarised = _shown(a)
    return np.array2string(host, max_line_width, precision, suppress_small, separator, prefix, suffix=suffix,
                           threshold=0 if summarised else None), summarised


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """The text that repr gives: array(...), with the type where the elements do not tell it.

    Parameters: arr: array. max_line_width: characters in a line. precision: digits. suppress_small: show tiny numbers
    as 0. What is not given is as set by set_printoptions.
    Returns: str. Fetches the elements that are shown.
    Raises: the error of the operation that failed to compute arr.
    Source: numpy.array_repr
    """
    if not isinstance(arr, ndarray):
        return np.array_repr(arr, max_line_width, precision, suppress_small)
    width = max_line_width or np.get_printoptions()["linewidth"]
    body, summarised = _body(arr, max_line_width, precision, suppress_small, "array(", ")", ", ")
    extras = []
    if summarised or arr.size == 0 and arr.shape != (0,):
        extras.append(f"shape={arr.shape}")
    kind = _type_text(arr.dtype)
    if kind or arr.size == 0:
        extras.append(kind or f"dtype={arr.dtype.name}")
    text = f"array({body}"
    if not extras:
        return text + ")"
    tail = ", ".join(extras) + ")"
    room = width - len(text.rpartition("\n")[2]) - len(tail) - 2
    return f"{text},{' ' if room >= 0 else chr(10) + ' ' * len('array(')}{tail}"


def _type_text(dtype):
    """What NumPy writes about a type that the elements do not tell: "dtype=float32", or nothing."""
    _, found, name = np.array_repr(np.zeros(1, dtype)).partition("dtype=")
    return found + name.rstrip(")")


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """The text that str gives: the elements in brackets.

    Parameters: as array_repr.
    Returns: str. Fetches the elements that are shown.
    Raises: the error of the operation that failed to compute a.
    Source: numpy.array_str
    """
    if not isinstance(a, ndarray):
        return np.array_str(a, max_line_width, precision, suppress_small)
    if a.ndim == 0:
        return str(a.get()[()])
    return _body(a, max_line_width, precision, suppress_small, "", "", " ")[0]


def array2string(a, max_line_width=None, precision=None, suppress_small=None, separator=" ", prefix="", **options):
    """The elements as text.

    Parameters: a: array. The rest as numpy.array2string.
    Returns: str. Fetches the elements.
    Raises: the error of the operation that failed to compute a.
    Source: numpy.array2string
    """
    host = a.get() if isinstance(a, ndarray) else a
    return np.array2string(host, max_line_width, precision, suppress_small, separator, prefix, **options)


def array_format(a, spec):
    """format(a, spec): of a 0-d array as of its number, else only without a specification, as in NumPy."""
    if a.ndim == 0:
        return format(a.item(), spec)
    if spec:
        raise TypeError("unsupported format string passed to arrayd.ndarray.__format__")
    return array_str(a)


get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions
format_float_positional = np.format_float_positional
format_float_scientific = np.format_float_scientific
