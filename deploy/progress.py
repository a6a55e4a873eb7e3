"""Run make and show how far it is: progress.py GOAL ... [VARIABLE=VALUE ...], on a terminal in one line that changes.

`[137/390] CXX kernels/cpu/... 1:20 left`: of what make would do, which `make -n` counts. The time follows from what has been
done so far; compiling a kernel counts as more than compiling a file of C.
"""
import os
import re
import signal
import subprocess
import sys
import time

LINE = re.compile(r"^  (CC|CXX|LD|NVCC|GET|PIP) +(\S+)$")
PLANNED = re.compile(r'echo "?  (CC|CXX|LD|NVCC|GET|PIP)? ?"? +(\S+)')
WEIGHT = {"CC": 1, "LD": 1, "CXX": 6, "NVCC": 25, "GET": 20, "PIP": 60}  # about how many seconds each takes


def weigh(kind, path):
    """About how long it takes; kernels for an instruction set take longest."""
    return 20 if "/isa/" in path else WEIGHT[kind]


def make_environment():
    """Without what a make that runs this has set: the one that is run here takes all processors, as one from a shell."""
    return {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "V")}


def plan(arguments):
    """Return what make would do: (kind, path) of each line that it would print."""
    text = subprocess.run(["make", "-n", "--no-print-directory", *arguments], capture_output=True, text=True,
                          env=make_environment()).stdout
    return [(kind or "LD", path) for kind, path in PLANNED.findall(text)]


class Progress:
    """Counts the lines of make as they come."""

    def __init__(self, steps, out):
        self.total, self.weight = len(steps), sum(weigh(*step) for step in steps)
        self.done, self.finished, self.begin, self.out = 0, 0, time.monotonic(), out
        self.terminal = out.isatty()

    def format_left(self):
        """The time that is left, or nothing as long as it cannot be told."""
        if not self.finished or self.finished >= self.weight:
            return ""
        seconds = (time.monotonic() - self.begin) * (self.weight - self.finished) / self.finished
        return f"  {int(seconds) // 60}:{int(seconds) % 60:02} left"

    def step(self, kind, path):
        """One more is under way."""
        self.done += 1
        text = f"[{self.done}/{max(self.total, self.done)}] {kind} {path.removeprefix('release/obj/')}{self.format_left()}"
        self.finished += weigh(kind, path)
        if self.terminal:
            print(f"\r\033[K{text[:110]}", end="", file=self.out, flush=True)
        elif self.done % 25 == 0 or self.done == self.total:
            print(text, file=self.out, flush=True)

    def end(self):
        """Leave the line."""
        if self.terminal and self.done:
            print("\r\033[K", end="", file=self.out, flush=True)


def follow(lines, progress):
    """Show the steps among the lines that make prints. A line that is no step is printed as it is."""
    for line in lines:
        found = LINE.match(line.rstrip("\n"))
        if found:
            progress.step(found[1], found[2])
        else:
            progress.end()
            print(line, end="", flush=True)
    progress.end()


def main():
    """Run make; its exit status."""
    arguments = sys.argv[1:]
    progress = Progress(plan(arguments), sys.stdout)
    process = subprocess.Popen(["make", "--no-print-directory", *arguments], stdout=subprocess.PIPE, text=True,
                               env=make_environment())
    try:
        follow(process.stdout, progress)
    except KeyboardInterrupt:
        process.terminate()  # make waits for a program that it began at that moment, which the terminal has not told: this ends it
        process.wait()
        progress.end()
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
