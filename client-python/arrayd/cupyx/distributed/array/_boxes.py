"""Indices of chunks: tuples of slices, one for each axis, with start, stop and step."""
import operator


def normalize_index(index, shape):
    """An index as a tuple of slices with numbers in them. IndexError for too many; ValueError for a step below 1."""
    index = index if isinstance(index, tuple) else (index,)
    if len(index) > len(shape):
        raise IndexError(f"the index of a chunk has {len(index)} parts, and the array {len(shape)} dimensions")
    index += (slice(None),) * (len(shape) - len(index))
    return tuple(_normalize(part, n) for part, n in zip(index, shape))


def _normalize(part, n):
    if not isinstance(part, slice):
        if not hasattr(part, "__index__"):
            raise TypeError(f"the index of a chunk must be of slices and ints, not {type(part).__name__}")
        at = operator.index(part)
        if not -n <= at < n:
            raise IndexError(f"index {at} is out of bounds for an axis of {n}")
        return slice(at % n, at % n + 1, 1)
    start, stop, step = part.indices(n)
    if step < 1:
        raise ValueError(f"the step of a chunk's slice must be 1 or more, not {step}")
    return slice(start, max(start, stop), step)


def normalize_map(index_map, shape):
    """An index_map whose values are lists of tuples of slices."""
    return {operator.index(device): [normalize_index(index, shape) for index in
                                     (indices if isinstance(indices, list) else [indices])]
            for device, indices in index_map.items()}


def shape_of(index):
    """How many elements a chunk has along each axis."""
    return tuple(len(range(part.start, part.stop, part.step)) for part in index)


def intersect(a, b):
    """The index of what two chunks both have; None: nothing."""
    both = tuple(_intersect(*each) for each in zip(a, b))
    return None if None in both else both


def _intersect(a, b):
    step = a.step * b.step // _common(a.step, b.step)
    first = max(a.start, b.start)
    found = range(a.start + -(-(first - a.start) // a.step) * a.step, min(a.stop, b.stop), a.step)
    for start in found[:b.step]:  # the places of two steps meet within that many
        if (start - b.start) % b.step == 0:
            return slice(start, min(a.stop, b.stop), step)
    return None


def _common(m, n):
    while n:
        m, n = n, m % n
    return m


def locate(part, index):
    """Where a chunk of that index has what the index `part`, which is within it, names."""
    return tuple(slice((p.start - i.start) // i.step, (p.stop - 1 - i.start) // i.step + 1, p.step // i.step)
                 for p, i in zip(part, index))


def cut_axis(indices, axis):
    """The pieces between all bounds of the indices along an axis: (start, stop), in order. Steps must be 1."""
    if any(index[axis].step != 1 for index in indices):
        raise ValueError("a product takes chunks of neighbouring rows and columns: their slices have the step 1")
    bounds = sorted({bound for index in indices for bound in (index[axis].start, index[axis].stop)})
    return list(zip(bounds, bounds[1:]))


def make_2d_index_map(i_partitions, j_partitions, devices):
    """The index_map of a matrix that is cut into blocks.

    Parameters: i_partitions, j_partitions: where blocks begin and end along rows and columns: lists that begin with 0 and
    ascend. devices: a list of lists of sets: which devices have the block.
    Returns: dict: lists of tuples of slices by device.
    Raises: ValueError for bounds that do not ascend from 0, and for a list of another shape than the blocks have.
    Source: cupyx.distributed.array.make_2d_index_map
    """
    for name, bounds in (("i_partitions", i_partitions), ("j_partitions", j_partitions)):
        if list(bounds[:1]) != [0] or sorted(set(bounds)) != list(bounds):
            raise ValueError(f"{name} must begin with 0 and ascend, not {list(bounds)}")
    if len(devices) != len(i_partitions) - 1 or any(len(row) != len(j_partitions) - 1 for row in devices):
        raise ValueError(f"devices must be {len(i_partitions) - 1} lists of {len(j_partitions) - 1} sets")
    index_map = {}
    for i, row in enumerate(devices):
        for j, owners in enumerate(row):
            block = slice(*i_partitions[i:i + 2]), slice(*j_partitions[j:j + 2])
            for device in owners:
                index_map.setdefault(device, []).append(block)
    return index_map
