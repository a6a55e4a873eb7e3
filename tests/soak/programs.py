"""Programs of a soak's clients. Each is small, computes something by arrayd and compares it with NumPy.
"""
import gc
import os
import pickle
import random
import sys
import traceback

import numpy as np

import arrayd as ad

PROGRAMS = {}
LOST = "in place", "used again"  # what a worker that was killed may take with it
may_lose = False  # workers are killed
LACKED, MAY_BE = 2, 3  # how a forked child ends that lacked memory, or lost what it may lose


def is_lost(error):
    """Tell whether an error is what a worker that was killed may cost: the array that was being changed."""
    return may_lose and isinstance(error, ad.DeviceLostError) and any(why in str(error) for why in LOST)


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def same(theirs, mine):
    np.testing.assert_array_equal(ad.asnumpy(theirs), mine)


def close(theirs, mine, tolerance=1e-9):
    np.testing.assert_allclose(ad.asnumpy(theirs), mine, rtol=tolerance, atol=tolerance)


class Draw(random.Random):
    """Sizes and arrays of a program."""

    def __init__(self, seed):
        super().__init__(seed)
        self.numbers = np.random.default_rng(seed)

    def size(self, most):
        """Small ones more often than large ones."""
        return max(1, int(most ** self.random()))

    def floats(self, *shape):
        return self.numbers.random(shape) + 0.5

    def ints(self, least, most, *shape):
        return self.numbers.integers(least, most, shape)


# ---- computing ----

@program
def counts(draw):
    """Count in place, on slices, without waiting."""
    n = 1 + draw.size(20000)
    mine, theirs = np.zeros(n, np.int64), ad.zeros(n, np.int64)
    for _ in range(draw.randrange(50, 400)):
        first, step = draw.randrange(n), draw.choice([1, 1, 2, 7])
        mine[first::step] += first
        theirs[first::step] += first
    same(theirs, mine)
    assert int(theirs.sum()) == mine.sum()


@program
def floats(draw):
    """Chains over a formula, whose temporaries go at once."""
    x, y = draw.floats(draw.size(200000)), draw.random() + 0.1
    a = ad.asarray(x)
    for _ in range(draw.randrange(1, 12)):
        x = np.sqrt(x * x + y) * 0.5 - np.cos(x) / 4
        a = ad.sqrt(a * a + y) * 0.5 - ad.cos(a) / 4
    close(a, x)
    close(a.mean(), x.mean())


@program
def types(draw):
    """Mixed types promote as NumPy's."""
    kinds = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64"]
    n = draw.size(5000)
    x, y = (draw.ints(0, 100, n).astype(draw.choice(kinds)) for _ in range(2))
    total = ad.asarray(x) * ad.asarray(y) + ad.asarray(x)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x * y + x
    assert total.dtype == expected.dtype
    close(total, expected, 1e-2 if expected.dtype == np.float16 else 1e-5)


@program
def linalg(draw):
    n = draw.randrange(2, 60)
    x = draw.floats(n, n) + n * np.eye(n)
    a, b = ad.asarray(x), draw.floats(n, 3)
    close(a @ ad.linalg.solve(a, ad.asarray(b)), b, 1e-7)
    close(ad.linalg.svd(a, compute_uv=False), np.linalg.svd(x, compute_uv=False), 1e-7)
    q, r = ad.linalg.qr(a)
    close(q @ r, x, 1e-7)
    close(a @ a.T, x @ x.T, 1e-7)


@program
def fourier(draw):
    n = draw.randrange(2, 3000)
    x = draw.floats(draw.randrange(1, 4), n)
    close(ad.fft.fft(ad.asarray(x)), np.fft.fft(x), 1e-6)
    close(ad.fft.irfft(ad.fft.rfft(ad.asarray(x)), n=n), x, 1e-6)


@program
def randoms(draw):
    """Draw random numbers by a seed, which gives the same ones whatever others draw."""
    seed, n = draw.randrange(1 << 30), draw.size(50000)
    one, two = (ad.random.default_rng(seed) for _ in range(2))
    x, y = one.random(n), two.random(n)
    same(x, ad.asnumpy(y))
    assert bool(((x >= 0) & (x < 1)).all())
    same(one.integers(0, 1000, n), ad.asnumpy(two.integers(0, 1000, n)))


@program
def orders(draw):
    x = draw.ints(-1000, 1000, draw.size(50000))
    a = ad.asarray(x)
    same(ad.sort(a), np.sort(x))
    same(a[ad.argsort(a, kind="stable")], np.sort(x))
    same(ad.unique(a), np.unique(x))
    same(ad.nonzero(a > 0)[0], np.nonzero(x > 0)[0])
    same(ad.cumsum(a), np.cumsum(x))


@program
def indexes(draw):
    n = 2 + draw.size(20000)
    x, at = draw.floats(n), draw.ints(0, n, draw.size(3000))
    a = ad.asarray(x)
    same(a[ad.asarray(at)], x[at])
    a[ad.asarray(at)] = 7.0
    x[at] = 7.0
    same(a[::-3], x[::-3])
    same(a[a > 1], x[x > 1])


