"""A session that uses its device much is moved to a stream of low priority, and nothing else changes."""
import numpy as np

import arrayd as ad


def test_order_is_kept_when_a_session_becomes_busy_and_calm_again():
    rng = np.random.default_rng(5)
    host = (rng.random((512, 512)) / 256).astype("float32")
    a, x, n = ad.asarray(host), ad.ones((512, 512), "float32"), ad.zeros(100, "int64")
    expected = np.ones((512, 512), "float32")
    for i in range(60):
        for _ in range(5):
            x = x @ a
            n += 1
        x = x / x.max() + n[0] % 2
        expected = np.linalg.multi_dot([expected] + [host] * 5)
        expected = expected / expected.max() + (5 * (i + 1)) % 2
        if i % 20 == 19:
            np.testing.assert_allclose(x.get(), expected, rtol=1e-3)
            assert (n.get() == 5 * (i + 1)).all()


def test_events_and_waits_cover_what_a_busy_session_does():
    a = ad.asarray((np.random.default_rng(6).random((1024, 1024)) / 512).astype("float32"))
    x = a
    start, end = ad.cuda.Event(), ad.cuda.Event()
    start.record()
    for _ in range(70):
        x = x @ a
    end.record()
    ad.cuda.get_current_stream().synchronize()
    assert end.done and start.done
    assert ad.cuda.get_elapsed_time(start, end) > 0
    ad.sync()
    assert np.isfinite(x.get()).all()
