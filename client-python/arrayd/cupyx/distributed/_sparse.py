"""Sparse matrices in a group's messages: their arrays, and their shape as a fact."""
from ...scipy import sparse

_PARTS = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}


def is_sparse(a):
    """Whether it is a sparse matrix, or a list that begins with one."""
    return sparse.issparse(a[0] if isinstance(a, (list, tuple)) and a else a)


def take_apart(matrix):
    """The arrays and the facts of a message. TypeError for a format that has no message."""
    if matrix.format not in _PARTS:
        raise TypeError(f"a group sends sparse matrices of {', '.join(_PARTS)}, not {matrix.format}; tocsr() converts it")
    return ([getattr(matrix, part) for part in _PARTS[matrix.format]],
            {"format": matrix.format, "shape": [int(n) for n in matrix.shape]})


def send(link, matrix):
    """Send a matrix over a connection."""
    arrays, facts = take_apart(matrix)
    link.send(arrays, **facts)


def build(like, arrays, facts):
    """The matrix of a message. Its class is that of another matrix. TypeError when the sender's format is not."""
    if facts.get("format") != like.format:
        raise TypeError(f"the sparse matrix has the format {like.format} here, and {facts.get('format')} at the sender")
    parts = (arrays[0], tuple(arrays[1:])) if like.format == "coo" else tuple(arrays)
    return type(like)(parts, shape=tuple(facts["shape"]), copy=True)


def assign(matrix, arrays, facts):
    """Let a matrix have the shape and the elements of a message."""
    copy(build(matrix, arrays, facts), matrix)


def copy(source, target):
    """Let a matrix have the shape and the elements of another."""
    if source.format != target.format:
        raise TypeError(f"the sparse matrix has the format {target.format} here, and {source.format} at the sender")
    vars(target).clear()
    vars(target).update(vars(source.copy()))


def combine(matrices, op):
    """The sum or the matrix product of matrices, in their order. ValueError for another operation."""
    if op not in ("sum", "prod"):
        raise ValueError(f"op must be 'sum' or 'prod' for sparse matrices, not {op!r}")
    total = matrices[0]
    for each in matrices[1:]:
        total = total + each if op == "sum" else total @ each
    return total.asformat(matrices[0].format)
