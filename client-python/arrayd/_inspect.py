"""Words about arrays for people: who there is, and where elements lie."""
import sys

from . import _core
from ._interop.addresses import address_of, extent


def byte_bounds(a):
    """The addresses, in this process, between which an array's elements lie; waits for the server.

    Parameters: a: array of the server.
    Returns: (address of the first byte, address behind the last byte).
    Raises: TypeError when a is no array of the server; NotImplementedError where this process cannot have its memory.
    Source: cupy.byte_bounds
    """
    if not isinstance(a, _core.ndarray):
        raise TypeError(f"a must be an arrayd.ndarray, not {type(a).__name__}")
    (low, high), first = extent(a), address_of(a)
    return first + low, first + high


def who(vardict=None):
    """Print the arrays of a dict with their shapes, bytes and types, and what they take together.

    Parameters: vardict: dict of any objects by name; the globals of the caller unless given.
    Returns: None.
    Raises: TypeError for what is no dict.
    Source: cupy.who
    """
    if vardict is None:
        vardict = sys._getframe(1).f_globals
    arrays = {name: a for name, a in vardict.items() if isinstance(a, _core.ndarray)}
    buffers, rows = {}, []
    for name, a in arrays.items():
        first = buffers.setdefault((id(a.base) if a.base is not None else id(a)), name)
        rows.append((name, " x ".join(map(str, a.shape)), str(a.nbytes) + ("" if first == name else f" ({first}'s)"),
                     a.dtype.name))
    if rows:
        head = ("Name", "Shape", "Bytes", "Type")
        widths = [max(map(len, column)) + 3 for column in zip(head, *rows)]
        lines = ["".join(f"{word:<{width}}" for word, width in zip(row, widths)).rstrip() for row in (head, *rows)]
        print("\n".join([lines[0], "=" * sum(widths), "", *lines[1:]]))
    total = sum(a.nbytes for name, a in arrays.items() if name in buffers.values())
    print(f"\nUpper bound on total bytes  =       {total}")


def disp(mesg, device=None, linefeed=True):
    """Write something as text.

    Parameters: mesg: what is written as str() has it. device: object with a write method, standard output unless given.
    linefeed: whether the line ends there.
    Returns: None.
    Raises: what the write method raises.
    Source: cupy.disp
    """
    stream = sys.stdout if device is None else device
    stream.write(f"{mesg}\n" if linefeed else f"{mesg}")
    if hasattr(stream, "flush"):
        stream.flush()
