"""The choice of what to do about errors: arrayd raises those of linear algebra, always, and reports none of floating
point."""
import contextlib

_STATE = {"divide": None, "over": None, "under": None, "invalid": None, "linalg": "raise", "fallback_mode": "ignore"}
_WHY = {"linalg": "a decomposition that failed has no result; its error comes with the data, without a round trip",
        "fallback_mode": "arrayd does not fall back to NumPy"}
_WHY_NOT = "arrayd reports no errors of floating point"


def geterr():
    """How errors are handled.

    Returns: dict: linalg is 'raise', fallback_mode 'ignore', and divide, over, under and invalid None.
    Source: cupyx.geterr
    """
    return dict(_STATE)


def seterr(*, divide=None, over=None, under=None, invalid=None, linalg=None, fallback_mode=None):
    """Set how errors are handled, which can be only what it is.

    Parameters: linalg: 'raise'; CuPy's default, 'ignore', cannot be had: arrayd gives no meaningless result, and what
    makes 'raise' slow in CuPy, waiting for the device, it does not do. fallback_mode: 'ignore'. The others: None.
    Returns: what geterr gives.
    Raises: NotImplementedError for anything else; ValueError for a word that CuPy does not have either.
    Source: cupyx.seterr
    """
    if linalg not in (None, "ignore", "raise"):
        raise ValueError(f"linalg must be 'ignore' or 'raise', not {linalg!r}")
    if fallback_mode not in (None, "print", "warn", "ignore", "raise", "log", "call"):
        raise ValueError(f"{fallback_mode} is not a valid dispatch type")
    given = {"divide": divide, "over": over, "under": under, "invalid": invalid, "linalg": linalg,
             "fallback_mode": fallback_mode}
    for name, value in given.items():
        if value is not None and value != _STATE[name]:
            raise NotImplementedError(f"{name}={value!r}: {_WHY.get(name, _WHY_NOT)}")
    return geterr()


@contextlib.contextmanager
def errstate(*, divide=None, over=None, under=None, invalid=None, linalg=None, fallback_mode=None):
    """seterr for a with statement. Where it names linalg, functions of arrayd.linalg wait for their results in it, and
    raise LinAlgError themselves; otherwise the error comes with the data.

    Parameters, Raises: as seterr.
    Returns: context manager.
    Source: cupyx.errstate
    """
    seterr(divide=divide, over=over, under=under, invalid=invalid, linalg=linalg, fallback_mode=fallback_mode)
    if linalg is None:
        yield
        return
    from ..linalg._decompositions import wait_for_errors
    before = wait_for_errors(True)
    try:
        yield
    finally:
        wait_for_errors(before)
