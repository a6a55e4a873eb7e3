"""Text for arrays: NumPy's, made from as few elements as will be shown."""
import functools

import numpy as np

from .. import _core
from .._base import ndarray
from .indexing import ix_


def _shown(a, threshold=None, edgeitems=None):
    """The elements that NumPy would show, as a NumPy array, and whether some were left out.

    Of a large array only the edges are fetched, with one more element along each long axis: NumPy, told to summarise
    it, writes dots for that one just as it would for the whole array.
    """
    options = np.get_printoptions()
    edge = options["edgeitems"] if edgeitems is None else edgeitems
    if a.size <= (options["threshold"] if threshold is None else threshold):
        return a.get(), False
    lines = [np.r_[0:edge + 1, n - edge:n] if n > 2 * edge else np.arange(n) for n in a.shape]
    if all(len(line) == n for line, n in zip(lines, a.shape)):
        return a.get(), True
    return a[ix_(*lines)].get(), True


def _written(write, host, summarised, *options):
    """write(host, *options), as a part of a larger array when it is one."""
    if not summarised:
        return write(host, *options)
    # A formatter that is not given again is forgotten.
    with np.printoptions(threshold=0, formatter=np.get_printoptions()["formatter"]):
        return write(host, *options)


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """The text that repr gives: array(...), with the type where the elements do not tell it.

    Parameters: arr: array. max_line_width: characters in a line. precision: digits. suppress_small: show tiny numbers
    as 0. Options that are not given are as set by set_printoptions.
    Returns: str. Fetches the elements that are shown.
    Raises: the error of the operation that failed to compute arr.
    Source: numpy.array_repr
    """
    if not isinstance(arr, ndarray):
        return np.array_repr(arr, max_line_width, precision, suppress_small)
    override = np.get_printoptions().get("override_repr")
    if override is not None:
        return override(arr)
    host, summarised = _shown(arr)
    text = _written(np.array_repr, host, summarised, max_line_width, precision, suppress_small)
    # NumPy's versions up to 2.1 do not write the shape.
    return _reshaped(text, host.shape, arr.shape, max_line_width) if "shape=" in text else text


FAILURES = (_core.ArraydError, ArithmeticError, LookupError, MemoryError, NotImplementedError, OSError, TypeError,
            ValueError)


def shown_repr(self):
    """The text that an interpreter shows for an array: array_repr's, or what failed in its place, as a traceback would
    only show how arrays are written.

    Returns: str. Fetches the elements that are shown.
    Source: numpy.ndarray.__repr__
    """
    try:
        return array_repr(self)
    except FAILURES as error:
        return f"<arrayd.ndarray {self.shape}, {self.dtype}: {type(error).__name__}: {error}>"


def _raising_alone(write):
    """A function that writes an array, whose errors have no traceback of how arrays are written. IPython leaves out this
    frame as well."""
    @functools.wraps(write)
    def write_or_raise(*arguments):
        __tracebackhide__ = True  # noqa: F841
        try:
            return write(*arguments)
        except FAILURES as error:
            raise error.with_traceback(None)
    return write_or_raise


def _reshaped(text, part, shape, max_line_width):
    """array_repr's text of a part, with the shape of the whole, in a line of its own if it does not fit."""
    body, _, rest = text.rpartition(f"shape={part}")
    body, tail = body.rstrip(), f"shape={shape}{rest}"
    width = np.get_printoptions()["linewidth"] if max_line_width is None else max_line_width
    fits = len(body.rpartition("\n")[2]) + 1 + len(tail) <= width
    return f"{body}{' ' if fits else chr(10) + ' ' * len('array(')}{tail}"


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """The text that str gives: the elements in brackets.

    Parameters: as array_repr.
    Returns: str. Fetches the elements that are shown.
    Raises: the error of the operation that failed to compute a.
    Source: numpy.array_str
    """
    if not isinstance(a, ndarray):
        return np.array_str(a, max_line_width, precision, suppress_small)
    return _written(np.array_str, *_shown(a), max_line_width, precision, suppress_small)


def array2string(a, max_line_width=None, precision=None, suppress_small=None, separator=" ", prefix="", *,
                 threshold=None, edgeitems=None, **options):
    """The elements as text.

    Parameters: a: array. threshold: the number of elements from which on only edges are shown. edgeitems: how many at
    each edge. The rest as numpy.array2string; what is not given is as set by set_printoptions.
    Returns: str. Fetches the elements that are shown.
    Raises: the error of the operation that failed to compute a.
    Source: numpy.array2string
    """
    if isinstance(a, ndarray):
        a, summarised = _shown(a, threshold, edgeitems)
        threshold = 0 if summarised else threshold
    return np.array2string(a, max_line_width, precision, suppress_small, separator, prefix, threshold=threshold,
                           edgeitems=edgeitems, **options)


def array_format(a, spec):
    """format(a, spec): of a 0-d array as of its number, else only without a specification, as in NumPy."""
    if a.ndim == 0:
        return format(a.get()[()], spec)
    if spec:
        raise TypeError("unsupported format string passed to arrayd.ndarray.__format__")
    return array_str(a)


shown_str = _raising_alone(array_str)
shown_format = _raising_alone(array_format)
get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions
format_float_positional = np.format_float_positional
format_float_scientific = np.format_float_scientific
