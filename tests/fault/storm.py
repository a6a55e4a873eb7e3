"""A program that computes with arrays while its server's worker is killed again and again, and compares with NumPy.

storm.py URL FRONT_PID KILLS SEED [MOST [SECONDS [ARRAYS]]]: prints "KILLS killed, ARRAYS compared, LOST lost, OPERATIONS
operations, BYTES moved out". MOST: elements of an array. SECONDS: the next worker is killed only when there has been an
answer, which must not take longer; without it (0) a worker may be killed while it starts or takes over. ARRAYS: that it has
at a time; then there is host memory for all, and nothing is given up as memory is short. BYTES: by the last worker.
An array that was being changed in place at that moment may be lost, and says so; anything else that differs ends the
program with status 1.
"""
import contextlib
import os
import pathlib
import random
import signal
import sys
import threading
import time

import numpy as np

import arrayd as ad

SIZES = (1, 7, 1000, 20_000, 300_000)
WHY = ("in place", "used again")
IN_PIECES = "(option memory)"  # where memory is short: what a worker takes over it finds in pieces


def worker_of(front):
    """The worker's process; None: there is none at the moment."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split() if entry.name.isdigit() else None
            if fields and int(fields[1]) == front and fields[0] != "Z":
                if (entry / "comm").read_text().strip() == "arrayd-worker":
                    return int(entry.name)
        except OSError:
            pass
    return None


class Killer(threading.Thread):
    """Kills the worker at random times, `kills` times, `rate` of them in a second. It takes no more than IN_ROW without an
    answer in between: what a worker is killed of eight times is left out, and on a busy machine workers come to little."""

    IN_ROW = 4

    def __init__(self, front, kills, seed, rate=40, count_answers=None):
        super().__init__(daemon=True)
        self.front, self.kills, self.random, self.rate = front, kills, random.Random(seed), rate
        self.done, self.over = 0, threading.Event()
        self.count_answers = count_answers or (lambda: self.done)  # unless it is known, each kill counts as one

    def run(self):
        answers, before = self.count_answers(), self.done
        while self.done < self.kills and not self.over.wait(self.random.expovariate(self.rate)):
            if self.count_answers() != answers:
                answers, before = self.count_answers(), self.done
            if self.done - before < self.IN_ROW:
                self.kill()

    def kill(self):
        worker = worker_of(self.front)
        if worker is not None:
            with contextlib.suppress(ProcessLookupError):  # another one ended it first
                os.kill(worker, signal.SIGKILL)
                self.done += 1


class Program:
    """Random operations on arrays, each done here as well."""

    def __init__(self, seed, sizes, most=30, why=WHY):
        self.most, self.why = most, why
        self.random, self.rng, self.sizes = random.Random(seed), np.random.default_rng(seed), sizes
        self.pairs, self.compared, self.lost, self.operations = [], 0, 0, 0
        self.stream = ad.cuda.Stream()

    def values(self, n):
        return self.rng.integers(-1000, 1000, n)

    def add(self, theirs, ours):
        self.pairs.append((theirs, ours))
        if len(self.pairs) > self.most:
            del self.pairs[self.random.randrange(len(self.pairs))]

    def two(self):
        """Two of one length."""
        good = [p for p in self.pairs if p[1] is not None]
        x = self.random.choice(good)
        return x, self.random.choice([p for p in good if p[1].shape == x[1].shape])

    def upload(self):
        ours = self.values(self.random.choice(self.sizes))
        self.add(ad.asarray(ours), ours)

    def compute(self):
        (a, x), (b, y) = self.two()
        function = self.random.choice([lambda p, q: p + q, lambda p, q: p * 3 - q, lambda p, q: abs(p) % 1001 + q,
                                       lambda p, q: (p > q) * p - (q - 5) * 2])
        self.add(function(a, b) % 100_003, function(x, y) % 100_003)

    def change(self):
        (a, x), (b, y) = self.two()
        kind = self.random.randrange(4)
        if kind == 0:
            a += b
            x += y
        elif kind == 1:
            n = self.random.randrange(len(x) + 1)
            a[:n] = b[len(x) - n:]
            x[:n] = y[len(x) - n:]
        elif kind == 2:
            a[::3] -= 7
            x[::3] -= 7
        else:
            a.sort()
            x.sort()

    def overwrite(self):
        a, x = self.two()[0]
        new = self.values(len(x))
        a[:] = ad.asarray(new)
        x[:] = new

    def astray(self):
        """An index out of bounds, which the device finds: the result says so, and what is computed from it."""
        a, x = self.two()[0]
        self.add(a[ad.asarray(np.array([0, len(x)]))] + 1, None)

    def elsewhere(self):
        with self.stream:
            self.compute()

    def compare(self):
        i = self.random.randrange(len(self.pairs))
        a, x = self.pairs[i]
        try:
            kind = self.random.randrange(3)
            if x is None:
                a.get()
                good = False
            elif kind == 0:
                good = int(a.sum()) == int(x.sum())
            elif kind == 1:
                good = np.array_equal(a[::-1].get(), x[::-1])
            else:
                good = np.array_equal(a.get(), x)
        except (ad.DeviceLostError, MemoryError) as error:
            assert any(why in str(error) for why in (*self.why, IN_PIECES)), error
            self.lost += 1
            del self.pairs[i]
            return
        except IndexError:
            assert x is None
            good = True
        assert good, "there should be an error" if x is None else f"an array of {len(x)} differs"
        self.compared += 1

    def step(self):
        if all(x is None for _, x in self.pairs):
            self.upload()
        actions = {self.upload: 2, self.compute: 8, self.elsewhere: 4, self.change: 6, self.overwrite: 1, self.astray: 1,
                   self.compare: 3}
        action = self.random.choices(list(actions), list(actions.values()))[0]
        action()
        self.operations += 1


def in_turn(program, killer, seconds):
    """Take some steps, kill in the middle of what is left of them, and wait for an answer."""
    while killer.done < killer.kills:
        for _ in range(program.random.randrange(5, 60)):
            program.step()
        killer.kill()
        begin = time.monotonic()
        assert int(ad.arange(1000).sum()) == 499500
        took = time.monotonic() - begin
        assert took < seconds, f"no answer for {took:.1f} s"


def main(kind=Program):
    url, front, kills, seed, *more = sys.argv[1], *map(int, sys.argv[2:])
    most, limit, arrays = [*more, *(max(SIZES), 0, 0)[len(more):]]
    ad.connect(url)
    program = kind(seed, [n for n in SIZES if n <= most], *([arrays, WHY[:1]] if arrays else []))
    for _ in range(5):
        program.upload()
    killer = Killer(front, kills, seed, count_answers=lambda: program.compared + program.lost)
    if limit:
        in_turn(program, killer, limit)
    else:
        killer.start()
    while killer.is_alive():
        program.step()
    for _ in range(50):
        program.step()
        program.compare()
    print(f"{killer.done} killed, {program.compared} compared, {program.lost} lost, {program.operations} operations, "
          f"{ad.stat()['moved_out']} moved out")


if __name__ == "__main__":
    main()
