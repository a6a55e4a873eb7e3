"""Arrays for other processes: handles in pickles, names that outlive a session."""
import collections
import contextvars
import math
import operator
import os
import sys

import numpy as np

from .. import _core
from .._base import as_array, ndarray, units_of

SMALL = 32 << 10  # bytes up to which an array is pickled by value: that is one round trip instead of two
FETCHED = 64 << 20  # bytes from which Dask and groups have another server fetch: smaller arrays are there sooner by value
_LINGER = 60.0  # seconds that what was handed over waits for its receiver after the sender has gone

_making = contextvars.ContextVar("arrayd handles", default=None)

Published = collections.namedtuple("Published", "name principal writable dtype nbytes shape")


class Handle:
    """A permission to attach an array in another process of the same user, as share() makes it. It can be pickled, and
    is a few bytes wherever the array is. A process that uses another server may attach it, too, if that server has the
    array's one among its peers: it fetches the elements.

    Attributes: url: of the server, as the maker reaches it. origin: the server's name among its peers and whose array it
    is there, for other servers; None where the server has no name. key, layout, structure: which array, and how its
    elements lie.
    Source: arrayd
    """

    def __init__(self, url, key, layout, structure=None, origin=None):
        self.url, self.key, self.layout, self.structure, self.origin = url, key, layout, structure, origin

    def __reduce__(self):
        return Handle, (self.url, self.key, self.layout, self.structure, self.origin)

    def __repr__(self):
        dtype, _, shape, _ = self.layout
        if self.structure is not None:
            dtype, shape = self.structure, shape[:-1]
        return f"<arrayd.Handle of {dtype}{list(shape)} at {self.url}>"

    def attach(self):
        """The array. Others do not see what this process writes to it, as it gets a copy of its own then.

        Returns: ndarray.
        Raises: StaleHandleError when the handle is over (used up, revoked, its maker gone, its lease over); KeyError when
        it is of another server, which is no peer of this process's; ConnectionError when that is not to be reached.
        Source: arrayd
        """
        made = _rebuild(self.url, self.key, self.layout, origin=self.origin)
        return made if self.structure is None else _structured(made, self.structure)

    def revoke(self):
        """End it: nobody attaches the array by it any more. A program that has attached it keeps it.

        Returns: None.
        Source: arrayd
        """
        _core.revoke(self.key)


def _structured(units, dtype):
    from .._array.structured import StructuredArray, check_dtype
    dtype = check_dtype(dtype)
    if not units.ndim or units.shape[-1] * units.itemsize != dtype.itemsize:
        raise ValueError(f"dtype has elements of {dtype.itemsize} bytes, and the array that was attached has none such: it is "
                         f"{units.dtype}{list(units.shape)}")
    return StructuredArray(units, dtype)


def _rebuild(url, key, layout, readonly=False, origin=None):
    if not _core.session_serial_now():
        _core.connect(os.environ.get("ARRAYD_URL") or url if origin else url)
    made = _fetch(url, key, layout, origin)
    if readonly:
        made.flags.writeable = False
    return made


def _fetch(url, key, layout, origin):
    """The array: this server's own, or one that it has fetched from another server."""
    if origin and origin[0] != _core.session_info()["name"]:
        return _core.pull(*origin, key, *layout)
    try:
        return _core.attach(key, *layout)
    except _core.StaleHandleError as error:
        here = _core.session_info()["url"]
        if here != url:
            error.add_note(f"The array is of the server {url}, and this process uses {here}.")
        raise


def _handle(a, uses, lease, linger):
    whole = a if a.base is None else a.base
    if a.nbytes < whole.nbytes / 2:
        a = a.copy(order="A")  # what is left of the whole is not kept for it
    info = _core.session_info()
    return Handle(info["url"], _core.share(a, uses, lease, linger), _core.layout(a),
                  origin=(info["name"], info["principal"]) if info["name"] else None)


def handle_parts(handle, readonly=False):
    """The parts of a handle that _rebuild() takes. readonly: the array is not to be written."""
    rest = (readonly, handle.origin) if handle.origin else (readonly,) if readonly else ()
    return handle.url, handle.key, handle.layout, *rest


def _count(uses):
    try:
        uses = operator.index(uses)
    except TypeError:
        raise TypeError(f"uses must be an int, not {type(uses).__name__}") from None
    if uses < 0:
        raise ValueError(f"uses must be 0 (any number) or more, not {uses}")
    return uses


