"""Labels, and what is measured of labelled elements.

Elements of several labels are counted, added or compared by the place of their label among those asked for, so that no
function but those that return places, slices or Python objects waits for the server.
"""
import math
import operator

import numpy as np

from ... import _base, _core
from ..._base import as_array, as_host, call, ndarray, reduce
from . import _support
from ._morphology import binary_structure
from ._support import real_array

_u = _core.ufuncs
_LEAST, _GREATEST = 3, 2  # modes of scatter
_SPREAD = 1024  # labels between those asked for that are counted with them, and as many more as four times those


# ---- label ----

def label_elements(x, structure):
    """The row of call.def: numbers (int32) and how many there are (0-d); structure is on this side."""
    offsets = np.argwhere(structure) - 1
    earlier = [tuple(one) < (0,) * x.ndim for one in offsets.tolist()]
    offsets = as_array(np.ascontiguousarray(offsets[earlier].reshape(-1, x.ndim), np.int64))
    return call("label", (x, offsets), dtype=np.bool_)


def _check_structure(structure, ndim):
    structure = binary_structure(ndim, 1) if structure is None else as_host(structure, "structure").astype(bool)
    if structure.ndim != ndim:
        raise RuntimeError("structure and input must have equal rank")
    if any(n != 3 for n in structure.shape):
        raise ValueError("structure dimensions must be equal to 3")
    if not (structure == structure[(slice(None, None, -1),) * ndim]).all():
        raise ValueError("Structuring element is not symmetric")
    return structure


def label(input, structure=None, output=None):
    """Numbers of connected elements.

    Parameters: input: array, whose elements that are not 0 are numbered. structure: which neighbours are connected, of
    3 elements along each axis; those along the axes unless given. output: array to fill, or the result's dtype.
    Returns: tuple of the numbers (int32, 0 where input is 0) and how many there are (int); the latter alone when output
    is an array. It waits for the server.
    Raises: RuntimeError or ValueError for a structure or an output that does not fit.
    Source: scipy.ndimage.label
    """
    input = real_array(input)
    structure = _check_structure(structure, input.ndim)
    if isinstance(output, ndarray) and output.shape != input.shape:
        raise ValueError("output shape not correct")
    x = input != 0
    if not input.ndim or not input.size:
        numbers, count = x.astype(np.int32), int(x) if input.size and not input.ndim else 0
    else:
        numbers, count = label_elements(x, structure)
        count = int(count)
    if isinstance(output, ndarray):
        kind = output.dtype
    else:
        kind = np.dtype(np.int32 if output is None else output)
    if kind.kind in "iu" and count > np.iinfo(kind).max:
        raise RuntimeError("insufficient bit-depth in requested output type")
    if isinstance(output, ndarray):
        _support.copy_into(output, numbers)
        return count
    return (numbers if kind == np.int32 else numbers.astype(kind)), count


# ---- labelled elements ----

