"""What crosses from one device to another: parts that are asked for where they do not lie. It is counted here.

A device reads what lies on another one where it reaches it; the server makes its operation wait for that which writes the
memory. Where a device does not reach another the elements go by this process.
"""
import contextlib
import functools
import threading

from .. import _base, _core
from .._base import as_array
from ..cuda.stream import Stream
from ._layout import as_slices, cut_evenly, intersect, locate, shape_of

_lock = threading.Lock()
_moved = 0


def moved_bytes():
    """How many bytes of arrays over several devices this process has had moved from one device to another, so far.

        before = ad.sharding.moved_bytes()
        y = x @ w
        print(ad.sharding.moved_bytes() - before)

    Operations that find their operands where they need them add nothing. Bytes that several devices read count for each.
    Returns: int.
    Source: of arrayd
    """
    return _moved


def _count(n):
    global _moved
    with _lock:
        _moved += n


@functools.lru_cache(4096)
def _reaches(serial, device, other):
    return bool(_core.device_facts(serial, device)[5] >> other & 1)


def reach(part, device):
    """A part as an operand of the current device, which is `device`: itself where that reaches it, else a copy."""
    if part.device.id == device.id or not part.size:
        return part
    _count(part.nbytes)
    if _reaches(_core.session_serial(), device.id, part.device.id):
        return part
    return as_array(part.get())


def bring(part, device):
    """A part on the current device, which is `device`: itself, or a copy."""
    there = reach(part, device)
    return there if there.device.id == device.id else there.copy()


def take_turns(device, sources):
    """The numbers of sources, which are devices, beginning with the device itself. So each device begins with another one, and
    no two read from the same one at one time."""
    first = next((i for i, source in enumerate(sources) if source.id == device.id), 0)
    return [*range(first, len(sources)), *range(first)]


_streams = {}  # by connection and device


def copying(device, apart=True):
    """A context in which the thread's operations on a device run on a stream of their own, beside those that follow the
    context: the server makes an operation wait for another stream only where that writes what it reads."""
    if not apart:
        return contextlib.nullcontext()
    key = _core.session_serial(), device.id
    with _lock:
        if key not in _streams:
            for old in [each for each in _streams if each[0] != key[0]]:
                del _streams[old]
            with device:
                _streams[key] = Stream()
        return _streams[key]


class Piece:
    """A box of an array, and the devices' arrays that have its elements."""

    __slots__ = ("box", "parts")

    def __init__(self, box, parts):
        self.box, self.parts = box, parts

    def on(self, device, turn):
        """The elements: on the device where it has them, else on another, by turns."""
        for part in self.parts:
            if part.device.id == device.id:
                return part
        return self.parts[turn % len(self.parts)]


def list_pieces(x, offset=None):
    """The pieces of a sharded array; offset: (axis, number) by which its boxes are to be moved along an axis."""
    found = {}
    for box, part in zip(x._layout.boxes, x._parts):
        if part.size:
            found.setdefault(box, []).append(part)
    if offset is None:
        return [Piece(box, parts) for box, parts in found.items()]
    axis, by = offset
    return [Piece((*box[:axis], (box[axis][0] + by, box[axis][1] + by), *box[axis + 1:]), parts)
            for box, parts in found.items()]


def collect(pieces, dtype, devices, boxes, fresh=False):
    """Arrays of the boxes on the devices, put together from pieces that have all their elements. Where a device has a box
    whole, that is a view of it, or with `fresh` a copy."""
    return [_collect_one(pieces, dtype, device, box, place, fresh)
            for place, (device, box) in enumerate(zip(devices, boxes))]


def _collect_one(pieces, dtype, device, box, turn, fresh):
    found = [(piece, both) for piece in pieces if (both := intersect(piece.box, box)) is not None] if all(
        stop > start for start, stop in box) else []
    with device:
        if len(found) == 1 and found[0][1] == box:
            part = found[0][0].on(device, turn)[locate(box, found[0][0].box)]
            return part.copy() if fresh and part.device.id == device.id else bring(part, device)
        made = _base.empty(shape_of(box), dtype)
        parts = [piece.on(device, turn) for piece, _ in found]
        for i in take_turns(device, [part.device for part in parts]):
            piece, both = found[i]
            made[locate(both, box)] = reach(parts[i][locate(both, piece.box)], device)
        return made


