"""Draw the pictures of the first page: pictures.py [--check]. Writes docs/pictures/*.svg; the chart's figures are read from
docs/performance.md. --check: exit with 1 when the pictures that are there are others."""
import html
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE / "performance.md"
OUT = HERE / "pictures"
OURS, THEIRS, INK, FAINT = "#2563eb", "#9ca3af", "#111827", "#6b7280"
WIDTH = 760


def find_figure(table, row, column):
    """A figure of the page: in the table whose head begins like this, in the row of that title, in the column of that
    title or number."""
    lines = PAGE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {table} |"))
    head = [cell.strip() for cell in lines[start].strip("|").split("|")]
    for line in lines[start + 2:]:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if cells[0] == row:
            return float(cells[column if isinstance(column, int) else head.index(column)].replace(",", ""))
        if not line.startswith("|"):
            break
    raise LookupError(f"{PAGE} has no row {row!r} in the table {table!r}")


def groups():
    """Return what the chart compares: title, unit, whether more is better, bars of (name, figure, whether ours)."""
    service, gpu = "service of four workers", "work"
    floods = "four clients have done"
    return [
        ("A web service: requests a second", "/s", True,
         [("one index, arrayd", find_figure(service, "requests a second", "arrayd"), True),
          ("NumPy in each worker", find_figure(service, "requests a second", "NumPy"), False)]),
        ("Memory of that service", " MiB", False,
         [("one index, arrayd", find_figure(service, "memory in all, the server's included", "arrayd"), True),
          ("NumPy in each worker", find_figure(service, "memory in all, the server's included", "NumPy"), False)]),
        ("a + b until it returns, on a GPU", " us", False,
         [("arrayd", find_gpu_figure(gpu, "`a + b`, 16 float32, until it returns", "arrayd"), True),
          ("CuPy", find_gpu_figure(gpu, "`a + b`, 16 float32, until it returns", "CuPy"), False)]),
        ("From process start to the first result", " ms", False,
         [("arrayd", find_gpu_figure(gpu, "process start to first result", "arrayd"), True),
          ("CuPy", find_gpu_figure(gpu, "process start to first result", "CuPy"), False)]),
        ("An answer while four others flood the GPU", " ms", False,
         [("beside them", find_figure(floods, "products of 8192 x 8192", 3), True),
          ("alone", find_figure(floods, "products of 8192 x 8192", 1), True)]),
    ]


def find_gpu_figure(table, row, column):
    """A figure of the table that has CuPy's."""
    return find_figure("work | unit | arrayd | CuPy", row, {"arrayd": 2, "CuPy": 3}[column])


def text(x, y, content, size=13, fill=INK, weight="normal", anchor="start"):
    """A line of text."""
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" font-weight="{weight}" '
            f'text-anchor="{anchor}">{html.escape(content)}</text>')


def box(x, y, width, height, fill, radius=6, stroke="none"):
    """A rectangle with round corners."""
    return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}" fill="{fill}" '
            f'stroke="{stroke}"/>')


def wrap(height, title, body):
    """An SVG picture on a white ground, readable on dark pages, too."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
            f'height="{height:g}" role="img" font-family="system-ui, sans-serif"><title>{html.escape(title)}</title>\n'
            + "\n".join([box(0, 0, WIDTH, height, "#ffffff", 10), *body]) + "\n</svg>\n")


def format_figure(value):
    """A figure as the page has it, without trailing zeros."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def draw_chart():
    """The chart: a group of bars for each comparison."""
    body, y = [], 14
    for title, unit, more, bars in groups():
        y += 22
        body += [text(24, y, title, weight="bold"),
                 text(WIDTH - 24, y, "more is better" if more else "less is better", 11, FAINT, anchor="end")]
        most = max(value for _, value, _ in bars)
        for name, value, ours in bars:
            y += 24
            length = max(3, 430 * value / most)
            body += [text(176, y, name, 12, FAINT, anchor="end"), box(186, y - 12, length, 16, OURS if ours else THEIRS, 3),
                     text(194 + length, y, format_figure(value) + unit, 12)]
        y += 8
    return wrap(y + 18, "arrayd beside NumPy and CuPy: figures of docs/performance.md", body)


def draw_overview():
    """Programs on the left, one server that owns the devices on the right."""
    body = [text(24, 32, "your programs", 13, FAINT), text(452, 32, "one server for the host", 13, FAINT)]
    programs = (("web worker", "import arrayd"), ("web worker", "import arrayd"), ("data loader", "import arrayd"),
                ("notebook", "import arrayd"))
    for i, (name, line) in enumerate(programs):
        y = 46 + 54 * i
        body += [box(24, y, 210, 42, "#eff6ff", stroke=OURS), text(38, y + 18, name, 13, weight="bold"),
                 text(38, y + 34, f"{line}: no CUDA here", 11, FAINT),
                 f'<path d="M234 {y + 21} C 330 {y + 21}, 350 148, 448 148" fill="none" stroke="{OURS}" stroke-width="1.5"/>']
    body += [text(300, 246, "a socket each", 11, FAINT), box(450, 46, 286, 204, "#f8fafc", stroke=INK),
             text(466, 72, "arrayd", 16, weight="bold"), text(466, 92, "runs operations, shares by turns", 12, FAINT),
             box(466, 108, 254, 54, "#dbeafe"), text(480, 130, "arrays in one pool of memory", 13),
             text(480, 150, '"index" is there once, for all', 12, FAINT), box(466, 176, 120, 58, "#dcfce7"),
             text(526, 210, "GPUs", 14, weight="bold", anchor="middle"), box(600, 176, 120, 58, "#dcfce7"),
             text(660, 210, "processors", 14, weight="bold", anchor="middle")]
    return wrap(270, "Programs with a thin client share one server that owns the devices", body)


def main():
    """Write the pictures, or compare them."""
    OUT.mkdir(exist_ok=True)
    different = []
    for name, draw in (("overview", draw_overview), ("chart", draw_chart)):
        path, picture = OUT / f"{name}.svg", draw()
        if "--check" in sys.argv and (not path.exists() or path.read_text() != picture):
            different.append(path.name)
        elif "--check" not in sys.argv:
            path.write_text(picture)
    if different:
        print(f"pictures: {', '.join(different)} differ from docs/performance.md: run docs/pictures.py")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
