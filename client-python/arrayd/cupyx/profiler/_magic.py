"""%gpu_timeit in IPython."""
import inspect
import textwrap

from ._time import benchmark

_OPTIONS = {"-n": ("n_repeat", int), "--n-repeat": ("n_repeat", int), "-w": ("n_warmup", int),
            "--n-warmup": ("n_warmup", int), "--max-duration": ("max_duration", float)}


def load_ipython_extension(ipython):
    """Let IPython have %gpu_timeit, which benchmarks an expression, and %%gpu_timeit, which does a cell. Called by
    %load_ext arrayd.cupyx.profiler.

        %gpu_timeit -n 100 -w 5 --max-duration 2 x @ x

    Parameters: ipython: the shell.
    Returns: None.
    Raises: AttributeError for anything but a shell of IPython.
    Source: cupyx.profiler.load_ipython_extension
    """
    def gpu_timeit(line, cell=None):
        options, rest = _options(line)
        code = compile(rest, "<gpu_timeit>", "eval") if cell is None else \
            compile(textwrap.dedent(cell), "<gpu_timeit>", "exec")
        names = ipython.user_ns

        def run():
            return eval(code, names, names)

        print(benchmark(run, **options))

    gpu_timeit.__doc__ = inspect.getdoc(load_ipython_extension)
    ipython.register_magic_function(gpu_timeit, "line_cell")


def _options(line):
    """The options at the beginning of a line, and what comes after them."""
    options, rest = {}, line.strip()
    while rest.startswith("-") and rest.split(None, 1)[0] in _OPTIONS:
        parts = rest.split(None, 2)
        if len(parts) < 2:
            raise ValueError(f"{parts[0]} needs a number")
        name, kind = _OPTIONS[parts[0]]
        options[name], rest = kind(parts[1]), parts[2] if len(parts) > 2 else ""
    return options, rest
