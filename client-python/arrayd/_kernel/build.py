"""Sources compiled by the server, each once for a connection and a device, and what the compiler says of one."""
import collections
import re
import threading
import weakref

from .. import _core
from .._math.functional import remember
from ..cuda._thread import current
from ..cuda.compiler import CompileException, is_valid_kernel_name
from ..cuda.texture import with_header
from . import headers

_MOST = 512  # modules kept; those in use by a kernel stay in any case
_modules = remember(collections.OrderedDict())
_memos = weakref.WeakSet()
_lock = threading.Lock()


def place():
    """Return what a module belongs to: the connection and the calling thread's device."""
    choice = current()
    return choice.serial, choice.device


class Cached:
    """Properties of kernels that are compiled for kinds of arguments, by their sources, _sources."""

    @property
    def cached_codes(self):
        """dict of the sources that have been compiled, by kinds of arguments."""
        return dict(self._sources)

    @property
    def cached_code(self):
        """str: the source that has been compiled; the last, where there are several."""
        if not self._sources:
            raise RuntimeError(f"{self.name} has not been called")
        return list(self._sources.values())[-1]


class Memo:
    """Results that were made for a place, by keys. The results of an earlier connection go with the first of a new one:
    it would keep the connection open."""

    def __init__(self):
        self._serial, self._found = None, {}
        _memos.add(self)

    def get(self, where, key):
        """Return what put() was given, or None."""
        return self._found.get((where, key))

    def put(self, where, key, value):
        """Keep value, which is returned."""
        if where[0] != self._serial:
            self._found, self._serial = {}, where[0]
        self._found[where, key] = value
        return value

    def clear(self):
        """Forget all."""
        self._found = {}


class _Memos:
    @staticmethod
    def clear():
        for memo in list(_memos):
            memo.clear()


remember(_Memos)


def module(source, options=(), names=(), name="module"):
    """The module of a source on the current device; compiled unless it has been. CompileException when it cannot be."""
    where, source = place(), with_header(headers.inline(source, headers.folders(options)))
    key = where, source, options, names
    with _lock:
        for old in [each for each in _modules if each[0][0] != where[0]]:
            del _modules[old]
        found = _modules.get(key)
        if found is not None:
            _modules.move_to_end(key)
            return found
    try:
        found = _core.build(source, for_server(options), names)
    except _core.CompileError as error:
        raise CompileException(_with_hint(show_lines(str(error), source)), source, name, options) from None
    with _lock:
        _modules[key] = found
        while len(_modules) > _MOST:
            _modules.popitem(last=False)
    return found


def _users_lines(source):
    """The lines of a generated source that a user wrote, by (name of the piece, number of the line in it)."""
    found, piece, number = {}, None, 0
    for line in source.split("\n"):
        begin = _PIECE.match(line)
        if begin:
            number, piece = int(begin[1]), begin[2]
            continue
        if piece is not None:
            found[piece, number] = line
            number += 1
    return found


def show_lines(log, source):
    """Return what a compiler says of a generated source, with the user's lines below the messages about them and
    without the names of functions that the user did not write. GCC looks for the lines in files, and there are none."""
    lines = _users_lines(source)
    if not lines:
        return log
    out = []
    for line in log.split("\n"):
        if _INSIDE.search(line):
            continue
        out.append(line)
        about = _ABOUT.match(line)
        text = lines.get((about[1], int(about[2]))) if about else None
        if text is not None:
            out += [f"{about[2]:>5} | {text}", f"      | {' ' * (int(about[3]) - 1)}^"]
    return "\n".join(out)


_PIECE = re.compile(r'#line (\d+) "(.*)"')
_INSIDE = re.compile(r": In (static )?(function|member function|instantiation of) '.*ad_kernel::")
_ABOUT = re.compile(r"(.+?):(\d+):(\d+): ")  # GCC's; NVRTC shows lines by itself

# Explanations of the compiler's messages, by a part of their text.
_HINTS = (
    (r"^thrust/.*error", "NVRTC, the server's compiler, cannot compile Thrust's headers; cub's algorithms for blocks and "
                         "warps, cuda/std and cupyx.jit.thrust it can"),
    (r"error: (thrust|cub|cuda|curand|mma|nv)\S*: No such file", "kernels on the CPU have CUDA's language and part of "
                                                                "cuda/std, and none of CUDA's other libraries"),
)


def _with_hint(message):
    hints = [f"\n({hint})" for pattern, hint in _HINTS if re.search(pattern, message, re.M)]
    return message + "".join(hints)


def identifier(name, what):
    """name, if it can be a function's; ValueError otherwise."""
    if not isinstance(name, str) or not is_valid_kernel_name(name):
        raise ValueError(f"Invalid {what} {name!r}: it must be a C identifier")
    return name


def as_options(options):
    """Options of the compiler as a tuple of strings."""
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"options must be a tuple of strings, not {options!r}")
    return tuple(option.strip() for option in options)  # as NVRTC takes them


def for_server(options):
    """Return the options that the server is asked for. How much is optimised and which device it is for are the server's to
    know, so -O and --gpu-architecture are left out; so is -I, as headers of this host go with the source, and what nvcc
    takes for the host's compiler."""
    left, words = [], iter(options)
    for word in words:
        if word in _WITH_A_WORD:
            next(words, None)
        elif not _SERVERS.match(word):
            left.append(word)
    return tuple(left)


_WITH_A_WORD = ("-I", "--include-path", "--gpu-architecture", "-arch", "--gpu-code", "-code", "--optimize", "-gencode",
                "--generate-code", "-Xcompiler", "--compiler-options", "-ccbin", "--compiler-bindir")
_SERVERS = re.compile(r"-I.|-O\d$|(--include-path|--?gpu-architecture|-arch|--gpu-code|-code|--optimize|-gencode|"
                      r"--generate-code|-Xcompiler|--compiler-options|-ccbin|--compiler-bindir)=|"
                      r"--?expt-(relaxed-constexpr|extended-lambda)$|--?extended-lambda$")
