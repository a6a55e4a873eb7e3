"""Marks and ranges of this process for profilers, by NVIDIA's package nvtx where it is installed."""
import functools

__all__ = ["Mark", "MarkC", "RangePop", "RangePush", "RangePushC"]
# Colours by number, as ARGB; a number below 0 stands for the profiler's own.
_PALETTE = (0xff76b900, 0xff1f77b4, 0xffff7f0e, 0xffd62728, 0xff9467bd, 0xff17becf, 0xffbcbd22)


@functools.lru_cache(None)
def _profiler():
    """The package nvtx, or None where there is none: marks and ranges are dropped then."""
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx


def _send(function, message, argb):
    package = _profiler()
    if package is not None:
        getattr(package, function)(message, color=argb)


def _of_number(number):
    return None if number < 0 else _PALETTE[number % len(_PALETTE)]


def Mark(message, id_color=-1):
    """Mark this moment.

    Parameters: message: str. id_color: number of a colour, -1: none.
    Returns: None.
    Source: cupy.cuda.nvtx.Mark
    """
    _send("mark", message, _of_number(id_color))


def MarkC(message, color=0):
    """Mark this moment in a colour.

    Parameters: message: str. color: ARGB as an int.
    Returns: None.
    Source: cupy.cuda.nvtx.MarkC
    """
    _send("mark", message, color)


def RangePush(message, id_color=-1):
    """Begin a range, within those that this thread has begun before.

    Parameters: message: str. id_color: number of a colour, -1: none.
    Returns: None.
    Source: cupy.cuda.nvtx.RangePush
    """
    _send("push_range", message, _of_number(id_color))


def RangePushC(message, color=0):
    """Begin a range in a colour.

    Parameters: message: str. color: ARGB as an int.
    Returns: None.
    Source: cupy.cuda.nvtx.RangePushC
    """
    _send("push_range", message, color)


def RangePop():
    """End the range that this thread has begun last.

    Returns: None.
    Source: cupy.cuda.nvtx.RangePop
    """
    package = _profiler()
    if package is not None:
        package.pop_range()