def _seconds(what, value, least):
    """A number of seconds: not negative, or, where the least is more, not 0."""
    if isinstance(value, str) or not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
        raise TypeError(f"{what} must be a number of seconds, not {type(value).__name__}")
    value = float(value)
    if not math.isfinite(value) or value < least:
        raise ValueError(f"{what} must be {'more than 0' if least else '0 or more'} seconds, not {value:g}")
    return value


def share(a, *, uses=0, lease=None, linger=_LINGER):
    """A handle of an array, for other processes of this user that use the same server. Nothing is copied; who attaches
    it has the array as it is now, whatever becomes of it here.

    Parameters: a: ndarray. uses: how often it may be attached; 0 is any number. lease: seconds after which the handle
    is over; None: as long as this process is connected. linger: seconds that it goes on after that. The elements stay
    on the server while the handle does.
    Returns: Handle.
    Raises: TypeError for what is no ndarray; ValueError for a server that serves this process alone, and for a number
    of uses or seconds that cannot be.
    Source: arrayd
    """
    if not isinstance(a, ndarray):
        raise TypeError(f"share() takes an arrayd.ndarray, not {type(a).__module__}.{type(a).__qualname__}")
    uses, linger = _count(uses), _seconds("linger", linger, 0)
    lease = 0.0 if lease is None else _seconds("lease", lease, sys.float_info.min)
    if not _reachable():
        raise ValueError("the server of this process is embedded: no other process can use it")
    if hasattr(a, "_units"):
        handle = _handle(a._units, uses, lease, linger)
        return Handle(handle.url, handle.key, handle.layout, a.dtype, handle.origin)
    return _handle(a, uses, lease, linger)


def _reachable():
    return not _core.session_info()["url"].startswith("embedded")


def _by_value(a):
    return as_array, (a.get(order="A"),)


def _by_handle(a, uses, linger):
    if a.nbytes <= SMALL or not _reachable():
        return _by_value(a)
    handle = _handle(a, uses, 0.0, linger)
    made = _making.get()
    if made is not None:
        made._made.append(handle)
    return _rebuild, handle_parts(handle, _core.is_readonly(a))


# Modules whose pickles go to one other process of this host, which loads them once. (To register a reducer with them
# they would have to be imported, which takes longer than the import of this package.)
_CARRIERS = {"multiprocessing.reduction", "loky.backend.reduction", "joblib.externals.loky.backend.reduction"}
_FRAMES = 5  # between such a module's function and the reducer, at most


def _carried():
    frame = sys._getframe(2)
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if frame.f_globals.get("__name__") in _CARRIERS:
            return True
        frame = frame.f_back
    return False


def reduce_array(a):
    """Return what pickle makes of an array: its elements; within handles() a handle; and one that is attached once where
    multiprocessing or joblib pickle it for another process.

    Parameters: a: ndarray.
    Returns: tuple, as of object.__reduce__.
    Source: arrayd
    """
    made = _making.get()
    if made is not None:
        return _by_handle(a, made.uses, made.linger)
    return _by_handle(a, 1, _LINGER) if _carried() else _by_value(a)


class handles:
    """A context in which pickle takes arrays by handle, for transports that pickle by themselves (Ray, Dask, a socket of
    your own). len() counts the handles that were made; revoke() ends them all.

    Parameters: uses: how often each may be attached; 0 is any number. linger: seconds that they outlive this process's
    connection. Arrays of at most 32 KiB are pickled by value all the same.
    Source: arrayd
    """

    def __init__(self, uses=0, linger=_LINGER):
        self.uses, self.linger = _count(uses), _seconds("linger", linger, 0)
        self._tokens, self._made = [], []

    def __len__(self):
        return len(self._made)

    def __enter__(self):
        self._tokens.append(_making.set(self))
        return self

    def __exit__(self, *_):
        _making.reset(self._tokens.pop())

    def revoke(self):
        """End the handles that were made.

        Returns: None.
        Source: arrayd
        """
        while self._made:
            self._made.pop().revoke()


# ---- probes: handles of one byte, which a process of another server uses up if that fetches from this one ----

