"""k-means clustering of points in the plane, on arrayd or, with --library numpy or cupy, on another array library.

kmeans.py [--points N] [--clusters K] [--seed S] [--library arrayd]: prints the spread within clusters and the time.
"""
import argparse
import importlib
import time


def points(xp, n, clusters, seed):
    """n points around as many random centres as there are clusters, float32, (n, 2); drawn by NumPy for all alike."""
    import numpy
    rng = numpy.random.default_rng(seed)
    centres = rng.uniform(-10, 10, (clusters, 2))
    which = rng.integers(0, clusters, n)
    return xp.asarray((centres[which] + rng.normal(0, 0.7, (n, 2))).astype(numpy.float32))


def assign(xp, x, centres):
    """The nearest centre of each point and the squared distance to it."""
    distance = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return distance.argmin(axis=1), distance.min(axis=1)


def fit(xp, x, clusters, steps):
    """Lloyd's algorithm from the first points: centres (clusters, 2) and the mean squared distance to the nearest."""
    centres = x[:clusters].copy()
    members = xp.arange(clusters)
    for _ in range(steps):
        nearest, _ = assign(xp, x, centres)
        mine = (nearest[:, None] == members[None, :]).astype(x.dtype)
        count = xp.maximum(mine.sum(axis=0), 1)
        centres = (mine.T @ x) / count[:, None]
    return centres, assign(xp, x, centres)[1].mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library", default="arrayd")
    options = parser.parse_args()
    xp = importlib.import_module(options.library)
    x = points(xp, options.points, options.clusters, options.seed)
    begin = time.perf_counter()
    _, spread = fit(xp, x, options.clusters, options.steps)
    spread = float(spread)
    print(f"spread {spread:.5f} {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
