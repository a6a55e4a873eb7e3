"""Principals that begin in the shared worker and get one of their own with their first kernel."""
import os
import re
import signal

import numpy as np

import raw
from places import port_of
from raw import Closed, wait_until
from returning import Session, add_one

MAY = "kernels=yes names=100 exports=yes"
SOURCE = 'extern "C" __global__ void five(long long *x) { x[threadIdx.x] += 5; }'


def start_for(start, place, *options, env=None, movers=("mover",), grants=MAY):
    """A server for these, who may run kernels, and for the bystander, who may not."""
    for name in movers:
        place.add(name, grants)
    place.add("bystander", "kernels=no names=100 exports=yes")
    return start(*place.options("tcp"), *options, env=env or {})


def worker_of(server, domain):
    """The last that there has been of that; None: there has been none."""
    found = [re.search(r" worker=(\d+)", line)[1] for line in list(server.lines)
             if 'event="worker ready"' in line and f" domain={domain} " in line]
    return int(found[-1]) if found else None


class Client(Session):
    """A client that comes back whenever its connection breaks, until it has its answer."""

    resumes = 0

    def __init__(self, server, place, name="mover"):
        super().__init__(("127.0.0.1", port_of(server, "tcp")), token=place.token[name])

    def receive(self):
        while True:
            before = self.received
            try:
                return super().receive()
            except Closed as closed:
                if closed.code or self.sent is None:
                    raise
            self.received = before  # what has come of the frame comes again
            self.back()

    def back(self):
        def came():
            try:
                self.come_back()
            except (Closed, ConnectionError) as error:
                if getattr(error, "code", None):
                    raise
                return False
            return True
        wait_until(came, "it has come back")
        self.resumes += 1

    def count(self, x, n):
        """Execute so many operations, each of which counts."""
        for _ in range(n):
            self.out += add_one(self, x)
            self.operations += 1

    def ask_build(self, module=1, source=SOURCE):
        return self.ask("build", module, source, [], ["five"])

    def build(self, module=1):
        values, log = self.reply(self.ask_build(module))
        assert values[0] is True, log

    def launch(self, x, threads, module=1):
        self.op("launch", module, "five", [1, 1, 1, threads, 1, 1, 0, 0], [x], [], [])

    def worker(self):
        return self.stat("worker_pid")

    def leave(self):
        self.send(raw.frame(flags=4))
        self.close()


class Bystander(Client):
    """A client that stays. Nothing happens to it."""

    def __init__(self, server, place):
        super().__init__(server, place, "bystander")
        self.x = self.put(np.arange(1000))
        self.sync()
        self.pid = self.worker()

    def works(self):
        assert np.array_equal(self.get(self.ufunc("add", "int64", [1000], self.x, 1)), np.arange(1, 1001))

    def unharmed(self):
        self.works()
        assert self.worker() == self.pid and self.resumes == 0

    def alone(self):
        """Check that nothing of the others is left there."""
        def nothing():
            counters = self.stat()
            return counters["sessions"] == 1 and not any(
                counters[name] for name in ("shared_buffers", "capabilities", "published", "orphans"))
        wait_until(nothing, "all that was theirs has gone")


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
