"""Measure what a service's event loop feels of its computations: event_loop.py [--seconds 5] [--first] with ARRAYD_URL.

A service of so many requests at a time multiplies a query with an index and answers with the best item. A heartbeat in the
same event loop asks to be woken every millisecond; how much later it is woken is how long the loop has stalled. bench.py has
its rows in its table. On a busy machine most of a stall is other programs' doing. With --first this process has a processor
whenever it wants one (Linux's SCHED_FIFO, for root), so that what is left is its own.
"""
import argparse
import asyncio
import gc
import math
import os
import selectors
import time

import numpy

ITEMS, WIDTH, REQUESTS = 50_000, 256, 16
BEAT = 0.001


async def beat(late, done):
    """Note the seconds by which each heartbeat comes late, until `done` is set."""
    while not done.is_set():
        due = time.perf_counter() + BEAT
        await asyncio.sleep(BEAT)
        late.append(time.perf_counter() - due)


class TimedSelector(selectors.DefaultSelector):
    """Notes the processor time in seconds that the loop's thread takes between two waits: its turns."""

    def __init__(self):
        super().__init__()
        self.turns, self._begun = [], None

    def select(self, timeout=None):
        if self._begun is not None:
            self.turns.append(time.thread_time() - self._begun)
        try:
            return super().select(timeout)
        finally:
            self._begun = time.thread_time()


async def answer_with_arrayd(ad, index, query):
    """The best item; the product is computed in the server, and this coroutine waits without the loop."""
    return int(await (index @ await ad.async_asarray(query)).argmax().aitem())


async def answer_with_numpy(numpy_module, index, query):
    """Answer with NumPy in the event loop."""
    return int((index @ query).argmax())


async def serve(answer, module, index, seconds, requests=REQUESTS):
    """Answer queries for so long; the answers' count, and the heartbeats' delays in seconds."""
    late, done, served = [], asyncio.Event(), 0
    end = time.perf_counter() + seconds

    async def client(seed):
        nonlocal served
        generator = numpy.random.default_rng(seed)
        while True:  # once at least
            best = int(generator.integers(index.shape[0]))
            query = numpy.zeros(index.shape[1], "float32")
            query[best % index.shape[1]] = 1
            await answer(module, index, query)
            served += 1
            await asyncio.sleep(0)  # as a service does that reads the next request
            if time.perf_counter() >= end:
                return

    heart = asyncio.ensure_future(beat(late, done))
    await asyncio.gather(*map(client, range(requests)))
    done.set()
    await heart
    return served, late


def measure(module, name, seconds=5.0, items=ITEMS):
    """Requests a second, and the p99 and the longest stall of the loop in milliseconds."""
    host = numpy.random.default_rng(1).random((items, WIDTH), "float32")
    index = module.asarray(host) if name == "arrayd" else host
    answer = answer_with_arrayd if name == "arrayd" else answer_with_numpy
    asyncio.run(serve(answer, module, index, min(0.3, seconds)))  # warm
    served, late = asyncio.run(serve(answer, module, index, seconds))
    late = sorted(late)
    return served / seconds, late[math.ceil(0.99 * len(late)) - 1] * 1e3, late[-1] * 1e3


def rows(libraries):
    """Rows of the table of bench.py."""
    figures = [measure(lib.module, lib.name) for lib in libraries if lib.name in ("arrayd", "NumPy")]
    for title, unit, values in zip(("a service of coroutines, 16 requests at a time", "its event loop stalls, p99",
                                    "its event loop stalls, longest"), ("1/s", "ms", "ms"), zip(*figures)):
        yield title, unit, list(values)


def main():
    """Print the figures of both."""
    import arrayd
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--first", action="store_true", help="ahead of all other programs of the machine, as root")
    options = parser.parse_args()
    seconds = options.seconds
    if options.first:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    gc.freeze()  # as services do when they have begun: their modules are not searched for garbage again and again
    for module, name in ((arrayd, "arrayd"), (numpy, "NumPy")):
        rate, p99, longest = measure(module, name, seconds)
        print(f"{name:8} {rate:8.0f} requests/s, stalls: p99 {p99:.2f} ms, longest {longest:.2f} ms")


if __name__ == "__main__":
    main()
