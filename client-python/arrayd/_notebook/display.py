"""How arrays look in notebooks."""
import html

import numpy as np

from .. import _core
from .._array.formatting import FAILURES, _shown

_EDGE = 3  # rows and columns that are shown at each end
_STYLE = "padding:0.1em 0.6em;text-align:right;font-family:monospace"


def format_size(nbytes):
    """A number of bytes as people read it: 16 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            break
        nbytes /= 1024
    else:
        unit = "TiB"
    return f"{nbytes:.4g} {unit}"


def format_count(n, word):
    """A number of things as people write it: 1 operation, 2 operations."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def _cell(value):
    return f'<td style="{_STYLE}">{html.escape(np.array2string(value))}</td>'


def _row(values, width):
    """The cells of a row, with dots where the middle of the width elements is left out."""
    cells = [_cell(each) for each in values]
    if len(values) < width:
        cells[_EDGE] = f'<td style="{_STYLE}">…</td>'  # the element that stands for it was fetched as well
    return f"<tr>{''.join(cells)}</tr>"


def _preview(a):
    """A table of at most 7 x 7 elements, fetched in one round trip, of the last two axes."""
    part = a[(0,) * (a.ndim - 2)] if a.ndim > 2 else a
    host = _shown(part, threshold=0, edgeitems=_EDGE)[0]
    rows = np.atleast_2d(host)
    height, width = (1, 1, *part.shape)[-2:]
    lines = [_row(row, width) for row in rows]
    if len(rows) < height:
        lines[_EDGE] = f'<tr><td style="{_STYLE}" colspan="{rows.shape[1]}">⋮</td></tr>'
    where = f"<div>[{', '.join(['0'] * (a.ndim - 2))}, :, :]</div>" if a.ndim > 2 else ""
    return f'{where}<table style="border-collapse:collapse">{"".join(lines)}</table>'


def repr_html(self):
    """The array for a notebook: shape, type, size, where it is, and the elements at its edges.

    Returns: str, HTML. Fetches at most 49 elements; an error of what computed them is shown in their place.
    Source: arrayd
    """
    info = _core.session_info()
    place = f"{self.device}, {info['device_name']}, {info['url']}"
    head = f"arrayd.ndarray {self.shape}, {self.dtype}, {format_size(self.nbytes)}, on {place}"
    try:
        body = _preview(self) if self.size else "<div>no elements</div>"
    except FAILURES as error:
        body = f'<div style="color:#b00">{type(error).__name__}: {html.escape(str(error))}</div>'
    return f"<div><div><b>{html.escape(head)}</b></div>{body}</div>"
