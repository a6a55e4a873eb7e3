"""A mixture of Gaussians with diagonal covariances, fitted by expectation and maximisation.

gaussian_mixture.py [--points N] [--dimensions D] [--components K] [--seed S] [--library arrayd]: prints the mean
log-likelihood and the time.
"""
import argparse
import importlib
import math
import time


def points(xp, n, dimensions, components, seed):
    """n points of a random mixture, float64, (n, dimensions); drawn by NumPy for all libraries alike."""
    import numpy
    rng = numpy.random.default_rng(seed)
    means = rng.uniform(-3, 3, (components, dimensions))
    which = rng.integers(0, components, n)
    return xp.asarray(means[which] + rng.normal(0, 0.5, (n, dimensions)))


def log_density(xp, x, mean, variance):
    """Logarithm of each component's density at each point, (n, components)."""
    precision = 1 / variance
    square = (x * x) @ precision.T - 2 * (x @ (mean * precision).T) + (mean * mean * precision).sum(axis=1)
    return -0.5 * (square + xp.log(variance).sum(axis=1) + x.shape[1] * math.log(2 * math.pi))


def expect(xp, x, weight, mean, variance):
    """Each component's part in each point, (n, components), and the mean log-likelihood."""
    joint = log_density(xp, x, mean, variance) + xp.log(weight)
    top = joint.max(axis=1, keepdims=True)
    total = top + xp.log(xp.exp(joint - top).sum(axis=1, keepdims=True))
    return xp.exp(joint - total), total.mean()


def maximise(xp, x, part):
    """Weights, means and variances that fit best if these are the parts."""
    count = part.sum(axis=0) + 1e-10
    mean = (part.T @ x) / count[:, None]
    variance = (part.T @ (x * x)) / count[:, None] - mean * mean + 1e-6
    return count / x.shape[0], mean, variance


def fit(xp, x, components, steps):
    """The mean log-likelihood after so many steps, begun with the first points as means."""
    weight = xp.full(components, 1 / components)
    mean, variance = x[:components].copy(), xp.ones((components, x.shape[1]))
    for _ in range(steps):
        part, likelihood = expect(xp, x, weight, mean, variance)
        weight, mean, variance = maximise(xp, x, part)
    return likelihood


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=500_000)
    parser.add_argument("--dimensions", type=int, default=4)
    parser.add_argument("--components", type=int, default=6)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library", default="arrayd")
    options = parser.parse_args()
    xp = importlib.import_module(options.library)
    x = points(xp, options.points, options.dimensions, options.components, options.seed)
    begin = time.perf_counter()
    likelihood = float(fit(xp, x, options.components, options.steps))
    print(f"log-likelihood {likelihood:.6f} {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
