"""The programs of docs/examples, small."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "docs/examples"))

import gaussian_mixture  # noqa: E402
import kmeans  # noqa: E402
import numpy  # noqa: E402
import option_prices  # noqa: E402


def k_means(xp):
    return kmeans.fit(xp, kmeans.points(xp, 500, 5, 1), 5, 6)


def mixture(xp):
    return gaussian_mixture.fit(xp, gaussian_mixture.points(xp, 400, 3, 4, 2), 4, 5)


def black_scholes(xp):
    rng = numpy.random.default_rng(3)
    price, strike, years = (xp.asarray(rng.uniform(low, high, 300)) for low, high in ((5, 30), (1, 100), (0.25, 10)))
    return option_prices.black_scholes(xp, price, strike, years)
