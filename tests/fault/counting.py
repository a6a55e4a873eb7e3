"""Counts in place, with uploads, downloads and reductions in between, and compares with NumPy.

    python counting.py SEED OPERATIONS LARGEST

The program connects to the server of $ARRAYD_URL. The last line that it prints is the number of times that its
session was taken up again."""
import os
import random
import sys

import numpy as np

import arrayd as ad

SIZE = 3000


def views(rng):
    """A slice, another one each time."""
    first = rng.randrange(SIZE - 1)
    return slice(first, rng.randrange(first + 1, SIZE + 1), rng.choice([1, 1, 1, 2, 7]))


def connect():
    """The connection may break before there is a session to be taken up."""
    for left in range(50, -1, -1):
        try:
            ad.connect(os.environ["ARRAYD_URL"])
            return
        except ConnectionError:
            if not left:
                raise


def main(seed, operations, largest):
    rng = random.Random(seed)
    connect()
    mine, theirs = np.zeros(SIZE, np.int64), ad.zeros(SIZE, np.int64)
    large = 0
    for _ in range(operations):
        at, what = views(rng), rng.random()
        if what < 0.90:
            mine[at] += 1
            theirs[at] += 1
        elif what < 0.94:
            values = np.arange(len(mine[at])) + rng.randrange(1000)
            mine[at] += values
            theirs[at] += ad.asarray(values)
        elif what < 0.97:
            assert int(theirs[at].sum()) == int(mine[at].sum())
        elif what < 0.98:
            np.testing.assert_array_equal(ad.asnumpy(theirs[at]), mine[at])
        elif what < 0.985:
            assert len(ad.nonzero(theirs[at])[0]) == np.count_nonzero(mine[at])  # makes arrays, and has an answer
        elif what < 0.99 and large < 15:
            large += 1
            block = np.full(rng.randrange(1, largest + 1), rng.randrange(256), np.uint8)
            sent = ad.asarray(block)
            sent += 1
            np.testing.assert_array_equal(ad.asnumpy(sent), block + np.uint8(1))
    np.testing.assert_array_equal(ad.asnumpy(theirs), mine)
    assert int(theirs.sum()) == int(mine.sum())
    print(ad.stat()["resumes"])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