def make_probe():
    """The parts of a handle for one use; None where this server has no name among others."""
    if not _reachable() or not _core.session_info()["name"]:
        return None
    return handle_parts(_handle(as_array(np.zeros(1, np.uint8)), 1, 0.0, 0.0))


def use_probe(parts):
    """Use another server's probe up. False: this server does not fetch from that one."""
    if parts[-1][0] not in _core.session_info()["peers"].split(","):
        return False
    try:
        _rebuild(*parts)
    except Exception:  # whatever it is, arrays go by value
        return False
    return True


def is_used_up(parts):
    """Whether a probe of this server has been used. Looking uses it up."""
    try:
        _rebuild(*parts)
    except _core.StaleHandleError:
        return True
    return False


# ---- marks: names by which two processes find out that they use one server ----

def publish_mark(name):
    """Publish a byte, which another process of this user finds if it uses this server."""
    _core.publish(as_array(np.zeros(1, np.uint8)), name, False, None)


def finds_mark(name):
    """Whether a process has published that mark at this server."""
    try:
        _core.attach_name(None, name)
    except (KeyError, PermissionError):
        return False
    return True


# ---- names ----

def _grant(principals):
    if principals is None:
        return None
    if isinstance(principals, (str, int)):
        principals = [principals]
    names = [f"uid:{each}" if isinstance(each, int) else each for each in principals]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"grant must be of ints and strs, not {type(name).__name__}")
        if name != "*" and not name.startswith(("uid:", "token:", "cert:", "tcp:")):
            raise ValueError(f"grant: {name!r} is no principal: expected uid:N, token:NAME, cert:NAME or *")
    return ",".join(names)


def _named(name):
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    return name


def publish(name, a, *, writable=False, grant=None):
    """Give an array a name on the server, under which other processes attach it, also when this one is gone.

    Parameters: name: letters, digits and ._-/, at most 200. A name that this user has given already means the new array
    from now on; who has attached the old one keeps it. a: array, or what asarray takes. writable: False: a snapshot,
    which those who attach it cannot write, and which stays as it is when a is written here. True: all, and this
    process, write into the same elements; a must be an array of its own, not a view. Of structures the server has the bytes:
    attach(name, dtype=...) says what they are. grant: other users who may attach
    it: a uid or several, or principals as the server names them ("uid:1000"); "*" is everybody.
    Returns: None.
    Raises: ValueError for another name, for who can be nobody, or a view to be written; LimitError when the server takes
    no more names.
    Source: arrayd
    """
    a = units_of(as_array(a))
    if writable and _core.is_lent(a):
        raise ValueError("publish(): the array is this program's memory, and others cannot be let write it; publish a "
                         "copy")
    if a.base is not None or _core.is_lent(a) or not (a.flags.c_contiguous or a.flags.f_contiguous):
        if writable:
            raise ValueError("publish(): the array is a view, so it cannot be let others write; publish a copy")
        a = a.copy(order="A")
    _core.publish(a, _named(name), writable, _grant(grant))


def attach(name, *, principal=None, dtype=None):
    """An array that was published, or the array of a handle.

    Parameters: name: of publish(); or a Handle. principal: who has published it ("uid:1000"); None: this user. dtype: of
    structures, whose fields the name does not tell; None for numbers and for a handle.
    Returns: ndarray. It can be written if it was published so; a.copy() can be in any case.
    Raises: KeyError when there is no such name, or not for this user; StaleHandleError for a handle that is over; ValueError
    for a dtype of another size.
    Source: arrayd
    """
    if isinstance(name, Handle):
        return name.attach()
    made = _core.attach_name(principal, _named(name))
    return made if dtype is None else _structured(made, dtype)


def unpublish(name):
    """Take a name back. A program that has attached the array keeps it.

    Parameters: name: of publish().
    Returns: None.
    Raises: KeyError when this user has published nothing by that name.
    Source: arrayd
    """
    _core.unpublish(_named(name))


def names():
    """Return what this user may attach by name.

    Returns: list of tuples with the fields name, principal (who published it), writable, dtype (its name), nbytes, shape.
    Source: arrayd
    """
    rows = (line.split("\t") for line in _core.names().splitlines())
    return sorted(Published(name, principal, writable == "1", dtype, int(nbytes),
                            tuple(int(n) for n in shape.split(",") if n))
                  for name, principal, writable, dtype, nbytes, shape in rows)
