"""A program that computes with arrays while its server's worker is killed again and again, and compares with NumPy.

storm.py URL FRONT_PID KILLS SEED: prints "KILLS killed, ARRAYS compared, LOST lost, OPERATIONS operations". What was being
changed in place at that moment may be lost, and says so; anything else that differs ends the program with status 1.
"""
import os
import pathlib
import random
import signal
import sys
import threading

import numpy as np

import arrayd as ad

SIZES = (1, 7, 1000, 20_000, 300_000)


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
    """Kills the worker at random times, `kills` times."""

    def __init__(self, front, kills, seed):
        super().__init__(daemon=True)
        self.front, self.kills, self.random = front, kills, random.Random(seed)
        self.done, self.over = 0, threading.Event()

    def run(self):
        while self.done < self.kills and not self.over.wait(self.random.expovariate(40)):
            worker = worker_of(self.front)
            if worker is not None:
                os.kill(worker, signal.SIGKILL)
                self.done += 1


class Program:
    """Random operations on arrays, each done here as well."""

    def __init__(self, seed):
        self.random, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.pairs, self.compared, self.lost, self.operations = [], 0, 0, 0

    def values(self, n):
        return self.rng.integers(-1000, 1000, n)

    def add(self, theirs, ours):
        self.pairs.append((theirs, ours))
        if len(self.pairs) > 30:
            del self.pairs[self.random.randrange(len(self.pairs))]

    def two(self):
        """Two of one length."""
        x = self.random.choice(self.pairs)
        return x, self.random.choice([p for p in self.pairs if p[1].shape == x[1].shape])

    def upload(self):
        ours = self.values(self.random.choice(SIZES))
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
        a, x = self.random.choice(self.pairs)
        new = self.values(len(x))
        a[:] = ad.asarray(new)
        x[:] = new

    def compare(self):
        i = self.random.randrange(len(self.pairs))
        a, x = self.pairs[i]
        try:
            kind = self.random.randrange(3)
            if kind == 0:
                good = int(a.sum()) == int(x.sum())
            elif kind == 1:
                good = np.array_equal(a[::-1].get(), x[::-1])
            else:
                good = np.array_equal(a.get(), x)
        except ad.DeviceLostError as error:
            assert "in place" in str(error), error
            self.lost += 1
            del self.pairs[i]
            if not self.pairs:
                self.upload()
            return
        assert good, f"an array of {len(x)} differs"
        self.compared += 1

    def step(self):
        action = self.random.choices([self.upload, self.compute, self.change, self.overwrite, self.compare],
                                     [2, 12, 6, 1, 3])[0]
        action()
        self.operations += 1


def main():
    url, front, kills, seed = sys.argv[1], *map(int, sys.argv[2:])
    ad.connect(url)
    program = Program(seed)
    for _ in range(5):
        program.upload()
    killer = Killer(front, kills, seed)
    killer.start()
    while killer.is_alive():
        program.step()
    for _ in range(50):
        program.compare()
    print(f"{killer.done} killed, {program.compared} compared, {program.lost} lost, {program.operations} operations")


if __name__ == "__main__":
    main()