class _Groups:
    """Elements of labels: of all (no labels), of one, or of several. input, labels: arrays of one shape."""

    def __init__(self, input, labels, index):
        self.input = as_array(input)
        self.bins, self.mask, self.count, self.shape = None, None, 1, ()
        if labels is None:
            return
        from ..._array.manipulation import broadcast_arrays
        self.input, labels = broadcast_arrays(self.input, as_array(labels))
        if index is None:
            self.mask = labels > 0
        elif np.isscalar(index):
            self.mask = labels == index
        elif not self._count_from_least(labels.reshape(-1), index):
            self._set_bins(labels.reshape(-1), as_array(index))
        self.input = self.input.reshape(-1)
        self.mask = None if self.mask is None else self.mask.reshape(-1)

    def _count_from_least(self, labels, index):
        """Number labels of an index that is on this side, and of near integers, by how far they are from the least. Labels
        that are further have the place behind all. False: the index is another one."""
        index = index if isinstance(index, ndarray) else np.asarray(index)
        if isinstance(index, ndarray) or not index.size or any(
                kind.kind not in "iu" or kind == np.uint64 for kind in (index.dtype, labels.dtype)):
            return False
        least = int(index.min())
        count = int(index.max()) - least + 1
        if count > _SPREAD + 4 * index.size or abs(least) > 1 << 62:
            return False
        place = (labels.astype(np.int64, copy=False) - least).view(np.uint64)  # those below the least become large
        self.shape, self.count, self.places = index.shape, count, as_array(index.reshape(-1).astype(np.int64) - least)
        self.bins = _u["minimum"](place, np.uint64(count)).view(np.int64)
        return True

    def _set_bins(self, labels, index):
        """Find the place of each element's label in the sorted index. A label that is not there has the place behind all."""
        from ..._array.indexing import where
        from ..._math.sorting import searchsorted, sort
        kind = _base.result_type(labels.dtype, index.dtype)
        self.shape, self.count = index.shape, index.size
        labels, index = labels.astype(kind, copy=False), index.reshape(-1).astype(kind, copy=False)
        if kind.kind in "iu" and self.count:
            self._set_bins_between(labels, index)
            return
        known = sort(index)
        place = searchsorted(known, labels)
        if not self.count:
            self.bins = place
            return
        found = call("gather", (known, _u["minimum"](place, self.count - 1))) == labels
        self.bins = where(found, place, self.count)
        self.places = searchsorted(known, index)

    def _set_bins_between(self, labels, index):
        """Between an integer and the next one is nothing else, so the place of a label among all of these is that of no
        other label asked for."""
        from ..._array.joining import concatenate
        from ..._math.sorting import searchsorted, sort
        ends = sort(concatenate([index, index + 1]))
        self.count = ends.size + 1
        self.bins = searchsorted(ends, labels, side="right")
        self.places = searchsorted(ends, index, side="right")

    def pick(self, each):
        """Of values for each place the one of each label asked for, as the index has them."""
        return call("gather", (each, self.places)).reshape(self.shape) if self.count else each[:0].reshape(self.shape)

    def counts(self):
        return self._add(None)[:self.count]

    def sums(self, values):
        """For each place of the index the sum of its elements, in double precision."""
        if values.dtype.kind == "c":
            return self.sums(values.real) + 1j * self.sums(values.imag)
        return self._add(values.astype(np.float64, copy=False))[:self.count]

    def _add(self, weights):
        out = _base.zeros((self.count + 1,), np.int64 if weights is None else np.float64)
        return call("bincount", (self.bins,) if weights is None else (self.bins, weights), out=out)

    def limits(self, values, mode):
        """For each place the least or the greatest of the values; those of places without elements are any."""
        if values.dtype.kind in "fV":
            first = np.inf if mode == _LEAST else -np.inf
        elif values.dtype.kind == "b":
            first = mode == _LEAST
        else:
            info = np.iinfo(values.dtype)
            first = info.max if mode == _LEAST else info.min
        out = _core.full((self.count + 1,), first, values.dtype)
        return call("scatter", (values, self.bins), (mode,), out=out)[:self.count]

    def chosen(self):
        """The elements, where there is one group."""
        return self.input.reshape(-1) if self.mask is None else call("compress", (self.input, self.mask))

    def positions(self):
        return _base.iota(self.input.size, 0, 1, np.int64)


def _sum_group(groups):
    return reduce("sum", groups.input, where=groups.mask) if groups.mask is not None else reduce("sum", groups.input)


def _count_group(groups):
    return groups.input.size if groups.mask is None else reduce("count_nonzero", groups.mask)


def sum_labels(input, labels=None, index=None):
    """Sums of labelled elements.

    Parameters: input: array. labels: a label for each element; broadcast to input. index: the labels asked for, one or
    an array; all elements whose label is above 0 unless given.
    Returns: ndarray of index's shape.
    Raises: ValueError for labels of another shape.
    Source: scipy.ndimage.sum_labels
    """
    groups = _Groups(input, labels, index)
    return _sum_group(groups) if groups.bins is None else groups.pick(groups.sums(groups.input))


def sum(input, labels=None, index=None):
    """Sums of labelled elements.

    Parameters: as sum_labels.
    Returns: ndarray of index's shape.
    Raises: as sum_labels.
    Source: scipy.ndimage.sum
    """
    return sum_labels(input, labels, index)


def mean(input, labels=None, index=None):
    """Means of labelled elements; NaN where there are none.

    Parameters: as sum_labels.
    Returns: ndarray of index's shape.
    Raises: as sum_labels.
    Source: scipy.ndimage.mean
    """
    groups = _Groups(input, labels, index)
    if groups.bins is None:
        return _sum_group(groups) / _u["multiply"](_count_group(groups), 1.0)
    return groups.pick(groups.sums(groups.input) / groups.counts())


