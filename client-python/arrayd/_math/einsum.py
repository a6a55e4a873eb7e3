"""einsum: diagonals as views, sums, and one matrix product for each pair of operands."""
import functools
import string

import numpy as np

from .. import _base
from .._base import as_array, give, matrix_product, ndarray, reduce
from .products import _common

_NO_OPERANDS = ("must specify the einstein sum subscripts string and at least one operand, or at least one operand and "
                "its corresponding subscripts list")
# The labels of axis 0, 1, ... of a list: in an order that is also theirs when they are sorted.
_AXES = string.ascii_uppercase + string.ascii_lowercase


def einsum(*operands, out=None, dtype=None, order="K", casting="safe", optimize=False):
    """Sums of products written with subscripts.

    Parameters: operands: the subscripts as a string ("ij,jk->ik", with "..." for dimensions that are broadcast) and
    the arrays; or arrays, each followed by its list of axis numbers, and on request that of the result. out: array to
    fill. dtype: type to compute in. order: 'C', 'F', 'A' or 'K'. casting: which casts to dtype are allowed. optimize:
    the order in which pairs are multiplied: False from the left, or as einsum_path takes it.
    Returns: ndarray: a view of a single operand of which nothing is summed, whatever dtype and order say, else a new
    one.
    Raises: ValueError for subscripts that do not fit the arrays; TypeError for a cast.
    Source: numpy.einsum
    """
    order = order.upper()
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError(f"casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe' (got {casting!r})")
    terms, result, arrays = _parse(operands)
    if len(arrays) == 1 and set(result) == set(terms[0]) and out is None:
        return _arrange(*_diagonals(terms[0], arrays[0]), result, _sizes(terms, arrays))
    if order == "A":
        order = "F" if all(a.flags.f_contiguous and not a.flags.c_contiguous for a in arrays) else "C"
    path = _path(operands, optimize) if optimize is not False and len(arrays) > 2 else None
    if dtype is None and isinstance(out, ndarray):  # what is computed in has to hold out as well
        dtype = _base.result_type(*arrays, out)
    arrays = [_cast(a, dtype, casting) for a in arrays]
    arrays = _common(*arrays)
    sizes = _sizes(terms, arrays)
    pairs = [_diagonals(term, a) for term, a in zip(terms, arrays)]
    for chosen in path or [(0, 1)] * (len(pairs) - 1):
        taken = [pairs.pop(i) for i in sorted(chosen, reverse=True)][::-1]
        pairs.insert(0 if path is None else len(pairs), _contracted(taken, set(result).union(*(t for t, _ in pairs))))
    term, a = pairs[0]
    value = _arrange(*_summed(term, a, set(result)), result, sizes)
    if out is None and order != "K":
        from .._array.creation import array
        return array(value, copy=None, order=order)
    return give(value, out, casting)


def einsum_path(*operands, optimize="greedy", einsum_call=False):
    """The order in which einsum multiplies the fewest numbers, found from the shapes alone.

    Parameters: operands: as einsum. optimize: True or 'greedy', 'optimal', one of them with the greatest number of
    elements that anything in between may have, False for all at once, or a path as this gives it.
    Returns: tuple of a list, 'einsum_path' and tuples of the numbers of the operands that are multiplied (they leave
    the list, and their product joins it at its end), and a text that says what it costs.
    Raises: ValueError for subscripts that do not fit the arrays; KeyError for another name.
    Source: numpy.einsum_path
    """
    return np.einsum_path(*_shapes_of(operands), optimize=optimize, einsum_call=einsum_call)


def _shapes_of(operands):
    """The operands of einsum with NumPy arrays of their shapes, which hold one element, in place of arrays."""
    def shaped(value):
        return np.broadcast_to(np.empty((), float), as_array(value).shape)
    if not operands:
        raise ValueError(_NO_OPERANDS)
    if isinstance(operands[0], str):
        return [operands[0], *(shaped(value) for value in operands[1:])]
    count = len(operands) // 2 * 2
    return [shaped(value) if i % 2 == 0 and i < count else value for i, value in enumerate(operands)]


def _path(operands, optimize):
    """The pairs, or larger groups, of operands in the order in which they are to be multiplied."""
    return einsum_path(*operands, optimize="greedy" if optimize is True else optimize)[0][1:]


def _cast(a, dtype, casting):
    if dtype is None:
        return a
    if not np.can_cast(a.dtype, dtype, casting):
        raise TypeError(f"Iterator operand could not be cast from {a.dtype!r} to {np.dtype(dtype)!r} according to the "
                        f"rule {casting!r}")
    return as_array(a, dtype)


def _contracted(group, needed):
    """One term and array for several: their product, without the labels that nobody needs."""
    (t1, a1), *rest = group
    for i, (t2, a2) in enumerate(rest):
        t1, a1 = _multiply(t1, a1, t2, a2, needed.union(*(term for term, _ in rest[i + 1:])))
    return t1, a1