@program
def errors(draw):
    """Each error says what it is about, and what comes after it works."""
    n = draw.randrange(2, 100)
    a = ad.arange(n)
    for wrong in (lambda: a + ad.zeros(n + 1), lambda: a[n + draw.randrange(9)], lambda: a.reshape(n + 1)):
        try:
            wrong()
        except (ValueError, IndexError):
            continue
        raise AssertionError("it raised nothing")
    try:
        ad.asnumpy(a[ad.asarray([0, n])])
    except IndexError:
        pass
    else:
        raise AssertionError("an index out of bounds raised nothing")
    assert int(a.sum()) == n * (n - 1) // 2


# ---- moving data ----

@program
def copies(draw):
    for _ in range(draw.randrange(1, 4)):
        x = draw.ints(0, 256, draw.size(6 << 20)).astype(np.uint8)
        a = ad.asarray(x)
        a += 1
        same(a, x + np.uint8(1))


@program
def much(draw):
    """Compute with more than fits. Some of it is moved to host memory. An error says what a quota does not allow, and
    the program goes on."""
    held, expected = [], []
    try:
        for i in range(draw.randrange(5, 60)):
            held.append(ad.full(1 << 17, i, "int64") + i)
            expected.append(2 * i)
        for a, value in zip(held, expected):
            assert int(a[draw.randrange(1 << 17)]) == value
            assert int(a.max()) == value == int(a.min())
    except MemoryError as error:
        assert "memory" in str(error), error
    held.clear()
    gc.collect()
    try:
        assert int(ad.ones(1000).sum()) == 1000
    except MemoryError:  # others may hold all there is
        pass


@program
def streams(draw):
    x = draw.floats(draw.size(100000))
    one, two = ad.cuda.Stream(), ad.cuda.Stream()
    a = ad.asarray(x)
    with one:
        b = a * 2
        done = one.record()
    two.wait_event(done)
    with two:
        c = b + 1
    two.synchronize()
    close(c, x * 2 + 1)


# ---- sharing ----

@program
def names(draw):
    name, x = f"soak.{os.getpid()}.{draw.randrange(1 << 30)}", draw.floats(draw.size(100000))
    ad.publish(name, ad.asarray(x))
    try:
        a = ad.attach(name)
        same(a, x)
        a = a * 2
        same(ad.attach(name), x)
        close(a, x * 2)
    finally:
        ad.unpublish(name)


@program
def handles(draw):
    x = draw.floats(5000 + draw.size(100000))
    a = ad.asarray(x)
    b = pickle.loads(pickle.dumps(ad.share(a, uses=1, linger=1))).attach()
    b += 1
    same(a, x)
    close(b, x + 1)


def family(draw, a, x, deeper):
    """A child goes on with what its parent has, and maybe a child of that; none sees what another one writes."""
    parent, child = os.getpid(), os.fork()
    if not child:
        status = 1
        try:
            for _ in range(draw.randrange(10)):
                a, x = a * 1.5 - 1, x * 1.5 - 1
            a += 1
            x = x + 1
            close(a, x)
            if deeper and draw.random() < 0.3:
                family(draw, a, x, deeper - 1)
            status = 0
        except BaseException as error:
            status = LACKED if isinstance(error, MemoryError) else MAY_BE if is_lost(error) else 1
            if status == 1 and os.getppid() == parent:  # otherwise the program was killed, maybe before it had sent the fork
                traceback.print_exc()
        finally:
            os._exit(status)
    a *= 3
    close(a, x * 3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == LACKED:
        raise MemoryError("the child's")
    if status == MAY_BE:
        raise ad.DeviceLostError(f"the child: {LOST[0]}")
    assert status == 0, f"the child ended with {status}"


@program
def forks(draw):
    x = draw.floats(draw.size(50000))
    family(draw, ad.asarray(x), x, 2)


# ---- kernels ----

@program
def kernels(draw):
    """Launch one of four kernels, so that most are compiled already."""
    k = draw.randrange(1, 5)
    f = ad.ElementwiseKernel("float64 x, float64 y", "float64 z", f"z = x * {k} + y", f"soak_{k}")
    x, y = draw.floats(draw.size(20000)), draw.random()
    close(f(ad.asarray(x), y), x * k + y)


def run(url, token, without, seed, report, workers_are_killed):
    """Run some programs, one after another. Tell each time whether it has lost what it was changing when a worker was
    killed, and what went wrong."""
    global may_lose
    may_lose, draw = workers_are_killed, random.Random(seed)
    os.environ["ARRAYD_URL"] = url
    if token:
        os.environ["ARRAYD_TOKEN"] = token
    connect(url)
    mine = sorted(PROGRAMS.keys() - without)
    for _ in range(draw.randrange(5, 40)):
        name, number, lost = draw.choice(mine), draw.randrange(1 << 31), False
        try:
            PROGRAMS[name](Draw(number))
        except MemoryError:
            pass  # a quota, which others of the same user fill; what it says is tested elsewhere
        except BaseException as error:
            lost = is_lost(error)
            if not lost:
                report.send((name, number, False, traceback.format_exc()))
                os._exit(1)
        report.send((name, number, lost, None))


def connect(url):
    """The connection may break before there is a session to be taken up."""
    for left in range(50, -1, -1):
        try:
            ad.connect(url)
            return
        except ConnectionError:
            if not left:
                raise


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](Draw(int(sys.argv[2])))