def split_array(a, layout):
    """The parts of an array of one device by a layout: new arrays where it lies elsewhere, else views."""
    parts = []
    for device, box in zip(layout.mesh._places, layout.boxes):
        with device:
            parts.append(bring(a[as_slices(box)], device))
    return parts


# ---- parts of a sum ----

_LARGE = 1 << 20  # bytes from which devices share the work of adding up
_CHUNK = 1 << 27  # bytes that are combined while the next ones are copied


def all_reduce(layout, names, parts, combine, counts):
    """Combine, over groups of places that differ along the named axes of the mesh, arrays of one shape: each place of a
    group gets the whole. All places combine in one order, so that they have equal bits. counts: for each place whether
    its part takes part; those without elements do not."""
    made = list(parts)
    for group in layout.groups(names):
        given = [place for place in group if counts[place]] or group[:1]
        shared = len(given) > 1 and parts[given[0]].nbytes >= _LARGE
        whole = (_combine_shared if shared else _combine_each)(layout.mesh._places, group, [parts[g] for g in given], combine)
        for place, result in zip(group, whole):
            made[place] = result
    return made


def _fold(values, device, combine):
    """The values combined from the first to the last, on the device."""
    fetch = bring if len(values) == 1 else reach
    return functools.reduce(combine, [fetch(value, device) for value in values])


def _combine_each(places, group, values, combine):
    made = []
    for place in group:
        with places[place]:
            made.append(_fold(values, places[place], combine))
    return made


def _combine_shared(places, group, values, combine):
    """Each place combines a section of the elements, and gets the other sections from the other places. Chunks of the
    sections are issued to all places in turn, so that these copy at one time."""
    flat = [_flatten(value) for value in values]
    cuts = cut_evenly(flat[0].size, len(group))
    sections = [_Section(places[place], flat, *section) for place, section in zip(group, zip(cuts, cuts[1:]))]
    while any(section.chunks for section in sections):
        for section in sections:
            section.step(combine)
    for first, section in enumerate(sections, 1):
        for other in sections[first:] + sections[:first - 1]:  # each place begins with another one
            section.take(other)
    return [section.whole.reshape(values[0].shape) for section in sections]


def _flatten(value):
    with value.device:
        return value.reshape(-1)


class _Section:
    """The elements that one place combines for all. While a chunk of them is combined, the next one is copied from the
    other places.

        copies      [chunk 0][chunk 1][chunk 2]              a stream of their own
        combined             [chunk 0][chunk 1][chunk 2]     into `own`, from which others copy it, and into `whole`
    """

    def __init__(self, device, values, start, stop):
        self.device, self.values, self.start, self.stop = device, values, start, stop
        step = max(1, _CHUNK // values[0].itemsize)
        self.chunks = [(at, min(at + step, stop)) for at in range(start, stop, step)]
        with device:
            self.whole = _base.empty(values[0].size, values[0].dtype)
            self.own = _base.empty(stop - start, values[0].dtype)
        self.brought = self._bring_next()

    def _bring_next(self):
        if not self.chunks:
            return None
        brought = [None] * len(self.values)
        with self.device, copying(self.device):
            for i in take_turns(self.device, [value.device for value in self.values]):
                brought[i] = bring(self.values[i][slice(*self.chunks[0])], self.device)
        return brought

    def step(self, combine):
        """Combine the chunk that has been brought, after the next one has been asked for."""
        if not self.chunks:
            return
        start, stop = self.chunks.pop(0)
        (*values, last), self.brought = self.brought, self._bring_next()
        with self.device:
            total = combine(functools.reduce(combine, values), last, out=self.own[start - self.start:stop - self.start])
            self.whole[start:stop] = total

    def take(self, other):
        """Copy what another place has combined."""
        with self.device:
            self.whole[other.start:other.stop] = reach(other.own, self.device)