def _parse(operands):
    """The terms, the result's term (tuples of labels) and the arrays."""
    if not operands:
        raise ValueError(_NO_OPERANDS)
    if isinstance(operands[0], str):
        text, arrays = operands[0].replace(" ", ""), [as_array(a) for a in operands[1:]]
    else:
        arrays = [as_array(a) for a in operands[:len(operands) // 2 * 2:2]]
        text = ",".join(_letters(axes) for axes in operands[1:len(arrays) * 2:2])
        if len(operands) % 2:
            text += "->" + _letters(operands[-1])
    return *_read(text, tuple(a.ndim for a in arrays)), arrays


@functools.lru_cache(maxsize=256)
def _read(text, ndims):
    """Subscripts as terms and the result's term, for operands of so many dimensions."""
    inputs, arrow, output = text.partition("->")
    inputs = inputs.split(",")
    if len(inputs) != len(ndims):
        raise ValueError("more operands provided to einstein sum function than specified in the subscripts string"
                         if len(inputs) < len(ndims) else "fewer operands provided to einstein sum function than "
                         "specified in the subscripts string")
    widths = [_dots(term, ndim) for term, ndim in zip(inputs, ndims)]
    widest = max(widths)
    terms = [_labels(term, width) for term, width in zip(inputs, widths)]
    if arrow:
        result = _labels(output, widest)
    else:
        letters = [label for term in terms for label in term]
        once = sorted(label for label in set(letters) if isinstance(label, str) and letters.count(label) == 1)
        result = tuple(range(-widest, 0)) + tuple(once)
    _check_output(result, terms)
    return terms, result


def _letters(axes):
    for axis in axes:
        if axis is not Ellipsis and not 0 <= axis < len(_AXES):
            raise ValueError(f"subscript {axis} is not within the valid range [0, {len(_AXES)})")
    return "".join("..." if axis is Ellipsis else _AXES[axis] for axis in axes)


def _dots(term, ndim):
    """How many dimensions the ellipsis of a term stands for."""
    letters = term.replace("...", "", 1)
    if not all(letter in string.ascii_letters for letter in letters):
        raise ValueError(f"invalid subscript in einstein sum subscripts string: {term!r}")
    if "..." in term and ndim >= len(letters):
        return ndim - len(letters)
    if ndim != len(letters):
        raise ValueError(f"einstein sum subscripts string {term!r} does not fit an operand of {ndim} dimensions")
    return 0


def _labels(term, width):
    """A term as labels: letters, and numbers from the end for the ellipsis' dimensions."""
    before, dots, after = term.partition("...")
    return tuple(before) + (tuple(range(-width, 0)) if dots else ()) + tuple(after)


def _check_output(result, terms):
    if len(set(result)) != len(result):
        raise ValueError("einstein sum subscripts string includes an output subscript multiple times")
    if any(isinstance(label, int) and label not in result for term in terms for label in term):
        raise ValueError("einstein sum subscripts string has an ellipsis, and its output must have one too")
    for label in result:
        if not any(label in term for term in terms):
            raise ValueError(f"einstein sum subscripts string included output subscript {label!r} which never appeared "
                             "in an input")


def _sizes(terms, arrays):
    """The size of each label; dimensions of size 1 are broadcast."""
    sizes = {}
    for term, a in zip(terms, arrays):
        for label, n in zip(term, a.shape):
            if sizes.get(label, 1) != 1 and n not in (1, sizes[label]):
                raise ValueError(f"operands could not be broadcast together: subscript {label!r} has sizes "
                                 f"{sizes[label]} and {n}")
            sizes[label] = n if sizes.get(label, 1) == 1 else sizes[label]
    return sizes


def _diagonals(term, a):
    """A term without repeated labels, and the view of the diagonal that they name."""
    labels = tuple(dict.fromkeys(term))
    if len(labels) == len(term):
        return term, a
    shape, strides = [], []
    for label in labels:
        places = [i for i, one in enumerate(term) if one == label]
        if len({a.shape[i] for i in places}) > 1:
            raise ValueError(f"dimensions of one operand for subscript {label!r} do not match: "
                             + " != ".join(str(a.shape[i]) for i in places))
        shape.append(a.shape[places[0]])
        strides.append(sum(a.strides[i] for i in places))
    return labels, _base.view(a, shape, strides)


def _summed(term, a, needed):
    """A term and its array without the labels that nobody needs, summed over them."""
    axes = tuple(i for i, label in enumerate(term) if label not in needed)
    if axes:
        a = reduce("any", a, axes) if a.dtype == bool else reduce("sum", a, axes, a.dtype)
    return tuple(label for label in term if label in needed), a


def _multiply(t1, a1, t2, a2, needed):
    """Two operands as one matrix product: labels in both are the batch where they are needed, and summed otherwise."""
    t1, a1 = _summed(t1, a1, needed | set(t2))
    t2, a2 = _summed(t2, a2, needed | set(t1))
    size1, size2 = dict(zip(t1, a1.shape)), dict(zip(t2, a2.shape))
    shared = [label for label in t1 if label in size2]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    left = [label for label in t1 if label not in size2]
    right = [label for label in t2 if label not in size1]
    if not inner or any(size1[label] != size2[label] for label in inner):
        labels = (*batch, *inner, *left, *right)
        return _summed(labels, _spread(t1, a1, labels) * _spread(t2, a2, labels), needed)
    x = a1.transpose([t1.index(label) for label in (*batch, *left, *inner)])
    y = a2.transpose([t2.index(label) for label in (*batch, *inner, *right)])
    count = _base.product(size1[label] for label in inner)
    x = x.reshape(x.shape[:len(batch)] + (_base.product(size1[label] for label in left), count))
    y = y.reshape(y.shape[:len(batch)] + (count, _base.product(size2[label] for label in right)))
    z = matrix_product(x, y)
    shape = z.shape[:len(batch)] + tuple(size1[label] for label in left) + tuple(size2[label] for label in right)
    return (*batch, *left, *right), z.reshape(shape)


def _spread(term, a, labels):
    """A view of a with an axis for each label, of size 1 where it has none."""
    axes = [term.index(label) for label in labels if label in term]
    a = a.transpose(axes)
    sizes = iter(a.shape)
    return a.reshape(tuple(next(sizes) if label in term else 1 for label in labels))


def _arrange(term, a, result, sizes):
    from .._array.manipulation import broadcast_to
    a = a.transpose([term.index(label) for label in result])
    shape = tuple(sizes[label] for label in result)
    return a if a.shape == shape else broadcast_to(a, shape).copy()