def variance(input, labels=None, index=None):
    """Variances of labelled elements; NaN where there are none.

    Parameters: as sum_labels.
    Returns: ndarray of index's shape.
    Raises: as sum_labels.
    Source: scipy.ndimage.variance
    """
    groups = _Groups(input, labels, index)
    values = groups.input
    if groups.bins is None:
        count = _count_group(groups)
        apart = values - _sum_group(groups) / _u["multiply"](count, 1.0)
        square = apart * _u["conjugate"](apart)
        total = reduce("sum", square) if groups.mask is None else reduce("sum", square, where=groups.mask)
        return total / _u["multiply"](count, 1.0)
    from ..._array.joining import append
    counts = groups.counts()
    means = append(groups.sums(values) / counts, _base.zeros((1,), np.float64))
    apart = values - call("gather", (means, groups.bins))
    square = apart * _u["conjugate"](apart) if apart.dtype.kind == "c" else _u["square"](apart)
    return groups.pick(groups.sums(square) / counts)


def standard_deviation(input, labels=None, index=None):
    """Standard deviations of labelled elements; NaN where there are none.

    Parameters: as sum_labels.
    Returns: ndarray of index's shape.
    Raises: as sum_labels.
    Source: scipy.ndimage.standard_deviation
    """
    return _u["sqrt"](variance(input, labels, index))


# ---- extrema ----

def _limit_group(groups, name):
    return reduce(name, groups.chosen())


def _limits(groups, mode):
    """For each label its least or greatest element, 0 where it has none."""
    from ..._array.indexing import where
    least = groups.limits(groups.input, mode)
    return groups.pick(where(groups.counts() > 0, least, _base.zeros((), least.dtype)))


def minimum(input, labels=None, index=None):
    """Minima of labelled elements; 0 where there are none.

    Parameters: as sum_labels.
    Returns: ndarray of index's shape.
    Raises: as sum_labels; ValueError where there are no elements at all.
    Source: scipy.ndimage.minimum
    """
    groups = _Groups(input, labels, index)
    return _limit_group(groups, "min") if groups.bins is None else _limits(groups, _LEAST)


def maximum(input, labels=None, index=None):
    """Maxima of labelled elements; 0 where there are none.

    Parameters: as minimum.
    Returns: ndarray of index's shape.
    Raises: as minimum.
    Source: scipy.ndimage.maximum
    """
    groups = _Groups(input, labels, index)
    return _limit_group(groups, "max") if groups.bins is None else _limits(groups, _GREATEST)


def _places_of(groups, mode):
    """In row-major order the place of the first of the least (or greatest) elements of each label."""
    from ..._array.indexing import where
    if groups.bins is None:
        name = "argmin" if mode == _LEAST else "argmax"
        place = reduce(name, groups.chosen())
        if groups.mask is None:
            return place
        return call("gather", (call("compress", (groups.positions(), groups.mask)), place))
    limits = groups.limits(groups.input, mode)
    nearest = call("gather", (limits, _u["minimum"](groups.bins, groups.count - 1))) if groups.count else limits
    at = where(groups.input == nearest, groups.positions(), groups.input.size)
    first = groups.limits(at, _LEAST)
    return groups.pick(where(groups.counts() > 0, _u["minimum"](first, groups.input.size - 1), 0))


def _unravel(places, shape):
    """A tuple of ints, or a list of them, which takes waiting."""
    places = places.get()
    each = np.unravel_index(places, shape)
    if places.ndim == 0:
        return tuple(int(one) for one in each)
    return [tuple(int(v) for v in one) for one in zip(*(one.reshape(-1) for one in each))]


def minimum_position(input, labels=None, index=None):
    """Places of the minima of labelled elements.

    Parameters: as sum_labels.
    Returns: tuple of ints, or a list of one for each label. It waits for the server.
    Raises: as minimum.
    Source: scipy.ndimage.minimum_position
    """
    return _unravel(_places_of(_Groups(input, labels, index), _LEAST), as_array(input).shape)


def maximum_position(input, labels=None, index=None):
    """Places of the maxima of labelled elements.

    Parameters: as sum_labels.
    Returns: tuple of ints, or a list of one for each label. It waits for the server.
    Raises: as minimum.
    Source: scipy.ndimage.maximum_position
    """
    return _unravel(_places_of(_Groups(input, labels, index), _GREATEST), as_array(input).shape)


