"""Arrays in coroutines. Whether the event loop goes on is seen by a server that does not answer: its worker is stopped
while other coroutines take their turns."""
import asyncio
import os
import signal

import numpy as np
import pytest

import arrayd as ad


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


class Stopped:
    """The server's worker stands still."""

    def __enter__(self):
        ad.sync()
        self.worker = ad.stat()["worker_pid"]
        os.kill(self.worker, signal.SIGSTOP)
        return self

    def go_on(self):
        os.kill(self.worker, signal.SIGCONT)

    def __exit__(self, *_):
        self.go_on()


async def turns(n):
    for _ in range(n):
        await asyncio.sleep(0)
    return n


async def meanwhile(stopped, waiting):
    """Return what a coroutine gives; others have their turns while it cannot go on."""
    task = asyncio.ensure_future(waiting)
    assert await turns(1000) == 1000
    assert not task.done()
    stopped.go_on()
    return await task


async def itself(awaitable):
    return await awaitable


@pytest.mark.parametrize("shape", [(), (5,), (30, 40), (0, 3)])
def test_an_array_becomes_ready(shape):
    x = ad.asarray(np.ones(shape))
    with Stopped() as stopped:
        async def main():
            y = x + 1  # is sent, and does not wait
            assert await meanwhile(stopped, itself(y)) is y
            return y
        assert np.array_equal(run(main()).get(), np.full(shape, 2.0))


def test_elements():
    host = np.arange(12.0).reshape(3, 4)
    x = ad.asarray(host)
    with Stopped() as stopped:
        got = run(meanwhile(stopped, (x * 2).aget()))
    assert np.array_equal(got, host * 2)
    with Stopped() as stopped:
        assert run(meanwhile(stopped, x.aitem(1, 2))) == 6.0
    out = np.empty((3, 4))
    assert run(x.aget(out=out)) is out and np.array_equal(out, host)
    assert run(x.aget(order="F")).flags.f_contiguous


def test_sending_and_waiting():
    host = np.arange(2_000_000.0)
    with Stopped() as stopped:
        x = run(meanwhile(stopped, ad.async_sync())) or ad.arange(3)
    assert x.tolist() == [0, 1, 2]
    sent = run(ad.async_asarray(host))
    assert np.array_equal(sent.get(), host)
    assert run(ad.async_asarray(x)) is x
    assert run(ad.async_asarray([1, 2], dtype="float32")).dtype == np.float32


@pytest.mark.parametrize("host", [np.arange(10), np.arange(24.0).reshape(4, 3, 2), np.zeros((0, 3)),
                                  np.arange(3 << 18, dtype="float32").reshape(-1, 64)], ids=lambda h: str(h.shape))
def test_rows(host):
    x = ad.asarray(host)

    async def main():
        return [row async for row in x]
    rows = run(main())
    assert len(rows) == len(host) and all(np.array_equal(row, mine) for row, mine in zip(rows, host))
    if host.ndim == 1:
        assert all(isinstance(row, np.integer) for row in rows)


def test_a_loop_that_ends_early():
    x = ad.asarray(np.zeros((4096, 1024)))

    async def main():
        async for row in x:
            return row.shape
    assert run(main()) == (1024,)
    with pytest.raises(TypeError, match="0-d"):
        async def scalar():
            async for _ in ad.asarray(1.0):
                pass
        run(scalar())


def test_many_at_a_time():
    """More coroutines wait than there are threads for them."""
    async def one(i):
        x = ad.full(100, i)
        total = (x + 1).sum()
        await total
        return await total.aitem()

    async def main():
        return await asyncio.gather(*(one(i) for i in range(200)))
    assert run(main()) == [100 * (i + 1) for i in range(200)]


def test_errors():
    bad = ad.arange(3)[ad.asarray([7])]
    for waiting in itself(bad), bad.aget(), bad.aitem(0):
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            run(waiting)


def test_a_fork(own_server):
    """A child's threads are its own."""
    from test_core_sessions import run as run_program
    _, url = own_server()
    assert run_program("""
import arrayd as ad, asyncio, os, sys
async def main(): return await (ad.arange(5) + 1).aget()
first = asyncio.run(main())
child = os.fork()
if not child:
    os._exit(asyncio.run(main()).tolist() != [1, 2, 3, 4, 5])
print(first.tolist(), os.waitpid(child, 0)[1])
""", url=url) == "[1, 2, 3, 4, 5] 0"
