"""Hooks that show what memory a program uses (cupy.cuda.memory_hooks)."""
import json
import os
import sys
import traceback

from .memory_hook import MemoryHook

__all__ = ["DebugPrintHook", "LineProfileHook", "MemoryHook"]


class DebugPrintHook(MemoryHook):
    """Writes a line of JSON for each time that an array gets memory (malloc), the server takes some of the device for it
    (alloc), and an array gives memory back (free).

    Parameters: file: open for text. flush: write each line at once.
    Source: cupy.cuda.memory_hooks.DebugPrintHook
    """

    name = "DebugPrintHook"

    def __init__(self, file=sys.stdout, flush=True):
        self.file, self.flush = file, flush

    def _write(self, hook, facts):
        facts = {key: hex(value) if key == "pmem_id" else value for key, value in facts.items()}
        print(json.dumps({"hook": hook, **facts}, separators=(",", ":")), file=self.file, flush=self.flush)

    def alloc_postprocess(self, **kwargs):
        """Write device_id, mem_size and mem_ptr."""
        self._write("alloc", kwargs)

    def malloc_postprocess(self, **kwargs):
        """Write device_id, size, mem_size, mem_ptr and pmem_id."""
        self._write("malloc", kwargs)

    def free_postprocess(self, **kwargs):
        """Write device_id, mem_size, mem_ptr and pmem_id."""
        self._write("free", kwargs)


class _Line:
    """A line of a program: what arrays got from there, what the server took for them, and the lines that it called."""

    def __init__(self):
        self.used = self.acquired = 0
        self.called = {}

    def write(self, name, depth, file):
        """Write it, and what it called below."""
        file.write(f"{'  ' * depth}{name} ({_humanize(self.used)}, {_humanize(self.acquired)})\n")
        for below, line in self.called.items():
            line.write(below, depth + 1, file)


def _humanize(size):
    for unit in ("", "K", "M", "G", "T", "P"):
        if size < 1024:
            return f"{size:.2f}{unit}B"
        size /= 1024
    return f"{size:.2f}EB"


class LineProfileHook(MemoryHook):
    """Counts memory by the lines of the program that ask for it.

    Parameters: max_depth: how many lines the report follows calls, with that for all of them; 0: to the end.
    Source: cupy.cuda.memory_hooks.LineProfileHook
    """

    name = "LineProfileHook"
    _within = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

    def __init__(self, max_depth=0):
        self._root, self._max_depth = _Line(), max_depth

    def malloc_preprocess(self, **kwargs):
        """Count mem_size as used."""
        self._add(kwargs["mem_size"], 0)

    def alloc_preprocess(self, **kwargs):
        """Count mem_size as acquired."""
        self._add(0, kwargs["mem_size"])

    def _add(self, used, acquired):
        frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(self._within)]
        line = self._root
        for frame in [None, *frames[:self._max_depth - 1 if self._max_depth else None]]:
            if frame is not None:
                line = line.called.setdefault(f"{frame.filename}:{frame.lineno}:{frame.name}", _Line())
            line.used += used
            line.acquired += acquired

    def print_report(self, file=sys.stdout):
        """Write the lines, those that others call below them: (bytes of arrays, bytes that the server took of the device).

        Parameters: file: open for text.
        Returns: None.
        Source: cupy.cuda.memory_hooks.LineProfileHook.print_report
        """
        self._root.write("_root", 0, file)
        file.flush()