def extrema(input, labels=None, index=None):
    """Minima, maxima and their places of labelled elements.

    Parameters: as sum_labels.
    Returns: tuple of what minimum, maximum, minimum_position and maximum_position return. It waits for the server.
    Raises: as minimum.
    Source: scipy.ndimage.extrema
    """
    return (minimum(input, labels, index), maximum(input, labels, index), minimum_position(input, labels, index),
            maximum_position(input, labels, index))


def median(input, labels=None, index=None):
    """Medians of labelled elements.

    Parameters: as sum_labels.
    Returns: ndarray of index's shape.
    Raises: as minimum.
    Source: scipy.ndimage.median
    """
    groups = _Groups(input, labels, index)
    if groups.bins is None:
        from ..._math.reductions import median as find_median
        return find_median(groups.chosen())
    order = call("argsort", (groups.input,), (0,))
    order = call("gather", (order, call("argsort", (call("gather", (groups.bins, order)),), (0,))))
    bins, values = call("gather", (groups.bins, order)), call("gather", (groups.input, order))
    if values.dtype.kind in "biu":
        values = values.astype(np.float64)
    from ..._math.sorting import searchsorted
    each = _base.iota(groups.count, 0, 1, np.int64)
    low, high = searchsorted(bins, each), searchsorted(bins, each, side="right")
    last = max(groups.input.size - 1, 0)
    middle = [_u["minimum"](_u["maximum"](at, 0), last) for at in ((low + high - 1) // 2, (low + high) // 2)]
    return groups.pick((call("gather", (values, middle[0])) + call("gather", (values, middle[1]))) / 2)


def center_of_mass(input, labels=None, index=None):
    """Centres of mass of labelled elements.

    Parameters: as sum_labels.
    Returns: tuple of 0-d ndarrays, or a list of a 1-d ndarray for each label.
    Raises: as sum_labels.
    Source: scipy.ndimage.center_of_mass
    """
    input = as_array(input)
    total = sum_labels(input, labels, index)
    parts = []
    for axis, n in enumerate(input.shape):
        grid = _base.iota(n, 0.0, 1.0, np.float64).reshape((n,) + (1,) * (input.ndim - axis - 1))
        parts.append(sum_labels(input * grid, labels, index) / total)
    if not parts or not parts[0].ndim:
        return tuple(parts)
    from ..._array.joining import stack
    return list(stack([part.reshape(-1) for part in parts], axis=-1))


# ---- comprehensions ----

def _limit_error():
    return ValueError("input and labels must have the same shape (excepting dimensions with width 1)")


def labeled_comprehension(input, labels, index, func, out_dtype, default, pass_positions=False):
    """Return what a function makes of the elements of each label.

    Parameters: input: array. labels: a label for each element. index: the labels, one or an array; None: those above 0
    together. func: called with a 1-d array of elements and, with pass_positions, one of their places in row-major order.
    out_dtype: of the result. default: of labels that no element has. pass_positions: see func.
    Returns: ndarray of index's shape; what func returns when index is None. It waits for the server.
    Raises: ValueError for an index without labels, or labels of another shape.
    Source: scipy.ndimage.labeled_comprehension
    """
    input = as_array(input)
    if labels is None and index is not None:
        raise ValueError("index without defined labels")
    if labels is not None:
        from ..._array.manipulation import broadcast_arrays
        try:
            input, labels = broadcast_arrays(input, as_array(labels))
        except ValueError as error:
            raise _limit_error() from error
        labels = labels.reshape(-1)
    flat = [input.reshape(-1)]
    if pass_positions:
        flat.append(_base.iota(input.size, 0, 1, np.int64))
    if index is None:
        return func(*(flat if labels is None else [call("compress", (one, labels > 0)) for one in flat]))
    return _comprehend(flat, labels, as_host(index, "index"), func, out_dtype, default)


def _comprehend(flat, labels, index, func, out_dtype, default):
    if (index.astype(labels.dtype).astype(index.dtype) != index).any():
        raise ValueError(f"Cannot convert index values from <{index.dtype}> to <{labels.dtype}> (labels' type) without "
                         "loss of precision")
    out = _core.full((index.size,), default, np.dtype(out_dtype))
    for place, one in enumerate(index.reshape(-1).tolist()):
        elements = [call("compress", (part, labels == one)) for part in flat]
        if elements[0].size:
            out[place] = func(*elements)
    return out.reshape(index.shape)


def histogram(input, min, max, bins, labels=None, index=None):
    """Histograms of labelled elements.

    Parameters: input: array. min, max: where the first and the last bin end. bins: how many. labels, index: as
    sum_labels.
    Returns: ndarray of index's shape and bins.
    Raises: as sum_labels; ValueError for an index without labels.
    Source: scipy.ndimage.histogram
    Differs: of several labels it is one array, not an array of arrays.
    """
    if labels is None and index is not None:
        raise ValueError("index without defined labels")
    from ..._math.statistics import histogram as count_bins
    edges = np.linspace(min, max, bins + 1)
    groups = _Groups(input, labels, index)
    if groups.bins is None:
        return count_bins(groups.chosen(), as_array(edges))[0]
    from ..._array.indexing import where
    from ..._math.sorting import searchsorted
    values = groups.input.astype(np.float64)
    place = searchsorted(as_array(edges), values, side="right") - 1
    place = where(values == float(edges[-1]), bins - 1, place)
    inside = (place >= 0) & (place < bins) & (groups.bins < groups.count)
    place = where(inside, groups.bins * bins + place, groups.count * bins)
    counts = call("bincount", (place,), out=_base.zeros((groups.count * bins + 1,), np.int64))[:-1]
    return call("gather", (counts.reshape(groups.count, bins), groups.places)).reshape((*groups.shape, bins))


# ---- objects ----

def find_objects(input, max_label=0):
    """Where labelled elements are.

    Parameters: input: array of labels. max_label: the greatest looked for; the greatest there is unless given.
    Returns: list of a tuple of slices for each label from 1 on, or None for one that no element has. It waits for the
    server.
    Raises: TypeError for labels that are no integers.
    Source: scipy.ndimage.find_objects
    """
    input = as_array(input)
    if input.dtype.kind not in "iub":
        raise TypeError("Complex type not supported" if input.dtype.kind == "c" else "labels must be integers")
    if not input.size:
        return []
    most = operator.index(max_label) if max_label >= 1 else int(reduce("max", input))
    if most < 1:
        return []
    groups = _Groups(input, input, np.arange(1, most + 1))
    ends, from_array = [], _base.iota(1, 0, 1, np.int64)
    from ..._array.manipulation import broadcast_to
    for axis, n in enumerate(input.shape):
        grid = _base.iota(n, 0, 1, np.int64).reshape((n,) + (1,) * (input.ndim - axis - 1))
        place = broadcast_to(grid, input.shape).reshape(-1) if input.ndim else from_array
        ends.append((groups.limits(place, _LEAST), groups.limits(place, _GREATEST)))
    if not ends:
        return [() if count else None for count in groups.counts().get().tolist()]
    ends = [(low.get().tolist(), (high.get() + 1).tolist()) for low, high in ends]
    boxes = zip(*(map(slice, *both) for both in ends))
    return [box if low < high else None for box, low, high in zip(boxes, *ends[0])]


def value_indices(arr, *, ignore_value=None, adaptive_index_dtype=False):
    """Places of each value.

    Parameters: arr: array of integers. ignore_value: a value that is left out. adaptive_index_dtype: places have the
    smallest type that holds them.
    Returns: dict of a tuple of ndarrays, as nonzero returns them, for each value. It waits for the server.
    Raises: ValueError for an array that is not of integers.
    Source: scipy.ndimage.value_indices
    """
    arr = as_array(arr)
    if arr.dtype.kind not in "iu":
        raise ValueError("Parameter 'arr' must be an integer array")
    flat = arr.reshape(-1)
    order = call("argsort", (flat,), (0,))
    ordered = call("gather", (flat, order)).get()
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[:ordered.size])
    kinds = [np.min_scalar_type(n) if adaptive_index_dtype else np.dtype(np.int64) for n in arr.shape]
    from ..._array.indexing import unravel_index
    places = [one.astype(kind) for one, kind in zip(unravel_index(order, arr.shape), kinds)]
    bounds = [*begins.tolist(), ordered.size]
    return {value: tuple(one[begin:end] for one in places)
            for value, begin, end in zip(ordered[begins].tolist(), bounds, bounds[1:])
            if ignore_value is None or value != ignore_value}
