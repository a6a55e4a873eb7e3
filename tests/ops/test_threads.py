"""Several threads on one session."""
import numpy as np

import arrayd as ad
from oracle import in_threads


def test_threads_compute_independently():
    def body(number):
        rng = np.random.default_rng(number)
        for _ in range(40):
            x = rng.normal(size=(20, 30))
            d = ad.asarray(x)
            np.testing.assert_allclose((ad.sqrt(d * d + number) @ d.T).get(), np.sqrt(x * x + number) @ x.T, rtol=1e-9)
    in_threads(6, body)


def test_threads_share_an_array():
    total = ad.zeros((8, 1000), np.int64)

    def body(number):
        row = total[number]
        for i in range(200):
            row += i
    in_threads(8, body)
    np.testing.assert_array_equal(total.get(), np.full((8, 1000), sum(range(200))))


def test_errors_stay_with_their_thread():
    def body(number):
        x = ad.arange(10)
        for _ in range(30):
            if number % 2:
                try:
                    x[ad.asarray([99])].get()
                except IndexError:
                    continue
                raise AssertionError("no IndexError")
            assert x.sum().item() == 45
    in_threads(6, body)


def test_arrays_die_in_other_threads():
    ad.sync()
    before = ad.stat()["buffers"]
    made = [ad.zeros(10) for _ in range(100)]

    def body(number):
        for i in range(number, 100, 4):
            made[i] = None
            ad.ones(3)
    in_threads(4, body)
    ad.sync()
    assert ad.stat()["buffers"] == before
