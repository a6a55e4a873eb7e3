"""A program that forks while its server's worker is killed again and again. It, its children and theirs go on with the
same arrays, each by itself, and compare with NumPy.

family.py URL FRONT_PID KILLS SEED RATE: RATE kills in a second. Prints of all of them "KILLS killed, CHILDREN children,
COMPARED compared, LOST lost".
An array that was being changed in place when the worker was killed may be lost, and says so; anything else ends it
with status 1.
"""
import os
import random
import signal
import sys
import traceback

import numpy as np

import arrayd as ad
from storm import SIZES, WHY, Killer, Program

CHILDREN = 3  # at a time
DEPTH = 3
STEPS = 60


class Member(Program):
    def __init__(self, seed, sizes):
        super().__init__(seed, sizes, most=12)
        self.depth, self.children, self.forked = 0, {}, 0

    def begin_child(self):
        """The child's arrays are this one's; what it has done comes through a pipe when it ends."""
        if self.depth == DEPTH or len(self.children) == CHILDREN:
            return
        ours, theirs = os.pipe()
        seed, to_be_killed = self.random.getrandbits(32), self.random.random() < 0.1
        pid = os.fork()
        if pid:
            os.close(theirs)
            self.children[pid] = ours, to_be_killed
            self.forked += 1
            return
        os.close(ours)
        status = 1
        try:
            self.live(seed, DEPTH if to_be_killed else self.depth + 1)
            os.write(theirs, f"{self.forked} {self.compared} {self.lost}".encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def live(self, seed, depth):
        for ours, _ in self.children.values():
            os.close(ours)
        self.depth, self.children, self.forked, self.compared, self.lost = depth, {}, 0, 0, 0
        self.random, self.rng = random.Random(seed), np.random.default_rng(seed)
        for _ in range(self.random.randrange(STEPS)):
            self.step()
        self.stream = None
        self.end()

    def elsewhere(self):
        """Streams are the parent's."""
        if self.depth and self.stream:
            self.stream = None
        if not self.stream:
            self.stream = ad.cuda.Stream()
        super().elsewhere()

    def end_child(self, pid):
        ours, to_be_killed = self.children.pop(pid)
        if to_be_killed:
            os.kill(pid, signal.SIGKILL)
        with os.fdopen(ours) as pipe:
            told = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status == 0 or to_be_killed and status == -signal.SIGKILL, f"a child ended with {status}"
        if told:
            forked, compared, lost = map(int, told.split())
            self.forked += forked
            self.compared += compared
            self.lost += lost

    def step(self):
        super().step()
        if self.random.random() < 0.05:
            self.begin_child()
        if self.children and self.random.random() < 0.05:
            self.end_child(self.random.choice(list(self.children)))

    def end(self):
        while self.children:
            self.end_child(next(iter(self.children)))
        while self.pairs:
            self.compare_last()

    def compare_last(self):
        a, x = self.pairs.pop()
        try:
            assert np.array_equal(a.get(), x) and x is not None, "an array differs"
            self.compared += 1
        except ad.DeviceLostError as error:
            assert any(why in str(error) for why in WHY), error
            self.lost += 1
        except IndexError:
            assert x is None


def main(url, front, kills, seed, rate):
    ad.connect(url)
    member = Member(seed, SIZES)
    for _ in range(5):
        member.upload()
    killer = Killer(front, kills, seed, rate)
    killer.start()
    while killer.is_alive():
        member.step()
    member.end()
    print(f"{killer.done} killed, {member.forked} children, {member.compared} compared, {member.lost} lost")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5]))
